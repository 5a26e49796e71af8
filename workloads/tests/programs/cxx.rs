//! The C++ twin of `leaky`, compiled here with `g++` (or `$CXX`), so that building the workspace needs no C++ compiler.

use std::fs;
use std::path::Path;

use crate::support::{Truth, run, site_files};

#[test]
fn the_cxx_twin_tells_a_truth_that_adds_up() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cxx/leaky.cpp");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("leaky-cxx");
    let (source, program) = (source.to_str().unwrap(), program.to_str().unwrap());
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
    let built =
        run(&compiler, &["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-std=c++17", "-pthread", source, "-o", program]);
    assert_eq!(built.status, 0, "{}", built.stderr);

    let truth = |seed: &str| {
        let output = run(program, &["--scale", "0.01", "--threads", "3", "--seed", seed, "--exit", "5"]);
        assert_eq!((output.status, output.stderr.as_str()), (5, ""));
        Truth::parse(&output.stdout)
    };
    let (once, again, other) = (truth("1"), truth("1"), truth("2"));
    once.check_sums();
    assert_eq!((once.order(), &once.rows), (again.order(), &again.rows));
    assert_ne!(once.order(), other.order());
    assert_eq!(once.rows, other.rows);

    let text = fs::read_to_string(source).unwrap();
    for row in &once.rows {
        let (file, line, call) = site_files(row);
        assert_eq!(file, source);
        let text = text.lines().nth(line - 1).unwrap();
        assert!(text.contains("HERE") && text.contains(call), "line {line} does not hold {call}: {text}");
    }
    let function = |site: &str| once.sites(site).next().unwrap()["function"].as_str().unwrap().to_owned();
    assert_eq!(function("cxx-malloc"), "leaky_c_keep");
    assert_eq!(function("cxx-inlined"), "leaky_cxx::innermost");
    assert_eq!(function("cxx-lambda"), "leaky_cxx::keep_by_lambda");
}
