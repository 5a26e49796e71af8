//! The stress tests must be able to fail: with a pop that looks before it stores, the thief's and the owner's blocks get mixed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of the stress with the mistake. One alone finds it more often than not.
const TRIES: usize = 10;
/// A run takes a fraction of a second; corrupted stacks may also end in a loop.
const LONGEST: Duration = Duration::from_secs(30);

#[test]
fn a_pop_that_checks_before_it_stores_is_found() {
    let program = build("check_first");
    let survived = (1..=TRIES).take_while(|_| stress_passes(&program)).count();
    println!("found in run {} of at most {TRIES}", survived + 1);
    assert!(survived < TRIES, "the stress test does not see the mistake");
}

fn stress_passes(program: &Path) -> bool {
    let mut stress = Command::new(program)
        .args(["stealing_from_tight_loops", "--test-threads=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test program starts");
    let begin = Instant::now();
    loop {
        if let Some(status) = stress.try_wait().expect("a child of ours") {
            return status.success();
        }
        if begin.elapsed() > LONGEST {
            stress.kill().and_then(|()| stress.wait()).expect("a child of ours");
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The unit tests of the library, optimised, with a mistake built in.
fn build(mutant: &str) -> std::path::PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--release", "--offline", "--no-run", "--lib", "--message-format=json", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant"))
        .env("RUSTFLAGS", format!("--cfg mutant=\"{mutant}\" -Awarnings"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let executable = messages.lines().filter_map(|line| line.split_once("\"executable\":\"")).next_back();
    let (_, path) = executable.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    path.split('"').next().expect("a path").into()
}
