//! Any bytes are the debug sections of a program, at addresses all over it.
//!
//! The input is one byte of flags and then sections, each as a number, a length of two bytes and as many bytes: so
//! mutations change debug information, and not the headers of the file around it.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Module, Options, Quality, Symbolizer};

/// One file for each fuzzing process, overwritten for each input.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("mpp-fuzz-dwarf-{}", std::process::id())));

/// The sections by their number.
const NAMES: [&str; 10] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_line_str",
    ".debug_addr",
    ".debug_str_offsets",
];

/// The virtual addresses of the program.
const TEXT: std::ops::Range<u64> = 0x40_0000..0x41_0000;

/// Writes numbers in the byte order of the file.
struct Image {
    bytes: Vec<u8>,
    is_big: bool,
}

impl Image {
    fn number(&mut self, value: u64, size: usize) {
        let bytes = if self.is_big { &value.to_be_bytes()[8 - size..] } else { &value.to_le_bytes()[..size] };
        self.bytes.extend_from_slice(bytes);
    }

    fn numbers(&mut self, fields: &[(u64, usize)]) {
        fields.iter().for_each(|&(value, size)| self.number(value, size));
    }
}

/// A 64-bit ELF file with one segment and these sections.
fn elf(is_big: bool, sections: &[(usize, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let name_of: Vec<u64> = sections
        .iter()
        .map(|&(number, _)| {
            let at = names.len() as u64;
            names.extend_from_slice(NAMES[number].as_bytes());
            names.push(0);
            at
        })
        .collect();
    let contents = sections.iter().map(|(_, content)| content.len() as u64).sum::<u64>();
    let (first, count) = (64 + 56, sections.len() as u64 + 2);
    let headers = first + contents + names.len() as u64;
    let mut image = Image { bytes: b"\x7fELF\x02".to_vec(), is_big };
    image.numbers(&[(1 + u64::from(is_big), 1), (1, 1), (0, 1), (0, 8)]);
    // Type (a fixed program), machine, version, entry, program headers, section headers, flags, sizes and counts.
    image.numbers(&[(2, 2), (62, 2), (1, 4), (TEXT.start, 8), (64, 8), (headers, 8), (0, 4)]);
    image.numbers(&[(64, 2), (56, 2), (1, 2), (64, 2), (count, 2), (count - 1, 2)]);
    // One segment, read and executed.
    let size = TEXT.end - TEXT.start;
    image.numbers(&[(1, 4), (5, 4), (0, 8), (TEXT.start, 8), (TEXT.start, 8), (size, 8), (size, 8), (4096, 8)]);
    sections.iter().for_each(|(_, content)| image.bytes.extend_from_slice(content));
    image.bytes.extend_from_slice(&names);
    image.bytes.resize(image.bytes.len() + 64, 0);
    let mut at = first;
    let mut header = |name: u64, kind: u64, size: u64| {
        image.numbers(&[(name, 4), (kind, 4), (0, 8), (0, 8), (at, 8), (size, 8), (0, 4), (0, 4), (1, 8), (0, 8)]);
        at += size;
    };
    sections.iter().zip(name_of).for_each(|((_, content), name)| header(name, 1, content.len() as u64));
    header(0, 3, names.len() as u64);
    image.bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, mut rest)) = data.split_first() else { return };
    let mut sections: Vec<(usize, &[u8])> = Vec::new();
    while let Some((&[number, low, high], after)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (content, after) = after.split_at(length);
        sections.push((usize::from(number) % NAMES.len(), content));
        rest = after;
    }
    if sections.len() > NAMES.len() {
        return;
    }
    std::fs::write(&*FILE, elf(flags & 1 != 0, &sections)).expect("the temporary folder can be written to");
    let module =
        Module { start: TEXT.start, end: TEXT.end, file_offset: 0, path: FILE.clone(), build_id: None };
    let addresses: Vec<u64> = (TEXT.start..TEXT.end).step_by(1 << 10).chain(0x40_1000..0x40_1200).collect();
    let mut symbolizer = Symbolizer::new(Options { threads: 1, max_file_memory: 64 << 20, ..Options::default() });
    let answers = symbolizer.symbolize(&[module], &addresses);
    assert_eq!(answers.len(), addresses.len());
    for answer in &answers {
        assert!(answer.frames.len() <= 256);
        assert_eq!(answer.frames.is_empty(), answer.quality == Quality::Nothing);
    }
    for problem in symbolizer.report().iter().flat_map(|report| &report.problems) {
        assert!(!problem.to_string().chars().any(char::is_control), "{problem}");
    }
});
