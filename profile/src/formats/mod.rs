//! Readers and writers, one folder per format. The format of an input is found out from its content, never its name.

mod detect;
mod dhat;
pub mod heap_text;
mod lines;
mod maps;
pub mod snapshot;

use std::io::Read;

use crate::error::ReadError;
use crate::model::Profile;
use detect::Detected;
use lines::Lines;

/// How much a reader takes before it gives up with [`ReadError::TooLarge`].
///
/// The defaults are far above what any recorder writes and keep the memory for a profile below about 2 GiB. A reader
/// also never needs more than about 64 times the bytes it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of input.
    pub input_bytes: u64,
    /// Bytes of one line, without its end.
    pub line_bytes: usize,
    /// Samples, and hence stacks.
    pub samples: usize,
    /// Addresses of one stack.
    pub stack_depth: usize,
    /// Addresses of all stacks together.
    pub stack_entries: usize,
    /// Distinct addresses.
    pub locations: usize,
    /// Mappings.
    pub modules: usize,
    /// Comments that are kept; more are ignored, with a warning.
    pub comments: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 1 << 30,
            line_bytes: 1 << 20,
            samples: 1 << 21,
            stack_depth: 1 << 14,
            stack_entries: 1 << 26,
            locations: 1 << 21,
            // vm.max_map_count is 65,530 by default and about a million where it has been raised.
            modules: 1 << 20,
            comments: 1 << 14,
        }
    }
}

/// Reads a profile of any known format. `name` is what errors call the input, as a rule its path.
///
/// The input is read as a stream and only once, so pipes are fine.
///
/// # Errors
/// [`ReadError`] with the line or offset and what was expected there, when the input cannot be read, is of a format that
/// this version does not know, or is damaged, cut off, absurd or too large.
pub fn read(input: impl Read, name: &str) -> Result<Profile, ReadError> {
    read_with(input, name, &Limits::default())
}

/// As [`read`], with other limits.
///
/// # Errors
/// As [`read`].
pub fn read_with(input: impl Read, name: &str, limits: &Limits) -> Result<Profile, ReadError> {
    let mut lines = Lines::new(input, name, limits);
    match detect::detect(lines.peek()?) {
        Detected::HeapText { junk_bytes, junk_lines } => heap_text::read(lines, junk_bytes, junk_lines, limits),
        Detected::Dhat => dhat::read(lines, name, limits),
        Detected::Unsupported { what, advice } => Err(ReadError::Unsupported { name: name.into(), what, advice }),
        Detected::Unrecognised(message) => Err(ReadError::Unrecognised { name: name.into(), message }),
    }
}
