//! The outermost message, field by field, from a stream.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use super::super::Limits;
use super::{Stop, Wrong};

/// A field of the outermost message.
pub(super) struct Field {
    pub(super) number: u64,
    pub(super) value: Value,
    /// Where its content begins, or its number.
    pub(super) offset: u64,
}

/// What a field holds.
pub(super) enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    /// Of a kind that `profile.proto` has none of.
    Skipped,
}

/// Reads fields, and counts the bytes.
pub(super) struct Source<R> {
    input: BufReader<R>,
    offset: u64,
    field_bytes: usize,
    input_bytes: u64,
}

/// Whether a reader's error means that packed data is damaged, and not that it could not be read.
pub(in super::super) fn is_damage(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput)
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R, limits: &Limits) -> Self {
        let (field_bytes, input_bytes) = (limits.line_bytes, limits.input_bytes);
        Self { input: BufReader::with_capacity(64 << 10, input), offset: 0, field_bytes, input_bytes }
    }

    /// The next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Field>, Stop> {
        let start = self.offset;
        let Some(first) = self.byte()? else { return Ok(None) };
        let key = self.varint_after(start, first)?;
        let number = key >> 3;
        if number == 0 {
            return Err(Wrong::damaged(start, "expected a field; its number is 0").into());
        }
        let mut offset = self.offset;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.fixed(8)?,
            5 => self.fixed(4)?,
            2 => {
                let length = self.varint()?;
                offset = self.offset;
                Value::Bytes(self.bytes(start, length)?)
            }
            kind => return Err(Wrong::damaged(start, format!("expected a field; its kind is {kind}")).into()),
        };
        Ok(Some(Field { number, value, offset }))
    }

    /// Where the next byte is.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn varint(&mut self) -> Result<u64, Stop> {
        let start = self.offset;
        let first = self.byte()?.ok_or_else(|| cut_off(self.offset))?;
        self.varint_after(start, first)
    }

    fn varint_after(&mut self, start: u64, first: u8) -> Result<u64, Stop> {
        let (mut value, mut shift, mut byte) = (0u64, 0, first);
        loop {
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return Err(Wrong::damaged(start, "expected a number of at most 64 bits").into());
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            byte = self.byte()?.ok_or_else(|| cut_off(self.offset))?;
        }
    }

    fn fixed(&mut self, length: u64) -> Result<Value, Stop> {
        self.bytes(self.offset, length).map(|_| Value::Skipped)
    }

    /// The memory grows with what is there, not with what is announced.
    fn bytes(&mut self, start: u64, length: u64) -> Result<Vec<u8>, Stop> {
        if length > self.field_bytes as u64 {
            let message = format!("a field of {length} bytes; more than {} are not read", self.field_bytes);
            return Err(Wrong::too_large(start, message).into());
        }
        // Nearly all fields are in the buffer already.
        if let Some(there) = self.input.buffer().get(..length as usize) {
            let bytes = there.to_vec();
            self.input.consume(bytes.len());
            self.advance(length)?;
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(length).read_to_end(&mut bytes);
        self.advance(bytes.len() as u64)?;
        match read {
            Err(error) => Err(self.failed(error)),
            Ok(_) if (bytes.len() as u64) < length => Err(cut_off(self.offset).into()),
            Ok(_) => Ok(bytes),
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, Stop> {
        if let Some(&byte) = self.input.buffer().first() {
            self.input.consume(1);
            self.advance(1)?;
            return Ok(Some(byte));
        }
        let mut byte = [0];
        loop {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    self.advance(1)?;
                    return Ok(Some(byte[0]));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn advance(&mut self, bytes: u64) -> Result<(), Stop> {
        self.offset += bytes;
        if self.offset > self.input_bytes {
            return Err(self.too_large());
        }
        Ok(())
    }

    fn too_large(&self) -> Stop {
        let message = format!("the data is larger than {} bytes", self.input_bytes);
        Wrong::too_large(self.input_bytes, message).into()
    }

    fn failed(&self, error: std::io::Error) -> Stop {
        if error.kind() == ErrorKind::FileTooLarge {
            return self.too_large();
        }
        if is_damage(&error) {
            let message = format!("the gzip data is damaged or cut off where this byte was packed: {error}");
            return Wrong::damaged(self.offset, message).into();
        }
        Stop::Io(error)
    }
}

fn cut_off(offset: u64) -> Wrong {
    Wrong::damaged(offset, "the file is cut off: a field does not end")
}
