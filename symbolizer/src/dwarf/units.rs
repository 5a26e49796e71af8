//! The units of `.debug_info`: where they start, what their first entry says, which of them an address belongs to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gimli::{Abbreviations, AttributeValue, DebugInfoOffset, Reader as _, Section as _, UnitHeader, UnitType};

use super::Reader;
use super::fuel::{Fault, Meter};
use super::lines;
use super::ranges::Extent;

/// Largest table of abbreviations that is read, in bytes; each byte takes some forty in memory. Real ones have a few
/// thousand bytes.
const MAX_ABBREVIATIONS: usize = 4 << 20;

/// How many units may claim one and the same address before further ones are ignored.
const MAX_CLAIMS: u8 = 8;

/// The debug information of one file, with an index of its units.
#[derive(Debug)]
pub(super) struct DebugFile<'d> {
    pub(super) dwarf: gimli::Dwarf<Reader<'d>>,
    /// Where each unit starts in `.debug_info`, ascending.
    units: Vec<usize>,
    /// Where the tables of abbreviations start, ascending; each ends where the next one starts. A table that a
    /// damaged file lets run on is cut there, so reading all tables never takes longer than the section is long.
    tables: Vec<usize>,
    /// Tables that have been read.
    read_tables: Mutex<HashMap<usize, Arc<Abbreviations>>>,
}

/// A unit and what its first entry says.
#[derive(Debug)]
pub(super) struct Unit<'d> {
    /// `line_program` is never set: most units are only needed for the names in them.
    pub(super) unit: gimli::Unit<Reader<'d>>,
    pub(super) language: Option<gimli::DwLang>,
    /// Where the unit's line table starts in `.debug_line`.
    pub(super) lines: Option<gimli::DebugLineOffset<usize>>,
    extent: Extent<'d>,
}

/// The addresses to look for in one unit.
#[derive(Debug)]
pub(super) struct Task {
    /// Where the unit starts.
    pub(super) unit: usize,
    /// Indices into the sorted addresses, ascending.
    pub(super) addresses: Vec<u32>,
}

