//! The whole table, tiny: real rows under the real library and the C library, and peers that misbehave.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use mpp_bench::performance::results::Results;
use support::{built, library};

/// Runs `performance` in `folder`.
fn performance(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_performance"));
    command.args(["--quick", "--json", "results.json", "--work", "work"]).args(arguments);
    command.arg("--workload").arg(built("mpp-workloads", "workloads").join("mpp-workload"));
    command.arg("--library").arg(built("mimalloc-pprof-preload", "preload").join("libmimalloc_pprof.so"));
    command.current_dir(folder).output().unwrap()
}

fn results(folder: &Path) -> Results {
    serde_json::from_str(&std::fs::read_to_string(folder.join("results.json")).unwrap()).unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn rows_are_measured_and_written_into_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("table.md"),
        "Before.\n<!-- performance: begin -->\nold\n<!-- performance: end -->\nAfter.\n",
    )
    .unwrap();
    let rows = "^(pair-64|cache-thrash-2|perl)$";
    let output =
        performance(folder, &["--only", rows, "--rounds", "2", "--peers", "ours,glibc", "--markdown", "table.md"]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));

    let results = results(folder);
    assert_eq!(results.peers.iter().map(|peer| peer.name.as_str()).collect::<Vec<_>>(), ["ours", "glibc"]);
    assert_eq!(
        results.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
        ["pair-64", "cache-thrash-2", "perl"]
    );
    for cell in results.rows.iter().flat_map(|row| &row.cells) {
        assert!(cell.samples.len() == 2 && cell.values().unwrap().iter().all(|&value| value > 0.0), "{cell:?}");
    }

    let document = std::fs::read_to_string(folder.join("table.md")).unwrap();
    assert!(document.starts_with("Before.\n") && document.ends_with("After.\n") && !document.contains("old"));
    assert!(document.contains("| pair-64 |") && document.contains("| perl |"), "{document}");
    assert!(!document.contains(&*folder.to_string_lossy()), "a folder of this machine: {document}");

    // The same tables come from the measurements alone.
    let again = Command::new(env!("CARGO_BIN_EXE_performance"))
        .args(["--render", "results.json"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(document.contains(String::from_utf8_lossy(&again.stdout).trim()), "{}", words(&again));
}

#[test]
fn peers_that_crash_hang_or_are_not_in_use_are_named_and_the_others_measured() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let library = |folder: &Path, name: &str, text: &str| format!("{name}={}", library(folder, name, text).display());
    let crashes = library(folder, "crashes", "void *malloc(unsigned long n) { (void)n; __builtin_trap(); }\n");
    let hangs = library(
        folder,
        "hangs",
        "int pause(void);\nvoid *malloc(unsigned long n) { for (;;) pause(); return (void *)n; }\n",
    );
    let other = library(folder, "other", "int nothing;\n");
    let missing = "missing=/nowhere/at/all.so".to_owned();
    let mut arguments = vec!["--only", "^glibc-simple$", "--rounds", "1", "--peers", "glibc", "--timeout", "3"];
    for peer in [&crashes, &hangs, &other, &missing] {
        arguments.extend(["--peer", peer]);
    }
    let output = performance(folder, &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", words(&output));

    let results = results(folder);
    let problem = |name: &str| {
        let place = results.peers.iter().position(|peer| peer.name == name).unwrap();
        let cell = &results.rows[0].cells[place];
        assert_eq!(cell.samples.len(), usize::from(name == "glibc"), "{name}: {cell:?}");
        let peer = results.peers[place].problem.clone();
        peer.or_else(|| cell.problem.clone()).unwrap_or_default()
    };
    assert!(problem("crashes").starts_with("killed by signal "), "{}", problem("crashes"));
    assert_eq!(problem("hangs"), "hung: no end after 3s");
    assert!(problem("other").starts_with("its malloc is in ") && problem("other").contains("libc.so"));
    assert!(problem("missing").contains("/nowhere/at/all.so"));
    assert_eq!(problem("glibc"), "");
    let text = words(&output);
    for name in ["crashes", "hangs", "other", "missing"] {
        assert!(text.contains(&format!("{name}: not measured")), "{text}");
    }
}

#[test]
fn a_document_without_a_place_for_tables_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("table.md"), "nothing here\n").unwrap();
    let output =
        performance(folder, &["--only", "^pair-64$", "--rounds", "1", "--peers", "glibc", "--markdown", "table.md"]);
    assert!(!output.status.success() && words(&output).contains("no place"), "{}", words(&output));
    assert_eq!(std::fs::read_to_string(folder.join("table.md")).unwrap(), "nothing here\n");
    let output = performance(folder, &["--only", "no such row"]);
    assert!(words(&output).contains("no row matches"), "{}", words(&output));
}
