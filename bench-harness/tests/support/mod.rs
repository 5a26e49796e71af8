//! What the tests of several programs share. Not every test uses all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a package of this workspace as users get it, and gives the folder with what was built.
pub(crate) fn built(package: &str, target: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(target);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--offline", "-p", package])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")])
        .arg("--target-dir")
        .arg(&target)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status();
    assert!(status.expect("cargo runs").success(), "{package} does not build");
    target.join("release")
}

/// A library to preload whose source is `text`.
pub(crate) fn library(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&source, text).unwrap();
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-fno-builtin", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.expect("a C compiler").success());
    library
}
