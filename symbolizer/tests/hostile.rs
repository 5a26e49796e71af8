//! Files that are damaged, or made to harm whoever reads them. None may panic, hang or take memory without end.

mod common;

use std::path::{Path, PathBuf};

use common::{FUNCTIONS, Folder, Numbers, instructions, lines, symbol};
use mpp_symbolizer::{Error, Module, Options, Symbolized, Symbolizer};

/// Symbolizes with modules of one's own, and returns the problems too.
fn look(modules: &[Module], addresses: &[u64]) -> (Vec<Symbolized>, Vec<String>) {
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize(modules, addresses);
    assert_eq!(answers.len(), addresses.len());
    let problems = symbolizer.report().iter().flat_map(|report| &report.problems);
    (answers, problems.map(ToString::to_string).collect())
}

/// The offsets in the file of its ELF header, section headers and debug sections.
fn interesting(file: &Path) -> Vec<(usize, usize)> {
    use object::{Object as _, ObjectSection as _};
    let bytes = std::fs::read(file).expect("the file");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let is_of_use = |name: &str| name.starts_with(".debug") || name.contains("tab") || name.starts_with(".note");
    let mut ranges = vec![(0, 0x400), (bytes.len() - 0x900, bytes.len())];
    for section in elf.sections().filter(|section| section.name().is_ok_and(is_of_use)) {
        let (start, size) = section.file_range().expect("a section with content");
        ranges.push((start as usize, (start + size) as usize));
    }
    ranges
}

#[test]
fn flipped_bytes_and_cut_files() {
    let folder = Folder::new();
    let mut numbers = Numbers::new();
    for (name, flags) in
        [("plain", &["-no-pie"][..]), ("packed", &["-no-pie", "-gz"]), ("old", &["-no-pie", "-gdwarf-4"])]
    {
        let program = folder.program(name, flags);
        let (addresses, modules) = (instructions(&program, &FUNCTIONS), common::mapped(&program, 0));
        let (sound, problems) = look(&modules, &addresses);
        assert!(problems.is_empty() && sound.iter().all(|a| !a.frames.is_empty()), "{problems:?}");
        let (bytes, ranges) = (std::fs::read(&program).expect("the program"), interesting(&program));
        let mut changed = 0;
        for round in 0..150 {
            let mut bytes = bytes.clone();
            let (start, end) = ranges[numbers.below(ranges.len())];
            for _ in 0..1 + numbers.below(8) {
                bytes[start + numbers.below(end - start)] ^= 1 << numbers.below(8);
            }
            if round % 10 == 0 {
                bytes.truncate(numbers.below(bytes.len()));
            }
            std::fs::write(&program, &bytes).expect("the changed program");
            changed += usize::from(look(&modules, &addresses).0 != sound);
        }
        assert!(changed > 20, "only {changed} of the changes to {name} were noticed: they miss what is read");
    }
}

/// Assembles a program whose debug information is written by hand: `info` and `ranges` are the contents of
/// `.debug_info` after the first entry, and `.debug_ranges`. The function `code` is 64 bytes long.
fn by_hand(folder: &Folder, abbreviations: &str, info: &str, ranges: &str) -> PathBuf {
    let assembly = format!(
        r#"
        .text
        .globl main
        main: ret
        .globl code
        .type code, @function
        code: .fill 64, 1, 0x90
        .size code, 64
        .section .debug_abbrev, "", @progbits
        .uleb128 1, 0x11
        .byte 1
        .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
        {abbreviations}
        .byte 0
        .section .debug_info, "", @progbits
        info: .long info_end - info_start
        info_start: .short 4
        .long 0
        .byte 8
        .uleb128 1
        .quad code, 64
        {info}
        info_end:
        .section .debug_ranges, "", @progbits
        {ranges}
        .section .note.GNU-stack, "", @progbits
        "#
    );
    let source = folder.write("hostile.s", &assembly);
    folder.compile(&source, "hostile", &["-no-pie", "-Wl,--build-id=none"])
}

/// A function with name, address and length; with abbreviation 2.
const FUNCTION: &str = ".uleb128 2, 0x2e\n.byte 1\n.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n";

fn names(answer: &Symbolized) -> Vec<String> {
    lines(answer).into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn calls_inlined_a_hundred_thousand_deep() {
    let folder = Folder::new();
    let inlined = ".uleb128 3, 0x1d\n.byte 1\n.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n";
    let info = r#"
        .uleb128 2
        .asciz "outermost"
        .quad code, 64
        .rept 100000
        .uleb128 3
        .asciz "inlined"
        .quad code, 32
        .endr
        .fill 100002, 1, 0
    "#;
    let program = by_hand(&folder, &format!("{FUNCTION}{inlined}"), info, "");
    let code = symbol(&program, "code").0;
    let (answers, problems) = look(&common::mapped(&program, 0), &[code + 31, code + 32]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(answers[0].frames.len(), 256);
    assert_eq!(names(&answers[0])[254..], ["inlined", "outermost"]);
    assert_eq!(names(&answers[1]), ["outermost"]);
}

#[test]
fn inlined_calls_that_overlap_or_stick_out() {
    let folder = Folder::new();
    let inlined = ".uleb128 3, 0x1d\n.byte 1\n.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n";
    // In the function: a call of `a` at 0..32, in which `b` claims 0..48, and beside them a call of `c` at 16..64.
    let info = r#"
        .uleb128 2
        .asciz "outermost"
        .quad code, 64
        .uleb128 3
        .asciz "a"
        .quad code, 32
        .uleb128 3
        .asciz "b"
        .quad code, 48
        .byte 0, 0
        .uleb128 3
        .asciz "c"
        .quad code + 16, 48
        .byte 0, 0, 0
    "#;
    let program = by_hand(&folder, &format!("{FUNCTION}{inlined}"), info, "");
    let code = symbol(&program, "code").0;
    let (answers, _) = look(&common::mapped(&program, 0), &[code, code + 16, code + 40, code + 48]);
    let expected = [&["b", "a", "outermost"][..], &["b", "a", "outermost"], &["c", "outermost"], &["c", "outermost"]];
    assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), expected);
}

