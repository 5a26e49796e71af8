//! Where linkers put code: in the file, in the program's own addresses, and in memory.

mod common;

use std::path::Path;
use std::process::Command;

use common::compare::{assert_like_llvm, instructions};
use common::project::{Project, WITH_FAR_SECTION};
use common::tools::{CLANG, Compiler, GCC};
use common::{FUNCTIONS, Folder, assert_like_binutils, lines, symbol};
use mpp_symbolizer::{Module, Options, Symbolizer};

#[test]
fn every_layout_of_segments() {
    let folder = Folder::new();
    let layouts: [(&str, &[&str]); 7] = [
        ("fixed", &["-no-pie"]),
        ("fixed-high", &["-no-pie", "-Wl,-Ttext-segment=0x10000000"]),
        ("one-segment", &["-pie", "-fPIE", "-Wl,-z,noseparate-code"]),
        ("fixed-one-segment", &["-no-pie", "-Wl,-z,noseparate-code"]),
        ("own-pages", &["-pie", "-fPIE", "-Wl,-z,separate-code"]),
        ("moved-text", &["-pie", "-fPIE", "-Wl,--section-start=.text=0x7654320"]),
        ("sections", &["-ffunction-sections", "-Wl,--gc-sections"]),
    ];
    let mut is_unlike = false;
    for (name, flags) in layouts {
        let program = folder.program(name, flags);
        assert_like_binutils(&program, &FUNCTIONS);
        let address = symbol(&program, "outer").0;
        is_unlike |= common::mapped(&program, 0).iter().any(|m| m.contains(address) && m.start != m.file_offset);
    }
    assert!(is_unlike, "no layout has addresses unlike offsets");
}

/// Whether the addresses of `function` are unlike its offsets in the file.
fn is_unlike(program: &Path, function: &str) -> bool {
    let address = symbol(program, function).0;
    common::mapped(program, 0).iter().any(|m| m.contains(address) && m.start != m.file_offset)
}

/// The project linked by each linker, as each compiler has compiled it.
#[track_caller]
fn assert_every_linker(compiler: Compiler) {
    let folder = Folder::new();
    let project = Project::new(&folder, compiler);
    let link_flags: [(&str, &[&str]); 9] = [
        ("pie", &["-pie"]),
        ("fixed", &["-no-pie"]),
        ("prelinked", &["-pie", "-Wl,-Ttext-segment=0x3f5c600000"]),
        ("far", &["-no-pie", "-Wl,--section-start=far=0x7000000"]),
        ("gold", &["-pie", "-fuse-ld=gold"]),
        ("lld", &["-pie", "-fuse-ld=lld"]),
        ("lld-fixed", &["-no-pie", "-fuse-ld=lld", "-Wl,-z,separate-loadable-segments"]),
        ("mold", &["-pie", "-fuse-ld=mold"]),
        ("mold-fixed", &["-no-pie", "-fuse-ld=mold"]),
    ];
    for (name, link_flags) in link_flags {
        let pie = if link_flags.contains(&"-pie") { "-fPIE" } else { "-fno-pie" };
        let program = project.build(name, &[pie, WITH_FAR_SECTION], link_flags);
        assert_like_llvm(&program);
        match name {
            "lld" | "prelinked" => assert!(is_unlike(&program, "main"), "{name}"),
            "far" => assert_eq!(common::mapped(&program, 0).len(), 2, "executable segments"),
            _ => {}
        }
    }
}

#[test]
fn every_linker_after_gcc() {
    assert_every_linker(GCC);
}

#[test]
fn every_linker_after_clang() {
    assert_every_linker(CLANG);
}

#[test]
fn unused_and_equal_functions_removed_by_the_linker() {
    let folder = Folder::new();
    for (who, compiler) in [("gcc", GCC), ("clang", CLANG)] {
        let project = Project::new(&folder, compiler);
        for linker in ["bfd", "gold", "lld", "mold"] {
            let linker_flag = format!("-fuse-ld={linker}");
            let mut link_flags = vec![linker_flag.as_str(), "-Wl,--gc-sections"];
            if linker != "bfd" {
                link_flags.push("-Wl,--icf=all");
            }
            let program = project.build(&format!("{who}-{linker}"), &["-ffunction-sections"], &link_flags);
            assert_like_llvm(&program);
            // Removed code lies at address 0 or beyond all code; nothing is ever found there.
            let removed = common::symbolize(&program, &[0, 1, 0x10, 0x40]);
            assert!(removed.iter().all(|answer| answer.frames.is_empty()), "{who}-{linker}: {removed:?}");
        }
        // Of the names of folded functions any may be given, but not that of a neighbour.
        let program = project.build("folded", &["-ffunction-sections"], &["-fuse-ld=lld", "-Wl,--icf=all"]);
        let keep = [symbol(&program, "_ZN4shop4keepEl"), symbol(&program, "_ZN4shop8keep_tooEl")];
        assert_eq!(keep[0].0, keep[1].0, "{who}: not folded");
        let answer = &common::symbolize(&program, &[keep[0].0])[0];
        let name = lines(answer).pop().expect("a frame").0;
        assert!(["shop::keep(long)", "shop::keep_too(long)"].contains(&name.as_str()), "{who}: {name}");
    }
}

