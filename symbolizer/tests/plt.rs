//! Stubs of procedure linkage tables, as disassemblers name them.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::tools::run;
use common::{Folder, symbolize};

/// A program that calls functions of two libraries in all ways there are: directly, by a pointer, and both.
const CALLS: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    void *(*volatile by_pointer)(size_t) = malloc;
    free(by_pointer(argc));
    puts(argv[0]);
    printf("%f %zu\n", sin(argc), strlen(argv[0]));
    free(malloc(9));
    return 0;
}
"#;

/// The addresses of all instructions in stubs, and the name of each stub, by a disassembler.
fn stubs(disassembler: &str, file: &Path) -> BTreeMap<u64, String> {
    let listing = run(Command::new(disassembler).args(["-d", "--no-show-raw-insn"]).arg(file));
    let (mut stubs, mut name) = (BTreeMap::new(), None);
    for line in listing.lines() {
        if let Some(label) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            // Not of the head of the table, which is called by its distance from a stub.
            name = Some(label.1).filter(|name| name.ends_with("@plt") || name.ends_with("$plt"));
        } else if line.starts_with("Disassembly") {
            name = None;
        } else if let (Some(name), Some((address, _))) = (name, line.trim_start().split_once(':')) {
            let address = u64::from_str_radix(address, 16).unwrap_or_else(|_| panic!("an address: {line}"));
            stubs.insert(address, name.replace("$plt", "@plt").replace("$pltgot", "@plt"));
        }
    }
    stubs
}

/// Our name of each of these addresses.
#[track_caller]
fn names(file: &Path, addresses: impl IntoIterator<Item = u64>) -> Vec<String> {
    let addresses: Vec<u64> = addresses.into_iter().collect();
    let name = |answer: &mpp_symbolizer::Symbolized| {
        let frame = answer.frames.first().and_then(|frame| frame.function.as_ref());
        frame.map_or("-".to_owned(), |name| name.demangled.to_string())
    };
    symbolize(file, &addresses).iter().map(name).collect()
}

#[track_caller]
fn assert_like(disassembler: &str, file: &Path, expected: &[&str]) {
    let stubs = stubs(disassembler, file);
    for name in expected {
        assert!(
            stubs.values().any(|stub| stub == name),
            "{disassembler} knows no {name} in {}: {stubs:x?}",
            file.display()
        );
    }
    let ours = names(file, stubs.keys().copied());
    for ((address, theirs), ours) in stubs.iter().zip(ours) {
        assert_eq!(ours, *theirs, "at {address:#x} of {}", file.display());
    }
}

fn build(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let source = folder.write("calls.c", CALLS);
    let out = folder.path(name);
    let mut gcc = Command::new("gcc");
    run(gcc.args(["-O1", "-fno-builtin"]).args(flags).arg(&source).arg("-o").arg(&out).arg("-lm"));
    out
}

#[test]
fn stubs_of_every_linker() {
    let folder = Folder::new();
    let direct = ["free@plt", "puts@plt", "strlen@plt", "printf@plt", "sin@plt"];
    for (name, flags) in [
        ("bfd", &["-pie", "-fPIE"][..]),
        ("fixed", &["-no-pie"]),
        ("at-once", &["-Wl,-z,now"]),
        ("gold", &["-fuse-ld=gold"]),
        ("lld", &["-fuse-ld=lld"]),
        ("mold", &["-fuse-ld=mold"]),
        ("mold-at-once", &["-fuse-ld=mold", "-Wl,-z,now"]),
        ("stripped", &["-s"]),
        ("with-lines", &["-g"]),
    ] {
        assert_like("objdump", &build(&folder, name, flags), &direct);
    }
    // Called and taken the address of: a stub in a section of its own.
    let both = build(&folder, "both", &["-no-pie", "-DBOTH"]);
    let sections = run(Command::new("readelf").arg("-SW").arg(&both));
    assert!(sections.contains(".plt.got"), "{sections}");
    assert_like("objdump", &both, &["malloc@plt"]);
}

