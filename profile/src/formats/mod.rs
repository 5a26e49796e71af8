//! Readers and writers, one folder per format. The format of an input is found out from its content, never its name.

pub mod bundle;
mod callgrind;
mod csv;
mod detect;
mod dhat;
mod firefox;
mod folded;
pub mod heap_text;
pub(crate) mod intern;
mod json;
mod lines;
mod maps;
mod named;
pub mod pprof;
pub mod snapshot;
mod speedscope;
pub mod timeline;
mod write;

use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::error::{Position, ReadError};
use crate::model::Profile;
use detect::Detected;
use lines::Lines;

pub use write::{Losses, Options, Target, write};

/// How much a reader takes before it gives up with [`ReadError::TooLarge`].
///
/// The defaults are far above what any recorder writes and keep the memory for a profile below about 2 GiB. A reader
/// also never needs more than about 64 times the bytes it has read (of packed input, of what comes out).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of input; of packed input also the bytes that come out.
    pub input_bytes: u64,
    /// Bytes of one line, without its end, or of one field of a binary format.
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
        Detected::Gzip => read_plain(Lines::new(MultiGzDecoder::new(lines.into_rest()), name, limits), limits),
        _ => read_plain(lines, limits),
    }
}

/// Reads what is not packed, or not any more.
fn read_plain(mut lines: Lines<'_, impl Read>, limits: &Limits) -> Result<Profile, ReadError> {
    let name = lines.name();
    let detected = match lines.peek() {
        // The first bytes of packed data that is damaged.
        Err(ReadError::Io { source, .. }) if pprof::is_damage(&source) => {
            let (position, message) = (Position::Offset(0), format!("the gzip data is damaged or cut off: {source}"));
            return Err(ReadError::Damaged { name: name.into(), position, message });
        }
        peeked => detect::detect(peeked?),
    };
    match detected {
        Detected::HeapText { junk_bytes, junk_lines } => heap_text::read(lines, junk_bytes, junk_lines, limits),
        Detected::Dhat => dhat::read(lines, name, limits),
        Detected::Folded => folded::read(lines, limits),
        Detected::Speedscope => speedscope::read(lines, name, limits),
        Detected::Firefox => firefox::read(lines, name, limits),
        Detected::Csv => csv::read(lines, limits),
        Detected::Callgrind => callgrind::read(lines, limits),
        Detected::ProfileProto => pprof::read(lines.into_rest(), name, limits),
        Detected::Gzip => {
            Err(ReadError::Unsupported { name: name.into(), what: "gzip data in gzip data", advice: "unpack it first" })
        }
        Detected::Timeline => timeline::profile(lines.into_rest(), name, limits, timeline::Slice::ALL),
        Detected::Unsupported { what, advice } => Err(ReadError::Unsupported { name: name.into(), what, advice }),
        Detected::Unrecognised(message) => Err(ReadError::Unrecognised { name: name.into(), message }),
    }
}
