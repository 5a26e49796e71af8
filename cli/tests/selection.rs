//! What of a profile a report shows: the selection flags, on a program whose allocations are known.

mod common;

use common::{Place, data, json, ran, workload};
use serde_json::Value;

fn top(place: &Place, input: &str, arguments: &[&str]) -> Value {
    json(&place.run([&["top", "--format", "json", input], arguments].concat()).exits(0).stdout)
}

fn names(report: &Value) -> Vec<String> {
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    report["rows"].as_array().expect("rows").iter().map(name).collect()
}

/// The names of the rows of a fixture.
fn of_fixture(arguments: &[&str]) -> Vec<String> {
    let place = Place::new();
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    names(&top(&place, "names.heap", arguments))
}

#[test]
fn frames_are_hidden_and_stacks_begin_where_the_user_says() {
    assert_eq!(of_fixture(&[]), ["app.grow", "lib.table", "app.main", "app.parse"]);
    assert_eq!(of_fixture(&["--hide", "grow"]), ["app.main", "app.parse", "lib.table"]);
    assert_eq!(of_fixture(&["--show-from", "parse"]), ["app.grow", "app.parse"]);
    assert_eq!(of_fixture(&["--show-from", "parse", "--hide", "grow.go"]), ["app.parse"]);
}

#[test]
fn block_sizes_are_chosen() {
    for (sizes, expected) in [
        ("512", vec!["app.grow", "lib.table", "app.main", "app.parse"]),
        ("..511", vec![]),
        ("513..", vec![]),
        ("0.25KiB..0.5KiB", vec!["app.grow", "lib.table", "app.main", "app.parse"]),
    ] {
        assert_eq!(of_fixture(&["--size", sizes]), expected, "{sizes}");
    }
    let place = Place::new();
    for (sizes, expected) in
        [("..", "expected sizes such as"), ("9..8", "9 is more than 8"), ("x..", "does not start with a number")]
    {
        place.run(["top", "--size", sizes, "x"]).exits(2).says(expected);
    }
}

/// The first row is the user's own function, whatever is asked; groups add up; threads have their names.
#[test]
fn a_real_program_is_taken_apart() {
    let place = Place::new();
    let mut run = place.mpp();
    run.args(["run", "-q", "--sample", "16KiB", "--seed", "1", "-o", "rec", "--"]).arg(workload("leaky"));
    ran(run.stdout(std::process::Stdio::null())).exits(0);
    for (metric, first) in [
        ("live", "keep_1_mib"),
        ("peak", "keep_1_mib"),
        ("alloc", "make_scratch"),
        ("temp", "make_greetings"),
        ("freed", "make_scratch"),
    ] {
        let report = top(&place, "rec", &["--metric", metric, "--names", "short"]);
        assert_eq!(names(&report)[0], first, "{metric}");
        let file = report["rows"][0]["file"].as_str().expect("a file");
        assert!(file.ends_with("workloads/src/leaky/plain.rs") || file.ends_with("workloads/src/leaky/temporary.rs"));
    }
    let whole = top(&place, "rec", &[])["total_bytes"].as_u64().expect("a number");
    for group in ["function", "line", "file", "crate", "lib", "thread", "size"] {
        let report = top(&place, "rec", &["--group", group]);
        let rows = report["rows"].as_array().expect("rows");
        let sum: u64 = rows.iter().map(|row| row["flat_bytes"].as_u64().expect("bytes")).sum();
        assert_eq!((sum, report["total_bytes"].as_u64()), (whole, Some(whole)), "{group}");
    }
    let crates = names(&top(&place, "rec", &["--group", "crate", "--limit", "2"]));
    assert_eq!(crates, ["mpp_workloads", "leaky_plugin"]);
    let threads = names(&top(&place, "rec", &["--group", "thread"]));
    assert!(
        threads[0].starts_with("leaky (") && threads.iter().any(|name| name.starts_with("alive-1 (")),
        "{threads:?}"
    );
    let of_threads = top(&place, "rec", &["--thread", "^alive-", "--names", "short"]);
    assert_eq!(names(&of_threads)[0], "keep_list");
    assert!(of_threads["total_bytes"].as_u64() < Some(whole / 4), "{of_threads:#}");
    let sized = top(&place, "rec", &["--size", "1MiB", "--names", "short"]);
    assert_eq!((names(&sized)[0].as_str(), sized["total_blocks"].as_u64()), ("keep_1_mib", Some(16)));
    place.run(["top", "rec", "--size", "1MiB"]).exits(0).prints("selected: ");
}

/// What the report says of the whole process is a sum: its parts are the RSS to the byte, in JSON as in text.
#[test]
fn the_memory_of_the_process_adds_up() {
    let place = Place::new();
    let mut run = place.mpp();
    run.args(["run", "-q", "--sample", "16KiB", "--seed", "1", "-o", "rec", "--"]).arg(workload("leaky"));
    ran(run.stdout(std::process::Stdio::null())).exits(0);
    let memory = &top(&place, "rec", &[])["memory"];
    let of = |key: &str| memory[key].as_u64().unwrap_or_else(|| panic!("{key} in {memory}"));
    let parts = ["live", "retained", "profiler", "files", "stacks", "other"];
    assert_eq!(parts.iter().map(|part| of(part)).sum::<u64>(), of("resident"), "{memory}");
    // The program keeps what it has written to; of its files alone libc has more than a page.
    assert!(of("live") > 50 << 20 && of("live_not_resident") == 0, "{memory}");
    assert!(of("profiler") > 0 && of("files") > 4096 && of("stacks") > 0 && of("resident") < 1 << 30, "{memory}");
    let shown = place.run(["top", "rec"]).exits(0).stdout;
    let line = shown.lines().find(|line| line.starts_with("RSS: ")).expect("the line");
    assert!(parts.iter().take(5).all(|part| line.contains(&format!(" {part}"))), "{line}");
    // What was allocated in all is not what is in memory.
    let allocated = place.run(["top", "rec", "--metric", "alloc"]).exits(0).stdout;
    assert!(!allocated.lines().any(|line| line.starts_with("RSS: ")), "{allocated}");
    let narrow = ran(place.mpp().args(["top", "rec"]).env("COLUMNS", "40")).exits(0).stdout;
    let longest = narrow.lines().take_while(|line| !line.is_empty()).map(|line| line.chars().count()).max();
    assert!(longest <= Some(40), "{narrow}");
    assert_eq!(narrow.lines().filter(|line| line.starts_with("RSS: ")).count(), 1, "{narrow}");
}
