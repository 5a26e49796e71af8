//! Debug sections made of bytes, for the tests of this folder.

use std::path::Path;

use gimli::RunTimeEndian;

use super::sections::Sections;
use crate::Options;
use crate::file::FileData;
use crate::section::Section;

/// Little-endian bytes of numbers: `bytes(&[(value, size)])`; a size of 0 stands for a LEB128 number.
pub(super) fn bytes(numbers: &[(u64, usize)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(mut value, size) in numbers {
        if size == 0 {
            while value >= 0x80 {
                out.push(value as u8 | 0x80);
                value >>= 7;
            }
            out.push(value as u8);
        } else {
            out.extend_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    out
}

/// What a set of a unit, a table or a list starts with: its length before it.
pub(super) fn with_length(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_le_bytes()[..], content].concat()
}

/// A file with these sections, called as in DWARF.
pub(super) fn sections(contents: &[(&str, Vec<u8>)]) -> Sections {
    let section = |name: &str| {
        let (_, content) = contents.iter().find(|(wanted, _)| *wanted == name)?;
        let file = FileData::from_bytes(Path::new("test"), content.clone(), &Options::default());
        Section::in_file(file.source(), 0, content.len() as u64)
    };
    Sections {
        endian: RunTimeEndian::Little,
        info: section(".debug_info"),
        abbrev: section(".debug_abbrev"),
        addr: section(".debug_addr"),
        aranges: section(".debug_aranges"),
        line: section(".debug_line"),
        line_str: section(".debug_line_str"),
        ranges: section(".debug_ranges"),
        rnglists: section(".debug_rnglists"),
        str: section(".debug_str"),
        str_offsets: section(".debug_str_offsets"),
    }
}
