//! Tables of abbreviations: which attributes in which forms the entries of a unit have.
//!
//! Most entries of a unit are only gone past. So what it takes to do so is worked out once for each abbreviation: how
//! long an entry is, when all of its forms have fixed lengths, and where the reference to its next sibling is.

use std::collections::HashMap;

use gimli::{DwAt, DwForm, DwTag};

use super::cursor::Cursor;
use super::encoding::Encoding;
use super::fuel::{Fault, Meter};
use super::values::{Length, Value};

/// A table of abbreviations, for units of one encoding.
#[derive(Debug)]
pub(super) struct Table {
    encoding: Encoding,
    /// Those with the codes 1, 2, 3 and so on: nearly always all.
    dense: Vec<Abbreviation>,
    others: HashMap<u64, Abbreviation>,
    attributes: Vec<Attribute>,
    /// Values that are in the table and not in the entries.
    constants: Vec<i64>,
}

/// What entries with one code look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abbreviation {
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    /// There are attributes that say which addresses the entry covers.
    pub(super) has_code: bool,
    /// Total length of the attributes, if it is the same for all entries.
    fixed: Option<u32>,
    /// Where, from the start of the attributes, the reference to the next sibling is, if it is always there.
    sibling: Option<u32>,
    first: u32,
    count: u32,
}

/// An attribute as the table has it.
#[derive(Clone, Copy, Debug)]
struct Attribute {
    name: DwAt,
    form: DwForm,
    length: Length,
    /// Index of the value that the table gives.
    constant: u32,
}

impl Table {
    /// Reads a table up to its end or to that of `cursor`.
    pub(super) fn read(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<Self, Fault> {
        let mut table = Self::empty(encoding);
        while !cursor.is_empty() {
            let code = cursor.uleb()?;
            if code == 0 {
                break;
            }
            let abbreviation = table.read_one(cursor)?;
            let next = table.dense.len() as u64 + 1;
            // Of two with the same code the first counts.
            if code == next && !table.others.contains_key(&code) {
                table.dense.push(abbreviation);
            } else if code > next {
                table.others.entry(code).or_insert(abbreviation);
            }
        }
        Ok(table)
    }

    /// Reads as much of a table as it takes to find the abbreviation with one code; all others are left out.
    pub(super) fn read_only(
        cursor: &mut Cursor<'_>,
        wanted: u64,
        encoding: Encoding,
        meter: &mut Meter<'_>,
    ) -> Result<Self, Fault> {
        let mut table = Self::empty(encoding);
        loop {
            let code = cursor.uleb()?;
            if code == 0 {
                return Ok(table);
            }
            table.attributes.clear();
            let abbreviation = table.read_one(cursor)?;
            meter.burn(1 + u64::from(abbreviation.count))?;
            if code == wanted {
                table.others.insert(code, abbreviation);
                return Ok(table);
            }
        }
    }

    fn empty(encoding: Encoding) -> Self {
        Table { encoding, dense: Vec::new(), others: HashMap::new(), attributes: Vec::new(), constants: Vec::new() }
    }

    /// Reads the tag and the attributes of one.
    fn read_one(&mut self, cursor: &mut Cursor<'_>) -> Result<Abbreviation, Fault> {
        let tag = DwTag(u16::try_from(cursor.uleb()?).unwrap_or(0));
        let has_children = cursor.u8()? != 0;
        let first = self.attributes.len();
        let (mut fixed, mut sibling, mut has_code) = (Some(0u32), None, false);
        loop {
            let (name, form) = (cursor.uleb()?, cursor.uleb()?);
            if (name, form) == (0, 0) {
                break;
            }
            let (name, form) = (DwAt(u16::try_from(name).unwrap_or(0)), DwForm(u16::try_from(form).unwrap_or(0)));
            let length = Length::of(form, self.encoding).ok_or_else(|| cursor.damaged("an unknown form"))?;
            let constant = self.constants.len() as u32;
            if form == gimli::DW_FORM_implicit_const {
                self.constants.push(cursor.sleb()?);
            }
            has_code |= matches!(name, gimli::DW_AT_low_pc | gimli::DW_AT_ranges);
            if name == gimli::DW_AT_sibling && form == gimli::DW_FORM_ref4 {
                sibling = fixed;
            }
            fixed = match length {
                Length::Fixed(bytes) => fixed.and_then(|fixed| fixed.checked_add(bytes.into())),
                _ => None,
            };
            self.attributes.push(Attribute { name, form, length, constant });
        }
        let count = self.attributes.len() - first;
        Ok(Abbreviation { tag, has_children, has_code, fixed, sibling, first: first as u32, count: count as u32 })
    }

    /// The abbreviation with a code.
    #[inline]
    pub(super) fn get(&self, code: u64, cursor: &Cursor<'_>) -> Result<&Abbreviation, Fault> {
        let dense = usize::try_from(code.wrapping_sub(1)).ok().and_then(|index| self.dense.get(index));
        match dense {
            Some(abbreviation) => Ok(abbreviation),
            None => self.others.get(&code).ok_or_else(|| cursor.damaged("an abbreviation that is not defined")),
        }
    }

    /// How many attributes all abbreviations have together.
    pub(super) fn size(&self) -> usize {
        self.attributes.len() + self.dense.len() + self.others.len()
    }

    fn attributes(&self, abbreviation: &Abbreviation) -> &[Attribute] {
        &self.attributes[abbreviation.first as usize..][..abbreviation.count as usize]
    }

    /// Goes past the attributes of an entry.
    #[inline]
    pub(super) fn skip(
        &self,
        abbreviation: &Abbreviation,
        cursor: &mut Cursor<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(), Fault> {
        match abbreviation.fixed {
            Some(length) => {
                meter.burn(1)?;
                cursor.skip(length.into())
            }
            None => {
                meter.burn(1 + u64::from(abbreviation.count))?;
                for attribute in self.attributes(abbreviation) {
                    attribute.length.skip(cursor, self.encoding)?;
                }
                Ok(())
            }
        }
    }

    /// Goes past the attributes of an entry, and says where, from the start of the unit, its next sibling is if that is
    /// recorded.
    pub(super) fn skip_to_sibling(
        &self,
        abbreviation: &Abbreviation,
        cursor: &mut Cursor<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<u64>, Fault> {
        if let (Some(at), Some(length)) = (abbreviation.sibling, abbreviation.fixed) {
            meter.burn(1)?;
            cursor.skip(at.into())?;
            let sibling = cursor.u32()?;
            cursor.skip(u64::from(length - at - 4))?;
            return Ok(Some(sibling.into()));
        }
        let mut sibling = None;
        self.each(abbreviation, cursor, meter, |name, value| {
            if name == gimli::DW_AT_sibling
                && let Value::Entry(super::values::Reference::Unit(offset)) = value
            {
                sibling = Some(offset);
            }
        })?;
        Ok(sibling)
    }

    /// Calls `each` with name and value of each attribute of an entry.
    #[inline]
    pub(super) fn each(
        &self,
        abbreviation: &Abbreviation,
        cursor: &mut Cursor<'_>,
        meter: &mut Meter<'_>,
        mut each: impl FnMut(DwAt, Value),
    ) -> Result<(), Fault> {
        meter.burn(1 + u64::from(abbreviation.count))?;
        for attribute in self.attributes(abbreviation) {
            let constant = match attribute.form {
                gimli::DW_FORM_implicit_const => self.constants[attribute.constant as usize],
                _ => 0,
            };
            each(attribute.name, Value::read(cursor, attribute.form, attribute.length, constant, self.encoding)?);
        }
        Ok(())
    }
}
