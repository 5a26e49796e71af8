//! `mpp-workload return`: under the C library's allocator, which keeps freed small blocks unless it is asked.

use std::process::{Command, Stdio};

use crate::support::run;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mpp-workload");

/// Runs a scenario at a small scale, which must end well, and gives its lines.
fn returned(arguments: &[&str]) -> Vec<Value> {
    let output = run(PROGRAM, &[&["return", "--scale", "0.1"], arguments].concat());
    assert_eq!((output.status, output.stderr.as_str()), (0, ""), "{arguments:?}");
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["schema"] == "memory-return" && line["damaged"] == 0), "{lines:?}");
    lines
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_drain_is_watched_from_outside() {
    for arguments in [
        &["churn", "--threads", "2", "--during", "busy", "--watch", "300ms"][..],
        &["churn", "--during", "same", "--order", "random", "--watch", "300ms"],
        &["alone", "--then", "pairs", "--watch", "300ms"],
        &["alone", "--then", "block", "--order", "random", "--watch", "300ms"],
    ] {
        let lines = returned(arguments);
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(line["malloc_from"].as_str().unwrap().contains("libc.so"), "{line}");
        let (rss, blocks) = (&line["rss"], 26.8 * f64::from(1 << 20));
        assert!(number(&rss["peak"]) >= number(&rss["start"]) + 0.9 * blocks, "{rss}");
        let samples = line["samples"].as_array().unwrap();
        let after = samples.iter().filter(|sample| number(&sample["ms"]) >= 0.0).count();
        assert!(after >= 2, "{samples:?}");
        // Small holes between survivors are kept by the C library.
        assert!(number(&line["returned"]["end"]) < 0.3, "{}", line["returned"]);
        assert_eq!(line["helpers"], Value::Array(vec![]));
    }
}

#[test]
fn who_asks_gets_memory_back() {
    let lines = returned(&["churn", "--threads", "2", "--call", "once", "--watch", "300ms"]);
    let line = &lines[0];
    assert_eq!((&line["purge"], &line["figures"]["purge_calls"]), (&"malloc_trim(0)".into(), &1.0.into()), "{line}");
    assert!(number(&line["returned"]["end"]) > 0.4 && number(&line["figures"]["purge_first_cpu_ms"]) > 0.0, "{line}");
    if let Some(charged) = line["truth"]["charged_returned"].as_f64().filter(|_| line["truth"]["group"] != Value::Null)
    {
        let is_own = line["truth"]["group"].as_str().unwrap().ends_with("own");
        assert!(!is_own || charged > 0.4, "{}", line["truth"]);
    }
}

#[test]
fn other_scenarios_tell_their_figures() {
    let figures = |arguments: &[&str], keys: &[&str]| {
        let lines = returned(arguments);
        for key in keys {
            assert!(number(&lines[0]["figures"][key]) > 0.0, "{key} of {arguments:?}: {}", lines[0]["figures"]);
        }
        lines[0].clone()
    };
    figures(
        &["alone", "--then", "loop", "--time", "50ms", "--pause", "0", "--watch", "0"],
        &["cycles", "cycle_cpu_ms"],
    );
    figures(&["turnover", "--size", "4096", "--rounds", "1000", "--watch", "0"], &["pair_ns"]);
    figures(&["latency", "--purged", "--watch", "0", "--scale", "0.01"], &["p50_ns", "max_ns", "purge_calls"]);
    let threads = figures(&["threads", "--threads", "8", "--watch", "0"], &[]);
    assert!(number(&threads["rss"]["peak"]) > number(&threads["rss"]["start"]), "{threads}");
    let burst = figures(&["burst", "--pause", "1ms", "--watch", "0"], &[]);
    assert!(number(&burst["rss"]["peak"]) > number(&burst["rss"]["start"]), "{burst}");
}

#[test]
fn nobody_wakes_an_idle_process_of_the_c_library() {
    let lines = returned(&["idle", "--watch", "600ms", "--settle", "200ms"]);
    assert_eq!(lines[0]["switches"], serde_json::json!({"voluntary": 0, "involuntary": 0}));
}

#[test]
fn system_calls_are_counted() {
    let lines = returned(&["turnover", "--size", "1048576", "--rounds", "50", "--trace"]);
    let [run, empty] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&run["kind"], &empty["kind"]), (&"calls".into(), &"calls-of-empty-run".into()));
    // The first mapping of that size is given back, and with it the threshold rises.
    let more = number(&run["calls"]["munmap"]) - number(&empty["calls"]["munmap"]);
    assert_eq!(more, 1.0, "{lines:?}");
    let lines = returned(&["churn", "--threads", "2", "--call", "once", "--trace"]);
    assert!(number(&lines[0]["marked"]["madvise"]) > 10.0, "{lines:?}");
}

#[test]
fn a_subject_without_an_observer_ends() {
    let arguments = ["return", "threads", "--scale", "0.01", "--subject"];
    let output = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 2 * 64));
}

/// An allocator that, asked for memory, changes a byte of every live block of 2048 B.
const HARMFUL: &str = "
    #include <stddef.h>
    void *__libc_malloc(size_t); void __libc_free(void *);
    static unsigned char *live[4096]; static unsigned count;
    void *malloc(size_t size) {
        unsigned char *block = __libc_malloc(size);
        if (size == 2048 && count < 4096) live[count++] = block;
        return block;
    }
    void free(void *block) {
        if (block) for (unsigned at = 0; at < count; at++) if (live[at] == block) live[at] = NULL;
        __libc_free(block);
    }
    void mi_purge_all(_Bool force) {
        for (unsigned at = 0; at < count; at++) if (live[at]) live[at][1000] ^= force;
    }
";

#[test]
fn a_survivor_that_was_changed_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("harmful.c"), folder.path().join("harmful.so"));
    std::fs::write(&source, HARMFUL).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.unwrap().success());
    let churn = |call: &str| {
        let arguments = ["return", "churn", "--scale", "0.01", "--watch", "100ms", "--call", call];
        let output = Command::new(PROGRAM).args(arguments).env("LD_PRELOAD", &library).output().unwrap();
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap()["damaged"].as_u64())
    };
    assert_eq!(churn("none"), (Some(0), Some(0)));
    assert_eq!(churn("once"), (Some(70), Some(25)));
}
