//! The compilers and other tools that tests start, and which package has them.

use std::process::Command;

/// A compiler for C and C++.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler {
    pub(crate) c: &'static str,
    pub(crate) cpp: &'static str,
}

pub(crate) const GCC: Compiler = Compiler { c: "gcc", cpp: "g++" };
pub(crate) const CLANG: Compiler = Compiler { c: "clang", cpp: "clang++" };

/// Debian's packages of the tools that a test may start.
const PACKAGES: &[(&str, &str)] = &[
    ("addr2line", "binutils"),
    ("clang", "clang"),
    ("clang++", "clang"),
    ("dsymutil", "llvm"),
    ("dwz", "dwz"),
    ("eu-addr2line", "elfutils"),
    ("eu-strip", "elfutils"),
    ("g++", "g++"),
    ("gcc", "gcc"),
    ("ld.gold", "binutils"),
    ("ld.lld", "lld"),
    ("lld", "lld"),
    ("lld-link", "lld"),
    ("llvm-dwp", "llvm"),
    ("llvm-nm", "llvm"),
    ("llvm-objdump", "llvm"),
    ("llvm-pdbutil", "llvm"),
    ("llvm-symbolizer", "llvm"),
    ("llvm-undname", "llvm"),
    ("mold", "mold"),
    ("nm", "binutils"),
    ("objcopy", "binutils"),
    ("objdump", "binutils"),
    ("readelf", "binutils"),
    ("xz", "xz-utils"),
    ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-posix"),
    ("x86_64-w64-mingw32-strip", "gcc-mingw-w64-x86-64-posix"),
];

/// Runs a command and returns what it prints.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy();
        let package = PACKAGES.iter().find(|(name, _)| *name == program).map_or("(see scripts/install-tools)", |p| p.1);
        panic!("{error}: cannot start {command:?}; this test needs the Debian package {package}")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    // eu-addr2line reports an address that it knows nothing of as a failure of all.
    let is_fine = output.status.success() || (command.get_program() == "eu-addr2line" && errors.is_empty());
    assert!(is_fine, "{command:?}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
