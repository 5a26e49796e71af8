//! `mpp top` on committed profiles.

mod common;

use std::process::{Command, Stdio};

use common::{Place, Ran, data, ran};

/// Runs `mpp top` on a fixture under its plain name, so that expected output does not depend on where it is.
fn top(place: &Place, name: &str, arguments: &[&str]) -> Ran {
    std::fs::copy(data(name), place.path(name)).expect("the fixture");
    ran(place.mpp().arg("top").args(arguments).arg(name))
}

/// The names of the rows, from CSV.
fn names(place: &Place, arguments: &[&str]) -> Vec<String> {
    let arguments = [arguments, &["--format", "csv"]].concat();
    let ran = top(place, "names.heap", &arguments).exits(0);
    ran.stdout.lines().skip(1).filter_map(|line| Some(line.split(',').nth(5)?.to_owned())).collect()
}

#[test]
fn text() {
    let expected = "\
live: 9.64 MiB ± 1.90 MiB in 93 blocks; estimated from 15 samples, one per 512 KiB; counted 5.00 MiB in 31 blocks
from: app.heap (mimalloc-pprof heap_v2 text)
stacks: complete for 89.0% of the bytes, 11.0% cut off (no unwind info); symbols: 0% with lines, 0% names only, 100% unknown
no names: app 55.9%, libshapes.so.2 44.1% (mpp modules app.heap says why)

    flat  flat%       cum   cum%  blocks  function               file:line
4.26 MiB  44.1%  4.26 MiB  44.1%      68  libshapes.so.2+0x11ff
4.23 MiB  43.9%  4.23 MiB  43.9%      24  app+0x114f
1.16 MiB  12.0%  1.16 MiB  12.0%       1  app+0x115f
3 more rows with 0% of flat (see --limit)
";
    assert_eq!(top(&Place::new(), "app.heap", &["--limit", "3"]).exits(0).stdout, expected);
}

#[test]
fn text_with_names() {
    let expected = "\
live: 3.50 KiB in 7 blocks; every block was recorded
from: names.heap (Go heap profile text)
stacks: the file does not say whether they are complete; symbols: 100% with lines, 0% names only, 0% unknown

    flat  flat%       cum   cum%  blocks  function   file:line
1.50 KiB  42.9%  1.50 KiB  42.9%       3  app.grow   /src/app/grow.go:21
1.50 KiB  42.9%  1.50 KiB  42.9%       3  app.grow   /src/app/grow.go:25
   512 B  14.3%     512 B  14.3%       1  lib.table  /src/lib/table.go:9
     0 B     0%  3.50 KiB   100%       0  app.main   /src/app/main.go:3
     0 B     0%  1.50 KiB  42.9%       0  app.parse  /src/app/parse.go:7
";
    assert_eq!(top(&Place::new(), "names.heap", &["-q", "--group", "line"]).exits(0).stdout, expected);
}

#[test]
fn csv() {
    let expected = "\
flat_bytes,flat_percent,cum_bytes,cum_percent,flat_blocks,function,file,line
3072,85.7143,3072,85.7143,6,app.grow,/src/app/grow.go,21
512,14.2857,512,14.2857,1,lib.table,/src/lib/table.go,9
0,0.0000,3584,100.0000,0,app.main,/src/app/main.go,3
0,0.0000,1536,42.8571,0,app.parse,/src/app/parse.go,7
";
    assert_eq!(top(&Place::new(), "names.heap", &["--format", "csv"]).exits(0).stdout, expected);
}

#[test]
fn markdown() {
    let ran = top(&Place::new(), "names.heap", &["--format", "md", "--limit", "1"]).exits(0);
    let table = "\
| flat | flat% | cum | cum% | blocks | function | file:line |
| ---: | ---: | ---: | ---: | ---: | --- | --- |
| 3.00 KiB | 85.7% | 3.00 KiB | 85.7% | 6 | `app.grow` | `/src/app/grow.go:21` |
";
    assert!(ran.stdout.contains(table), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("live: 3.50 KiB in 7 blocks; every block was recorded\n\nfrom: names.heap"));
}

#[test]
fn json_keeps_its_fields() {
    let ran = top(&Place::new(), "app.heap", &["--format", "json", "--limit", "1"]).exits(0);
    let mut found: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    found["mpp_version"] = "any".into();
    let expected = serde_json::json!({
        "schema": "mpp-top", "schema_version": 1, "mpp_version": "any",
        "source": "app.heap", "format": "mimalloc-pprof heap_v2 text", "processes": [],
        "metric": "live", "unit": "bytes", "sample_rate": 524_288, "samples": 15,
        "whole_bytes": 10_107_727, "whole_blocks": 93, "total_bytes": 10_107_727, "total_blocks": 93,
        "total_bytes_error": 1_989_101, "total_blocks_error": 25,
        "quality": {
            "stack_complete_bytes": 8_992_250, "stack_truncated_bytes": 1_115_477, "stack_unknown_bytes": 0,
            "with_line_bytes": 0, "name_only_bytes": 0, "unresolved_bytes": 10_107_727
        },
        "rows_total": 6,
        "rows": [{
            "name": "libshapes.so.2+0x11ff", "file": null, "line": null, "module": "libshapes.so.2",
            "resolved": false, "flat_bytes": 4_461_908, "flat_blocks": 68, "cum_bytes": 4_461_908,
            "cum_blocks": 68, "flat_percent": 44.1435, "cum_percent": 44.1435
        }]
    });
    assert_eq!(found, expected);
}

