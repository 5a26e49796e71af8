//! Recording folders as input: which one, which process.

mod common;

use std::time::{Duration, SystemTime};

use common::{Place, data};

/// Makes a recording with a profile for each process, which ended so many seconds ago.
fn record(place: &Place, folder: &str, started: u32, pids: &[u32], seconds_ago: u64) {
    for pid in pids {
        let name = if *pid == started { "names.heap" } else { "app.heap" };
        place.write(&format!("{folder}/{pid}/heap.prof"), std::fs::read(data(name)).expect("the fixture"));
    }
    let index = serde_json::json!({
        "schema": "mpp-recording", "schema_version": 1, "mpp_version": "0.1.0", "command": ["app"],
        "environment": [], "cwd": "/", "started": "2026-11-30T10:14:33.120Z", "ended": null,
        "sample_rate": 1, "follow": "exec", "pid": started, "exit_status": 0, "exit_signal": null,
        "processes": []
    });
    let path = place.write(&format!("{folder}/recording.json"), index.to_string());
    let time = SystemTime::now() - Duration::from_secs(seconds_ago);
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the index");
    file.set_modified(time).expect("a changed time");
}

#[test]
fn the_newest_is_taken_and_named() {
    let place = Place::new();
    record(&place, "old", 10, &[10], 300);
    record(&place, "deep/new", 11, &[11], 100);
    record(&place, "older", 12, &[12], 500);
    record(&place, ".hidden", 13, &[13], 0);
    record(&place, "too/deep/down", 14, &[14], 0);
    let ran = place.run(["top"]).exits(0).says("reading deep/new").prints("from: process 11");
    assert!(ran.stdout.contains("app.grow"), "{ran:?}");
    place.run(["flame"]).exits(0).says("reading deep/new");
    assert!(place.run(["top", "-q"]).exits(0).stderr.is_empty());
    record(&place, "old", 10, &[10], 50);
    place.run(["top"]).exits(0).says("reading old");
}

#[test]
fn the_process_that_was_started_is_shown() {
    let place = Place::new();
    record(&place, "r", 20, &[7, 20, 300], 0);
    let ran = place.run(["top", "r"]).exits(0).prints("from: process 20").prints("app.grow");
    let ran = ran.prints("not shown: 2 other processes; --all adds them up, --pid shows one of 7, 300");
    assert!(!ran.stdout.contains("libshapes"), "{ran:?}");
    place.run(["top", "r", "--pid", "300"]).exits(0).prints("from: process 300 app (").prints("libshapes");
    place.run(["top", "r", "--pid", "8"]).exits(13).says("of 7, 20, 300");
    place.run(["top", "r", "--pid", "7", "--all"]).exits(2);
}

#[test]
fn processes_add_up() {
    let place = Place::new();
    record(&place, "r", 20, &[7, 300], 0);
    let one = place.run(["top", "r", "--pid", "7", "--format", "json"]).exits(0);
    let all = place.run(["top", "r", "--all", "--format", "json"]).exits(0);
    let number = |text: &str, key: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON")[key].as_u64();
    assert_eq!(number(&all.stdout, "samples"), number(&one.stdout, "samples").map(|samples| 2 * samples));
    assert_eq!(number(&all.stdout, "total_bytes"), number(&one.stdout, "total_bytes").map(|bytes| 2 * bytes));
    place.run(["top", "r", "--all"]).exits(0).prints("from: 2 processes (r)");
}

#[test]
fn rates_that_differ_are_added_up_as_estimates() {
    let place = Place::new();
    record(&place, "r", 20, &[7, 20], 0);
    place.run(["top", "r", "--all"]).exits(0).says("different sampling rates");
}

#[test]
fn a_folder_without_an_index_will_do() {
    let place = Place::new();
    place.write("r/55/heap.prof", std::fs::read(data("names.heap")).expect("the fixture"));
    place.run(["top", "r"]).exits(0).prints("from: process 55").prints("app.grow");
}

#[test]
fn a_recording_without_profiles_says_so() {
    let place = Place::new();
    record(&place, "r", 20, &[], 0);
    place.run(["top", "r"]).exits(13).says("holds no profile");
}

#[test]
fn paths_in_an_index_are_not_followed() {
    let place = Place::new();
    record(&place, "r", 20, &[20], 0);
    let index = std::fs::read_to_string(place.path("r/recording.json")).expect("the index");
    let process = r#""processes":[{"pid":20,"ppid":null,"exe":null,"dump":"../../../etc/passwd","live_bytes":1}]"#;
    place.write("r/recording.json", index.replace(r#""processes":[]"#, process));
    place.run(["top", "r"]).exits(0).prints("app.grow");
    place.write("r/recording.json", "{ not json");
    place.run(["top", "r"]).exits(0).prints("app.grow");
}
