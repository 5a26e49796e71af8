//! What a Rust program's allocations become where the compiler knows their layout, read from the machine code of
//! `examples/layouts.rs`: a pop from a constant place, without the computation of a class and without a call.

mod support;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{machine_code, succeed};

/// The example in a release build, with or without link-time optimisation.
fn program(link_time: bool) -> &'static Path {
    static PROGRAMS: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    PROGRAMS[link_time as usize].get_or_init(|| {
        let lto = if link_time { "fat" } else { "off" };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layouts-{lto}"));
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--offline", "--example=layouts", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .arg("--target-dir")
            .arg(&folder)
            .env("CARGO_PROFILE_RELEASE_LTO", lto)
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the example does not build");
        let program = folder.join("release/examples/layouts");
        succeed(&mut Command::new(&program));
        program
    })
}

/// Look at a function in both builds.
///
/// Without link-time optimisation the compiler puts one call before each allocation, of an empty function that marks the use of the
/// default allocator (`__rust_no_alloc_shim_is_unstable`). No allocator can do without it, and two instructions keep a register
/// for it.
fn check(function: &str, most: usize, also: impl Fn(&[String])) {
    for link_time in [true, false] {
        let way = machine_code::straight_way(program(link_time), function);
        let (extra, calls) = if link_time { (0, 0) } else { (3, 1) };
        machine_code::check(function, &way, most + extra);
        let found = way.iter().filter(|instruction| instruction.starts_with("call")).count();
        assert!(found <= calls, "{function}: {found} calls\n{}", way.join("\n"));
        also(&way);
    }
}

/// The way pops from the stack of one class, whose place is a constant, and computes nothing.
fn pops_from(way: &[String], class: usize) {
    let place = format!("+{:#x}]", class * 32);
    assert!(way.iter().filter(|instruction| instruction.contains(&place)).count() >= 2, "{place}\n{}", way.join("\n"));
    for computes in ["lea", "sh", "sar", "and", "imul", "bsr", "lzcnt", "test"] {
        let computed = way.iter().find(|instruction| instruction.starts_with(computes));
        assert!(computed.is_none(), "{computed:?}\n{}", way.join("\n"));
    }
}

#[test]
fn a_box_is_popped_from_its_class() {
    // 9 for the pop, 5 to fill the box, 3 to call the slow path and to return.
    check("boxed", 17, |way| pops_from(way, 48 / 16));
}

#[test]
fn an_aligned_block_is_popped_from_the_next_class_of_that_alignment() {
    check("aligned", 10, |way| pops_from(way, 256 / 16));
}

#[test]
fn a_zeroed_block_is_cleared_in_place() {
    check("zeroed", 15, |way| pops_from(way, 32 / 16));
}

#[test]
fn a_box_is_dropped_in_line() {
    check("dropped", 18, |_| {});
}
