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

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::dwarf::cursor::Cursor;
    use crate::dwarf::encoding::Encoding;
    use crate::dwarf::fuel::{Fault, Fuel, Spot};
    use crate::dwarf::testing::bytes;
    use crate::dwarf::values::Value;
    use gimli::RunTimeEndian;

    const ENCODING: Encoding = Encoding { version: 5, address_size: 8, is_64: false };

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor::new(bytes, Spot { section: ".test", offset: 0 }, RunTimeEndian::Little)
    }

    /// One abbreviation: code, tag, children, then pairs of attribute and form.
    fn abbreviation(code: u64, tag: u64, attributes: &[(u64, u64)]) -> Vec<u8> {
        let mut numbers = vec![(code, 0), (tag, 0), (1, 1)];
        numbers.extend(attributes.iter().flat_map(|&(name, form)| [(name, 0), (form, 0)]));
        numbers.extend([(0, 0), (0, 0)]);
        bytes(&numbers)
    }

    #[test]
    fn codes_in_any_order_and_the_first_of_equal_ones() {
        let table = [
            abbreviation(1, 0x11, &[]),
            abbreviation(7, 0x2e, &[]),
            abbreviation(2, 0x34, &[]),
            abbreviation(1, 0x99, &[]),
            abbreviation(7, 0x99, &[]),
            abbreviation(u64::MAX, 0x1d, &[]),
            vec![0],
            abbreviation(3, 0x99, &[]),
        ]
        .concat();
        let read = Table::read(&mut cursor(&table), ENCODING).expect("a table");
        let tag = |code| read.get(code, &cursor(&[])).map(|abbreviation| abbreviation.tag.0).ok();
        assert_eq!([1, 2, 7, u64::MAX].map(tag), [Some(0x11), Some(0x34), Some(0x2e), Some(0x1d)]);
        assert_eq!([0, 3, 4].map(tag), [None, None, None]);
        let fuel = Fuel::for_size(0);
        let only = Table::read_only(&mut cursor(&table), 2, ENCODING, &mut fuel.meter()).expect("a table");
        assert_eq!(only.get(2, &cursor(&[])).map(|abbreviation| abbreviation.tag.0), Ok(0x34));
        assert!(only.get(1, &cursor(&[])).is_err());
    }

    #[test]
    fn entries_are_read_and_skipped_alike() {
        let fuel = Fuel::for_size(0);
        let meter = &mut fuel.meter();
        // Of fixed length, with the sibling before something else; of another length; a value in the table itself.
        let fixed = &[(0x11, 0x01), (0x01, 0x13), (0x49, 0x13)][..];
        let other = &[(0x03, 0x08), (0x02, 0x18), (0x01, 0x13)][..];
        let mut table = [abbreviation(1, 0x2e, fixed), abbreviation(2, 0x2e, other)].concat();
        table.extend(bytes(&[
            (3, 0),
            (0x2e, 0),
            (0, 1),
            (0x58, 0),
            (0x21, 0),
            (0x7f, 1),
            (0x57, 0),
            (0x0b, 0),
            (0, 2),
        ]));
        let table = Table::read(&mut cursor(&table), ENCODING).expect("a table");
        let entries: [(u64, Vec<u8>, Option<u64>); 3] = [
            (1, bytes(&[(0x1000, 8), (0x55, 4), (0x66, 4)]), Some(0x55)),
            (2, [&b"name\0\x02ab"[..], &bytes(&[(0x77, 4)])].concat(), Some(0x77)),
            (3, vec![9], None),
        ];
        for (code, entry, sibling) in entries {
            let abbreviation = *table.get(code, &cursor(&[])).expect("defined");
            let (mut skipped, mut jumped, mut read) = (cursor(&entry), cursor(&entry), cursor(&entry));
            table.skip(&abbreviation, &mut skipped, meter).expect("skipped");
            let found = table.skip_to_sibling(&abbreviation, &mut jumped, meter);
            let mut values = Vec::new();
            table.each(&abbreviation, &mut read, meter, |name, value| values.push((name.0, value))).expect("read");
            assert_eq!((skipped.left(), jumped.left(), read.left()), (0, 0, 0), "code {code}");
            assert_eq!(found, Ok(sibling));
            if code == 3 {
                assert_eq!(values, [(0x58, Value::Number(u64::MAX)), (0x57, Value::Number(9))]);
            }
            let cut = &entry[..entry.len() - 1];
            assert!(table.skip(&abbreviation, &mut cursor(cut), meter).is_err());
            assert!(table.skip_to_sibling(&abbreviation, &mut cursor(cut), meter).is_err());
            assert!(table.each(&abbreviation, &mut cursor(cut), meter, |_, _| {}).is_err());
        }
    }

    #[test]
    fn forms_that_nobody_knows() {
        let table = abbreviation(1, 0x2e, &[(0x03, 0x7e)]);
        assert!(matches!(Table::read(&mut cursor(&table), ENCODING), Err(Fault::Damaged(..))));
    }
}
