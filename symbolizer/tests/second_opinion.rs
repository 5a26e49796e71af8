//! Thousands of addresses of a large program (this test itself) against another reader of the same debug information,
//! the crate `addr2line`.

mod common;

use std::borrow::Cow;
use std::path::Path;

use mpp_symbolizer::Symbolized;
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

/// A frame as both can be brought to tell it: raw name, file, line.
type Told = (Option<String>, Option<String>, u32);

/// What `addr2line` says.
fn second_opinion(file: &Path, addresses: &[u64]) -> Vec<Vec<Told>> {
    let bytes = std::fs::read(file).expect("the file");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let section = elf.section_by_name(id.name());
        Ok(section.map_or(Cow::default(), |section| section.uncompressed_data().expect("a section")))
    };
    let sections = gimli::DwarfSections::load(load).expect("sections");
    let dwarf = sections.borrow(|section| gimli::EndianSlice::new(section, gimli::LittleEndian));
    let context = addr2line::Context::from_dwarf(dwarf).expect("debug information");
    let tell = |&address: &u64| {
        let mut frames = context.find_frames(address).skip_all_loads().expect("frames");
        let mut told = Vec::new();
        while let Some(frame) = frames.next().expect("a frame") {
            let name = frame.function.map(|name| name.raw_name().expect("a name").into_owned());
            let place = frame.location;
            let line = place.as_ref().and_then(|place| place.line).unwrap_or(0);
            told.push((name, place.and_then(|place| place.file.map(str::to_owned)), line));
        }
        told
    };
    addresses.iter().map(tell).collect()
}

fn told(symbolized: &Symbolized) -> Vec<Told> {
    let tell = |frame: &mpp_symbolizer::Frame| {
        (frame.function.as_ref().map(|name| name.raw.to_string()), frame.file.as_deref().map(str::to_owned), frame.line)
    };
    symbolized.frames.iter().map(tell).collect()
}

/// Addresses spread evenly over the executable code of a file.
fn spread(file: &Path, count: u64) -> Vec<u64> {
    let bytes = std::fs::read(file).expect("the file");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let text = elf.section_by_name(".text").expect("code");
    assert!(elf.segments().any(|segment| segment.address() <= text.address()));
    (0..count).map(|i| text.address() + i * text.size() / count).collect()
}

#[test]
fn all_over_a_large_rust_program() {
    let program = std::env::current_exe().expect("this program");
    let addresses = spread(&program, 5_000);
    let ours = common::symbolize(&program, &addresses);
    let mut compared = 0;
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(second_opinion(&program, &addresses)) {
        // Where only the symbol table knows something, or the padding between functions is asked about, `addr2line`
        // has nothing or only a line to tell.
        if theirs.iter().any(|(name, ..)| name.is_some()) {
            assert_eq!(told(ours), theirs, "at {address:#x}");
            compared += 1;
        }
    }
    assert!(compared > addresses.len() / 2, "only {compared} of {} addresses are in functions", addresses.len());
}
