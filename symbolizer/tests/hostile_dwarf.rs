//! Each byte of the debug information of a small program changed: to its neighbours, and to numbers of the largest
//! size, so that every count, length, offset and reference is once as large as it can be.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, instructions, run};
use mpp_symbolizer::{Module, Options, Symbolized, Symbolizer};
use object::{Object as _, ObjectSection as _};

/// It has an inlined call, a list of ranges, a function with two parts of its name elsewhere, and several files.
const PROGRAM: &str = r#"
#line 1 "a.h"
static inline __attribute__((always_inline)) int leaf(int x) { volatile int v = x; return v + 1; }
#line 1 "b.c"
struct s { int member; };
__attribute__((noinline, section(".text.two"))) int two(struct s *s) { return leaf(s->member); }
__attribute__((noinline)) int one(int x)
{
    struct s s = { x };
    int y = leaf(x);
    return y > 5 ? two(&s) : y;
}
void _start(void) { one(1); for (;;); }
"#;

fn program(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let source = folder.write("tiny.c", PROGRAM);
    let mut all = vec!["-O2", "-g", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-asynchronous-unwind-tables"];
    all.extend(flags);
    folder.compile(&source, name, &all)
}

fn look(modules: &[Module], addresses: &[u64]) -> Vec<Symbolized> {
    let mut symbolizer = Symbolizer::new(Options { threads: 1, ..Options::default() });
    let answers = symbolizer.symbolize(modules, addresses);
    assert_eq!(answers.len(), addresses.len());
    assert!(answers.iter().all(|answer| answer.frames.len() <= 256));
    for problem in symbolizer.report().iter().flat_map(|report| &report.problems) {
        let text = problem.to_string();
        assert!(text.len() < 1000 && !text.chars().any(char::is_control), "{text:?}");
    }
    answers
}

/// Offsets and sizes of the sections of debug information in the file.
fn debug_sections(file: &Path) -> Vec<(String, usize, usize)> {
    let bytes = fs::read(file).expect("the program");
    let parsed = object::File::parse(&*bytes).expect("an ELF file");
    let sections = parsed.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug")));
    let range = |section: object::Section<'_, '_>| {
        let (offset, size) = section.file_range().expect("content");
        (section.name().expect("a name").to_owned(), offset as usize, size as usize)
    };
    sections.map(range).collect()
}

/// What is written over the bytes from some place on: a byte next to the one that is there, the largest number of four
/// bytes, the largest number of 64 bits in LEB128, and zeros.
fn changes(original: u8) -> [Vec<u8>; 4] {
    let mut leb = vec![0xff; 9];
    leb.push(1);
    [vec![original.wrapping_add(1)], vec![0xff; 4], leb, vec![0; 4]]
}

#[track_caller]
fn change_everything(flags: &[&str]) {
    let folder = Folder::new();
    let path = program(&folder, "tiny", flags);
    change_sections_of(&path, &path, &[".debug_info", ".debug_abbrev", ".debug_line"], &[".debug_str"]);
}

/// Changes all debug information of `victim`, which is that of `program`. Changes of the sections `read` are noticed.
#[track_caller]
fn change_sections_of(program: &Path, victim: &Path, read: &[&str], others: &[&str]) {
    let (modules, addresses) = (common::mapped(program, 0), instructions(program, &["one", "two"]));
    let sound = look(&modules, &addresses);
    assert!(sound.iter().all(|answer| answer.frames[0].line != 0));
    assert!(sound.iter().any(|answer| answer.frames.len() == 2));
    let bytes = fs::read(victim).expect("the file");
    let sections = debug_sections(victim);
    for needed in read.iter().chain(others) {
        assert!(sections.iter().any(|(name, ..)| name == needed), "{needed}");
    }
    for (name, start, size) in sections {
        let mut noticed = 0;
        for at in start..start + size {
            for change in changes(bytes[at]) {
                let mut changed = bytes.clone();
                let end = (at + change.len()).min(start + size);
                changed[at..end].copy_from_slice(&change[..end - at]);
                fs::write(victim, changed).expect("the changed file");
                noticed += usize::from(look(&modules, &addresses) != sound);
            }
        }
        assert!(noticed > 50 || !read.contains(&&*name), "only {noticed} changes of {name} were noticed");
    }
    assert!(common::peak_memory() < 1 << 30, "{} for {} bytes", common::peak_memory(), bytes.len());
}

#[test]
fn version_5() {
    change_everything(&["-gdwarf-5"]);
}

#[test]
fn version_4() {
    change_everything(&["-gdwarf-4"]);
}

#[test]
fn version_2_with_64_bit_offsets() {
    change_everything(&["-gdwarf-2", "-gstrict-dwarf", "-gdwarf64"]);
}

/// A unit of version 5 for the function `_start`, whose line table begins with these lists of folders and files.
const UNIT: &str = r#"
    .text
    .globl _start
    .type _start, @function
    _start: .fill 8, 1, 0x90
    .size _start, 8
    .section .debug_abbrev, "", @progbits
    .uleb128 1, 0x11
    .byte 0
    .uleb128 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0
    .byte 0
    .section .debug_info, "", @progbits
    .long info_end - info_start
    info_start: .short 5
    .byte 1, 8
    .long 0
    .uleb128 1
    .quad _start, 8
    .long 0
    info_end:
    .section .debug_line, "", @progbits
    .long line_end - line_start
    line_start: .short 5
    .byte 8, 0
    .long line_code - line_header
    line_header: .byte 1, 1, 1, -5, 14, 13
    .byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
    LISTS
    line_code:
    .byte 0, 9, 2
    .quad _start
    .byte 1
    .byte 2, 8
    .byte 0, 1, 1
    line_end:
"#;

#[test]
fn endless_lists_of_nothing() {
    let folder = Folder::new();
    let look_with = |dirs: &str, files: &str| {
        let source = folder.write("endless.s", &UNIT.replace("LISTS", &format!("{dirs}\n{files}\n")));
        let program = folder.path("endless");
        run(Command::new("gcc").args(["-nostdlib", "-static", "-no-pie"]).arg(&source).arg("-o").arg(&program));
        let address = common::symbol(&program, "_start").0;
        let answer = look(&common::mapped(&program, 0), &[address]).remove(0);
        common::lines(&answer).remove(0)
    };
    // Path and form: a string; the second file is the one that the first row is in.
    let dirs = ".byte 1\n.uleb128 1, 8\n.uleb128 1\n.asciz \"/folder\"";
    let files = ".byte 2\n.uleb128 1, 8, 2, 11\n.uleb128 2\n.asciz \"x.c\"\n.byte 0\n.asciz \"y.c\"\n.byte 0";
    assert_eq!(look_with(dirs, files), ("_start".to_owned(), "y.c".to_owned(), 1));
    let huge = "0xffffffffffffff";
    let (nothing, too_many) = (format!(".byte 0\n.uleb128 {huge}"), format!(".byte 1\n.uleb128 1, 8\n.uleb128 {huge}"));
    let (many_formats, long_blocks) =
        (".byte 255".to_owned(), format!(".byte 1\n.uleb128 1, 9\n.uleb128 {huge}, {huge}"));
    for list in [&nothing, &too_many, &many_formats, &long_blocks] {
        for (dirs, files) in [(list.as_str(), files), (dirs, list), (list, list)] {
            let (function, ..) = look_with(dirs, files);
            assert_eq!(function, "_start", "{dirs}; {files}");
        }
    }
    assert!(common::peak_memory() < 1 << 30, "{}", common::peak_memory());
}

/// A program with its debug information in `tiny.dwo`, or in the package `tiny.dwp`.
fn split(folder: &Folder, packed: bool, version: &str) -> (PathBuf, PathBuf) {
    let source = folder.write("tiny.c", PROGRAM);
    let (object, program, loose) = (folder.path("tiny.o"), folder.path("tiny"), folder.path("tiny.dwo"));
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-g", "-gsplit-dwarf", version, "-fno-pie", "-fno-asynchronous-unwind-tables", "-c"]);
    run(compiler.arg(&source).arg("-o").arg(&object).current_dir(folder.path("")));
    run(Command::new("gcc").args(["-static", "-nostdlib", "-no-pie"]).arg(&object).arg("-o").arg(&program));
    fs::remove_file(object).expect("removed");
    if !packed {
        return (program, loose);
    }
    let package = folder.path("tiny.dwp");
    run(Command::new("llvm-dwp").arg(&loose).arg("-o").arg(&package));
    fs::remove_file(loose).expect("removed");
    (program, package)
}

#[test]
fn split_files_and_packages() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        for packed in [false, true] {
            let folder = Folder::new();
            let (program, victim) = split(&folder, packed, version);
            let indices: &[&str] = if packed { &[".debug_cu_index"] } else { &[] };
            change_sections_of(&program, &victim, &[".debug_info.dwo", ".debug_abbrev.dwo"], indices);
        }
    }
}
