//! Any bytes are a file of Windows or macOS, whose code is looked up.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Module, Options, Quality, Symbolizer};

/// One file for each fuzzing process, overwritten for each input.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("mpp-fuzz-foreign-{}", std::process::id())));

/// Where code is in the seeds: what images of Windows and macOS are based on, and where the code of libraries begins.
const BASES: [u64; 4] = [0x1_4000_1000, 0x1_8000_1000, 0x200, 0x2_0000_1000];

/// Without one, and one that no file has.
const UUIDS: [Option<&[u8]>; 2] = [None, Some(&[0x4c; 16])];

fuzz_target!(|data: &[u8]| {
    std::fs::write(&*FILE, data).expect("the temporary folder can be written to");
    let mut symbolizer = Symbolizer::new(Options { threads: 1, max_file_memory: 64 << 20, ..Options::default() });
    let addresses: Vec<u64> = BASES.iter().flat_map(|base| (0..0x200).step_by(7).map(move |at| base + at)).collect();
    if let Ok(answers) = symbolizer.symbolize_file(&FILE, &addresses) {
        check(&symbolizer, &answers, addresses.len());
    }
    for uuid in UUIDS {
        let build_id = uuid.map(<[u8]>::to_vec);
        let module = Module { start: 0x1000, end: 0x8000, file_offset: 0, path: FILE.clone(), build_id };
        let addresses: Vec<u64> = (0x1000..0x8000).step_by(119).collect();
        let answers = symbolizer.symbolize(&[module], &addresses);
        check(&symbolizer, &answers, addresses.len());
    }
});

fn check(symbolizer: &Symbolizer, answers: &[mpp_symbolizer::Symbolized], count: usize) {
    assert_eq!(answers.len(), count);
    for answer in answers {
        assert!(answer.frames.len() <= 256);
        assert_eq!(answer.frames.is_empty(), answer.quality == Quality::Nothing);
    }
    for report in symbolizer.report() {
        for problem in &report.problems {
            assert!(!problem.to_string().chars().any(char::is_control), "{problem}");
        }
        assert!(report.remedy.iter().all(|remedy| !remedy.chars().any(char::is_control)), "{:?}", report.remedy);
    }
}
