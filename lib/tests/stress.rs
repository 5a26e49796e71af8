//! Everything at once, under `programs/stress.c`: for 5 seconds, or as many as `MPP_STRESS_SECONDS` says.

mod support;
use std::process::Command;
use support::{compile, preloaded, succeed};

fn seconds() -> u64 {
    let asked = std::env::var("MPP_STRESS_SECONDS");
    asked.map_or(5, |seconds| seconds.parse().expect("MPP_STRESS_SECONDS is a number of seconds"))
}

/// A failure shows the seed; the same seed makes the same decisions, though not at the same moments.
fn run(stress: &mut Command) {
    let output = succeed(stress);
    print!("{output}");
    let counts: Vec<u64> = output.split([' ', '\n']).filter_map(|word| word.parse().ok()).collect();
    let [_seed, operations, collections, forks] = counts[..] else { panic!("{output}") };
    assert!(output.ends_with("fine\n") && operations > 0 && collections > 0 && forks > 0, "{output}");
}

/// One after the other: each keeps all processors busy.
#[test]
fn threads_thefts_and_forks() {
    let program = compile("stress.c", &["-ldl"]);
    run(preloaded(&program).arg(seconds().to_string()));
    let sampled = seconds().div_ceil(4).to_string();
    run(preloaded(&program).arg(sampled).envs([("MIMALLOC_PROF", "1"), ("MIMALLOC_PROF_SAMPLE_RATE", "4096")]));
}
