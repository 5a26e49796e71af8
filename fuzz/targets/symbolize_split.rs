//! Any bytes are the split debug information of a program: as the file of each of its units, and as a package.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Module, Options, Quality, Symbolizer};

/// A program of two units, `four.c` in version 4 by GCC and `five.cc` in version 5 by clang, whose other parts are the
/// seeds. It is 64-bit ELF in one executable segment.
const PROGRAM: &[u8] = include_bytes!("check/split-program");

/// Offsets in the file of its code.
const CODE: std::ops::Range<u64> = 0xb0..0x11d;

/// Where the file is mapped.
const START: u64 = 0x7f00_0000_0000;

/// One folder for each fuzzing process.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("mpp-fuzz-split-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("app"), PROGRAM).expect("the program");
    folder
});

fuzz_target!(|data: &[u8]| {
    for name in ["four.dwo", "five.dwo", "app.dwp"] {
        std::fs::write(FOLDER.join(name), data).expect("the folder can be written to");
    }
    let size = PROGRAM.len() as u64;
    let path = FOLDER.join("app");
    let module = Module { start: START, end: START + size, file_offset: 0, path, build_id: None };
    let addresses: Vec<u64> = CODE.map(|offset| START + offset).collect();
    let mut symbolizer = Symbolizer::new(Options { threads: 1, max_file_memory: 64 << 20, ..Options::default() });
    let answers = symbolizer.symbolize(&[module], &addresses);
    assert_eq!(answers.len(), addresses.len());
    // The names in the program's symbol table are never lost.
    assert!(answers.iter().filter(|answer| answer.quality != Quality::Nothing).count() >= 90);
    for answer in &answers {
        assert!(answer.frames.len() <= 256);
    }
    for problem in symbolizer.report().iter().flat_map(|report| &report.problems) {
        assert!(!problem.to_string().chars().any(char::is_control), "{problem}");
    }
});
