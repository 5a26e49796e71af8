//! Names from symbol tables: packed ones, functions with several names, entries that are no functions.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::tools::run;
use common::{FUNCTIONS, Folder, build_id, instructions, lines, opinions, symbol, symbolize, symbolize_with};
use mpp_symbolizer::{Error, Options, SymbolSource, Symbolizer};

/// The program of the tests as Fedora ships programs: stripped, with the symbols that are not dynamic packed.
fn with_mini_debug_info(folder: &Folder) -> (PathBuf, PathBuf) {
    let whole = folder.program("whole", &["-pie", "-fPIE", "-rdynamic", "-Wl,--build-id"]);
    let names = |arguments: &[&str]| -> Vec<String> {
        let listing = run(Command::new("nm").args(arguments).args(["--format=posix", "--defined-only"]).arg(&whole));
        let functions = listing.lines().filter(|line| line.split(' ').nth(1).is_some_and(|kind| "Tt".contains(kind)));
        functions.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let dynamic = names(&["-D"]);
    let keep: Vec<String> = names(&[]).into_iter().filter(|name| !dynamic.contains(name)).collect();
    assert!(keep.iter().any(|name| name == "apart"), "{keep:?}");
    let (keep, mini, packed) = (folder.write("keep", &keep.join("\n")), folder.path("mini"), folder.path("mini.xz"));
    run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &mini]));
    let mut strip = Command::new("objcopy");
    run(strip
        .args(["-S", "--remove-section", ".comment"])
        .arg(format!("--keep-symbols={}", keep.display()))
        .arg(&mini));
    run(Command::new("xz").args(["--keep", "--force"]).arg(&mini));
    let program = folder.path("app");
    let section = format!(".gnu_debugdata={}", packed.display());
    run(Command::new("objcopy").args(["-S", "--add-section", &section]).args([&whole, &program]));
    (whole, program)
}

#[test]
fn mini_debug_info() {
    let folder = Folder::new();
    let (whole, program) = with_mini_debug_info(&folder);
    let addresses = instructions(&whole, &FUNCTIONS);
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolize_with(&mut symbolizer, &program, &addresses, Some(&build_id(&whole)));
    let name = |told: &Vec<opinions::Told>| told.last().map(|told| told.name.clone());
    let theirs: Vec<_> = opinions::elfutils(&program, &addresses).iter().map(name).collect();
    let ours: Vec<_> = answers.iter().map(|answer| name(&opinions::ours(answer))).collect();
    assert_eq!(ours, theirs);
    assert!(ours.iter().any(|name| name.as_deref() == Some("apart")), "{ours:?}");
    let report = &symbolizer.report()[0];
    assert_eq!(report.source, SymbolSource::MiniDebugInfo);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn damaged_mini_debug_info_is_told_and_the_rest_is_used() {
    let folder = Folder::new();
    let (whole, program) = with_mini_debug_info(&folder);
    let mut bytes = std::fs::read(&program).expect("the program");
    let at = bytes.windows(6).position(|window| window == b"\xfd7zXZ\0").expect("the packed file");
    bytes[at + 100] ^= 0xff;
    std::fs::write(&program, bytes).expect("the damaged program");
    let (outer, apart) = (symbol(&whole, "outer").0, symbol(&whole, "apart").0);
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolize_with(&mut symbolizer, &program, &[outer, apart], None);
    assert_eq!(lines(&answers[0])[0].0, "outer");
    assert!(answers[1].frames.is_empty());
    let report = &symbolizer.report()[0];
    assert_eq!(report.source, SymbolSource::Dynsym);
    assert!(matches!(&report.problems[..], [Error::BadElf { .. }]), "{:?}", report.problems);
    assert!(report.summary().is_some_and(|summary| summary.contains(".gnu_debugdata")));
}

/// What each function is called.
fn names(file: &Path, addresses: &[u64]) -> Vec<String> {
    symbolize(file, addresses).iter().map(|answer| lines(answer).first().map_or("-".into(), |l| l.0.clone())).collect()
}

#[test]
fn functions_with_several_names() {
    let folder = Folder::new();
    let source = folder.write(
        "alias.c",
        r#"
        int __long_internal_name(int x) { return x * 3; }
        int public_name(int x) __attribute__((alias("__long_internal_name")));
        int weak(int x) __attribute__((weak, alias("__long_internal_name")));
        static int is(int x) __attribute__((used, alias("__long_internal_name")));
        static int chosen(int x) { return x + 1; }
        static int (*choose(void))(int) { return chosen; }
        int by_machine(int) __attribute__((ifunc("choose")));
        __attribute__((symver("old@@VERS_2"))) int name_in_the_source(int x) { return x - 1; }
        int main(int argc, char **argv) { (void)argv; return public_name(argc) + by_machine(argc) + name_in_the_source(argc); }
        "#,
    );
    let script = folder.write("versions", "VERS_2 { global: *; };");
    let script = format!("-Wl,--version-script={}", script.display());
    let program = folder.compile(&source, "alias.so", &["-O0", "-g0", "-shared", "-fPIC", &script]);
    let at = |name: &str| symbol(&program, name).0;
    let addresses = [at("public_name"), at("choose"), at("chosen"), at("name_in_the_source")];
    let listing = run(Command::new("nm").arg(&program));
    assert!(listing.contains("old@@VERS_2"), "{listing}");
    // The global one before the weak and the local one, and of those the shortest; without version.
    let expected = ["public_name", "by_machine", "chosen", "old"];
    assert_eq!(names(&program, &addresses), expected);
}

#[test]
fn equal_functions_that_the_linker_made_one() {
    let folder = Folder::new();
    let source = folder.write(
        "icf.c",
        "int first_of_two(int x) { return x * 77 + 5; }\nint second(int x) { return x * 77 + 5; }\n\
         int main(int c, char **v) { (void)v; return first_of_two(c) + second(c); }\n",
    );
    for linker in ["-fuse-ld=gold", "-fuse-ld=lld"] {
        let flags = ["-O1", "-fno-inline", "-fno-ipa-icf", "-g0", "-ffunction-sections", linker, "-Wl,--icf=all"];
        let program = folder.compile(&source, "icf", &flags);
        let (first, second) = (symbol(&program, "first_of_two"), symbol(&program, "second"));
        assert_eq!(first, second, "{linker} did not make them one");
        assert_eq!(names(&program, &[first.0, first.0 + first.1 - 1]), ["second", "second"], "{linker}");
    }
}

#[test]
fn marks_between_code_and_data_are_no_names() {
    let folder = Folder::new();
    let source = folder.write(
        "marks.s",
        "
        .text
        .globl coded
        .type coded, %function
        coded: ret
        .word 1, 2, 3
        .size coded, . - coded
        nop
        .globl label
        label: ret
        ",
    );
    let out = folder.path("marks");
    let mut clang = Command::new("clang");
    clang.args(["--target=aarch64-linux-gnu", "-nostdlib", "-shared", "-fuse-ld=lld"]);
    run(clang.arg(&source).arg("-o").arg(&out));
    let listing = run(Command::new("llvm-nm").args(["-a", "--special-syms"]).arg(&out));
    assert!(listing.contains("$d") && listing.contains("$x"), "{listing}");
    let address = |name: &str| {
        let line = listing.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name}: {listing}"));
        u64::from_str_radix(&line[..16], 16).expect("an address")
    };
    let (coded, label) = (address(" coded"), address(" label"));
    // Code, data in it, code after it that has only a mark, and a label without size.
    assert_eq!(names(&out, &[coded, coded + 4, coded + 16, label]), ["coded", "coded", "-", "label"]);
}
