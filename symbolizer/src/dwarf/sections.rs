//! The sections of a file that symbols are read from, and a worker's windows on them.

use gimli::RunTimeEndian;

use super::encoding::Encoding;
use super::fuel::{Fault, Meter};
use super::values::{Text, Value};
use super::window::Window;
use crate::Error;
use crate::object::ObjectFile;
use crate::section::Section;

/// The sections of one file. Locations of variables, macros, name tables and types in units of their own are of no
/// use here, and can be as large as all the rest.
#[derive(Clone, Debug)]
pub(crate) struct Sections {
    pub(super) endian: RunTimeEndian,
    pub(super) info: Option<Section>,
    pub(super) abbrev: Option<Section>,
    pub(super) addr: Option<Section>,
    pub(super) aranges: Option<Section>,
    pub(super) line: Option<Section>,
    pub(super) line_str: Option<Section>,
    pub(super) ranges: Option<Section>,
    pub(super) rnglists: Option<Section>,
    pub(super) str: Option<Section>,
    pub(super) str_offsets: Option<Section>,
}

impl Sections {
    /// Finds them; nothing is read yet.
    pub(crate) fn load(file: &dyn ObjectFile) -> Result<Self, Error> {
        Ok(Sections {
            endian: file.endian(),
            info: file.section(".debug_info")?,
            abbrev: file.section(".debug_abbrev")?,
            addr: file.section(".debug_addr")?,
            aranges: file.section(".debug_aranges")?,
            line: file.section(".debug_line")?,
            line_str: file.section(".debug_line_str")?,
            ranges: file.section(".debug_ranges")?,
            rnglists: file.section(".debug_rnglists")?,
            str: file.section(".debug_str")?,
            str_offsets: file.section(".debug_str_offsets")?,
        })
    }

    /// Those of a file with parts of units that were split off `main`, for each section with units: addresses, lines,
    /// and before version 5 lists of ranges as well, were left there.
    pub(super) fn split_off(file: &dyn ObjectFile, main: &Sections) -> Result<Vec<Self>, Error> {
        let without_units = Sections {
            endian: file.endian(),
            info: None,
            abbrev: file.section(".debug_abbrev.dwo")?,
            addr: main.addr.clone(),
            aranges: None,
            line: None,
            line_str: None,
            ranges: main.ranges.clone(),
            rnglists: file.section(".debug_rnglists.dwo")?,
            str: file.section(".debug_str.dwo")?,
            str_offsets: file.section(".debug_str_offsets.dwo")?,
        };
        let infos = file.sections(".debug_info.dwo")?;
        Ok(infos.into_iter().map(|info| Sections { info: Some(info), ..without_units.clone() }).collect())
    }

    /// Size of all of them, unpacked.
    pub(super) fn size(&self) -> u64 {
        let all = [&self.info, &self.abbrev, &self.addr, &self.aranges, &self.line, &self.line_str, &self.ranges];
        let all = all.into_iter().chain([&self.rnglists, &self.str, &self.str_offsets]);
        all.flatten().fold(0, |sum, section| sum.saturating_add(section.len()))
    }
}

/// What a unit's first entry says about where things are in other sections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bases {
    /// The unit's part of `.debug_addr`.
    pub(super) addr: u64,
    /// The unit's part of `.debug_str_offsets`.
    pub(super) str_offsets: u64,
    /// The unit's part of `.debug_rnglists`.
    pub(super) rnglists: u64,
    /// The address that lists of ranges count from.
    pub(super) low_pc: u64,
}

/// A string that is in some section of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) section: Strings,
    pub(super) offset: u64,
}

/// The sections that hold strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Strings {
    Info,
    Line,
    LineStr,
    Str,
    /// `.debug_str` of the supplementary file.
    Supplementary,
}

/// A worker's windows on the sections of one file.
#[derive(Debug)]
pub(super) struct Windows<'s> {
    pub(super) endian: RunTimeEndian,
    pub(super) info: Window<'s>,
    pub(super) abbrev: Window<'s>,
    pub(super) addr: Window<'s>,
    pub(super) aranges: Window<'s>,
    pub(super) line: Window<'s>,
    pub(super) line_str: Window<'s>,
    pub(super) ranges: Window<'s>,
    pub(super) rnglists: Window<'s>,
    pub(super) str: Window<'s>,
    pub(super) str_offsets: Window<'s>,
}