impl<'d> DebugFile<'d> {
    /// Finds the units of `dwarf`. A fault means that those after some point are missing.
    pub(super) fn new(dwarf: gimli::Dwarf<Reader<'d>>, meter: &mut Meter<'_>) -> (Self, Result<(), Fault>) {
        let (mut units, mut tables) = (Vec::new(), Vec::new());
        let mut headers = dwarf.units();
        let result = loop {
            match meter.burn(1).and_then(|()| Ok(headers.next()?)) {
                Ok(Some(header)) => {
                    units.extend(header.debug_info_offset().map(|offset| offset.0));
                    tables.push(header.debug_abbrev_offset().0);
                }
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        tables.sort_unstable();
        tables.dedup();
        (DebugFile { dwarf, units, tables, read_tables: Mutex::default() }, result)
    }

    /// The start of the unit that the entry at `offset` in `.debug_info` is in.
    pub(super) fn unit_containing(&self, offset: usize) -> Option<usize> {
        let after = self.units.partition_point(|&start| start <= offset);
        self.units.get(after.checked_sub(1)?).copied()
    }

    /// The unit that starts at `offset`, its table of abbreviations kept for the next one that uses it.
    pub(super) fn unit(&self, offset: usize, meter: &mut Meter<'_>) -> Result<Unit<'d>, Fault> {
        let header = self.dwarf.debug_info.header_from_offset(DebugInfoOffset(offset))?;
        let table = header.debug_abbrev_offset().0;
        let kept = self.read_tables.lock().unwrap_or_else(PoisonError::into_inner).get(&table).cloned();
        let abbreviations = match kept {
            Some(abbreviations) => abbreviations,
            None => {
                let read = self.read_table(table, meter)?;
                self.read_tables.lock().unwrap_or_else(PoisonError::into_inner).insert(table, Arc::clone(&read));
                read
            }
        };
        self.read_root(header, abbreviations, meter)
    }

    fn read_table(&self, offset: usize, meter: &mut Meter<'_>) -> Result<Arc<Abbreviations>, Fault> {
        let mut input = *self.dwarf.debug_abbrev.reader();
        input.skip(offset)?;
        let next = self.tables.get(self.tables.partition_point(|&start| start <= offset));
        if let Some(next) = next {
            input.truncate(input.len().min(next - offset))?;
        }
        input.truncate(input.len().min(MAX_ABBREVIATIONS))?;
        // Paid for before and after: nobody knows how much of it is the table until it has been read.
        meter.burn(input.len() as u64)?;
        Ok(Arc::new(gimli::DebugAbbrev::from(input).abbreviations(gimli::DebugAbbrevOffset(0))?))
    }

    /// Reads the first entry of a unit.
    fn read_root(
        &self,
        header: UnitHeader<Reader<'d>>,
        abbreviations: Arc<Abbreviations>,
        meter: &mut Meter<'_>,
    ) -> Result<Unit<'d>, Fault> {
        let encoding = header.encoding();
        let mut unit =
            Unit { unit: empty_unit(header, abbreviations), language: None, lines: None, extent: Extent::default() };
        let abbreviations = Arc::clone(&unit.unit.abbreviations);
        let mut entries = unit.unit.header.entries_raw(&abbreviations, None)?;
        let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(unit) };
        meter.burn(1 + abbreviation.attributes().len() as u64)?;
        let (mut name, mut folder) = (None, None);
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            unit.extent.note(attribute.name(), attribute.value());
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_name, value) => name = Some(value),
                (gimli::DW_AT_comp_dir, value) => folder = Some(value),
                (gimli::DW_AT_language, AttributeValue::Language(language)) => unit.language = Some(language),
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => unit.lines = Some(offset),
                (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    unit.unit.str_offsets_base = base;
                }
                (gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base, AttributeValue::DebugAddrBase(base)) => {
                    unit.unit.addr_base = base;
                }
                (
                    gimli::DW_AT_rnglists_base | gimli::DW_AT_GNU_ranges_base,
                    AttributeValue::DebugRngListsBase(base),
                ) => {
                    unit.unit.rnglists_base = base;
                }
                _ => {}
            }
        }
        debug_assert_eq!(encoding, unit.unit.encoding());
        // Only now, because these may need the bases, which may come after them.
        let mut string =
            |value: Option<_>| value.and_then(|value| super::string(&self.dwarf, &unit.unit, value, meter).ok());
        let (name, folder) = (string(name), string(folder));
        let low = unit.extent.low().map(|low| self.dwarf.attr_address(&unit.unit, low)).transpose()?.flatten();
        unit.unit.low_pc = low.unwrap_or(0);
        let reader =
            |bytes: Option<&'d [u8]>| bytes.map(|bytes| Reader::new(bytes, self.dwarf.debug_info.reader().endian()));
        (unit.unit.name, unit.unit.comp_dir) = (reader(name), reader(folder));
        Ok(unit)
    }

    /// Which units to look in for which of `addresses`, which must be ascending. Units that cannot be read are
    /// left out and counted in the second result, with the first reason.
    pub(super) fn assign(&self, addresses: &[u64], meter: &mut Meter<'_>) -> (Vec<Task>, Result<(), Fault>) {
        let mut result = Ok(());
        let mut tasks = Vec::new();
        let mut claims = vec![0; addresses.len()];
        let mut arange_sets = None;
        let mut last_table = None;
        for &unit in &self.units {
            let found = self.addresses_in_unit(unit, addresses, &mut arange_sets, &mut last_table, meter);
            let mut found = found.unwrap_or_else(|fault| {
                result = result.and(Err(fault));
                Vec::new()
            });
            found.sort_unstable();
            found.dedup();
            found.retain(|&index| {
                let claims: &mut u8 = &mut claims[index as usize];
                *claims = claims.saturating_add(1);
                *claims <= MAX_CLAIMS
            });
            if !found.is_empty() {
                tasks.push(Task { unit, addresses: found });
            }
            if result == Err(Fault::OutOfFuel) {
                break;
            }
        }
        (tasks, result)
    }

    /// Indices of the addresses that a unit claims, in no order.
    ///
    /// What it claims is, in order of trust: the list of ranges in its first entry; its sets in `.debug_aranges`; the
    /// two bounds in its first entry; the sequences of its line table (all that some assemblers write).
    fn addresses_in_unit(
        &self,
        offset: usize,
        addresses: &[u64],
        arange_sets: &mut Option<HashMap<usize, Vec<gimli::ArangeHeader<Reader<'d>>>>>,
        last_table: &mut Option<(usize, Arc<Abbreviations>)>,
        meter: &mut Meter<'_>,
    ) -> Result<Vec<u32>, Fault> {
        let header = self.dwarf.debug_info.header_from_offset(DebugInfoOffset(offset))?;
        if let UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial = header.type_() {
            return Ok(Vec::new());
        }
        let table = header.debug_abbrev_offset().0;
        if last_table.as_ref().is_none_or(|(start, _)| *start != table) {
            *last_table = Some((table, self.read_table(table, meter)?));
        }
        let Some((_, abbreviations)) = last_table else { return Ok(Vec::new()) };
        let unit = self.read_root(header, Arc::clone(abbreviations), meter)?;
        let mut claims = Claims { addresses, found: Vec::new(), is_any: false };
        if !unit.extent.is_list() {
            let sets = arange_sets.get_or_insert_with(|| self.arange_sets(meter));
            for set in sets.get(&offset).into_iter().flatten() {
                let mut entries = set.entries();
                // An entry that makes no sense is skipped: the iterator ends by itself where it cannot go on.
                while let Some(entry) = entries.next().transpose() {
                    meter.burn(1)?;
                    if let Ok(entry) = entry
                        && entry.address() != 0
                        && entry.length() != 0
                    {
                        claims.add(entry.range().begin, entry.range().end);
                    }
                }
            }
        }
        if !claims.is_any {
            unit.extent.for_each(&self.dwarf, &unit.unit, meter, |low, high| claims.add(low, high))?;
        }
        if !claims.is_any
            && let Some(table) = lines::header(&self.dwarf, &unit, meter)?
        {
            lines::for_each_sequence(&table, meter, |low, high| claims.add(low, high))?;
        }
        Ok(claims.found)
    }

    /// The sets of `.debug_aranges` by the unit they are about. What cannot be read is left out.
    fn arange_sets(&self, meter: &mut Meter<'_>) -> HashMap<usize, Vec<gimli::ArangeHeader<Reader<'d>>>> {
        let mut sets: HashMap<usize, Vec<_>> = HashMap::new();
        let mut headers = self.dwarf.debug_aranges.headers();
        while let (Ok(Some(header)), Ok(())) = (headers.next(), meter.burn(1)) {
            sets.entry(header.debug_info_offset().0).or_default().push(header);
        }
        sets
    }
}