#[test]
fn rows_are_chosen() {
    let place = Place::new();
    assert_eq!(names(&place, &[]), ["app.grow", "lib.table", "app.main", "app.parse"]);
    assert_eq!(names(&place, &["--limit", "2"]), ["app.grow", "lib.table"]);
    assert_eq!(names(&place, &["--min-percent", "50"]), ["app.grow", "app.main"]);
    assert_eq!(names(&place, &["--sort", "cum"]), ["app.main", "app.grow", "app.parse", "lib.table"]);
    assert_eq!(names(&place, &["--focus", "parse"]), ["app.grow", "app.main", "app.parse"]);
    assert_eq!(names(&place, &["--focus", "table.go"]), ["lib.table", "app.main"]);
    assert_eq!(names(&place, &["--ignore", "^app.parse$"]), ["app.grow", "lib.table", "app.main"]);
    assert_eq!(names(&place, &["--group", "file", "--limit", "1"]), ["/src/app/grow.go"]);
    top(&place, "names.heap", &["--focus", "("]).exits(2);
}

#[test]
fn percentages_are_of_the_whole_profile() {
    let place = Place::new();
    let ran = top(&place, "names.heap", &["-q", "--focus", "parse"]).exits(0);
    ran.prints("selected: 42.9% of 3.50 KiB").prints("1.50 KiB  42.9%  1.50 KiB  42.9%       3  app.grow");
}

#[test]
fn other_metrics_and_units() {
    let place = Place::new();
    let first = |arguments: &[&str]| {
        let arguments = [arguments, &["--format", "csv", "--limit", "1"]].concat();
        let ran = top(&place, "names.heap", &arguments).exits(0);
        ran.stdout.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(first(&["--unit", "blocks"]), "6,85.7143,6,85.7143,3072,app.grow,/src/app/grow.go,21");
    assert_eq!(first(&["--metric", "alloc"]), "4608,90.0000,4608,90.0000,9,app.grow,/src/app/grow.go,25");
    assert_eq!(first(&["--metric", "freed"]), "1536,100.0000,1536,100.0000,3,app.grow,/src/app/grow.go,25");
    let libraries = top(&place, "app.heap", &["--group", "lib"]).exits(0);
    libraries.prints("library").prints("app").prints("libshapes.so.2");
}

#[test]
fn colour_is_for_terminals_and_those_who_ask() {
    let place = Place::new();
    let is_coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        std::fs::copy(data("names.heap"), place.path("x")).expect("the fixture");
        let mut command = place.mpp();
        command.args(["top", "-q", "x"]).args(arguments).envs(variables.iter().copied());
        ran(&mut command).exits(0).stdout.contains('\u{1b}')
    };
    assert!(!is_coloured(&[], &[]), "a pipe is no terminal");
    assert!(is_coloured(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(is_coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!is_coloured(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured(&["--color", "always", "--format", "csv"], &[]));
}

#[test]
fn files_are_not_replaced_by_accident() {
    let place = Place::new();
    place.write("report", "precious");
    top(&place, "names.heap", &["-o", "report"]).exits(1).says("--force");
    assert_eq!(std::fs::read_to_string(place.path("report")).expect("the file"), "precious");
    assert_eq!(top(&place, "names.heap", &["-o", "report", "--force"]).exits(0).stdout, "");
    assert!(std::fs::read_to_string(place.path("report")).expect("the file").starts_with("live:"));
    top(&place, "names.heap", &["-o", "-"]).exits(0).prints("app.grow");
    top(&place, "names.heap", &["-o", "no/such/folder"]).exits(1).says("no/such/folder");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Place::new();
    let mut child = place
        .mpp()
        .args(["top", "-q", &data("names.heap"), "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mpp starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("mpp ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let place = Place::new();
    let mut command = place.mpp();
    command.args(["top", "-q", &data("names.heap")]).stdout(full).stderr(Stdio::piped());
    let output = command.spawn().and_then(|child| child.wait_with_output()).expect("mpp runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
}

#[test]
fn standard_input_is_an_input() {
    let place = Place::new();
    let profile = std::fs::File::open(data("names.heap")).expect("the fixture");
    let mut command: Command = place.mpp();
    command.args(["top", "-q", "-"]).stdin(profile);
    ran(&mut command).exits(0).prints("from: standard input (Go heap profile text)").prints("app.grow");
}

#[test]
fn code_made_at_run_time_is_named_by_its_perf_map() {
    let place = Place::new();
    let profile = "heap profile: 1: 4096 [1: 4096] @ heapprofile\n1: 4096 [1: 4096] @ 0x5000111\n\n\
                   MAPPED_LIBRARIES:\n5000000-5001000 r-xp 00000000 00:00 0\n";
    place.write("jit.heap", profile);
    place.write("perf.map", "5000100 20 compiled script.js:12\n");
    place.run(["top", "jit.heap", "--perf-map", "perf.map"]).exits(0).prints("compiled script.js:12");
    let without = place.run(["top", "jit.heap"]).exits(0);
    assert!(!without.stdout.contains("compiled"), "{}", without.stdout);
}
