//! Every verb on every kind of input, in circumstances that tools forget: standard input closed, no terminal, TERM=dumb, 40 columns.

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Place, Ran, data, json, ran, set_mode};

/// Verbs that read one profile, with what they need besides.
const VERBS: &[&[&str]] = &[
    &["top"],
    &["top", "--group", "size", "--metric", "alloc"],
    &["tree"],
    &["tree", "--inverted", "--group", "crate"],
    &["peek", "."],
    &["list", "."],
    &["stats"],
    &["leaks"],
    &["modules"],
    &["flame", "--format", "folded"],
    &["flame", "-o", "-"],
    &["check", "--max-live-end", "1GiB"],
    &["convert", "--to", "folded"],
    &["convert", "--to", "proto"],
    &["merge"],
    &["doctor"],
];

/// The inputs of these tests, and, if they are there, dumps by other people, which are not ours to copy.
fn inputs() -> Vec<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/data");
    let mut files: Vec<PathBuf> = vec![data("app.heap").into(), data("names.heap").into()];
    let mut folders = vec![ours];
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if shared.is_dir() {
        println!("found {}: its dumps are read, too", shared.display());
        folders.push(shared);
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_none_or(|extension| extension != "md") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}

/// Ends as the contract says, without a bug, an escape sequence, or half a sentence on standard output.
#[track_caller]
fn ends_well(found: &Ran, allowed: &[i32], what: &str) {
    assert!(found.status.is_some_and(|status| allowed.contains(&status)), "{what}: {found:#?}");
    assert!(!found.stderr.contains("internal error"), "{what}: {found:#?}");
    // A profile may have any byte in it.
    let is_binary = ["proto", "merge"].iter().any(|word| what.contains(word));
    for text in [&found.stderr].into_iter().chain((!is_binary).then_some(&found.stdout)) {
        assert!(!text.contains('\u{1b}'), "{what}: {found:#?}");
    }
    if found.status == Some(13) {
        assert!(found.stdout.is_empty() && found.stderr.starts_with("mpp: error: "), "{what}: {found:#?}");
    }
}

#[test]
fn every_input_through_every_verb() {
    let place = Place::new();
    for input in inputs() {
        // What is no heap profile is refused by all alike.
        let first = ran(place.mpp().args(["top", "-q", "--format", "csv"]).arg(&input));
        ends_well(&first, &[0, 13], &format!("top {}", input.display()));
        for verb in VERBS {
            let mut command = place.mpp();
            command.args(*verb).arg("-q").arg(&input).env("TERM", "dumb").env("COLUMNS", "40");
            let found = run_bounded(&mut command);
            let what = format!("{verb:?} {}", input.display());
            match first.status {
                // A profile without live memory, lines or such a metric is said to be that.
                Some(0) => ends_well(&found, &[0, 2, 10, 11, 14], &what),
                // What is no input may be a program to the doctor.
                _ => ends_well(&found, if verb[0] == "doctor" { &[13, 14] } else { &[13] }, &what),
            }
        }
    }
}

/// As [`ran`], but for no longer than a reader waits.
fn run_bounded(command: &mut std::process::Command) -> Ran {
    let began = Instant::now();
    let found = ran(command);
    assert!(began.elapsed() < Duration::from_secs(60), "it takes for ever: {command:?}");
    found
}

#[test]
fn json_is_json_everywhere() {
    let place = Place::new();
    for input in [data("app.heap"), data("names.heap")] {
        let verbs = [
            &["top"][..],
            &["tree"],
            &["peek", "."],
            &["stats"],
            &["leaks"],
            &["modules"],
            &["doctor"],
            &["check", "--max-live-end", "1GiB"],
        ];
        for verb in verbs {
            let found = place.run([verb, &["-q", "--format", "json", &input]].concat()).exits(0);
            let value = json(&found.stdout);
            assert_eq!(value["schema"], format!("mpp-{}", verb[0]), "{verb:?}");
            assert_eq!(value["schema_version"], 1, "{verb:?}");
        }
    }
    let found = place.run(["diff", "-q", "--format", "json", &data("names.heap"), &data("names.heap")]).exits(0);
    assert_eq!(json(&found.stdout)["schema"], "mpp-diff");
}