/// What one unit claims.
struct Claims<'a> {
    addresses: &'a [u64],
    /// Indices of the wanted addresses among it.
    found: Vec<u32>,
    /// It claims something, wanted or not.
    is_any: bool,
}

impl Claims<'_> {
    fn add(&mut self, low: u64, high: u64) {
        self.is_any = true;
        self.found.extend(indices_between(self.addresses, low, high));
    }
}

/// Indices of those of `addresses` (ascending) in `low..high`.
pub(super) fn indices_between(addresses: &[u64], low: u64, high: u64) -> std::ops::Range<u32> {
    let start = addresses.partition_point(|&address| address < low);
    let length = addresses[start..].partition_point(|&address| address < high);
    start as u32..(start + length) as u32
}

/// A unit before anything but its header has been read.
fn empty_unit(header: UnitHeader<Reader<'_>>, abbreviations: Arc<Abbreviations>) -> gimli::Unit<Reader<'_>> {
    let encoding = header.encoding();
    let file_type = gimli::DwarfFileType::Main;
    gimli::Unit {
        abbreviations,
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file_type),
        addr_base: gimli::DebugAddrBase(0),
        loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, file_type),
        rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, file_type),
        line_program: None,
        dwo_id: match header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => None,
        },
        header,
    }
}
