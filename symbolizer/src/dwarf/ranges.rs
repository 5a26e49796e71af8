//! The addresses that a unit or a function covers.

use gimli::{AttributeValue, RangeListsOffset, Reader as _, Section as _};

use super::Reader;
use super::fuel::{Fault, Meter};

type Value<'d> = AttributeValue<Reader<'d>>;

/// The attributes of an entry that say which addresses it covers, as they were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent<'d> {
    low: Option<Value<'d>>,
    high: Option<Value<'d>>,
    ranges: Option<Value<'d>>,
}

impl<'d> Extent<'d> {
    /// Takes the attribute in if it is one of those.
    pub(super) fn note(&mut self, name: gimli::DwAt, value: Value<'d>) {
        match name {
            gimli::DW_AT_low_pc => self.low = Some(value),
            gimli::DW_AT_high_pc => self.high = Some(value),
            gimli::DW_AT_ranges => self.ranges = Some(value),
            _ => {}
        }
    }

    /// Whether it is given as a list, which is more to be trusted than two bounds.
    pub(super) fn is_list(&self) -> bool {
        self.ranges.is_some()
    }

    /// The lowest address, as an attribute.
    pub(super) fn low(&self) -> Option<Value<'d>> {
        self.low
    }

    /// Calls `each` with the bounds of each range; those of removed code, which linkers move to address 0 or to the
    /// end of the address space, are left out. Pays for every range.
    pub(super) fn for_each(
        &self,
        dwarf: &gimli::Dwarf<Reader<'d>>,
        unit: &gimli::Unit<Reader<'d>>,
        meter: &mut Meter<'_>,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), Fault> {
        if let Some(ranges) = self.ranges {
            let Some(offset) = list_offset(dwarf, unit, ranges)? else { return Ok(()) };
            let mut list = dwarf.ranges(unit, offset)?;
            while let Some(range) = list.next()? {
                meter.burn(1)?;
                if range.begin != 0 {
                    each(range.begin, range.end);
                }
            }
            return Ok(());
        }
        let address = |value: Option<Value<'d>>| match value {
            Some(value) => dwarf.attr_address(unit, value),
            None => Ok(None),
        };
        let Some(low) = address(self.low)? else { return Ok(()) };
        let high = match (self.high, address(self.high)?) {
            (_, Some(high)) => Some(high),
            // Not an address: the length.
            (Some(length), None) => length.udata_value().and_then(|length| low.checked_add(length)),
            (None, None) => None,
        };
        if let Some(high) = high
            && low != 0
            && low < high
        {
            each(low, high);
        }
        Ok(())
    }
}

/// Where the list that `value` refers to starts. (`gimli` does the same, but adds without checking.)
fn list_offset<'d>(
    dwarf: &gimli::Dwarf<Reader<'d>>,
    unit: &gimli::Unit<Reader<'d>>,
    value: Value<'d>,
) -> Result<Option<RangeListsOffset<usize>>, gimli::Error> {
    match value {
        AttributeValue::RangeListsRef(offset) => Ok(Some(dwarf.ranges_offset_from_raw(unit, offset))),
        AttributeValue::DebugRngListsIndex(index) => {
            let format = unit.encoding().format;
            let base = unit.rnglists_base.0;
            let at = index.0.checked_mul(usize::from(format.word_size()));
            let mut table = *dwarf.ranges.debug_rnglists().reader();
            table.skip(base)?;
            table.skip(at.ok_or(gimli::Error::UnsupportedOffset)?)?;
            let offset = base.checked_add(table.read_offset(format)?);
            Ok(Some(RangeListsOffset(offset.ok_or(gimli::Error::UnsupportedOffset)?)))
        }
        _ => Ok(None),
    }
}
