//! What the linker knows by name ("publics"), ordered by address. They have no sizes.

use super::Fault;
use super::dbi::Sections;
use super::msf::{Msf, Stream};
use super::strings::string_at;
use crate::cursor::Cursor;
use crate::dwarf::fuel::Meter;

/// The kind of their records.
const PUBLIC: u16 = 0x110e;

/// Bytes of a record before the name: length, kind, flags, offset, section.
const HEADER: usize = 2 + 2 + 4 + 4 + 2;

/// How many names of one and the same address are looked at.
const MAX_ALIASES: usize = 16;

/// Most work for one step of a search: reading a small piece of the file.
const STEPS_PER_READ: u64 = 8;

/// The table of publics of a file.
#[derive(Debug)]
pub(super) struct Publics<'m> {
    records: Stream<'m>,
    sections: &'m Sections,
    /// Where in `records` each public is, in the order of their addresses.
    order: Vec<u32>,
}

/// An address that has a name.
#[derive(Debug)]
pub(super) struct Public {
    /// Relative to the image.
    pub(super) start: u32,
    /// Where the next one is, if there is one.
    pub(super) next: Option<u32>,
    /// All names of the address, up to a limit.
    pub(super) names: Vec<Vec<u8>>,
}

impl<'m> Publics<'m> {
    /// Reads the order. `None` when the file has no publics.
    pub(super) fn read(
        msf: &'m Msf,
        sections: &'m Sections,
        publics: Option<u32>,
        records: Option<u32>,
    ) -> Result<Option<Self>, Fault> {
        let stream = |number: Option<u32>| number.and_then(|number| msf.stream(number));
        let (Some(publics), Some(records)) = (stream(publics), stream(records)) else { return Ok(None) };
        // Sizes of a hash table and of the order; numbers about incremental linking; both tables.
        let header = publics.read(0, 28)?;
        let mut cursor = Cursor::new(&header);
        let (hashes, size) = (cursor.u32().unwrap_or_default(), cursor.u32().unwrap_or_default());
        let at = (hashes as usize).saturating_add(header.len());
        if size as usize > publics.size() {
            return Err(publics.damaged(4, "an order of symbols larger than the stream"));
        }
        msf.file().charge(u64::from(size))?;
        let order = publics.read(at, size as usize)?;
        let order = order.as_chunks::<4>().0.iter().map(|&place| u32::from_le_bytes(place)).collect();
        Ok(Some(Publics { records, sections, order }))
    }

    /// The last public at or before `address`.
    pub(super) fn at_or_before(&self, address: u32, meter: &mut Meter<'_>) -> Result<Option<Public>, Fault> {
        let after = self.first_after(address, meter)?;
        let Some(last) = after.checked_sub(1) else { return Ok(None) };
        let Some(start) = self.start_of(last)? else { return Ok(None) };
        let next = if after < self.order.len() { self.start_of(after)? } else { None };
        let mut names = Vec::new();
        for index in (0..=last).rev().take(MAX_ALIASES) {
            meter.burn(STEPS_PER_READ)?;
            if self.start_of(index)? != Some(start) {
                break;
            }
            names.push(string_at(&self.records, self.place(index) + HEADER)?);
        }
        Ok(Some(Public { start, next, names }))
    }

    /// How many publics start at or before `address`.
    fn first_after(&self, address: u32, meter: &mut Meter<'_>) -> Result<usize, Fault> {
        let (mut low, mut high) = (0, self.order.len());
        while low < high {
            meter.burn(STEPS_PER_READ)?;
            let middle = low + (high - low) / 2;
            // Those outside of all sections (constants) come last.
            match self.start_of(middle)? {
                Some(start) if start <= address => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    fn place(&self, index: usize) -> usize {
        self.order.get(index).copied().unwrap_or_default() as usize
    }

    fn start_of(&self, index: usize) -> Result<Option<u32>, Fault> {
        let at = self.place(index);
        let record = self.records.read(at, HEADER)?;
        let mut cursor = Cursor::new(&record);
        let fields = (|| Some((cursor.u16()?, cursor.u16()?, cursor.u32()?, cursor.u32()?, cursor.u16()?)))();
        match fields {
            Some((_length, PUBLIC, _flags, offset, section)) => Ok(self.sections.address(section, offset)),
            _ => Err(self.records.damaged(at, "not a public symbol")),
        }
    }
}
