//! A text input, line by line, with a bound on the length of a line and of the whole.

use std::io::{ErrorKind, Read};

use super::Limits;
use crate::error::{Position, ReadError};

/// How much of an input is looked at to find out its format.
const PEEK: usize = 64 << 10;

/// Why a line was not accepted; becomes a [`ReadError`] with the place added.
#[derive(Debug)]
pub(super) enum Fault {
    /// Wrong content. The text is escaped.
    Damaged(String),
    /// Above a limit. The text is escaped.
    TooLarge(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Damaged(message)
    }
}

/// One line, without its end and without carriage returns before that.
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    /// A line feed followed. Only the last line of an input can lack it.
    pub(super) ended: bool,
}

/// Reads lines from any input.
pub(super) struct Lines<'n, R> {
    input: R,
    name: &'n str,
    limits: Limits,
    buffer: Vec<u8>,
    /// What has not been handed out yet is at `start..end` of `buffer`.
    start: usize,
    end: usize,
    at_eof: bool,
    read: u64,
    /// Number of the last line handed out, from 1; at the end of the input, of its last line.
    number: u64,
}

impl<'n, R: Read> Lines<'n, R> {
    pub(super) fn new(input: R, name: &'n str, limits: &Limits) -> Self {
        let buffer = vec![0; PEEK];
        Self { input, name, limits: *limits, buffer, start: 0, end: 0, at_eof: false, read: 0, number: 0 }
    }

    /// The first bytes of the input, as many as fit into the buffer or as there are. Only before the first line.
    pub(super) fn peek(&mut self) -> Result<&[u8], ReadError> {
        while !self.at_eof && self.end < self.buffer.len() {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Drops what precedes the first line that matters; `lines` is how many line ends are in it.
    pub(super) fn skip(&mut self, bytes: usize, lines: u64) {
        self.start += bytes.min(self.end - self.start);
        self.number += lines;
    }

    /// All that has not been handed out yet, whatever its lines. It ends with an error where the input is larger than it may be.
    pub(super) fn into_rest(mut self) -> impl Read {
        self.buffer.truncate(self.end);
        let first = std::io::Cursor::new(self.buffer.split_off(self.start));
        let room = self.limits.input_bytes.saturating_sub(self.read);
        first.chain(Bounded { input: self.input, room })
    }

    /// The next line, or `None` at the end. An input that ends in a line feed has no empty line after it.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        self.number += 1;
        let mut searched = 0;
        let length = loop {
            let pending = &self.buffer[self.start..self.end];
            let found = pending[searched..].iter().position(|&byte| byte == b'\n').map(|at| searched + at);
            searched = pending.len();
            if found.unwrap_or(searched) > self.limits.line_bytes {
                let message = format!("the line is longer than {} bytes", self.limits.line_bytes);
                return Err(self.error(Fault::TooLarge(message)));
            }
            match found {
                Some(length) => break Some(length),
                None if self.at_eof => break None,
                None => self.fill()?,
            }
        };
        let (first, last) = (self.start, self.start + length.unwrap_or(searched));
        self.start = last + usize::from(length.is_some());
        if length.is_none() && first == last {
            self.number -= 1;
            return Ok(None);
        }
        let mut text = &self.buffer[first..last];
        while let Some(shorter) = text.strip_suffix(b"\r") {
            text = shorter;
        }
        Ok(Some(Line { text, ended: length.is_some() }))
    }

    /// What the caller calls the input.
    pub(super) fn name(&self) -> &'n str {
        self.name
    }

    /// Number of the last line handed out, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The fault with the name of the input and the number of the present line.
    pub(super) fn error(&self, fault: Fault) -> ReadError {
        self.error_at(self.number, fault)
    }

    /// The fault with the name of the input and the number of another line.
    pub(super) fn error_at(&self, line: u64, fault: Fault) -> ReadError {
        let (name, position) = (self.name.to_owned(), Position::Line(line));
        match fault {
            Fault::Damaged(message) => ReadError::Damaged { name, position, message },
            Fault::TooLarge(message) => ReadError::TooLarge { name, position, message },
        }
    }

    /// Reads once, after making room. The buffer never holds more than one line and what was read with its end.
    fn fill(&mut self) -> Result<(), ReadError> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.end > self.buffer.len() / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let count = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(count) => break count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { name: self.name.to_owned(), source }),
            }
        };
        self.at_eof = count == 0;
        self.end += count;
        self.read += count as u64;
        if self.read > self.limits.input_bytes {
            let position = Position::Offset(self.limits.input_bytes);
            let message = format!("the input is larger than {} bytes", self.limits.input_bytes);
            return Err(ReadError::TooLarge { name: self.name.to_owned(), position, message });
        }
        Ok(())
    }
}

/// An input that may have so many bytes more.
struct Bounded<R> {
    input: R,
    room: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.room = self.room.checked_sub(count as u64).ok_or(ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, so that every boundary is met.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(1);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(input: impl Read, limits: &Limits) -> Result<Vec<(String, bool)>, ReadError> {
        let mut lines = Lines::new(input, "x", limits);
        let mut all = Vec::new();
        while let Some(line) = lines.next()? {
            all.push((String::from_utf8_lossy(line.text).into_owned(), line.ended));
        }
        Ok(all)
    }

    #[test]
    fn line_ends_of_all_kinds() {
        let expected = [("a".into(), true), (String::new(), true), ("b\rc".into(), true), ("d".into(), false)];
        assert_eq!(all(&b"a\r\r\n\nb\rc\nd"[..], &Limits::default()).unwrap(), expected);
        assert_eq!(all(Drip(b"a\r\n\nb\rc\nd"), &Limits::default()).unwrap(), expected);
        assert_eq!(all(&b""[..], &Limits::default()).unwrap(), []);
        assert_eq!(all(&b"\n"[..], &Limits::default()).unwrap(), [(String::new(), true)]);
    }

    #[test]
    fn long_lines_and_inputs_are_refused() {
        let limits = Limits { line_bytes: 100_000, input_bytes: 400_000, ..Limits::default() };
        let longest = [vec![b'x'; 100_000], vec![b'\n']].concat();
        assert_eq!(all(&longest.repeat(2)[..], &limits).unwrap().len(), 2);
        let error = all(&[&b"a\n"[..], &[b'x'; 100_001]].concat()[..], &limits).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { position: Position::Line(2), .. }), "{error}");
        let error = all(&longest.repeat(4)[..], &limits).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { position: Position::Offset(400_000), .. }), "{error}");
        assert!(all(std::io::repeat(b'x'), &limits).is_err());
    }
}