/// Lines for a narrow screen, without colours, and no waiting for input that never comes.
#[test]
fn narrow_dumb_and_closed() {
    let place = Place::new();
    let inputs = [data("names.heap"), data("app.heap")];
    for verb in VERBS.iter().filter(|verb| !["convert", "merge", "flame"].contains(&verb[0])) {
        for input in &inputs {
            let closed = "exec <&- ; exec \"$0\" \"$@\"";
            let mut command = std::process::Command::new("bash");
            command.arg("-c").arg(closed).arg(env!("CARGO_BIN_EXE_mpp")).args(*verb).arg("-q").arg(input);
            command.current_dir(place.path("")).env("TERM", "dumb").env("COLUMNS", "40").stdin(Stdio::null());
            command
                .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
                .env_remove("NO_COLOR")
                .env_remove("CLICOLOR_FORCE");
            let found = ran(&mut command);
            ends_well(&found, &[0, 2, 14], &format!("{verb:?} {input}"));
        }
    }
    // The table of a report keeps to the width; sentences are for the terminal to wrap.
    let found = ran(place.mpp().args(["top", "-q", &inputs[0]]).env("COLUMNS", "40"));
    let table = found.stdout.split_once("\n\n").expect("a table").1.to_owned();
    assert!(table.lines().all(|line| line.chars().count() <= 40), "{table}");
}

/// A reader that has seen enough is no error.
#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Place::new();
    for verb in ["top", "tree", "stats", "leaks", "modules"] {
        let script =
            format!("set -o pipefail; \"$0\" {verb} -q {} --limit 0 --format json | head -c 1", data("names.heap"));
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_mpp")]).current_dir(place.path(""));
        let found = ran(command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")));
        assert_eq!((found.status, found.stderr.as_str()), (Some(0), ""), "{verb}: {found:#?}");
    }
}

/// Files that are no files, or not what they seem.
#[test]
fn odd_inputs_are_refused_by_all() {
    let place = Place::new();
    place.write("empty", "");
    place.write("one", "x");
    place.write("utf16", b"\xff\xfeh\0e\0a\0p\0".as_slice());
    place.write("bom", format!("\u{feff}{}", std::fs::read_to_string(data("app.heap")).expect("the fixture")));
    let dump = std::fs::read_to_string(data("app.heap")).expect("the fixture");
    place.write("twice", format!("{dump}{dump}"));
    place.write("new\nline", "x");
    let unreadable = place.write("unreadable", "x");
    set_mode(&unreadable, 0o000);
    std::os::unix::fs::symlink("nowhere", place.path("dangling")).expect("a link");
    std::fs::File::create(place.path("sparse")).and_then(|file| file.set_len(4 << 30)).expect("a sparse file");
    std::fs::create_dir(place.path("folder")).expect("a folder");
    for name in [
        "empty",
        "one",
        "utf16",
        "twice",
        "new\nline",
        "dangling",
        "sparse",
        "folder",
        "/dev/null",
        "/proc/self/status",
    ] {
        for verb in VERBS {
            let found = run_bounded(place.mpp().args(*verb).arg("-q").arg(name));
            // A folder is a program to nobody, and a name that is not there may be one.
            let allowed: &[i32] = if verb[0] == "doctor" { &[13, 14] } else { &[13] };
            ends_well(&found, allowed, &format!("{verb:?} {name:?}"));
        }
    }
    let found = place.run(["top", "-q", "bom"]);
    ends_well(&found, &[0, 13], "bom");
}

/// 10 MB that become 10 GB are given up early.
#[test]
fn bombs_are_bounded() {
    let place = Place::new();
    let zeroes = std::process::Command::new("bash")
        .args([
            "-c",
            "(printf 'heap profile: 1: 4096 [1: 4096] @ heap_v2/1\\n'; head -c 3G /dev/zero) | gzip -1 > bomb.gz",
        ])
        .current_dir(place.path(""))
        .status();
    assert!(zeroes.expect("bash").success());
    for verb in [&["top"][..], &["stats"], &["merge"]] {
        let script = "ulimit -v 4000000; exec \"$0\" \"$@\"";
        let mut command = std::process::Command::new("bash");
        command
            .args(["-c", script, env!("CARGO_BIN_EXE_mpp")])
            .args(verb)
            .args(["-q", "bomb.gz"])
            .current_dir(place.path(""));
        let found = run_bounded(command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")));
        ends_well(&found, &[13], &format!("{verb:?}"));
    }
}
