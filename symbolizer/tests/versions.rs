//! Versions and kinds of debug information, from both compilers.

mod common;

use std::path::Path;
use std::process::Command;

use common::compare::assert_like_llvm;
use common::project::Project;
use common::tools::{CLANG, Compiler, GCC, run};
use common::{FUNCTIONS, Folder, assert_like_binutils};

/// Versions of the units in `.debug_info`, in order and without repetition.
#[track_caller]
fn versions(program: &Path) -> Vec<u32> {
    let text = run(Command::new("readelf").args(["--debug-dump=info", "--dwarf-depth=1"]).arg(program));
    let version = |line: &str| line.trim().strip_prefix("Version:").and_then(|number| number.trim().parse().ok());
    let mut versions: Vec<u32> = text.lines().filter_map(version).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

#[track_caller]
fn assert_every_version(compiler: Compiler) {
    let folder = Folder::new();
    let project = Project::new(&folder, compiler);
    for version in 2..=5 {
        let name = version.to_string();
        let program = project.build(&name, &[&format!("-gdwarf-{version}")], &[]);
        assert_eq!(versions(&program), [version]);
        assert_like_llvm(&program);
    }
    // Two versions in one program, as libraries bring them along.
    let mut objects = project.objects("mixed-4", &["-gdwarf-4"]);
    objects[1] = project.objects("mixed-5", &["-gdwarf-5"])[1].clone();
    let mixed = project.link("mixed", &objects, &[]);
    assert_eq!(versions(&mixed), [4, 5]);
    assert_like_llvm(&mixed);
}

#[test]
fn every_version_by_gcc() {
    assert_every_version(GCC);
}

#[test]
fn every_version_by_clang() {
    assert_every_version(CLANG);
}

#[test]
fn binutils_agrees() {
    let folder = Folder::new();
    for flag in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        assert_like_binutils(&folder.program(flag, &[flag]), &FUNCTIONS);
    }
}

#[test]
fn offsets_of_eight_bytes() {
    let folder = Folder::new();
    for (who, compiler) in [("gcc", GCC), ("clang", CLANG)] {
        let project = Project::new(&folder, compiler);
        // Clang knows the form from version 3 on, and lld links what is not all of one form.
        for version in 4..=5 {
            let flags = ["-gdwarf64", &format!("-gdwarf-{version}")];
            let program = project.build(&format!("{who}-{version}"), &flags, &["-fuse-ld=lld"]);
            let info = run(Command::new("readelf").args(["--debug-dump=info", "--dwarf-depth=1"]).arg(&program));
            assert!(info.contains("(64-bit)"), "{who}-{version}");
            assert_like_llvm(&program);
        }
    }
}

#[test]
fn more_and_less_debug_information() {
    let folder = Folder::new();
    for (who, compiler, kinds) in [
        ("gcc", GCC, &["-g1", "-g3", "-fdebug-types-section", "-gno-column-info", "-gno-variable-location-views"][..]),
        ("gcc", GCC, &["-gno-as-locview-support", "-gno-as-loc-support", "-fno-merge-debug-strings"]),
        ("clang", CLANG, &["-g1", "-g3", "-fdebug-types-section", "-gdwarf-aranges", "-gsimple-template-names"]),
        ("clang", CLANG, &["-fno-split-dwarf-inlining", "-gno-column-info", "-fdebug-ranges-base-address"]),
    ] {
        let project = Project::new(&folder, compiler);
        for kind in kinds {
            assert_like_llvm(&project.build(&format!("{who}{kind}"), &[kind], &[]));
        }
    }
}

#[test]
fn levels_of_optimisation() {
    let folder = Folder::new();
    for (who, compiler) in [("gcc", GCC), ("clang", CLANG)] {
        let project = Project::new(&folder, compiler);
        for level in ["-O0", "-O1", "-Os", "-O3"] {
            assert_like_llvm(&project.build(&format!("{who}{level}"), &[level], &[]));
        }
    }
}

#[test]
fn optimised_as_a_whole_by_the_linker() {
    let folder = Folder::new();
    for (who, compiler, flags, link_flags) in [
        ("gcc", GCC, "-flto", &["-flto-partition=none"][..]),
        ("gcc-parts", GCC, "-flto", &["-flto-partition=max"]),
        ("clang", CLANG, "-flto", &["-fuse-ld=lld"]),
        ("clang-thin", CLANG, "-flto=thin", &["-fuse-ld=lld"]),
    ] {
        let project = Project::new(&folder, compiler);
        assert_like_llvm(&project.build(who, &[flags], link_flags));
    }
}
