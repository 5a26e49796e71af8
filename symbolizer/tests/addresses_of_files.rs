//! Files that are asked about by their own addresses, without a process that had them mapped.

mod common;

use common::{FUNCTIONS, Folder, instructions, run, symbolize};
use mpp_symbolizer::{Error, Options, Quality, SymbolSource, Symbolizer};
use std::process::Command;

#[test]
fn answers_are_those_of_the_mapped_file() {
    let folder = Folder::new();
    for (name, flags) in [
        ("pie", &["-pie", "-fPIE"][..]),
        ("fixed-high", &["-no-pie", "-Wl,-Ttext-segment=0x10000000"]),
        ("moved-text", &["-pie", "-fPIE", "-Wl,--section-start=.text=0x7654320"]),
    ] {
        let program = folder.program(name, flags);
        let mut addresses = instructions(&program, &FUNCTIONS);
        // In any order, twice, and such that belong to nothing.
        addresses.reverse();
        addresses.extend([addresses[0], 0, u64::MAX]);
        let mut symbolizer = Symbolizer::new(Options::default());
        let mut ours = symbolizer.symbolize_file(&program, &addresses).expect("a file");
        let outside = ours.split_off(addresses.len() - 2);
        assert!(outside.iter().all(|answer| answer.quality == Quality::Nothing && answer.frames.is_empty()));
        let mapped = symbolize(&program, &addresses[..addresses.len() - 2]);
        for (ours, mapped) in ours.iter().zip(&mapped) {
            assert_eq!((ours.module, ours.file_address), (None, mapped.file_address), "{name}");
            assert_eq!((&ours.frames, ours.quality), (&mapped.frames, mapped.quality), "{name}");
        }
        let [report] = symbolizer.report() else { panic!("{:?}", symbolizer.report()) };
        assert_eq!((report.with_lines + report.with_name, report.unresolved), (addresses.len() - 3, 2), "{name}");
        assert_eq!(report.source, SymbolSource::Dwarf { file: program.clone() });
    }
}

#[test]
fn debug_files_answer_for_themselves() {
    let folder = Folder::new();
    let program = folder.program("whole", &[]);
    let debug = folder.path("whole.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&program, &debug]));
    let addresses = instructions(&program, &FUNCTIONS);
    let mut symbolizer = Symbolizer::new(Options::default());
    let whole = symbolizer.symbolize_file(&program, &addresses).expect("a file");
    assert!(whole.iter().any(|answer| answer.frames.len() > 2));
    assert_eq!(symbolizer.symbolize_file(&debug, &addresses).expect("a file"), whole);
}

#[test]
fn what_has_no_symbols_at_all_is_an_error() {
    let folder = Folder::new();
    let text = folder.write("text", "not a program");
    let mut symbolizer = Symbolizer::new(Options::default());
    assert!(matches!(symbolizer.symbolize_file(&folder.path("missing"), &[1]), Err(Error::Io { .. })));
    assert!(symbolizer.symbolize_file(&text, &[1]).is_err());
    assert!(matches!(symbolizer.symbolize_file(text.parent().expect("a folder"), &[1]), Err(Error::NotRegular { .. })));
    assert!(symbolizer.report().is_empty());
}
