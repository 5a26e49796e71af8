//! Exact recordings: every block of a program whose truth is known, in a file that DHAT's viewer accepts.

mod common;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use common::{Place, json};
use serde_json::Value;

/// Keeps 1,000 blocks of 65,536 bytes from one line and 77 of 10 from another, and holds 900 of 100,000 at a time in between.
const LEAKY: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *kept[1000];
__attribute__((noinline)) static void leak_exact_64m(void) {
    for (int i = 0; i < 1000; i++) { kept[i] = malloc(65536); memset(kept[i], i, 16); } /* line 6 */
}
__attribute__((noinline)) static void leak_few(void) {
    for (int i = 0; i < 77; i++) { void **p = malloc(10); *p = kept[0]; kept[0] = p; } /* line 9 */
}
__attribute__((noinline)) static void hold(void) {
    void *held[900];
    for (int i = 0; i < 900; i++) held[i] = malloc(100000); /* line 13 */
    for (int i = 0; i < 900; i++) free(held[i]);
}
__attribute__((noinline)) static void noise(void) {
    for (int i = 0; i < 20000; i++) { char *p = malloc(100); p[0] = 1; free(p); } /* line 17 */
}
int main(void) { noise(); leak_few(); hold(); leak_exact_64m(); noise(); write(1, "done\n", 5); return kept[999] == 0; }
"#;

/// A program, recorded; the file's path.
fn recorded(place: &Place, arguments: &[&str]) -> (common::Ran, std::path::PathBuf) {
    place.compile("leaky", LEAKY, &["-g", "-O1", "-fno-builtin", "-w"]);
    let ran =
        place.run([&["run", "--mode", "exact", "-o", "rec"], arguments, &["--", "./leaky", "a\"b"]].concat()).exits(0);
    let index = json(&std::fs::read_to_string(place.path("rec/recording.json")).expect("the index"));
    let dump = index["processes"][0]["dump"].as_str().expect("a dump").to_owned();
    assert!(dump.ends_with("/dhat.json"), "{index}");
    assert_eq!(index["sample_rate"], 1);
    (ran, place.path(&format!("rec/{dump}")))
}

/// What `dh_view` asks of a file, and what it cannot ask.
fn check(file: &Value) {
    for key in [
        "dhatFileVersion",
        "mode",
        "verb",
        "bklt",
        "bkacc",
        "tu",
        "Mtu",
        "cmd",
        "pid",
        "te",
        "tg",
        "tuth",
        "pps",
        "ftbl",
    ] {
        assert!(!file[key].is_null(), "there is no {key}");
    }
    assert_eq!((&file["dhatFileVersion"], &file["bklt"], &file["bkacc"]), (&2.into(), &true.into(), &false.into()));
    let frames = file["ftbl"].as_array().expect("frames");
    assert_eq!(frames[0], "[root]");
    assert!(frames.iter().all(Value::is_string));
    assert!(file["tg"].as_u64() <= file["te"].as_u64() && file["pid"].as_u64() > Some(0), "{}", file["tg"]);
    let mut places = HashSet::new();
    for point in file["pps"].as_array().expect("points") {
        let number = |key: &str| point[key].as_u64().unwrap_or_else(|| panic!("{key} in {point}"));
        assert!(number("tl") > 0 || number("tbk") == 0 || file["te"].as_u64() < Some(1000), "{point}");
        for (bytes, blocks) in [("gb", "gbk"), ("eb", "ebk"), ("mb", "mbk")] {
            assert!(number(bytes) <= number("mb") && number("mb") <= number("tb"), "{point}");
            assert!(number(blocks) <= number("tbk"), "{point}");
        }
        let stack = point["fs"].as_array().expect("a stack");
        assert!(stack.iter().all(|frame| (1..frames.len() as u64).contains(&frame.as_u64().unwrap_or(0))), "{point}");
        assert!(!stack.is_empty() && places.insert(stack.clone()), "a repeated location: {point}");
    }
}

