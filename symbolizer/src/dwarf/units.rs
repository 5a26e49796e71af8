//! The units of `.debug_info`: where they start, and what their first entries say.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use gimli::DwLang;

use super::abbreviations::Table;
use super::cursor::Cursor;
use super::encoding::Encoding;
use super::fuel::{Fault, Meter, Spot};
use super::ranges::Extent;
use super::sections::{Bases, Sections, Windows};
use super::values::{Text, Value};
use super::window;

/// Largest table of abbreviations that is read, in bytes; each byte takes some ten in memory. Real ones have a few
/// thousand bytes, those of link-time optimisation a few ten thousand.
const MAX_ABBREVIATIONS: u64 = 4 << 20;

/// How much of tables of abbreviations is kept for later units: this many abbreviations and attributes, of twelve to
/// thirty bytes each.
const MAX_KEPT: usize = 256 << 10;

/// The debug information of one file, with an index of its units.
#[derive(Debug)]
pub(super) struct DebugFile<'s> {
    pub(super) sections: &'s Sections,
    /// In order of their start.
    units: Vec<Header>,
    /// Where the tables of abbreviations start, ascending; each ends where the next one starts. A table that a
    /// damaged file lets run on is cut there, so reading all tables never takes longer than the section is long.
    tables: Vec<u64>,
    kept: Mutex<Kept>,
}

/// Tables of abbreviations that have been read.
#[derive(Debug, Default)]
struct Kept {
    tables: HashMap<(u64, Encoding), Arc<Table>>,
    size: usize,
}

/// The header of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Where the unit starts and ends in `.debug_info`.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Length of the header: where, from the start of the unit, its first entry is.
    pub(super) length: u8,
    pub(super) encoding: Encoding,
    /// Where its table of abbreviations is.
    table: u64,
    pub(super) kind: gimli::DwUt,
    /// What a unit and the part of it that was split off have in common, since version 5.
    pub(super) split_id: u64,
}

/// What the first entry of a unit says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Root {
    pub(super) name: Option<Text>,
    pub(super) folder: Option<Text>,
    pub(super) language: Option<DwLang>,
    /// Where the unit's line table is in `.debug_line`.
    pub(super) lines: Option<u64>,
    pub(super) extent: Extent,
    pub(super) bases: Bases,
    pub(super) split: SplitOff,
}

/// What the first entry of a unit says about the part of it that was split off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SplitOff {
    /// Name of the file that it was written to.
    pub(super) name: Option<Text>,
    /// What both parts have in common, before version 5.
    pub(super) id: Option<u64>,
    /// Where the lists of ranges that belong to the other part start in `.debug_ranges`, before version 5.
    pub(super) ranges: u64,
}

/// A unit: what it takes to understand its entries.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) header: Header,
    pub(super) table: Arc<Table>,
    pub(super) root: Root,
}

impl Header {
    /// Whether an offset in `.debug_info` is in the unit.
    pub(super) fn contains(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.end
    }
}

impl<'s> DebugFile<'s> {
    /// Finds the units. A fault means that some, or those after some point, are missing.
    pub(super) fn new(sections: &'s Sections, meter: &mut Meter<'_>) -> (Self, Result<(), Fault>) {
        Self::piece(sections, 0..u64::MAX, 0..u64::MAX, meter)
    }

    /// The same in a piece of the sections for units and for tables of abbreviations, as packages have them.
    pub(super) fn piece(
        sections: &'s Sections,
        info: Range<u64>,
        abbreviations: Range<u64>,
        meter: &mut Meter<'_>,
    ) -> (Self, Result<(), Fault>) {
        let (mut units, mut tables) = (Vec::new(), vec![abbreviations.end]);
        let mut windows = Windows::new(sections);
        let (mut at, mut strange) = (info.start, Ok(()));
        let end = info.end.min(windows.info.len());
        let result = loop {
            if at >= end {
                break Ok(());
            }
            let read = |cursor: &mut Cursor<'_>, _: &mut Meter<'_>| read_header(cursor);
            match meter.burn(1).and_then(|()| windows.info.read_until(at, end, meter, read)) {
                Ok((mut header, is_known)) => {
                    at = header.end;
                    header.table = header.table.saturating_add(abbreviations.start);
                    if is_known {
                        tables.push(header.table);
                        units.push(header);
                    } else {
                        let spot = Spot { section: ".debug_info", offset: header.start };
                        strange = strange.and(Err(Fault::Damaged(spot, "a unit of an unknown version")));
                    }
                }
                Err(fault) => break Err(fault),
            }
        };
        tables.sort_unstable();
        tables.dedup();
        (DebugFile { sections, units, tables, kept: Mutex::default() }, result.and(strange))
    }

