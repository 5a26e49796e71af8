//! The index of a package (`.dwp`): which pieces of its sections belong to which unit.
//!
//! It is a hash table by the number of the unit, which gives a row in a table of offsets and one of sizes; what their
//! columns are about is in a row before them. There are two versions: 2 for DWARF 4, and 5.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::RunTimeEndian;

use super::super::cursor::Cursor;
use super::super::fuel::{Fault, Meter, Spot};
use super::super::names::Interned;
use super::super::sections::Sections;
use super::part::{Bounds, Part};
use crate::Error;
use crate::object::ObjectFile;

const NAME: &str = ".debug_cu_index";

/// Most columns that make sense: there are eight kinds of sections.
const MAX_COLUMNS: u64 = 64;

/// A package that is open.
#[derive(Debug)]
pub(super) struct Package {
    path: PathBuf,
    sections: Sections,
    index: Index,
    interned: Arc<Interned>,
}

#[derive(Debug)]
struct Index {
    bytes: Vec<u8>,
    endian: RunTimeEndian,
    version: u16,
    columns: u64,
    units: u64,
    slots: u64,
}

impl Package {
    /// Reads the index of a package; the parts in it belong to units of `main`.
    pub(super) fn read(file: &dyn ObjectFile, main: &Sections) -> Result<Self, Error> {
        let path = file.path().to_owned();
        let bad = |what: String| Error::BadDwarf { path: path.clone(), what };
        let section = file.section(NAME)?.ok_or_else(|| bad(format!("no {NAME}, so it is no package")))?;
        let bytes = section.all()?.into_owned();
        let index = Index::read(bytes, file.endian());
        let index = index.map_err(|fault| bad(fault.what().unwrap_or_default()))?;
        let sections = Sections::split_off(file, main)?.into_iter().next();
        let sections =
            sections.ok_or_else(|| bad("no .debug_info.dwo, so there is nothing in the package".to_owned()))?;
        Ok(Package { sections, index, interned: Arc::default(), path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The part with the number `id`; `None` if there is none.
    pub(super) fn part(&self, id: u64, meter: &mut Meter<'_>) -> Result<Option<Part>, Fault> {
        let Some(row) = self.index.row(id, meter)? else { return Ok(None) };
        let bounds = self.index.bounds(row)?;
        Part::find(self.sections.clone(), bounds, id, Arc::clone(&self.interned), meter)
    }
}

impl Index {
    /// Size of the header in bytes.
    const HEADER: u64 = 16;

    fn read(bytes: Vec<u8>, endian: RunTimeEndian) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(&bytes, Spot { section: NAME, offset: 0 }, endian);
        // Version 2 is a number of four bytes; later ones have two, and two of padding.
        let version = match cursor.u32()? {
            2 => 2,
            _ => {
                cursor.seek(0)?;
                let version = cursor.u16()?;
                cursor.skip(2)?;
                version
            }
        };
        if !matches!(version, 2 | 5) {
            return Err(cursor.damaged("an index of an unknown version"));
        }
        let [columns, units, slots] = [cursor.u32()?, cursor.u32()?, cursor.u32()?].map(u64::from);
        if columns > MAX_COLUMNS || !(slots.is_power_of_two() || slots == 0) {
            return Err(cursor.damaged("an index of impossible size"));
        }
        let index = Index { endian, version, columns, units, slots, bytes };
        // Cannot overflow: each number has 32 bits, and the columns are few.
        if index.at_sizes() + 4 * columns * units > index.bytes.len() as u64 {
            return Err(Fault::CutShort(Spot { section: NAME, offset: index.bytes.len() as u64 }));
        }
        Ok(index)
    }

    /// Where the numbers of rows are, after those of the units.
    fn at_rows(&self) -> u64 {
        Self::HEADER + 8 * self.slots
    }

    /// Where the kinds of the columns are.
    fn at_columns(&self) -> u64 {
        self.at_rows() + 4 * self.slots
    }

    fn at_offsets(&self) -> u64 {
        self.at_columns() + 4 * self.columns
    }

    fn at_sizes(&self) -> u64 {
        self.at_offsets() + 4 * self.columns * self.units
    }

    fn number(&self, at: u64, size: u8) -> Result<u64, Fault> {
        let mut cursor = Cursor::new(&self.bytes, Spot { section: NAME, offset: 0 }, self.endian);
        cursor.skip(at)?;
        cursor.uint(size)
    }

    /// The row of a unit, counted from 0.
    fn row(&self, id: u64, meter: &mut Meter<'_>) -> Result<Option<u64>, Fault> {
        let Some(mask) = self.slots.checked_sub(1) else { return Ok(None) };
        let (mut slot, step) = (id & mask, (id >> 32 & mask) | 1);
        // The step is odd, so it comes to every slot.
        for _ in 0..self.slots {
            meter.burn(1)?;
            let row = self.number(self.at_rows() + 4 * slot, 4)?;
            if row == 0 {
                break;
            }
            if self.number(Self::HEADER + 8 * slot, 8)? == id {
                let row = row - 1;
                let damaged = Fault::Damaged(Spot { section: NAME, offset: self.at_rows() + 4 * slot }, "no such row");
                return if row < self.units { Ok(Some(row)) } else { Err(damaged) };
            }
            slot = (slot + step) & mask;
        }
        Ok(None)
    }

    /// The pieces in a row.
    fn bounds(&self, row: u64) -> Result<Bounds, Fault> {
        let mut bounds = Bounds::default();
        for column in 0..self.columns {
            let kind = self.number(self.at_columns() + 4 * column, 4)?;
            let cell = 4 * (row * self.columns + column);
            let start = self.number(self.at_offsets() + cell, 4)?;
            let piece: Range<u64> = start..start + self.number(self.at_sizes() + cell, 4)?;
            match (kind, self.version) {
                (1, _) => bounds.info = piece,
                (3, _) => bounds.abbrev = piece,
                (6, _) => bounds.str_offsets = start,
                (8, 5) => bounds.rnglists = start,
                _ => {}
            }
        }
        Ok(bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fuel::{Fault, Fuel};
    use super::Index;
    use gimli::RunTimeEndian;

    /// An index in which units have the numbers `ids`; their pieces of the three sections start at 10, 20, …, 1,000,
    /// 2,000, …, and 100,000, …, and are that long.
    fn index(version: u16, slots: u32, ids: &[u64]) -> Vec<u8> {
        let mut bytes = u32::from(version).to_le_bytes().to_vec();
        bytes.extend([3, ids.len() as u32, slots].map(u32::to_le_bytes).concat());
        let mut table: Vec<Option<usize>> = vec![None; slots as usize];
        for (row, id) in ids.iter().enumerate() {
            let mut slot = (*id as u32 & (slots - 1)) as usize;
            while table[slot].is_some() {
                slot = (slot + ((id >> 32) as usize & (slots as usize - 1) | 1)) % slots as usize;
            }
            table[slot] = Some(row);
        }
        bytes.extend(table.iter().flat_map(|row| row.map_or(0, |row| ids[row]).to_le_bytes()));
        bytes.extend(table.iter().flat_map(|row| row.map_or(0, |row| row as u32 + 1).to_le_bytes()));
        bytes.extend([1u32, 3, 6].map(u32::to_le_bytes).concat());
        for _ in ["offsets", "sizes"] {
            let row = |row: u32| [10, 1000, 100_000].map(|unit| (unit * (row + 1)).to_le_bytes()).concat();
            bytes.extend((0..ids.len() as u32).flat_map(row));
        }
        bytes
    }

    #[test]
    fn every_unit_is_found_whatever_its_slot() {
        // Same slot for all, and different steps.
        let ids = [0x8, 0x1_0000_0008, 0x2_0000_0008, 0x5_0000_0008, 0x1_0000_0010, 3];
        for version in [2, 5] {
            let read = Index::read(index(version, 8, &ids), RunTimeEndian::Little).expect("an index");
            assert_eq!(read.version, version);
            let fuel = Fuel::for_size(0);
            for (row, &id) in ids.iter().enumerate() {
                assert_eq!(read.row(id, &mut fuel.meter()), Ok(Some(row as u64)));
                let bounds = read.bounds(row as u64).expect("a row");
                let row = row as u64 + 1;
                assert_eq!((bounds.info, bounds.abbrev), (10 * row..20 * row, 1000 * row..2000 * row));
                assert_eq!((bounds.str_offsets, bounds.rnglists), (100_000 * row, 0));
            }
            for id in [0, 1, 0x3_0000_0008] {
                assert_eq!(read.row(id, &mut fuel.meter()), Ok(None), "{id:#x}");
            }
        }
    }

    #[test]
    fn full_empty_and_damaged_ones() {
        let fuel = Fuel::for_size(0);
        let full = Index::read(index(5, 2, &[4, 6]), RunTimeEndian::Little).expect("an index");
        assert_eq!(full.row(8, &mut fuel.meter()), Ok(None));
        let mut bytes = index(5, 4, &[1, 2]);
        for end in 0..bytes.len() {
            assert!(matches!(Index::read(bytes[..end].to_vec(), RunTimeEndian::Little), Err(Fault::CutShort(_))));
        }
        // No slots at all.
        let none = [&[5, 0, 0, 0][..], &[0; 12]].concat();
        assert_eq!(Index::read(none, RunTimeEndian::Little).expect("an index").row(1, &mut fuel.meter()), Ok(None));
        // A row that is not there.
        bytes[16 + 4 * 8 + 4] = 77;
        let index = Index::read(bytes.clone(), RunTimeEndian::Little).expect("an index");
        assert!(matches!(index.row(1, &mut fuel.meter()), Err(Fault::Damaged(..))));
        for (at, value) in [(0, 3), (4, 0xff), (12, 5)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert!(matches!(Index::read(bytes, RunTimeEndian::Little), Err(Fault::Damaged(..))), "{at}");
        }
    }
}
