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
