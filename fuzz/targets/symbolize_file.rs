//! Any bytes are symbolized as a file of a process, at addresses all over it.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Module, Options, Quality, Symbolizer};

/// One file for each fuzzing process, overwritten for each input.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("mpp-fuzz-symbolize-{}", std::process::id())));

/// Where the file is mapped.
const START: u64 = 0x7f00_0000_0000;

fuzz_target!(|data: &[u8]| {
    std::fs::write(&*FILE, data).expect("the temporary folder can be written to");
    let size = data.len() as u64;
    let module = Module { start: START, end: START + size, file_offset: 0, path: FILE.clone(), build_id: None };
    let addresses: Vec<u64> = (0..size).step_by((data.len() / 256).max(1)).map(|offset| START + offset).collect();
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
