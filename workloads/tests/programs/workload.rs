//! `mpp-workload`: its line, its list, and what it says when asked for nonsense.

use crate::support::{lines, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mpp-workload");

#[test]
fn a_row_prints_one_line_with_figures_and_where_malloc_is() {
    let output = run(PROGRAM, &["general", "--threads", "2", "--scale", "0.02", "--repeats", "2", "--seed", "7"]);
    assert_eq!((output.status, output.stderr.as_str()), (0, ""));
    let lines = lines(&output.stdout, "mpp-workload");
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line["malloc_from"].as_str().unwrap().contains("libc.so"), "{line}");
    assert!(line["ns"].as_f64().unwrap() > 0.0 && line["peak_rss"].as_u64().unwrap() > 0, "{line}");
    assert_eq!((&line["damaged"], &line["threads"], &line["seed"]), (&0.into(), &2.into(), &7.into()));
}

#[test]
fn the_list_is_made_of_command_lines_that_run() {
    let listed = run(PROGRAM, &["--list"]).stdout;
    assert!(listed.lines().count() > 50);
    let line = listed.lines().find(|line| line.starts_with("pair-64 ")).unwrap();
    let mut arguments: Vec<_> = line.split_whitespace().skip(2).collect();
    arguments.extend(["--turns", "1000", "--repeats", "1"]);
    assert_eq!(run(PROGRAM, &arguments).status, 0);
}

#[test]
fn only_proving_measures_nothing() {
    let output = run(PROGRAM, &["--prove"]);
    assert!(output.status == 0 && !output.stdout.contains("\"ns\""), "{}", output.stdout);
}

#[test]
fn sizes_that_hold_no_stamp_are_refused() {
    let output = run(PROGRAM, &["pair", "--size", "4"]);
    assert!(output.status == 2 && output.stderr.contains("`4` is not a number of bytes from 8"), "{}", output.stderr);
}
