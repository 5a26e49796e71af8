//! Values of attributes, and how long they are.

use gimli::DwForm;

use super::cursor::Cursor;
use super::encoding::Encoding;
use super::fuel::Fault;

/// How the length of a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// So many bytes.
    Fixed(u8),
    /// A LEB128 number.
    Leb,
    /// Up to a zero.
    String,
    /// A length of so many bytes, then as many bytes as that says.
    Block(u8),
    /// The same with a LEB128 number as length.
    LebBlock,
    /// The form is in the value.
    Indirect,
}

impl Length {
    /// Of values of a form; `None` for an unknown form.
    pub(super) fn of(form: DwForm, encoding: Encoding) -> Option<Self> {
        Some(match form {
            gimli::DW_FORM_addr => Length::Fixed(encoding.address_size),
            gimli::DW_FORM_flag_present | gimli::DW_FORM_implicit_const => Length::Fixed(0),
            gimli::DW_FORM_data1
            | gimli::DW_FORM_ref1
            | gimli::DW_FORM_flag
            | gimli::DW_FORM_strx1
            | gimli::DW_FORM_addrx1 => Length::Fixed(1),
            gimli::DW_FORM_data2 | gimli::DW_FORM_ref2 | gimli::DW_FORM_strx2 | gimli::DW_FORM_addrx2 => {
                Length::Fixed(2)
            }
            gimli::DW_FORM_strx3 | gimli::DW_FORM_addrx3 => Length::Fixed(3),
            gimli::DW_FORM_data4
            | gimli::DW_FORM_ref4
            | gimli::DW_FORM_ref_sup4
            | gimli::DW_FORM_strx4
            | gimli::DW_FORM_addrx4 => Length::Fixed(4),
            gimli::DW_FORM_data8 | gimli::DW_FORM_ref8 | gimli::DW_FORM_ref_sig8 | gimli::DW_FORM_ref_sup8 => {
                Length::Fixed(8)
            }
            gimli::DW_FORM_data16 => Length::Fixed(16),
            gimli::DW_FORM_strp
            | gimli::DW_FORM_sec_offset
            | gimli::DW_FORM_line_strp
            | gimli::DW_FORM_strp_sup
            | gimli::DW_FORM_GNU_strp_alt
            | gimli::DW_FORM_GNU_ref_alt => Length::Fixed(encoding.word_size()),
            gimli::DW_FORM_ref_addr => Length::Fixed(encoding.reference_size()),
            gimli::DW_FORM_sdata
            | gimli::DW_FORM_udata
            | gimli::DW_FORM_ref_udata
            | gimli::DW_FORM_strx
            | gimli::DW_FORM_addrx
            | gimli::DW_FORM_loclistx
            | gimli::DW_FORM_rnglistx
            | gimli::DW_FORM_GNU_addr_index
            | gimli::DW_FORM_GNU_str_index => Length::Leb,
            gimli::DW_FORM_string => Length::String,
            gimli::DW_FORM_block1 => Length::Block(1),
            gimli::DW_FORM_block2 => Length::Block(2),
            gimli::DW_FORM_block4 => Length::Block(4),
            gimli::DW_FORM_block | gimli::DW_FORM_exprloc => Length::LebBlock,
            gimli::DW_FORM_indirect => Length::Indirect,
            _ => return None,
        })
    }

    /// Goes past a value.
    #[inline]
    pub(super) fn skip(self, cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<(), Fault> {
        match self {
            Length::Fixed(size) => cursor.skip(size.into()),
            Length::Leb => cursor.skip_leb(),
            Length::String => cursor.skip_string().map(|_| ()),
            Length::Block(size) => {
                let length = cursor.uint(size)?;
                cursor.skip(length)
            }
            Length::LebBlock => {
                let length = cursor.uleb()?;
                cursor.skip(length)
            }
            Length::Indirect => match indirect(cursor, encoding)? {
                (_, Length::Indirect) => Err(cursor.damaged("a form that is indirect twice")),
                (_, length) => length.skip(cursor, encoding),
            },
        }
    }
}

/// The form that is in a value of the form `DW_FORM_indirect`.
fn indirect(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<(DwForm, Length), Fault> {
    let form = u16::try_from(cursor.uleb()?).map(DwForm).ok();
    let length = form.and_then(|form| Some((form, Length::of(form, encoding)?)));
    length.ok_or_else(|| cursor.damaged("an unknown form"))
}

/// The value of an attribute, as far as symbols need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// An address.
    Address(u64),
    /// Its index in the unit's part of `.debug_addr`.
    AddressIndex(u64),
    /// A number; in versions before 4, also an offset in another section.
    Number(u64),
    /// An offset in another section.
    Offset(u64),
    /// Index of a list of ranges in the unit's part of `.debug_rnglists`.
    RangesIndex(u64),
    /// A string.
    Text(Text),
    /// Another entry.
    Entry(Reference),
    /// Anything else.
    Other,
}

/// Where a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// At this offset of the section it was met in.
    Inline(u64),
    /// In `.debug_str`.
    Str(u64),
    /// In `.debug_line_str`.
    LineStr(u64),
    /// At the offset with this index in the unit's part of `.debug_str_offsets`.
    Index(u64),
    /// In `.debug_str` of the supplementary file.
    Supplementary(u64),
}

