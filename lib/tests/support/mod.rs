//! The real preload library under real programs.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod machine_code;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The library as users get it: the release build.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build(&[], "preload"))
}

/// The library built with more options of cargo's, in a folder of its own.
pub fn build(options: &[&str], name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/preload/Cargo.toml"))
        .args(options)
        .arg("--target-dir")
        .arg(&folder)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the preload library does not build");
    folder.join("release/libmimalloc_pprof.so")
}

/// Compile a program of `tests/programs`, once for all tests of this process. The C compiler is needed: without it the test fails.
pub fn compile(source: &str, options: &[&str]) -> PathBuf {
    static COMPILED: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());
    // Tests that run side by side want the same program: what is being written cannot be started.
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = format!("{source} {options:?}");
    if let Some((_, program)) = compiled.iter().find(|(known, _)| *known == wanted) {
        return program.clone();
    }
    let compiler = if source.ends_with(".cpp") { "c++" } else { "cc" };
    let name = format!("{source}.{}.{}", std::process::id(), compiled.len());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(compiler)
        .args(["-O1", "-g", "-fno-builtin", "-w", "-pthread", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source))
        .args(options)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} is needed for this test: {error}"));
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    compiled.push((wanted, program.clone()));
    program
}

/// A command with the library preloaded.
pub fn preloaded(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env("LD_PRELOAD", library());
    command
}

/// Run a command that must succeed in silence on standard error; its standard output.
pub fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
    assert!(status.success() && stderr.is_empty(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout
}
