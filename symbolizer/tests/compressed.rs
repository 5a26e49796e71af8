//! Compressed debug sections.

mod common;

use std::path::Path;
use std::process::Command;

use common::compare::{assert_like_llvm, assert_same, instructions, told};
use common::project::Project;
use common::tools::{CLANG, GCC, run};
use common::{FUNCTIONS, Folder, assert_like_binutils};

/// How `readelf` describes the section headers of a file.
#[track_caller]
fn sections(program: &Path) -> String {
    run(Command::new("readelf").arg("-SW").arg(program))
}

/// Whether `.debug_info` has the flag of compressed sections.
#[track_caller]
fn is_packed(program: &Path) -> bool {
    let text = sections(program);
    let line = text.lines().find(|line| line.contains(" .debug_info ")).unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().any(|word| word == "C")
}

#[test]
fn zlib_by_every_linker() {
    let folder = Folder::new();
    let project = Project::new(&folder, GCC);
    for linker in ["bfd", "gold", "lld", "mold"] {
        let packs = "-Wl,--compress-debug-sections=zlib";
        let program = project.build(linker, &[], &[&format!("-fuse-ld={linker}"), packs]);
        assert!(is_packed(&program), "{linker}");
        assert_like_llvm(&program);
    }
    // Compressed by the assembler, and unpacked by no linker since there is none: here they are packed twice.
    let program = Project::new(&folder, CLANG).build("clang", &["-gz=zlib"], &["-gz=zlib"]);
    assert!(is_packed(&program));
    assert_like_llvm(&program);
}

#[test]
fn zlib_marked_by_the_name_of_the_section() {
    let folder = Folder::new();
    let project = Project::new(&folder, GCC);
    for (who, linker) in [("bfd", "-fuse-ld=bfd"), ("gold", "-fuse-ld=gold")] {
        let program = project.build(who, &[], &[linker, "-Wl,--compress-debug-sections=zlib-gnu"]);
        assert!(sections(&program).contains(".zdebug_info"), "{who}: {}", sections(&program));
        assert_like_llvm(&program);
    }
}

#[test]
fn every_kind_of_packing_gives_the_same_answers() {
    let folder = Folder::new();
    for (who, compiler) in [("gcc", GCC), ("clang", CLANG)] {
        let project = Project::new(&folder, compiler);
        let plain = project.build(&format!("{who}-plain"), &["-gz=none"], &[]);
        let addresses = instructions(&plain);
        let expected = told(&plain, &addresses);
        assert_like_llvm(&plain);
        for kind in ["none", "zlib", "zlib-gnu", "zlib-gabi", "zstd"] {
            let program = folder.path(&format!("{who}-{kind}"));
            let flag = format!("--compress-debug-sections={kind}");
            run(Command::new("objcopy").arg(flag).args([&plain, &program]));
            assert_same(&program, &addresses, &told(&program, &addresses), &expected);
            match kind {
                "none" => assert!(!is_packed(&program)),
                "zlib-gnu" => assert!(sections(&program).contains(".zdebug_info")),
                _ => assert!(is_packed(&program), "{kind}"),
            }
        }
    }
}

#[test]
fn binutils_agrees() {
    let folder = Folder::new();
    let zlib = folder.program("zlib", &["-gz=zlib"]);
    assert_like_binutils(&zlib, &FUNCTIONS);
    let packed = folder.path("zstd");
    run(Command::new("objcopy").arg("--compress-debug-sections=zstd").args([&zlib, &packed]));
    assert_like_binutils(&packed, &FUNCTIONS);
}
