//! `mpp heapmap` on snapshots of a program that keeps one block in sixteen, so that every second page of its slabs could go.

mod common;

use common::{Place, json, ran};
use serde_json::Value;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 32000, KEEP = 16, SIZE = 512 };
static void *blocks[COUNT];

int main(int count, char **arguments) {
    for (int i = 0; i < COUNT; i++) blocks[i] = malloc(SIZE);
    for (int i = 0; i < COUNT; i++) if (i % KEEP) free(blocks[i]);
    void *large = malloc(3 << 20);
    if (count > 1) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    return large == 0;
}
"#;

fn recorded(arguments: &[&str], exact: bool) -> Place {
    let place = Place::new();
    let program = place.compile("sparse", PROGRAM, &["-O1"]);
    let what = if exact { "--mode=exact" } else { "--sample=64KiB" };
    let mut command = place.mpp();
    command.args(["run", "-q", what, "-o", "out"]).args(arguments).arg("--").arg(program);
    ran(&mut command).exits(0);
    place
}

#[track_caller]
fn adds_up(of: &Value) {
    let bytes = |name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{name} of {of:#}"));
    let parts = ["live", "pinned", "empty", "returned", "unused", "unknown"];
    let sum: u64 = parts.iter().map(|part| bytes(&format!("{part}_bytes"))).sum();
    assert_eq!(bytes("space_bytes"), sum, "{of:#}");
}

/// The row of the program's blocks: what is known of it is what the program has done.
#[track_caller]
fn of_blocks(heapmap: &Value) -> Value {
    adds_up(&heapmap["total"]);
    let rows = heapmap["rows"].as_array().expect("rows");
    rows.iter().for_each(adds_up);
    let total: u64 = rows.iter().map(|row| row["space_bytes"].as_u64().unwrap()).sum();
    assert_eq!(heapmap["total"]["space_bytes"], total);
    let row = rows.iter().find(|row| row["group"] == "512 B").expect("a row of 512 B").clone();
    let kept = row["live_blocks"].as_u64().unwrap();
    assert!((2000..2050).contains(&kept), "{row:#}");
    let live = row["live_bytes"].as_u64().unwrap();
    assert_eq!(live, kept * 512);
    row
}

#[test]
fn sparse_slabs_are_seen() {
    for exact in [false, true] {
        let place = recorded(&["--heap-snapshot"], exact);
        let heapmap = json(&place.run(["heapmap", "out", "--format", "json"]).exits(0).stdout);
        assert_eq!((&heapmap["schema"], &heapmap["has_blocks"]), (&"mpp-heapmap".into(), &true.into()));
        let row = of_blocks(&heapmap);
        let bytes = |name: &str| row[name].as_u64().unwrap() as f64;
        // Every second page has one block, which pins the other seven eighths.
        assert!((bytes("pinned_bytes") / bytes("live_bytes") - 7.0).abs() < 0.5, "{row:#}");
        let free_pages = bytes("empty_bytes") + bytes("returned_bytes");
        assert!((free_pages / (8.0 * bytes("live_bytes")) - 1.0).abs() < 0.1, "{row:#}");
        // A newest recording needs no name.
        let text = place.run(["heapmap"]).exits(0).prints("= live").prints("single ≤ 4.00 MiB").stdout;
        let line = text.lines().find(|line| line.starts_with("512 B")).expect("a row");
        assert!(line.chars().any(|char| ('▁'..='█').contains(&char)), "{line}");
        assert!(
            text.contains("less than a fifth of each kept page is live") && text.contains("blocks of 512 B pin"),
            "{text}"
        );
        let svg = place.run(["heapmap", "--format", "svg", "--limit", "1"]).exits(0).stdout;
        assert!(svg.ends_with("</svg>\n") && svg.contains("rows are not shown"));
        place.run(["heapmap", "--group", "thread", "--format", "csv"]).exits(0).prints("group,slabs,live_blocks");
        place.run(["heapmap", "--group", "heap", "--format", "md"]).exits(0).prints("| `heap 0` |");
    }
}

#[test]
fn a_process_that_runs() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let place = Place::new();
    let program = place.compile("sparse", PROGRAM, &["-O1"]);
    let mut command = place.mpp();
    command.args(["run", "-q", "--ctl", "-o", "out", "--"]).arg(program).arg("wait");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("mpp");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let pid = place.recorded_process("out");
    place.run(["ctl", &pid, "snapshot"]).exits(2).says("snapshot takes 1 arguments");
    place.run(["ctl", &pid, "snapshot", "no/such/folder"]).exits(1).says("cannot be written");
    place.run(["ctl", &pid, "snapshot", "now.heap"]).exits(0).prints("now.heap");
    child.stdin.take().expect("a pipe").write_all(b"\n").expect("an answer");
    assert!(child.wait().expect("its end").success());
    of_blocks(&json(&place.run(["heapmap", "now.heap", "--format", "json"]).exits(0).stdout));
}

/// The format that others read, with and without blocks.
#[test]
fn version_1() {
    let at_exit = |kind: &str| {
        let (on_exit, path) = (format!("--env=MIMALLOC_SNAPSHOT_ON_EXIT={kind}"), "--env=MIMALLOC_SNAPSHOT_PATH=s");
        recorded(&[&on_exit, path], false)
    };
    let place = at_exit("2");
    of_blocks(&json(&place.run(["heapmap", "s", "--format", "json"]).exits(0).stdout));
    let place = at_exit("1");
    let found = place.run(["heapmap", "s", "--format", "json"]).exits(0).says("it has no blocks");
    let heapmap = json(&found.stdout);
    let row = of_blocks(&heapmap);
    assert!(row["unknown_bytes"].as_u64() > Some(1 << 20) && row["pinned_bytes"] == 0, "{row:#}");
    place.run(["heapmap", "s"]).exits(0).prints("+ not known").prints("?");
}

#[test]
fn what_is_no_snapshot() {
    let place = recorded(&["--heap-snapshot", "--env=MIMALLOC_SNAPSHOT_PATH=whole"], false);
    let whole = std::fs::read(place.path("whole")).expect("a snapshot");
    for cut in [0, 3, 4, 31, 100, whole.len() / 2, whole.len() - 1] {
        place.write("cut", &whole[..cut]);
        for format in ["text", "svg", "json"] {
            let found = place.run(["heapmap", "cut", "--format", format]).exits(13);
            assert!(found.stdout.is_empty() && found.stderr.contains("cut"), "{cut}: {found:#?}");
        }
    }
    place.run(["heapmap", "out"]).exits(13).says("holds no heap snapshot; `mpp run --heap-snapshot` writes one");
    place.run(["heapmap", "none"]).exits(13).says("none");
    place.run(["heapmap", "out", "--pid", "1"]).exits(13);
    place.run(["top", "whole"]).exits(13).says("mpp heapmap");
    let narrow = ran(place.mpp().args(["heapmap", "whole"]).env("COLUMNS", "60").env("TERM", "dumb")).exits(0);
    let table = narrow.stdout.split("\n\n").nth(1).expect("a table");
    assert!(table.lines().all(|line| line.chars().count() <= 60), "{table}");
}