/// The sums of the viewer, by the viewer itself.
const VIEWER: &str = r#"
const fs = require('fs');
const script = fs.readFileSync(process.argv[1], 'utf8');
const run = new Function('file', 'document', script + `
  gSelect = { childNodes: gSelectData.map(() => ({})), selectedIndex: 0 };
  gData = JSON.parse(file);
  buildTree();
  return [gRoot._totalBytes, gRoot._totalBlocks, gRoot._atTGmaxBytes, gRoot._atTEndBytes].join(' ');
`);
console.log(run(fs.readFileSync(process.argv[2], 'utf8'), {}));
"#;

/// Sums of all points: in all, at the peak, at the end.
fn sums(file: &Value) -> [u64; 4] {
    let points = file["pps"].as_array().expect("points");
    ["tb", "tbk", "gb", "eb"].map(|key| points.iter().filter_map(|point| point[key].as_u64()).sum())
}

#[test]
fn every_block_is_there() {
    let place = Place::new();
    let (ran, dump) = recorded(&place, &[]);
    assert_eq!(ran.stdout, "done\n");
    assert!(ran.stderr.lines().count() <= 10, "{ran:#?}");
    let ran = ran.says("live at exit: 62.5 MiB in 1,077 blocks; every block was recorded");
    let ran = ran.says("allocated in all: 152 MiB in 41,977 blocks").says("at the peak: 85.8 MiB in 977 blocks");
    ran.says("leak_exact_64m").says("leaky.c:6").says("rec/flame.svg");

    let file = json(&std::fs::read_to_string(&dump).expect("the file"));
    check(&file);
    assert_eq!(file["mi_dhat_incomplete"], false);
    assert_eq!((&file["cmd"], &file["mode"]), (&"./leaky a\"b".into(), &"heap, by mimalloc-pprof".into()));
    let (leak, hold, noise) = (65_536_000, 90_000_000, 4_000_000);
    assert_eq!(sums(&file), [leak + hold + noise + 770, 41_977, hold + 770, leak + 770]);
    assert_eq!(file["mpp"]["peakBytes"], hold + 770);

    for (metric, name, bytes, line) in
        [("live", "leak_exact_64m", leak, 6), ("peak", "hold", hold, 13), ("alloc", "hold", hold, 13)]
    {
        let top = json(&place.run(["top", "rec", "--metric", metric, "-q", "--format", "json"]).exits(0).stdout);
        let first = &top["rows"][0];
        assert_eq!((&first["name"], &first["flat_bytes"], &first["line"]), (&name.into(), &bytes.into(), &line.into()));
        assert_eq!(top["quality"]["stack_complete_bytes"], top["total_bytes"]);
    }
    let folded =
        place.run(["flame", dump.to_str().expect("a path"), "--format", "folded", "--metric", "alloc"]).exits(0);
    folded.prints("main;noise 4000000").prints("main;leak_few 770");
}

/// Where Valgrind and a JavaScript engine are installed: the viewer's own code makes the same sums of it.
#[test]
fn the_viewer_accepts_it() {
    let viewer = Path::new("/usr/libexec/valgrind/dh_view.js");
    if !viewer.exists() || Command::new("node").arg("--version").output().is_err() {
        eprintln!("not run: this test needs valgrind and node");
        return;
    }
    let place = Place::new();
    let (_, dump) = recorded(&place, &["-q"]);
    let output = Command::new("node").args(["-e", VIEWER]).args([viewer, &dump]).output().expect("node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = json(&std::fs::read_to_string(&dump).expect("the file"));
    let expected = sums(&file).map(|sum| sum.to_string()).join(" ");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
}

#[test]
fn nothing_allocated_is_told() {
    let place = Place::new();
    place.compile("none", "int main(void) { return 0; }", &["-O1"]);
    place.run(["run", "--mode", "exact", "-o", "rec", "--", "./none"]).exits(0).says("no allocation was seen in none");
    place.run(["top", "rec"]).exits(0);
    for flag in ["--peak", "--every=1MiB", "--rss=100ms"] {
        let ran = place.run(["run", "--mode", "exact", "-o", "none", flag, "--", "./none"]).exits(2);
        ran.says("--mode exact takes none");
    }
}
