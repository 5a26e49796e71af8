//! Any bytes are the perf map of a process.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Options, Quality, SymbolSource, Symbolizer};

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("mpp-fuzz-perf-map-{}", std::process::id())));

fuzz_target!(|data: &[u8]| {
    std::fs::write(&*FILE, data).expect("a temporary file");
    // Small numbers, which fuzzers like, and the ends of the address space.
    let mut addresses: Vec<u64> = (0..256).collect();
    addresses.extend([0x1000, 0xffff, 0x7fff_ffff_ffff, u64::MAX - 1, u64::MAX]);
    let mut symbolizer = Symbolizer::new(Options { threads: 1, perf_map: Some(FILE.clone()), ..Options::default() });
    let answers = symbolizer.symbolize(&[], &addresses);
    let mut named = 0;
    for answer in &answers {
        assert_eq!(answer.frames.is_empty(), answer.quality == Quality::Nothing);
        let names = answer.frames.iter().filter_map(|frame| frame.function.as_ref());
        named += names.inspect(|name| assert!(!name.raw.trim_ascii().is_empty() && name.raw.len() < 64 << 10)).count();
    }
    let [report] = symbolizer.report() else { panic!("a report of the map") };
    assert_eq!(report.with_name, named);
    assert_eq!(report.source == SymbolSource::None, named == 0);
    assert!(report.problems.len() <= 1 && report.problems.iter().all(|p| !p.to_string().chars().any(char::is_control)));
});