    /// One unit only, whose table of abbreviations ends before `end_of_table`.
    pub(super) fn of_unit(sections: &'s Sections, header: Header, end_of_table: u64) -> Self {
        DebugFile { sections, units: vec![header], tables: vec![header.table, end_of_table], kept: Mutex::default() }
    }

    /// The headers of all units, in order of their start.
    pub(super) fn units(&self) -> &[Header] {
        &self.units
    }

    /// The unit that starts at `offset`.
    pub(super) fn unit_at(&self, offset: u64) -> Option<&Header> {
        let index = self.units.binary_search_by_key(&offset, |header| header.start).ok()?;
        self.units.get(index)
    }

    /// The unit that the entry at `offset` in `.debug_info` is in.
    pub(super) fn unit_containing(&self, offset: u64) -> Option<&Header> {
        let after = self.units.partition_point(|header| header.start <= offset);
        self.units.get(after.checked_sub(1)?).filter(|header| header.contains(offset))
    }

    /// The table of abbreviations of a unit, kept for the next one that uses it.
    pub(super) fn table(
        &self,
        header: &Header,
        windows: &mut Windows<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Arc<Table>, Fault> {
        let key = (header.table, header.encoding);
        if let Some(table) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).tables.get(&key) {
            return Ok(Arc::clone(table));
        }
        let (start, end) = (header.table, self.end_of_table(header.table, windows));
        let mut buffer = Vec::new();
        let bytes = window::whole(&windows.abbrev, start, end, &mut buffer, meter)?;
        // Paid for before it is known how much of it is the table.
        meter.burn(bytes.len() as u64)?;
        let spot = Spot { section: ".debug_abbrev", offset: start };
        let table = Arc::new(Table::read(&mut Cursor::new(bytes, spot, windows.endian), header.encoding)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.size.saturating_add(table.size()) > MAX_KEPT {
            *kept = Kept::default();
        }
        kept.size += table.size();
        kept.tables.insert(key, Arc::clone(&table));
        Ok(table)
    }

    fn end_of_table(&self, start: u64, windows: &Windows<'_>) -> u64 {
        let next = self.tables.get(self.tables.partition_point(|&table| table <= start));
        let end = next.map_or(u64::MAX, |&next| next).min(windows.abbrev.len());
        end.min(start.saturating_add(MAX_ABBREVIATIONS))
    }

    /// The unit with a header, its first entry read.
    pub(super) fn unit(
        &self,
        header: &Header,
        windows: &mut Windows<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Unit, Fault> {
        let table = self.table(header, windows, meter)?;
        let root = read_root(header, Some(&table), windows, meter)?;
        Ok(Unit { header: *header, table, root })
    }

    /// What the first entry of a unit says, without reading more of its table of abbreviations than that takes.
    pub(super) fn root(
        &self,
        header: &Header,
        windows: &mut Windows<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Root, Fault> {
        let key = (header.table, header.encoding);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).tables.get(&key).cloned();
        read_root(header, kept.as_deref(), windows, meter)
    }
}

/// Reads the header of a unit, and says whether it is of a kind and version that is understood.
fn read_header(cursor: &mut Cursor<'_>) -> Result<(Header, bool), Fault> {
    let start = cursor.offset();
    let (length, is_64) = cursor.initial_length()?;
    let end = cursor.offset().checked_add(length).ok_or_else(|| cursor.damaged("a unit without end"))?;
    let version = cursor.u16()?;
    let kind = if version == 5 { gimli::DwUt(cursor.u8()?) } else { gimli::DW_UT_compile };
    let (table, address_size) = match version {
        5 => {
            let address_size = cursor.u8()?;
            (cursor.word(is_64)?, address_size)
        }
        _ => (cursor.word(is_64)?, cursor.u8()?),
    };
    let split_id = match kind {
        gimli::DW_UT_skeleton | gimli::DW_UT_split_compile => cursor.u64()?,
        gimli::DW_UT_type | gimli::DW_UT_split_type => {
            // The type's signature, and where its entry is.
            cursor.skip(8)?;
            cursor.word(is_64)?;
            0
        }
        _ => 0,
    };
    let encoding = Encoding { version, address_size, is_64 };
    let is_known = (2..=5).contains(&version) && matches!(address_size, 1 | 2 | 4 | 8);
    let length = cursor.position() as u8;
    let header = Header { start, end, length, encoding, table, kind, split_id };
    if cursor.offset() > end {
        return Err(cursor.damaged("a unit shorter than its header"));
    }
    Ok((header, is_known))
}

/// Reads the first entry of a unit, with its table of abbreviations or with as much of that as it takes.
fn read_root(
    header: &Header,
    table: Option<&Table>,
    windows: &mut Windows<'_>,
    meter: &mut Meter<'_>,
) -> Result<Root, Fault> {
    let (at, encoding) = (header.start.saturating_add(header.length.into()), header.encoding);
    let only;
    let table = match table {
        Some(table) => table,
        None => {
            let code = windows.info.read_until(at, header.end, meter, |cursor, _| cursor.uleb())?;
            let read = |cursor: &mut Cursor<'_>, meter: &mut Meter<'_>| Table::read_only(cursor, code, encoding, meter);
            only = windows.abbrev.read(header.table, meter, read)?;
            &only
        }
    };
    let (mut root, low) = windows.info.read_until(at, header.end, meter, |cursor, meter| {
        let (mut root, mut low) = (Root::default(), None);
        let code = cursor.uleb()?;
        if code != 0 {
            let abbreviation = table.get(code, cursor)?;
            table.each(abbreviation, cursor, meter, |name, value| {
                root.note(name, value);
                if name == gimli::DW_AT_low_pc {
                    low = Some(value);
                }
            })?;
        }
        Ok((root, low))
    })?;
    // Only now, because it may need a base that came after it.
    if let Some(low) = low {
        root.bases.low_pc = windows.address(low, encoding, root.bases, meter)?.unwrap_or(0);
    }
    Ok(root)
}

impl Root {
    /// Whether the language is C or C++, or something that compilers treat like them.
    pub(super) fn is_c_or_cpp(&self) -> bool {
        let is_one = |language| {
            matches!(
                language,
                gimli::DW_LANG_C
                    | gimli::DW_LANG_C89
                    | gimli::DW_LANG_C99
                    | gimli::DW_LANG_C11
                    | gimli::DW_LANG_C17
                    | gimli::DW_LANG_C_plus_plus
                    | gimli::DW_LANG_C_plus_plus_03
                    | gimli::DW_LANG_C_plus_plus_11
                    | gimli::DW_LANG_C_plus_plus_14
                    | gimli::DW_LANG_C_plus_plus_17
                    | gimli::DW_LANG_C_plus_plus_20
            )
        };
        self.language.is_some_and(is_one)
    }

    /// Whether functions have other names for the linker than in the source.
    pub(super) fn has_linker_names(&self) -> bool {
        !matches!(
            self.language,
            Some(
                gimli::DW_LANG_C
                    | gimli::DW_LANG_C89
                    | gimli::DW_LANG_C99
                    | gimli::DW_LANG_C11
                    | gimli::DW_LANG_C17
                    | gimli::DW_LANG_Mips_Assembler
            )
        )
    }

    /// Takes an attribute in.
    fn note(&mut self, name: gimli::DwAt, value: Value) {
        self.extent.note(name, value);
        match (name, value) {
            (gimli::DW_AT_name, value) => self.name = value.text(),
            (gimli::DW_AT_comp_dir, value) => self.folder = value.text(),
            (gimli::DW_AT_language, Value::Number(language)) => {
                self.language = u16::try_from(language).ok().map(DwLang);
            }
            (gimli::DW_AT_stmt_list, value) => self.lines = value.offset(),
            (gimli::DW_AT_str_offsets_base, value) => self.bases.str_offsets = value.offset().unwrap_or(0),
            (gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base, value) => {
                self.bases.addr = value.offset().unwrap_or(0);
            }
            (gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name, value) => self.split.name = value.text(),
            (gimli::DW_AT_GNU_dwo_id, Value::Number(id)) => self.split.id = Some(id),
            (gimli::DW_AT_GNU_ranges_base, value) => self.split.ranges = value.offset().unwrap_or(0),
            (gimli::DW_AT_rnglists_base, value) => self.bases.rnglists = value.offset().unwrap_or(0),
            _ => {}
        }
    }
}