#[test]
fn stubs_with_branch_protection() {
    let folder = Folder::new();
    for (name, linker) in [("bfd", "-Wl,-z,ibtplt"), ("lld", "-Wl,-z,force-ibt")] {
        let mut flags = vec!["-fcf-protection", linker];
        flags.extend((name == "lld").then_some("-fuse-ld=lld"));
        let program = build(&folder, name, &flags);
        assert_like("objdump", &program, &["free@plt", "strlen@plt"]);
        // Disassemblers leave out the first table, whose stubs run until a function was called once. Its head has 16
        // bytes, each stub after it as many, in the order of the second table.
        let listing = run(Command::new("objdump").args(["-d", "-j", ".plt", "--no-show-raw-insn"]).arg(&program));
        let address_of = |line: &str| u64::from_str_radix(line.trim_start().split_once(':')?.0, 16).ok();
        let first = listing.lines().filter(|line| line.contains("push") && line.contains('$')).filter_map(address_of);
        let first = names(&program, first);
        let second = stubs("objdump", &program);
        let mut in_order: Vec<&String> = second.values().collect();
        in_order.dedup();
        let missing = first.iter().filter(|name| !in_order.contains(name)).count();
        assert!(first.len() >= 5 && missing == 0, "{first:?} {in_order:?}");
        let head = listing.lines().find(|line| line.contains("push")).and_then(address_of).expect("the head");
        assert_eq!(names(&program, [head]), ["-"]);
    }
}

#[test]
fn stubs_of_functions_that_are_chosen_at_run_time() {
    let folder = Folder::new();
    let program = build(&folder, "static", &["-static"]);
    let stubs = run(Command::new("objdump").args(["-d", "-j", ".plt", "--no-show-raw-insn"]).arg(&program));
    let jumps = stubs.lines().filter(|line| line.contains("jmp "));
    let addresses: Vec<u64> =
        jumps.filter_map(|line| u64::from_str_radix(line.trim_start().split_once(':')?.0, 16).ok()).collect();
    // The choosers, by the relocations: the function has the chooser's name.
    let symbols = run(Command::new("nm").arg(&program));
    let choosers: Vec<&str> = symbols.lines().filter(|line| line.contains(" i ")).map(|line| &line[19..]).collect();
    let ours = names(&program, addresses.iter().copied());
    assert!(ours.len() >= 10, "{stubs}");
    for name in &ours {
        let base = name.strip_suffix("@plt").unwrap_or_else(|| panic!("a stub: {ours:?}"));
        assert!(choosers.contains(&base), "{name}: {choosers:?}");
    }
    assert!(ours.iter().any(|name| name.contains("strlen") || name.contains("memcpy")), "{ours:?}");
}

#[test]
fn stubs_of_cplusplus_functions() {
    let folder = Folder::new();
    let source = folder.write("a.cc", "#include <iostream>\nint main() { std::cout << 1 << std::endl; }\n");
    let program = folder.path("cplusplus");
    run(Command::new("g++").arg("-O1").arg(&source).arg("-o").arg(&program));
    let listing = run(Command::new("objdump").args(["-d", "--no-show-raw-insn", "-j", ".plt"]).arg(&program));
    // `std::ostream::operator<<(int)`.
    const RAW: &str = "_ZNSolsEi";
    let label = listing.lines().find(|line| line.ends_with(&format!("<{RAW}@plt>:")));
    let address = label.and_then(|line| line.split(' ').next()).expect("the stub of the output operator");
    let ours = names(&program, u64::from_str_radix(address, 16));
    let shown = run(Command::new("c++filt").arg(RAW));
    assert_eq!(ours, [format!("{}@plt", shown.trim())]);
}

#[test]
fn stubs_for_arm() {
    let folder = Folder::new();
    let source = folder.write(
        "arm.c",
        "extern int far_away(int), further(int);\nint near(int x) { return far_away(x) + further(x); }\n",
    );
    for (name, flags) in [("plain", &[][..]), ("protected", &["-mbranch-protection=bti", "-Wl,-z,force-bti"])] {
        let out = folder.path(name);
        let mut clang = Command::new("clang");
        clang.args(["--target=aarch64-linux-gnu", "-O1", "-nostdlib", "-shared", "-fPIC", "-fuse-ld=lld"]);
        run(clang.args(flags).arg(&source).arg("-o").arg(&out));
        assert_like("llvm-objdump", &out, &["far_away@plt", "further@plt"]);
    }
}
