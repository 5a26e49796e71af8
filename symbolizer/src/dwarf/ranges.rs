//! The addresses that a unit or a function covers.

use super::cursor::Cursor;
use super::encoding::Encoding;
use super::fuel::{Fault, Meter};
use super::sections::{Bases, Windows};
use super::values::Value;

/// The attributes of an entry that say which addresses it covers, as they were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    low: Option<Value>,
    high: Option<Value>,
    ranges: Option<Value>,
}

impl Extent {
    /// Takes the attribute in if it is one of those.
    #[inline]
    pub(super) fn note(&mut self, name: gimli::DwAt, value: Value) {
        match name {
            gimli::DW_AT_low_pc => self.low = Some(value),
            gimli::DW_AT_high_pc => self.high = Some(value),
            gimli::DW_AT_ranges => self.ranges = Some(value),
            _ => {}
        }
    }

    /// Calls `each` with the bounds of each range; those of removed code, which linkers move to address 0 or to the
    /// end of the address space, are left out. Pays for every range.
    pub(super) fn for_each(
        &self,
        windows: &mut Windows<'_>,
        encoding: Encoding,
        bases: Bases,
        meter: &mut Meter<'_>,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), Fault> {
        let is_real = |low: u64, high: u64| low != 0 && low < high && low < encoding.last_address() - 1;
        if let Some(ranges) = self.ranges {
            let Some(offset) = list_offset(windows, encoding, bases, ranges, meter)? else { return Ok(()) };
            let list = if encoding.version >= 5 { for_each_listed } else { for_each_pair };
            return list(windows, encoding, bases, offset, meter, &mut |low, high| {
                if is_real(low, high) {
                    each(low, high);
                }
            });
        }
        let (Some(low), Some(high)) = (self.low, self.high) else { return Ok(()) };
        let Some(low) = windows.address(low, encoding, bases, meter)? else { return Ok(()) };
        let high = match high {
            // Not an address: the length.
            Value::Number(length) => low.checked_add(length),
            high => windows.address(high, encoding, bases, meter)?,
        };
        if let Some(high) = high
            && is_real(low, high)
        {
            each(low, high);
        }
        Ok(())
    }
}

/// Where the list that `value` refers to starts.
fn list_offset(
    windows: &mut Windows<'_>,
    encoding: Encoding,
    bases: Bases,
    value: Value,
    meter: &mut Meter<'_>,
) -> Result<Option<u64>, Fault> {
    match value {
        // In the form that GCC made of split debug information before version 5, offsets have a base too; it is 0
        // in all other cases of version 4.
        Value::Offset(offset) | Value::Number(offset) if encoding.version < 5 => Ok(offset.checked_add(bases.rnglists)),
        Value::Offset(offset) => Ok(Some(offset)),
        Value::RangesIndex(index) => {
            let at = index.saturating_mul(encoding.word_size().into()).saturating_add(bases.rnglists);
            let offset = windows.rnglists.read(at, meter, |cursor, _| cursor.word(encoding.is_64))?;
            Ok(bases.rnglists.checked_add(offset))
        }
        _ => Ok(None),
    }
}

/// One item of a list of version 5.
enum Item {
    End,
    Base(u64),
    BaseIndex(u64),
    /// Relative to the base.
    Offsets(u64, u64),
    Range(u64, u64),
    Indices(u64, u64),
    IndexLength(u64, u64),
}

/// A list in `.debug_rnglists`.
fn for_each_listed(
    windows: &mut Windows<'_>,
    encoding: Encoding,
    bases: Bases,
    mut offset: u64,
    meter: &mut Meter<'_>,
    each: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    let mut base = bases.low_pc;
    loop {
        meter.burn(1)?;
        let (item, length) = windows.rnglists.read(offset, meter, |cursor, _| {
            let item = read_item(cursor, encoding)?;
            Ok((item, cursor.position()))
        })?;
        offset = offset.saturating_add(length as u64);
        match item {
            Item::End => return Ok(()),
            Item::Base(address) => base = address,
            Item::BaseIndex(index) => base = windows.indexed_address(index, encoding, bases, meter)?,
            // What counts from a base that marks removed code is removed as well.
            Item::Offsets(..) if base >= encoding.last_address() - 1 => {}
            Item::Offsets(low, high) => each(base.wrapping_add(low), base.wrapping_add(high)),
            Item::Range(low, high) => each(low, high),
            Item::Indices(low, high) => {
                let low = windows.indexed_address(low, encoding, bases, meter)?;
                each(low, windows.indexed_address(high, encoding, bases, meter)?);
            }
            Item::IndexLength(low, length) => {
                let low = windows.indexed_address(low, encoding, bases, meter)?;
                each(low, low.saturating_add(length));
            }
        }
    }
}

