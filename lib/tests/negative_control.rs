//! The stress test must be able to fail: with a pop that looks before it stores, the thief's and the owner's blocks get mixed.

mod support;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::compile;

/// Runs of the stress with the mistake, and the seconds of each. It is mostly found within the first second.
const TRIES: usize = 10;
const SECONDS: &str = "6";

#[test]
fn a_pop_that_checks_before_it_stores_is_found() {
    let (program, library) = (compile("stress.c", &["-ldl"]), build("check_first"));
    let survived = (1..=TRIES).take_while(|_| stress_passes(&program, &library)).count();
    println!("found in run {} of at most {TRIES}", survived + 1);
    assert!(survived < TRIES, "the stress test does not see the mistake");
}

/// Corrupted stacks may also end in a loop: the program has an alarm clock of its own for that.
fn stress_passes(program: &Path, library: &Path) -> bool {
    let mut stress = Command::new(program);
    stress.arg(SECONDS).env("LD_PRELOAD", library).stdout(Stdio::null()).stderr(Stdio::null());
    stress.status().expect("the program starts").success()
}

/// The preload library with a mistake built in.
fn build(mutant: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/preload/Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", format!("--cfg mutant=\"{mutant}\" -Awarnings"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("release/libmimalloc_pprof.so")
}