/// Where another entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// So many bytes from the start of the unit.
    Unit(u64),
    /// At this offset in `.debug_info`.
    Info(u64),
    /// At this offset in `.debug_info` of the supplementary file.
    Supplementary(u64),
}

impl Value {
    /// Reads one of a form; `implicit` is the value that the abbreviation itself gives.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        form: DwForm,
        length: Length,
        implicit: i64,
        encoding: Encoding,
    ) -> Result<Self, Fault> {
        let (form, length) = match length {
            Length::Indirect => indirect(cursor, encoding)?,
            _ => (form, length),
        };
        let here = cursor.offset();
        let number = match length {
            Length::Fixed(size @ (1..=4 | 8)) => cursor.uint(size)?,
            Length::Leb if form == gimli::DW_FORM_sdata => cursor.sleb()?.cast_unsigned(),
            Length::Leb => cursor.uleb()?,
            length => {
                length.skip(cursor, encoding)?;
                0
            }
        };
        Ok(match form {
            gimli::DW_FORM_addr => Value::Address(number),
            gimli::DW_FORM_addrx
            | gimli::DW_FORM_addrx1
            | gimli::DW_FORM_addrx2
            | gimli::DW_FORM_addrx3
            | gimli::DW_FORM_addrx4
            | gimli::DW_FORM_GNU_addr_index => Value::AddressIndex(number),
            gimli::DW_FORM_data1
            | gimli::DW_FORM_data2
            | gimli::DW_FORM_data4
            | gimli::DW_FORM_data8
            | gimli::DW_FORM_udata
            | gimli::DW_FORM_sdata => Value::Number(number),
            gimli::DW_FORM_implicit_const => Value::Number(implicit.cast_unsigned()),
            gimli::DW_FORM_sec_offset => Value::Offset(number),
            gimli::DW_FORM_rnglistx => Value::RangesIndex(number),
            gimli::DW_FORM_string => Value::Text(Text::Inline(here)),
            gimli::DW_FORM_strp => Value::Text(Text::Str(number)),
            gimli::DW_FORM_line_strp => Value::Text(Text::LineStr(number)),
            gimli::DW_FORM_strp_sup | gimli::DW_FORM_GNU_strp_alt => Value::Text(Text::Supplementary(number)),
            gimli::DW_FORM_strx
            | gimli::DW_FORM_strx1
            | gimli::DW_FORM_strx2
            | gimli::DW_FORM_strx3
            | gimli::DW_FORM_strx4
            | gimli::DW_FORM_GNU_str_index => Value::Text(Text::Index(number)),
            gimli::DW_FORM_ref1
            | gimli::DW_FORM_ref2
            | gimli::DW_FORM_ref4
            | gimli::DW_FORM_ref8
            | gimli::DW_FORM_ref_udata => Value::Entry(Reference::Unit(number)),
            gimli::DW_FORM_ref_addr => Value::Entry(Reference::Info(number)),
            gimli::DW_FORM_ref_sup4 | gimli::DW_FORM_ref_sup8 | gimli::DW_FORM_GNU_ref_alt => {
                Value::Entry(Reference::Supplementary(number))
            }
            _ => Value::Other,
        })
    }

    /// As an offset in another section.
    pub(super) fn offset(self) -> Option<u64> {
        match self {
            Value::Number(offset) | Value::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// As a string.
    pub(super) fn text(self) -> Option<Text> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// As an entry.
    pub(super) fn entry(self) -> Option<Reference> {
        if let Value::Entry(reference) = self { Some(reference) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::{Length, Value};
    use crate::dwarf::cursor::Cursor;
    use crate::dwarf::encoding::Encoding;
    use crate::dwarf::fuel::Spot;
    use gimli::{DwForm, RunTimeEndian};

    #[test]
    fn values_of_every_form_are_read_and_skipped_alike() {
        // Bytes that make sense as numbers, lengths and strings; `DW_FORM_indirect` finds the form 3 there.
        let mut bytes = [0; 1 << 10];
        bytes[0] = 3;
        let mut known = 0;
        for version in [2, 4, 5] {
            for is_64 in [false, true] {
                for form in 0..0x2000 {
                    let encoding = Encoding { version, address_size: 4, is_64 };
                    let Some(length) = Length::of(DwForm(form), encoding) else { continue };
                    known += 1;
                    let spot = Spot { section: ".test", offset: 0x100 };
                    let cursor = Cursor::new(&bytes, spot, RunTimeEndian::Little);
                    let (mut read, mut skipped) = (cursor, cursor);
                    let value = Value::read(&mut read, DwForm(form), length, 5, encoding);
                    assert!(value.is_ok() && length.skip(&mut skipped, encoding).is_ok(), "form {form:#x}");
                    assert_eq!(read.position(), skipped.position(), "form {form:#x}");
                }
            }
        }
        assert_eq!(known, 6 * 47, "forms that are known");
    }

    #[test]
    fn a_form_that_is_indirect_twice_is_refused() {
        let encoding = Encoding { version: 4, address_size: 8, is_64: false };
        let spot = Spot { section: ".test", offset: 0 };
        let cursor = Cursor::new(&[0x16, 0x16, 0x0b, 1], spot, RunTimeEndian::Little);
        assert!(Length::Indirect.skip(&mut { cursor }, encoding).is_err());
        assert!(Value::read(&mut { cursor }, gimli::DW_FORM_indirect, Length::Indirect, 0, encoding).is_err());
    }
}
