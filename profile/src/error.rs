//! What can go wrong.

use std::{fmt, io};

use crate::text::escaped;

/// Why an input could not be read as a profile. Every variant prints the name of the input.
///
/// All text that comes from the input is escaped when it is printed, so the message can go to a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system could not deliver the bytes.
    #[error("{}: cannot be read: {source}", escaped(name))]
    Io {
        /// The input as the caller named it.
        name: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The content is no profile that this version reads, but is recognised as something else.
    #[error("{}: this looks like {what}, which this version does not read{}", escaped(name), hint(advice))]
    Unsupported {
        /// The input as the caller named it.
        name: String,
        /// What the content seems to be, in words.
        what: &'static str,
        /// What to do instead; may be empty.
        advice: &'static str,
    },
    /// The content is nothing that is recognised.
    #[error("{}: not a heap profile: {message}", escaped(name))]
    Unrecognised {
        /// The input as the caller named it.
        name: String,
        /// What was found and what was expected, already escaped.
        message: String,
    },
    /// The content is a known format but damaged, cut off or absurd.
    #[error("{}:{position}: {message}", escaped(name))]
    Damaged {
        /// The input as the caller named it.
        name: String,
        /// Where.
        position: Position,
        /// What was found and what was expected, already escaped.
        message: String,
    },
    /// The input is larger than the reader's limits.
    #[error("{}:{position}: {message}", escaped(name))]
    TooLarge {
        /// The input as the caller named it.
        name: String,
        /// Where the limit was reached.
        position: Position,
        /// Which limit, already escaped.
        message: String,
    },
}

/// A place in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Line of a text, from 1.
    Line(u64),
    /// Byte offset, from 0.
    Offset(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "{line}"),
            Self::Offset(offset) => write!(f, "byte {offset}"),
        }
    }
}

fn hint(advice: &str) -> String {
    if advice.is_empty() { String::new() } else { format!("; {advice}") }
}

/// Why a profile could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system did not take the bytes.
    #[error("cannot write the profile: {0}")]
    Io(#[from] io::Error),
    /// The profile has something that the format cannot express.
    #[error("the profile cannot be written as {format}: {reason}")]
    Inexpressible {
        /// The format.
        format: &'static str,
        /// What it cannot express.
        reason: String,
    },
}