#[test]
fn every_function_with_the_same_long_list_of_ranges() {
    let folder = Folder::new();
    let listed = ".uleb128 3, 0x2e\n.byte 0\n.uleb128 0x55, 0x17, 0, 0\n";
    let info = ".rept 20000\n.uleb128 3\n.long 0\n.endr\n.byte 0\n";
    let ranges = ".rept 20000\n.quad 0x10000000, 0x10000001\n.endr\n.quad 0, 0\n";
    let program = by_hand(&folder, listed, info, ranges);
    let code = symbol(&program, "code").0;
    let (answers, problems) = look(&common::mapped(&program, 0), &[code]);
    assert!(problems.iter().any(|problem| problem.contains("more work")), "{problems:?}");
    // What the symbol table says is not lost.
    assert_eq!(names(&answers[0]), ["code"]);
}

#[test]
fn entries_of_one_byte_with_ten_thousand_attributes() {
    let folder = Folder::new();
    // Functions, whose attributes are looked at one by one; other entries of a fixed length cost one step.
    let long = ".uleb128 3, 0x2e\n.byte 0\n.rept 10000\n.uleb128 0x11, 0x19\n.endr\n.uleb128 0, 0\n";
    let info = ".fill 200000, 1, 3\n.byte 0\n";
    let program = by_hand(&folder, &format!("{FUNCTION}{long}"), info, "");
    let code = symbol(&program, "code").0;
    let (answers, problems) = look(&common::mapped(&program, 0), &[code]);
    assert!(problems.iter().any(|problem| problem.contains("more work")), "{problems:?}");
    assert_eq!(names(&answers[0]), ["code"]);
}

#[test]
fn references_that_go_round_in_circles() {
    let folder = Folder::new();
    // A function whose name is that of itself, and whose next sibling is itself.
    let round = ".uleb128 3, 0x2e\n.byte 1\n.uleb128 0x31, 0x13, 0x01, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0\n";
    let info = r#"
        round: .uleb128 3
        .long round - info, round - info
        .quad code, 16
        .byte 0
        other: .uleb128 3
        .long round - info, other - info
        .quad 0x10000000, 16
        .byte 0
        .uleb128 2
        .asciz "sound"
        .quad code + 16, 48
        .byte 0
        .byte 0
    "#;
    let program = by_hand(&folder, &format!("{FUNCTION}{round}"), info, "");
    let code = symbol(&program, "code").0;
    let (answers, problems) = look(&common::mapped(&program, 0), &[code + 8, code + 16]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [["code"], ["sound"]]);
}

#[test]
fn sections_that_claim_to_unpack_to_more_than_they_can() {
    let folder = Folder::new();
    let program = folder.program("bomb", &["-no-pie", "-gz=zlib"]);
    let addresses = instructions(&program, &["outer"]);
    let modules = common::mapped(&program, 0);
    let mut bytes = std::fs::read(&program).expect("the program");
    // The compression headers: type 1, four bytes unused, size, alignment 1.
    let is_header =
        |at: &usize| bytes[*at..][..8] == [1, 0, 0, 0, 0, 0, 0, 0] && bytes[at + 16..][..8] == [1, 0, 0, 0, 0, 0, 0, 0];
    let headers: Vec<usize> = (0..bytes.len() - 24).filter(is_header).collect();
    assert!(headers.len() >= 3, "compressed sections not found");
    for header in headers {
        bytes[header + 8..header + 16].copy_from_slice(&(1u64 << 40).to_le_bytes());
    }
    std::fs::write(&program, bytes).expect("the changed program");
    let (answers, problems) = look(&modules, &addresses);
    assert!(problems.iter().any(|problem| problem.contains("cannot unpack to 1099511627776")), "{problems:?}");
    assert!(answers.iter().all(|answer| names(answer) == ["outer"]));
}

#[test]
fn memory_for_one_file_is_limited() {
    let folder = Folder::new();
    let program = folder.program("limited", &["-no-pie", "-gz=zlib"]);
    let addresses = instructions(&program, &["outer"]);
    let mut symbolizer = Symbolizer::new(Options { max_file_memory: 24 << 10, ..Options::default() });
    symbolizer.symbolize(&common::mapped(&program, 0), &addresses);
    let problems = &symbolizer.report()[0].problems;
    assert!(!problems.is_empty());
    let is_of_size = |problem: &Error| matches!(problem, Error::Limit { .. } | Error::BadElf { .. });
    assert!(problems.iter().all(is_of_size), "{problems:?}");
}
