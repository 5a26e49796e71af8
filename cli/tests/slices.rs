//! Any time of a recording, for every verb: `--at`, `--from`, `--to`. And flame graphs by thread and in the terminal.

mod common;

use common::{Place, data, json, ran};

/// 8 MB for half a second, then 2 MB that stay.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) char *early(void) { return memset(malloc(8000), 1, 8000); }
__attribute__((noinline)) char *late(void) { return memset(malloc(2000), 1, 2000); }
static char *blocks[1000];
int main(void) {
    for (int i = 0; i < 1000; i++) blocks[i] = early();
    usleep(500 * 1000);
    for (int i = 0; i < 1000; i++) free(blocks[i]);
    usleep(100 * 1000);
    for (int i = 0; i < 1000; i++) late();
    usleep(100 * 1000);
    return 0;
}
"#;

#[test]
fn a_recording_at_any_time() {
    let place = Place::new();
    let program = place.compile("phases", PROGRAM, &["-g", "-O1"]);
    ran(place.mpp().args(["run", "-q", "--sample", "1KiB", "-o", "rec", "--"]).arg(program)).exits(0);
    let first = |arguments: &[&str]| {
        let found = json(&place.run([&["top", "-q", "rec", "--format", "json"], arguments].concat()).exits(0).stdout);
        found["rows"][0]["name"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(first(&[]), "late");
    // However slow the machine is: a quarter of a second after the start the first half is there, if it is at all.
    assert_eq!(first(&["--at", "400ms"]), "early");
    assert_eq!(first(&["--from", "500ms"]), "late");
    assert_eq!(first(&["--to", "400ms", "--metric", "alloc"]), "early");
    place.run(["top", "rec", "--at", "400ms"]).exits(0).prints(" at 0.400 s");
    let found =
        json(&place.run(["top", "-q", "rec", "--from", "100ms", "--to", "400ms", "--format", "json"]).exits(0).stdout);
    assert_eq!((&found["from_us"], &found["to_us"]), (&100_000.into(), &400_000.into()));
    place.run(["flame", "-q", "rec", "--at", "400ms", "-o", "-"]).exits(0).prints("live heap at 0.400 s");
    for verb in [
        &["tree"][..],
        &["stats"],
        &["leaks"],
        &["flame", "--format", "folded"],
        &["peek", "early"],
        &["check", "--max-live-end", "1GiB"],
    ] {
        let found = place.run([verb, &["-q", "rec", "--at", "400ms"]].concat()).exits(0);
        assert!(found.stdout.contains("early") || ["stats", "check"].contains(&verb[0]), "{found:#?}");
    }
    place.run(["top", "rec", "--at", "1h"]).exits(2).says("ends at ");
    place.run(["top", "rec", "--from", "2s", "--to", "1s"]).exits(2).says("later than");
    place.run(["top", &data("names.heap"), "--at", "1s"]).exits(2).says("has no times");
}

#[test]
fn flame_graphs_by_group_and_in_the_terminal() {
    let place = Place::new();
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    let folded = place.run(["flame", "-q", "names.heap", "--group", "size", "--format", "folded"]).exits(0).stdout;
    assert!(folded.lines().all(|line| line.starts_with("512 B to below 1.00 KiB;app.main")), "{folded}");
    let mut command = place.mpp();
    let drawn = ran(command.args(["flame", "-q", "names.heap", "--format", "term", "--flip"]).env("COLUMNS", "40"))
        .exits(0)
        .stdout;
    let expected = "▏all\n▏app.main\n▏app.grow        ▏app.parse       ▏lib.…\n                 ▏app.grow\n";
    let (heading, graph) = drawn.split_once("\n\n").expect("a heading");
    assert_eq!(graph, expected);
    assert!(heading.starts_with("live: ") && heading.contains("from: names.heap"), "{heading}");
    // Nothing is no picture.
    place.run(["flame", "-q", "names.heap", "--format", "term", "--focus", "nobody"]).exits(14);
}
