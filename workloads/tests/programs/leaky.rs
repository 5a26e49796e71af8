//! `leaky`: its truth, its flags, its exit status.

use std::fs;
use std::path::Path;

use crate::support::{Output, Truth, run, site_files};
use mpp_workloads::leaky::PLUGIN_FILE_NAME;

fn leaky(arguments: &[&str]) -> Output {
    // Cargo puts the plugin, a dependency of this test, beside the test.
    let plugin = std::env::current_exe().unwrap().with_file_name(PLUGIN_FILE_NAME);
    assert!(plugin.is_file(), "{} is missing", plugin.display());
    let mut all = vec!["--plugin", plugin.to_str().unwrap(), "--scale", "0.01"];
    all.extend(arguments);
    run(env!("CARGO_BIN_EXE_leaky"), &all)
}

fn truth(arguments: &[&str]) -> Truth {
    let output = leaky(&[&["--format", "json"], arguments].concat());
    assert_eq!((output.status, output.stderr.as_str()), (0, ""));
    Truth::parse(&output.stdout)
}

#[test]
fn the_truth_adds_up_and_covers_every_kind_of_site() {
    let truth = truth(&["--threads", "3"]);
    truth.check_sums();
    for site in
        ["plain-small", "inlined", "std-grown", "generic-40", "closure", "trait-object", "recursive", "plugin-list"]
    {
        assert!(truth.sites(site).any(|row| row["bytes_live"].as_u64() > Some(0)), "{site}");
    }
    for site in ["temporary-scratch", "temporary-buffer", "temporary-greetings", "worker-mail"] {
        assert!(
            truth.sites(site).all(|row| row["bytes_live"] == 0 && row["bytes_allocated"].as_u64() > Some(0)),
            "{site}"
        );
    }
    let threads: Vec<_> = truth.sites("worker-list").map(|row| row["thread"].as_str().unwrap()).collect();
    assert_eq!(threads, ["ended-0", "alive-1", "ended-2"]);
    assert!(truth.sites("plugin-record").all(|row| row["module"] == "plugin"));
    assert!(
        truth
            .sites("inlined")
            .all(|row| row["inlined"] == true && row["function"] == "mpp_workloads::leaky::inlined::innermost")
    );
}

#[test]
fn every_line_of_the_truth_holds_the_allocating_call() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for row in &truth(&[]).rows {
        let (file, line, call) = site_files(row);
        let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let text = source.lines().nth(line - 1).unwrap_or_default();
        assert!(text.contains("place!()") && text.contains(call), "{file}:{line} does not hold {call}: {text}");
    }
}

#[test]
fn a_seed_decides_the_order_and_nothing_else() {
    let (once, again, other) = (truth(&["--seed", "1"]), truth(&["--seed", "1"]), truth(&["--seed", "2"]));
    assert_eq!(once.order(), again.order());
    assert_ne!(once.order(), other.order());
    assert_eq!(once.rows, again.rows);
    assert_eq!(once.rows, other.rows);
}

#[test]
fn cycles_repeat_only_what_is_temporary() {
    let (once, thrice) = (truth(&[]), truth(&["--cycles", "3"]));
    thrice.check_sums();
    assert_eq!(once.total["bytes_live"], thrice.total["bytes_live"]);
    let allocated = |truth: &Truth| truth.total["blocks_allocated"].as_u64().unwrap();
    assert!(allocated(&thrice) > 2 * allocated(&once) - once.total["blocks_live"].as_u64().unwrap());
}

#[test]
fn a_chosen_exit_status_and_the_table_for_people() {
    let output = leaky(&["--exit", "7", "--threads", "0", "--depth", "500", "--hold", "1ms"]);
    assert_eq!(output.status, 7);
    let total = truth(&["--threads", "0"]).total["bytes_live"].to_string();
    assert!(
        output.stdout.lines().any(|line| line.trim_start().starts_with(&total) && line.ends_with("total")),
        "{}",
        output.stdout
    );
}

#[test]
fn without_its_plugin_it_leaves_those_sites_out_and_with_a_wrong_one_it_fails() {
    let output = run(env!("CARGO_BIN_EXE_leaky"), &["--plugin", "none", "--scale", "0.001", "--format", "json"]);
    let truth = Truth::parse(&output.stdout);
    truth.check_sums();
    assert!(truth.rows.iter().all(|row| row["module"] == "exe"));

    let output = run(env!("CARGO_BIN_EXE_leaky"), &["--plugin", "/nowhere/plugin.so"]);
    assert_eq!((output.status, output.stdout.as_str()), (70, ""));
    assert!(output.stderr.contains("/nowhere/plugin.so"), "{}", output.stderr);
}
