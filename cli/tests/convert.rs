//! `mpp convert` on a committed profile: what other tools make of it, and what `mpp` itself makes of it again.

mod common;

use std::process::Command;

use common::{Place, data, json};

const FORMATS: [&str; 8] = ["proto", "proto-gz", "dhat", "folded", "speedscope", "firefox", "csv", "callgrind"];

fn place() -> Place {
    let place = Place::new();
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    place
}

#[test]
fn folded_stacks_on_standard_output() {
    let ran = place().run(["convert", "names.heap", "--to", "folded", "--metric", "alloc"]).exits(0);
    assert_eq!(ran.stdout, "app.main;app.grow 3072\napp.main;app.parse;app.grow 1536\napp.main;lib.table 512\n");
    assert!(ran.stderr.contains("not in this format: metrics other than the one chosen"), "{}", ran.stderr);
}

#[test]
fn every_format_is_read_again_with_the_same_total() {
    let place = place();
    for format in FORMATS {
        place.run(["convert", "names.heap", "--to", format, "-o", format]).exits(0);
        let ran = place.run(["top", format, "--format", "json"]).exits(0);
        assert!(ran.stdout.contains("3584"), "{format}: {}", ran.stdout);
        assert!(ran.stdout.contains("app.grow"), "{format}: {}", ran.stdout);
    }
    for format in ["heap-v2", "gperftools", "jemalloc"] {
        place.run(["convert", "names.heap", "--to", format, "-o", format]).exits(0);
        let ran = place.run(["top", format, "--format", "json"]).exits(0);
        assert!(ran.stdout.contains("3584"), "{format}: {}", ran.stdout);
    }
    let refused = place.run(["convert", "names.heap", "--to", "csv", "-o", "csv"]).exits(1);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
}

#[test]
fn names_alone_cannot_become_addresses() {
    let place = place();
    std::fs::write(place.path("x.folded"), "main;grow 4096\n").expect("a file");
    let refused = place.run(["convert", "x.folded", "--to", "heap-v2"]).exits(13);
    assert!(refused.stderr.contains("names and no addresses"), "{}", refused.stderr);
    let cut = {
        std::fs::write(place.path("cut.folded"), "main;grow 4096\nmain;gr").expect("a file");
        place.run(["top", "cut.folded"]).exits(13)
    };
    assert!(cut.stderr.contains("cut.folded:2: the file is cut off"), "{}", cut.stderr);
}

#[test]
fn callgrind_annotate_reads_it() {
    let place = place();
    place.run(["convert", "names.heap", "--to", "callgrind", "-o", "callgrind.out"]).exits(0);
    let output = Command::new("callgrind_annotate")
        .current_dir(place.path("."))
        .args(["--auto=no", "--threshold=100", "--show=curB", "callgrind.out"])
        .output()
        .expect("this test needs callgrind_annotate (package valgrind)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("3,584") && text.contains("3,072") && text.contains("app.grow"), "{text}");
}

#[test]
fn shapes_of_speedscope_and_firefox() {
    let place = place();
    let convert = |format| json(&place.run(["-q", "convert", "names.heap", "--to", format]).exits(0).stdout);
    let speedscope = convert("speedscope");
    assert_eq!(speedscope["$schema"], "https://www.speedscope.app/file-format-schema.json");
    for profile in speedscope["profiles"].as_array().expect("profiles") {
        let weights = profile["weights"].as_array().expect("weights");
        assert_eq!(profile["samples"].as_array().expect("samples").len(), weights.len());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().expect("a number")).sum();
        assert_eq!(profile["endValue"], sum);
    }
    let firefox = convert("firefox");
    for thread in firefox["threads"].as_array().expect("threads") {
        for table in ["samples", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "markers"] {
            let table = thread[table].as_object().expect("a table");
            for (column, values) in table {
                if let Some(values) = values.as_array() {
                    assert_eq!(table["length"], values.len(), "{column}");
                }
            }
        }
    }
}

#[test]
fn google_pprof_reads_gperftools_text() {
    let place = place();
    place.run(["convert", "names.heap", "--to", "gperftools", "-o", "app.heap"]).exits(0);
    let pprof = |arguments: &[&str]| {
        let output = Command::new("google-pprof")
            .current_dir(place.path("."))
            .args(arguments)
            .args(["--text", "--show_bytes", "/bin/true", "app.heap"])
            .output()
            .expect("this test needs google-pprof (package google-perftools)");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (live, allocated) = (pprof(&["--inuse_space"]), pprof(&["--alloc_space"]));
    assert!(live.contains("Total: 3584 B"), "{live}");
    assert!(allocated.contains("Total: 5120 B"), "{allocated}");
}
