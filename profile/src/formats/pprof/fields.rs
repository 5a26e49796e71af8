//! The fields of a message that is at hand.

use super::Wrong;

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a kind that `profile.proto` has none of.
    Skipped,
}

/// Goes through a message.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// Where `rest` begins.
    offset: u64,
}

/// A field: its number, its content, and where that begins.
pub(super) type Field<'a> = (u64, Value<'a>, u64);

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8], offset: u64) -> Self {
        Self { rest: message, offset }
    }

    pub(super) fn next(&mut self) -> Result<Option<Field<'a>>, Wrong> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.offset;
        let key = self.varint()?;
        let (number, offset) = (key >> 3, self.offset);
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Skipped)?,
            5 => self.take(4).map(|_| Value::Skipped)?,
            2 => {
                let length = self.varint()?;
                let offset = self.offset;
                return Ok(Some((number, Value::Bytes(self.take(length)?), offset)));
            }
            kind => return Err(Wrong::damaged(start, format!("expected a field; its kind is {kind}"))),
        };
        Ok(Some((number, value, offset)))
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                self.offset += index as u64 + 1;
                return Ok(value);
            }
        }
        Err(Wrong::damaged(self.offset, "expected a number of at most 64 bits, before the end of its message"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Wrong> {
        let taken = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) =
            taken.ok_or_else(|| Wrong::damaged(self.offset, "a field does not end before its message does"))?;
        self.rest = rest;
        self.offset += length;
        Ok(taken)
    }
}

/// Adds the numbers of a field that may occur many times: one for each, or many packed together.
pub(super) fn numbers(value: Value<'_>, offset: u64, into: &mut Vec<u64>) -> Result<(), Wrong> {
    match value {
        Value::Number(number) => into.push(number),
        Value::Bytes(bytes) => {
            let mut packed = Fields::new(bytes, offset);
            while !packed.rest.is_empty() {
                into.push(packed.varint()?);
            }
        }
        Value::Skipped => return Err(Wrong::damaged(offset, "expected numbers")),
    }
    Ok(())
}

/// The number of a field that has one.
pub(super) fn number(value: Value<'_>, offset: u64) -> Result<u64, Wrong> {
    match value {
        Value::Number(number) => Ok(number),
        _ => Err(Wrong::damaged(offset, "expected a number")),
    }
}
