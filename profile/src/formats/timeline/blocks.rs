//! The frame around everything: header and blocks.

use std::io::{ErrorKind, Read};

use super::{Ending, MAGIC};
use crate::error::{Position, ReadError};

/// The first version.
const VERSION: u32 = 1;
/// Bytes of its header.
const HEADER: usize = 64;
/// Bytes before a payload: content, three zero bytes, length, checksum.
const FRAME: usize = 12;
/// Longer payloads are damage; writers stay far below.
const MOST_PAYLOAD: u32 = 1 << 20;
/// A file is not thinned more often.
const MOST_LEVEL: u32 = 62;

/// What the first bytes of a timeline say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How often the file was thinned.
    pub level: u32,
    /// The process.
    pub process: u32,
    /// The start of the recording in nanoseconds since 1970, by the machine's clock.
    pub wall_start: u64,
    /// The start in nanoseconds of the machine's monotonic clock.
    pub monotonic_start: u64,
    /// Microseconds between ticks, at least.
    pub interval: u64,
}

impl Header {
    /// How many sampled blocks each one in the file stands for: 1 unless the file was thinned.
    pub fn weight(&self) -> u64 {
        1 << self.level
    }
}

/// Reads block after block.
#[derive(Debug)]
pub(super) struct Blocks<'a, R> {
    input: R,
    pub(super) name: &'a str,
    pub(super) header: Header,
    /// Where the present block begins.
    pub(super) offset: u64,
    /// Where the next one begins.
    next: u64,
    pub(super) content: u8,
    pub(super) payload: Vec<u8>,
    ended: bool,
}

impl<'a, R: Read> Blocks<'a, R> {
    pub(super) fn open(mut input: R, name: &'a str) -> Result<Self, ReadError> {
        let mut bytes = [0u8; HEADER];
        let filled = fill(&mut input, &mut bytes, name)?;
        let damaged = |offset, message: &str| ReadError::Damaged {
            name: name.to_owned(),
            position: Position::Offset(offset),
            message: message.to_owned(),
        };
        if !bytes[..filled].starts_with(MAGIC) {
            return Err(damaged(0, "expected the first bytes of a timeline"));
        }
        if filled < HEADER {
            return Err(damaged(filled as u64, "the file ends in its header of 64 bytes; nothing was recorded"));
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if word(8) != VERSION || word(12) != HEADER as u32 {
            let what = "a timeline of a later version";
            return Err(ReadError::Unsupported { name: name.to_owned(), what, advice: "read it with a newer mpp" });
        }
        if checksum(&[&bytes[..HEADER - 4]]) != word(HEADER - 4) {
            return Err(damaged(0, "the checksum of the header is wrong"));
        }
        if word(16) > MOST_LEVEL {
            return Err(damaged(16, "thinned more often than can be"));
        }
        let header = Header {
            level: word(16),
            process: word(20),
            wall_start: long(24),
            monotonic_start: long(32),
            interval: long(40),
        };
        let next = HEADER as u64;
        Ok(Self { input, name, header, offset: 0, next, content: 0, payload: Vec::new(), ended: false })
    }

    /// Where the payload of the present block begins.
    pub(super) fn payload_offset(&self) -> u64 {
        self.offset + FRAME as u64
    }

    /// Read the next block. False at the end; `ending` is told if the last block is not whole.
    pub(super) fn advance(&mut self, ending: &mut Ending) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        let mut frame = [0u8; FRAME];
        self.offset = self.next;
        let filled = fill(&mut self.input, &mut frame, self.name)?;
        self.ended = filled < FRAME;
        if self.ended {
            if filled > 0 {
                *ending = Ending::Cut { offset: self.offset, bytes: filled as u64 };
            }
            return Ok(false);
        }
        let word = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let (length, sum) = (word(4), word(8));
        let mut why = None;
        if length > MOST_PAYLOAD {
            why = Some(format!("a block of {length} bytes; expected at most {MOST_PAYLOAD}"));
        } else {
            self.payload.resize(length as usize, 0);
            let filled = fill(&mut self.input, &mut self.payload, self.name)?;
            self.next = self.offset + (FRAME + filled) as u64;
            if filled < length as usize {
                self.ended = true;
                *ending = Ending::Cut { offset: self.offset, bytes: self.next - self.offset };
                return Ok(false);
            }
            if checksum(&[&frame[..8], &self.payload]) != sum {
                why = Some("the checksum of a block is wrong".to_owned());
            }
        }
        let Some(message) = why else {
            self.content = frame[0];
            return Ok(true);
        };
        self.ended = true;
        // After a crash of the machine the last block may be there in size only, and then nothing but zeros follows.
        let rest = self.only_zeros_follow()?;
        if let Some(rest) = rest.filter(|_| length <= MOST_PAYLOAD) {
            *ending = Ending::Cut { offset: self.offset, bytes: self.next - self.offset + rest };
            return Ok(false);
        }
        Err(ReadError::Damaged { name: self.name.to_owned(), position: Position::Offset(self.offset), message })
    }

    /// How many bytes there are to the end, if all of them are zero.
    fn only_zeros_follow(&mut self) -> Result<Option<u64>, ReadError> {
        let mut buffer = [0u8; 4096];
        let mut rest = 0;
        loop {
            let filled = fill(&mut self.input, &mut buffer, self.name)?;
            if buffer[..filled].iter().any(|&byte| byte != 0) {
                return Ok(None);
            }
            rest += filled as u64;
            if filled < buffer.len() {
                return Ok(Some(rest));
            }
        }
    }
}

/// Fill the buffer; less than all only at the end of the input.
fn fill(input: &mut impl Read, buffer: &mut [u8], name: &str) -> Result<usize, ReadError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(ReadError::Io { name: name.to_owned(), source }),
        }
    }
    Ok(filled)
}

/// CRC-32 as gzip has it, of several parts as if they were one.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let step = |sum: u32, &byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8;
    !parts.iter().fold(!0, |sum, part| part.iter().fold(sum, step))
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}