#[test]
fn every_address_of_a_stripped_copy_maps_to_itself() {
    // The program headers alone, whatever the linker.
    let folder = Folder::new();
    let project = Project::new(&folder, GCC);
    for linker in ["bfd", "gold", "lld", "mold"] {
        let program = project.build(linker, &["-fPIE", "-g0"], &["-pie", &format!("-fuse-ld={linker}")]);
        let addresses = instructions(&program);
        let answers = common::symbolize(&program, &addresses);
        let found: Vec<u64> = answers.iter().map(|answer| answer.file_address).collect();
        assert_eq!(found, addresses, "{linker}");
    }
}

/// Runs a program that prints addresses of its functions and then its memory map; the answers must be `functions`.
#[track_caller]
fn assert_running(program: &Path, functions: &[&str]) -> Vec<Module> {
    let printed = common::run(&mut Command::new(program));
    let (addresses, maps) = printed.split_once('\n').expect("addresses, then the map");
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a hex number");
    let addresses: Vec<u64> = addresses.split_whitespace().map(hex).collect();
    assert_eq!(addresses.len(), functions.len(), "{printed}");
    let module = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words[0].split_once('-')?;
        let path = words.get(5).copied().unwrap_or_default().into();
        Some(Module { start: hex(start), end: hex(end), file_offset: hex(words[2]), path, build_id: None })
    };
    let modules: Vec<Module> = maps.lines().filter_map(module).collect();
    let answers = Symbolizer::new(Options::default()).symbolize(&modules, &addresses);
    for (function, answer) in functions.iter().zip(answers) {
        let found = lines(&answer);
        assert_eq!(found.last().map(|(name, ..)| name.as_str()), Some(*function), "{}: {maps}", program.display());
        assert_eq!(answer.file_address, symbol(program, function).0, "{}", program.display());
    }
    modules
}

#[test]
fn running_processes_of_every_layout() {
    let folder = Folder::new();
    let layouts: [(&str, &[&str]); 9] = [
        ("pie", &["-pie", "-fPIE"]),
        ("fixed", &["-no-pie"]),
        ("moved-text", &["-pie", "-fPIE", "-Wl,--section-start=.text=0x7654320"]),
        ("one-segment", &["-pie", "-fPIE", "-Wl,-z,noseparate-code"]),
        ("prelinked", &["-pie", "-fPIE", "-Wl,-Ttext-segment=0x3f5c600000"]),
        ("gold", &["-pie", "-fPIE", "-fuse-ld=gold"]),
        ("lld", &["-pie", "-fPIE", "-fuse-ld=lld"]),
        ("lld-fixed", &["-no-pie", "-fuse-ld=lld"]),
        ("mold", &["-pie", "-fPIE", "-fuse-ld=mold"]),
    ];
    for (name, flags) in layouts {
        assert_running(&folder.program(name, flags), &["outer", "main"]);
    }
}

/// Moves a part of its text to anonymous memory, as programs do that want it in huge pages. The space around `first`
/// and `last` makes sure that they are in the part that is moved, or are not.
const REMAPPED: &str = r#"
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((section(".text.a"), noinline)) int before(int x) { return x + 1; }
__asm__(".section .text.b,\"ax\"\n.balign 4096\n.globl moved_start\nmoved_start: .previous");
__attribute__((section(".text.c"), noinline)) int moved(int x) { return x + 2; }
__asm__(".section .text.d,\"ax\"\n.balign 4096\n.globl moved_end\nmoved_end: .previous");
__attribute__((section(".text.e"), noinline)) int after(int x) { return x + 3; }
extern char moved_start[], moved_end[];

int main(void)
{
    size_t size = moved_end - moved_start;
    void *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, moved_start, size);
    mprotect(copy, size, PROT_READ | PROT_EXEC);
    if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, moved_start) != moved_start)
        return 1;
    printf("%p %p %p\n", (void *)before, (void *)moved, (void *)after);
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c; maps && (c = fgetc(maps)) != EOF;)
        putchar(c);
    return moved(2) + before(1) + after(0) == 1234;
}
"#;

#[test]
fn text_that_a_running_process_moved_to_anonymous_memory() {
    let folder = Folder::new();
    let source = folder.write("remapped.c", REMAPPED);
    for (name, flags) in [
        ("pie", &["-pie", "-fPIE", "-Wl,--sort-section=name"][..]),
        ("fixed", &["-no-pie", "-Wl,--sort-section=name"]),
        ("gold", &["-pie", "-fPIE", "-fuse-ld=gold", "-Wl,--sort-section=name"]),
    ] {
        let program = folder.compile(&source, name, &[&["-O1", "-g"], flags].concat());
        let modules = assert_running(&program, &["before", "moved", "after"]);
        let is_nameless = |m: &&Module| m.path.as_os_str().is_empty();
        let moved = modules.iter().filter(is_nameless).filter(|m| m.end - m.start >= 4096).count();
        assert!(moved >= 1, "{name}: {modules:?}");
    }
}
