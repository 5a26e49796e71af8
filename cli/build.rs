//! Builds the preload library that `mpp run` carries inside itself.
//!
//! `mpp` must be one file that works wherever it is copied to, so the library cannot be looked for at run time. Cargo
//! has no stable way to hand one crate's `cdylib` to another, hence a nested cargo: always a release build (an
//! unoptimised allocator would distort what it measures), in a target folder of its own (the outer cargo holds the
//! lock of the shared one), and offline (the library has path dependencies only).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file name of the library, which users see in `LD_PRELOAD` and in `/proc/PID/maps`.
const LIBRARY: &str = "libmimalloc_pprof.so";

fn main() {
    let manifest_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let lib_dir = manifest_dir.join("../lib");

    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", lib_dir.display());
    // The release profile of the workspace decides how the library is compiled.
    println!("cargo:rerun-if-changed={}", manifest_dir.join("../Cargo.toml").display());

    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    assert!(os == "linux", "mpp can be built for Linux only so far, not for {os}");

    let built = build_library(&lib_dir.join("preload/Cargo.toml"), &out_dir.join("preload"), &target);
    let embedded = out_dir.join(LIBRARY);
    std::fs::copy(&built, &embedded)
        .unwrap_or_else(|error| panic!("cannot copy {} to {}: {error}", built.display(), embedded.display()));
}

/// Runs the nested cargo and returns the path of the library it made.
fn build_library(manifest: &Path, target_dir: &Path, target: &str) -> PathBuf {
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--offline", "--target", target, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target_dir);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_for_the_outer_build_only) {
            command.env_remove(name);
        }
    }
    let status = command.status().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(status.success(), "building the preload library failed ({status}): {command:?}");
    target_dir.join(target).join("release").join(LIBRARY)
}

/// Whether a variable of the outer cargo would change or break the nested build: the clippy driver is set as a
/// workspace wrapper, and flags for `mpp` (coverage, sanitizers, a target CPU) are not meant for the allocator.
fn is_for_the_outer_build_only(name: &str) -> bool {
    name == "RUSTC_WORKSPACE_WRAPPER"
        || name == "CLIPPY_ARGS"
        || name == "CARGO_BUILD_TARGET"
        || name == "CARGO_BUILD_TARGET_DIR"
        || name == "CARGO_TARGET_DIR"
        || name == "RUSTFLAGS"
        || name == "CARGO_ENCODED_RUSTFLAGS"
        || (name.starts_with("CARGO_") && name.ends_with("_RUSTFLAGS"))
}
