//! Any bytes are the PDB of a small program, all of whose code is looked up.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Options, Quality, Symbolizer};

/// The program that the seeds are the PDB of: changed PDBs have its GUID and age still, as a rule.
const PROGRAM: &[u8] = include_bytes!("../fixtures/app.exe");

/// A folder for each fuzzing process, with the program in it.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("mpp-fuzz-pdb-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written to");
    std::fs::write(folder.join("app.exe"), PROGRAM).expect("the temporary folder can be written to");
    folder
});

fuzz_target!(|data: &[u8]| {
    std::fs::write(FOLDER.join("app.pdb"), data).expect("the temporary folder can be written to");
    let addresses: Vec<u64> = (0..0x180).step_by(3).map(|offset| 0x1_4000_1000 + offset).collect();
    let mut symbolizer = Symbolizer::new(Options { threads: 1, max_file_memory: 64 << 20, ..Options::default() });
    let answers = symbolizer.symbolize_file(&FOLDER.join("app.exe"), &addresses).expect("a program");
    assert_eq!(answers.len(), addresses.len());
    for answer in &answers {
        assert!(answer.frames.len() <= 256);
        assert_eq!(answer.frames.is_empty(), answer.quality == Quality::Nothing);
    }
    for problem in symbolizer.report().iter().flat_map(|report| &report.problems) {
        assert!(!problem.to_string().chars().any(char::is_control), "{problem}");
    }
});