fn read_item(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<Item, Fault> {
    let size = encoding.address_size;
    Ok(match gimli::DwRle(cursor.u8()?) {
        gimli::DW_RLE_end_of_list => Item::End,
        gimli::DW_RLE_base_addressx => Item::BaseIndex(cursor.uleb()?),
        gimli::DW_RLE_startx_endx => Item::Indices(cursor.uleb()?, cursor.uleb()?),
        gimli::DW_RLE_startx_length => Item::IndexLength(cursor.uleb()?, cursor.uleb()?),
        gimli::DW_RLE_offset_pair => Item::Offsets(cursor.uleb()?, cursor.uleb()?),
        gimli::DW_RLE_base_address => Item::Base(cursor.uint(size)?),
        gimli::DW_RLE_start_end => Item::Range(cursor.uint(size)?, cursor.uint(size)?),
        gimli::DW_RLE_start_length => {
            let low = cursor.uint(size)?;
            Item::Range(low, low.saturating_add(cursor.uleb()?))
        }
        _ => return Err(cursor.damaged("an unknown kind of range")),
    })
}

/// A list in `.debug_ranges`: pairs of addresses, or of the highest address and a new base.
fn for_each_pair(
    windows: &mut Windows<'_>,
    encoding: Encoding,
    bases: Bases,
    mut offset: u64,
    meter: &mut Meter<'_>,
    each: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    let size = encoding.address_size;
    let mut base = bases.low_pc;
    loop {
        meter.burn(1)?;
        let pair = windows.ranges.read(offset, meter, |cursor, _| Ok((cursor.uint(size)?, cursor.uint(size)?)))?;
        offset = offset.saturating_add(2 * u64::from(size));
        match pair {
            (0, 0) => return Ok(()),
            (low, high) if low == encoding.last_address() => base = high,
            // Marks of removed code: the address below the highest, and 1 where 0 would end the list.
            (low, _) if low == encoding.last_address() - 1 || base >= encoding.last_address() - 1 => {}
            (low, high) => each(base.wrapping_add(low), base.wrapping_add(high)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Extent;
    use crate::dwarf::encoding::Encoding;
    use crate::dwarf::fuel::{Fault, Fuel};
    use crate::dwarf::sections::{Bases, Windows};
    use crate::dwarf::testing::{bytes, sections};
    use crate::dwarf::values::Value;

    fn ranges(extent: &Extent, version: u16, lists: Vec<u8>) -> Result<Vec<(u64, u64)>, Fault> {
        let name = if version >= 5 { ".debug_rnglists" } else { ".debug_ranges" };
        let addresses = bytes(&[(0, 8), (0x1000, 8), (0x2000, 8), (0x3000, 8)]);
        let sections = sections(&[(name, lists), (".debug_addr", addresses)]);
        let (encoding, fuel) = (Encoding { version, address_size: 8, is_64: false }, Fuel::for_size(0));
        let bases = Bases { addr: 8, rnglists: 4, low_pc: 0x100, ..Bases::default() };
        let mut found = Vec::new();
        let mut windows = Windows::new(&sections);
        let each = |low, high| found.push((low, high));
        extent.for_each(&mut windows, encoding, bases, &mut fuel.meter(), each).map(|()| found)
    }

    fn listed(value: Value) -> Extent {
        Extent { ranges: Some(value), ..Extent::default() }
    }

    #[test]
    fn every_kind_of_item_of_version_5() {
        let items = [
            &[(4, 1), (0x10, 0), (0x20, 0)][..], // offset_pair, from the unit's lowest address
            &[(6, 1), (0x500, 8), (0x600, 8)],   // start_end
            &[(7, 1), (0x700, 8), (0x10, 0)],    // start_length
            &[(1, 1), (1, 0)],                   // base_addressx
            &[(4, 1), (0, 0), (0x200, 0)],       // offset_pair
            &[(5, 1), (0x9000, 8)],              // base_address
            &[(4, 1), (1, 0), (2, 0)],           // offset_pair
            &[(2, 1), (0, 0), (2, 0)],           // startx_endx
            &[(3, 1), (2, 0), (0x30, 0)],        // startx_length
            &[(5, 1), (u64::MAX, 8)],            // base_address of removed code
            &[(4, 1), (0x30, 0), (0x40, 0)],     // offset_pair
            &[(6, 1), (0, 8), (0x10, 8)],        // start_end of removed code
            &[(6, 1), (0x20, 8), (0x20, 8)],     // start_end of nothing
            &[(0, 1)],
        ];
        let list = bytes(&items.concat());
        let expected = [
            (0x110, 0x120),
            (0x500, 0x600),
            (0x700, 0x710),
            (0x2000, 0x2200),
            (0x9001, 0x9002),
            (0x1000, 0x3000),
            (0x3000, 0x3030),
        ];
        assert_eq!(ranges(&listed(Value::Offset(0)), 5, list.clone()).as_deref(), Ok(&expected[..]));
        // By index: the unit's part starts with four bytes of something else and a table of one offset, from there.
        let table = [bytes(&[(0, 4), (4, 4)]), list].concat();
        assert_eq!(ranges(&listed(Value::RangesIndex(0)), 5, table).as_deref(), Ok(&expected[..]));
    }

    #[test]
    fn lists_that_do_not_end_or_are_not_there() {
        assert!(matches!(ranges(&listed(Value::Offset(0)), 5, bytes(&[(5, 1), (1, 8)])), Err(Fault::CutShort(_))));
        assert!(matches!(ranges(&listed(Value::Offset(0)), 5, vec![9]), Err(Fault::Damaged(..))));
        assert!(matches!(ranges(&listed(Value::Offset(1)), 5, vec![0]), Err(Fault::CutShort(_))));
        assert!(matches!(ranges(&listed(Value::RangesIndex(u64::MAX)), 5, vec![0]), Err(Fault::CutShort(_))));
        assert!(matches!(ranges(&listed(Value::Offset(0)), 4, vec![1; 24]), Err(Fault::CutShort(_))));
        assert_eq!(ranges(&listed(Value::Other), 4, Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn pairs_of_version_4() {
        let list = bytes(&[
            (0x10, 8),
            (0x20, 8),
            (u64::MAX, 8),
            (0x5000, 8),
            (0, 8),
            (8, 8),
            (u64::MAX - 1, 8),
            (u64::MAX - 1, 8),
            (0, 8),
            (0, 8),
        ]);
        // The base of lists in split units counts here.
        let list = [bytes(&[(0xaa, 4)]), list].concat();
        assert_eq!(ranges(&listed(Value::Number(0)), 4, list), Ok(vec![(0x110, 0x120), (0x5000, 0x5008)]));
    }

    #[test]
    fn two_bounds() {
        let extent = |low, high| Extent { low: Some(low), high: Some(high), ..Extent::default() };
        let of = |low, high| ranges(&extent(low, high), 5, Vec::new());
        assert_eq!(of(Value::Address(16), Value::Number(4)), Ok(vec![(16, 20)]));
        assert_eq!(of(Value::Address(16), Value::Address(20)), Ok(vec![(16, 20)]));
        assert_eq!(of(Value::AddressIndex(1), Value::Number(4)), Ok(vec![(0x2000, 0x2004)]));
        for (low, high) in [(0, 4), (16, 0), (u64::MAX, 4), (u64::MAX - 1, 1), (16, u64::MAX)] {
            assert_eq!(of(Value::Address(low), Value::Number(high)), Ok(vec![]), "{low:#x}");
        }
    }
}
