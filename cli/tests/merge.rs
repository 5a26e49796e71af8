//! `mpp merge`: profiles of many processes as one.

mod common;

use std::process::Command;

use common::{Place, json, ran};
use serde_json::Value;

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) char *keep(void) { return memset(malloc(4000), 1, 4000); }
int main(int argc, char **argv) { for (int i = 0; i < atoi(argv[1]); i++) keep(); return 0; }
"#;

fn record(place: &Place, name: &str, blocks: u32, sample: &str) {
    let program = place.compile("keeps", PROGRAM, &["-g", "-O1"]);
    let mut command = place.mpp();
    command.args(["run", "-q", "--sample", sample, "-o", name, "--"]).arg(program).arg(blocks.to_string());
    ran(&mut command).exits(0);
}

fn top(place: &Place, input: &str) -> Value {
    json(&place.run(["top", "-q", input, "--format", "json"]).exits(0).stdout)
}

#[test]
fn profiles_add_up_and_need_the_program_no_more() {
    let place = Place::new();
    record(&place, "one", 100, "1");
    record(&place, "two", 300, "1");
    let expected: u64 = ["one", "two"].iter().filter_map(|name| top(&place, name)["total_bytes"].as_u64()).sum();
    place.run(["merge", "one", "two", "-o", "all.pb.gz"]).exits(0).says("2 inputs with ");
    std::fs::remove_file(place.path("keeps")).expect("the program");
    let merged = top(&place, "all.pb.gz");
    assert_eq!((merged["total_bytes"].as_u64(), &merged["rows"][0]["name"]), (Some(expected), &"keep".into()));
    // Same stacks have become one.
    assert_eq!(merged["rows"][0]["flat_blocks"], 400);
    place.run(["top", "all.pb.gz"]).exits(0).prints("counted ");
    place.run(["merge", "one", "-o", "all.pb.gz"]).exits(1).says("--force");
    place.run(["merge", "one", "gone", "-o", "other.pb.gz"]).exits(13).says("gone: No such file");
    assert!(!place.path("other.pb.gz").exists(), "no half result stays");
}

#[test]
fn sampling_rates_may_differ() {
    let place = Place::new();
    record(&place, "fine", 1000, "1");
    record(&place, "rough", 1000, "16KiB");
    place.run(["merge", "fine", "rough", "-o", "all.pb"]).exits(0).says("different sampling rates");
    let parts: u64 = ["fine", "rough"].iter().filter_map(|name| top(&place, name)["total_bytes"].as_u64()).sum();
    let merged = top(&place, "all.pb");
    assert!(merged["total_bytes"].as_u64().expect("bytes").abs_diff(parts) <= 2, "{merged:#}");
    assert_eq!(merged["sample_rate"], 16 * 1024);
}

/// What others read, if they are here; the result goes to a pipe as well.
#[test]
fn the_result_is_a_profile_for_pprof() {
    let place = Place::new();
    record(&place, "one", 100, "1");
    let output = place.mpp().args(["merge", "-q", "one", "one"]).output().expect("mpp runs");
    assert!(output.status.success());
    place.write("piped.pb.gz", output.stdout);
    assert_eq!(top(&place, "piped.pb.gz")["rows"][0]["flat_blocks"], 200);
    if Command::new("go").arg("version").output().is_ok_and(|output| output.status.success()) {
        let mut pprof = Command::new("go");
        pprof.args(["tool", "pprof", "-top", "-unit=B", "-sample_index=inuse_objects"]).arg(place.path("piped.pb.gz"));
        ran(pprof.env("HOME", place.path(""))).exits(0).prints("keep");
    }
}
