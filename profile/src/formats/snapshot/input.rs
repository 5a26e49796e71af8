//! Little-endian numbers from a stream, with the offset of each for errors.

use std::io::{BufReader, ErrorKind, Read};

use super::super::Limits;
use crate::error::{Position, ReadError};

pub(super) struct Input<'a, R: Read> {
    stream: BufReader<R>,
    name: &'a str,
    /// Of the next byte, and of what was read last.
    offset: u64,
    last: u64,
    limit: u64,
}

impl<'a, R: Read> Input<'a, R> {
    pub(super) fn new(stream: R, name: &'a str, limits: &Limits) -> Self {
        Self { stream: BufReader::new(stream), name, offset: 0, last: 0, limit: limits.input_bytes }
    }

    /// An error about what was read last.
    pub(super) fn damaged(&self, message: String) -> ReadError {
        ReadError::Damaged { name: self.name.into(), position: Position::Offset(self.last), message }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn fill(&mut self, buffer: &mut [u8], what: &str) -> Result<(), ReadError> {
        self.last = self.offset;
        self.offset += buffer.len() as u64;
        if self.offset > self.limit {
            let message = format!("larger than the limit of {} bytes", self.limit);
            return Err(ReadError::TooLarge { name: self.name.into(), position: Position::Offset(self.last), message });
        }
        self.stream.read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged(format!("the end; expected {what}")),
            _ => ReadError::Io { name: self.name.into(), source: error },
        })
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, ReadError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, ReadError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, ReadError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self, what: &str) -> Result<i32, ReadError> {
        self.array(what).map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, ReadError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A byte that is 0 or 1.
    pub(super) fn flag(&mut self, what: &str) -> Result<bool, ReadError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.damaged(format!("{other}; expected {what}, 0 or 1"))),
        }
    }

    /// Whether the input begins with these bytes. An empty one does not.
    pub(super) fn begins_with(&mut self, magic: &[u8; 4]) -> Result<bool, ReadError> {
        match self.array::<4>("a magic number") {
            Err(ReadError::Damaged { .. }) => Ok(false),
            other => other.map(|bytes| bytes == *magic),
        }
    }

    /// Four letters.
    pub(super) fn tag(&mut self, expected: &[u8; 4]) -> Result<(), ReadError> {
        let what = String::from_utf8_lossy(expected).into_owned();
        let found = self.array::<4>(&format!("the section {what:?}"))?;
        if found == *expected {
            return Ok(());
        }
        Err(self.damaged(format!("\"{}\"; expected the section {what:?}", found.escape_ascii())))
    }

    /// So many bytes. Takes no more memory than there is input.
    pub(super) fn bytes(&mut self, length: u64, what: &str) -> Result<Vec<u8>, ReadError> {
        const STEP: u64 = 64 * 1024;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let from = bytes.len();
            bytes.resize(from + (length - from as u64).min(STEP) as usize, 0);
            self.fill(&mut bytes[from..], what)?;
        }
        Ok(bytes)
    }

    /// Read over so many bytes.
    pub(super) fn skip(&mut self, mut length: u64, what: &str) -> Result<(), ReadError> {
        while length != 0 {
            let mut some = [0; 4096];
            let n = length.min(some.len() as u64);
            self.fill(&mut some[..n as usize], what)?;
            length -= n;
        }
        Ok(())
    }

    /// Nothing more.
    pub(super) fn expect_end(&mut self) -> Result<(), ReadError> {
        let mut byte = [0];
        self.last = self.offset;
        match self.stream.read(&mut byte) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("more bytes behind the end of the snapshot".to_owned())),
            Err(error) => Err(ReadError::Io { name: self.name.into(), source: error }),
        }
    }
}