/// Bytes of a string that are kept; template names reach a few ten thousand.
pub(super) const MAX_STRING: usize = 64 << 10;

impl<'s> Windows<'s> {
    pub(super) fn new(sections: &'s Sections) -> Self {
        let window =
            |section: &'s Option<Section>, name, chunk| Window::new(section.as_ref(), name, sections.endian, chunk);
        Windows {
            endian: sections.endian,
            // An entry here and there.
            info: window(&sections.info, ".debug_info", 512),
            abbrev: window(&sections.abbrev, ".debug_abbrev", 4 << 10),
            addr: window(&sections.addr, ".debug_addr", 4 << 10),
            // From start to end.
            aranges: window(&sections.aranges, ".debug_aranges", 64 << 10),
            line: window(&sections.line, ".debug_line", 512),
            line_str: window(&sections.line_str, ".debug_line_str", 4 << 10),
            ranges: window(&sections.ranges, ".debug_ranges", 4 << 10),
            rnglists: window(&sections.rnglists, ".debug_rnglists", 4 << 10),
            // Names are all over it.
            str: window(&sections.str, ".debug_str", 256),
            str_offsets: window(&sections.str_offsets, ".debug_str_offsets", 4 << 10),
        }
    }

    /// The address that a value stands for; `None` if it is none.
    pub(super) fn address(
        &mut self,
        value: Value,
        encoding: Encoding,
        bases: Bases,
        meter: &mut Meter<'_>,
    ) -> Result<Option<u64>, Fault> {
        match value {
            Value::Address(address) => Ok(Some(address)),
            Value::AddressIndex(index) => self.indexed_address(index, encoding, bases, meter).map(Some),
            _ => Ok(None),
        }
    }

    /// The address with an index in the unit's part of `.debug_addr`.
    pub(super) fn indexed_address(
        &mut self,
        index: u64,
        encoding: Encoding,
        bases: Bases,
        meter: &mut Meter<'_>,
    ) -> Result<u64, Fault> {
        let size = encoding.address_size;
        let offset = index.saturating_mul(size.into()).saturating_add(bases.addr);
        self.addr.read(offset, meter, |cursor, _| cursor.uint(size))
    }

    /// Where a string is. `inline` is the section that is meant by one that is in place.
    pub(super) fn place(
        &mut self,
        text: Text,
        inline: Strings,
        encoding: Encoding,
        bases: Bases,
        meter: &mut Meter<'_>,
    ) -> Result<Place, Fault> {
        let (section, offset) = match text {
            Text::Inline(offset) => (inline, offset),
            Text::Str(offset) => (Strings::Str, offset),
            Text::LineStr(offset) => (Strings::LineStr, offset),
            Text::Supplementary(offset) => (Strings::Supplementary, offset),
            Text::Index(index) => {
                let at = index.saturating_mul(encoding.word_size().into()).saturating_add(bases.str_offsets);
                (Strings::Str, self.str_offsets.read(at, meter, |cursor, _| cursor.word(encoding.is_64))?)
            }
        };
        Ok(Place { section, offset })
    }

    /// A string, cut to [`MAX_STRING`] bytes, of this file.
    pub(super) fn string<T>(
        &mut self,
        place: Place,
        meter: &mut Meter<'_>,
        mut take: impl FnMut(&[u8]) -> T,
    ) -> Result<T, Fault> {
        /// Bytes that are searched, and kept, in the time of one step.
        const BYTES_PER_STEP: usize = 8;
        let window = match place.section {
            Strings::Info => &mut self.info,
            Strings::Line => &mut self.line,
            Strings::LineStr => &mut self.line_str,
            Strings::Str | Strings::Supplementary => &mut self.str,
        };
        let (taken, length) = window.read(place.offset, meter, |cursor, _| {
            let string = cursor.string(MAX_STRING)?;
            Ok((take(string), string.len()))
        })?;
        meter.burn(1 + (length / BYTES_PER_STEP) as u64)?;
        Ok(taken)
    }
}
