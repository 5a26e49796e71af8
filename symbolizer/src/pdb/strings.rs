//! Strings that a stream stores one after the other, each with a zero byte at its end.

use super::Fault;
use super::msf::{Msf, Stream};

/// Longest path of a source file, in bytes: that of Windows for long paths.
const MAX_LENGTH: usize = 32 << 10;

/// What is read at first; most paths are shorter.
const FIRST: usize = 512;

/// The stream `/names`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strings<'m> {
    stream: Option<Stream<'m>>,
}

impl<'m> Strings<'m> {
    pub(super) fn of(msf: &'m Msf, number: Option<u32>) -> Self {
        Strings { stream: number.and_then(|number| msf.stream(number)) }
    }

    /// The string at `offset`, which counts from behind a signature, a version and the size of all strings.
    pub(super) fn get(&self, offset: u32) -> Result<Option<Vec<u8>>, Fault> {
        let Some(stream) = self.stream else { return Ok(None) };
        string_at(&stream, (offset as usize).saturating_add(12)).map(Some)
    }
}

/// The string that starts at offset `at` of a stream, cut when it is too long.
pub(super) fn string_at(stream: &Stream<'_>, at: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    for length in [FIRST, MAX_LENGTH] {
        bytes = stream.read_up_to(at, length)?;
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(end);
            break;
        }
    }
    Ok(bytes)
}
