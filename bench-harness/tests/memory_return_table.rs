//! The tables of memory return, tiny: real rows under the real library and the C library, and a peer that fails.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use mpp_bench::memory_return::results::Results;
use support::{built, library};

/// Runs `memory-return` in `folder`.
fn memory_return(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memory-return"));
    command.args(["--quick", "--work", "work", "--built", "built"]).args(arguments);
    command.arg("--workload").arg(built("mpp-workloads", "workloads").join("mpp-workload"));
    command.arg("--library").arg(built("mimalloc-pprof-preload", "preload").join("libmimalloc_pprof.so"));
    command.current_dir(folder).output().unwrap()
}

fn results(folder: &Path) -> Results {
    serde_json::from_str(&std::fs::read_to_string(folder.join("work/results.json")).unwrap()).unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The page of this repository, as it is.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/memory-return.md");

#[test]
fn rows_are_measured_and_written_into_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(PAGE, folder.join("page.md")).unwrap();
    let rows = "^(threads-64|pairs-64)$";
    let output = memory_return(folder, &["--only", rows, "--peers", "ours,glibc", "--markdown", "page.md"]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));

    let measured = results(folder);
    let names: Vec<_> = measured.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["threads-64", "pairs-64"]);
    for (row, contender) in [("threads-64", "ours"), ("threads-64", "ours-off"), ("pairs-64", "glibc")] {
        let cell = measured.cell(row, contender).unwrap();
        assert!(cell.records.len() == 1 && cell.records[0].rss.peak > 0, "{row}, {contender}");
    }
    assert_eq!(measured.cell("pairs-64", "ours").unwrap().calls.as_ref().unwrap().above_empty(), Some(0));
    assert!(measured.cell("pairs-64", "ours-off").is_none());

    let page = std::fs::read_to_string(folder.join("page.md")).unwrap();
    assert!(page.contains("| threads-64: peak |") && page.contains("| pairs-64 | 0 · "), "{page}");
    assert!(!page.contains("| busy-4 |"), "a table of another run is left");
    assert!(!page.contains(&*folder.to_string_lossy()), "a folder of this machine: {page}");
    let chart = std::fs::read_to_string(folder.join("images/memory-return-threads-64.svg")).unwrap();
    assert!(chart.contains(">ours: ") && chart.contains(">glibc: ") && !chart.contains("ours-off"), "{chart}");

    // The same comes from the measurements alone.
    let mut again = Command::new(env!("CARGO_BIN_EXE_memory-return"));
    again.args(["--render", "work/results.json", "--markdown", "again.md"]).current_dir(folder);
    std::fs::copy(PAGE, folder.join("again.md")).unwrap();
    assert!(again.status().unwrap().success());
    assert_eq!(std::fs::read_to_string(folder.join("again.md")).unwrap(), page);
}

#[test]
fn who_fails_is_named_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let broken = library(folder, "broken", "void *malloc(unsigned long size) { return (void *)0; }");
    let elsewhere = library(folder, "elsewhere", "int nothing;");
    let peers =
        [("broken", &broken), ("elsewhere", &elsewhere)].map(|(name, path)| format!("{name}={}", path.display()));
    let mut arguments = vec!["--only", "^pairs-64$", "--peers", "glibc,tcmalloc-not-there"];
    peers.iter().for_each(|peer| arguments.extend(["--peer", peer]));
    let output = memory_return(folder, &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", words(&output));
    let measured = results(folder);
    assert!(measured.cell("pairs-64", "glibc").is_some() && measured.cell("pairs-64", "broken").is_none());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("* pairs-64, broken: not measured: "), "{text}");
    assert!(text.contains("* pairs-64, elsewhere: not measured: its malloc is in "), "{text}");
}

#[test]
fn a_page_without_places_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.md"), "nothing\n").unwrap();
    let output = memory_return(folder.path(), &["--peers", "glibc", "--markdown", "page.md"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(words(&output).contains("the document has no place `<!-- memory-return: begin -->`"), "{}", words(&output));
}
