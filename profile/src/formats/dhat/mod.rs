//! DHAT's JSON, version 2, as Valgrind, dhat-rs and our own library write it.
//!
//! A *program point* is a stack with its counts. Live is what it held at the end, allocated its total, peak what it held when
//! the process held most. Lifetimes and access counts have no place in a [`Profile`].
//!
//! # What is refused
//! Recordings of something else than a heap (Valgrind's modes `copy` and `ad-hoc`), other versions, frame numbers that are not in the
//! list of frames, points with more live or at the peak than was ever allocated, or with bytes in no blocks, sums of 2^63 and more.
//!
//! # Frames
//! The list of frames has one text for each function, also for inlined ones: neighbours with the same address are one location here.
//! What has a name in the file keeps it. Our own files have none, but the modules that their addresses lie in.

mod convert;
mod file;
mod frame;
mod writer;

use std::io::{BufReader, Read};

use super::Limits;
use super::lines::Lines;
use crate::error::{Position, ReadError};
use crate::model::Profile;
use crate::text::excerpt;
use file::File;

pub(super) use writer::write;

/// Reads the whole input.
pub(super) fn read<R: Read>(lines: Lines<'_, R>, name: &str, limits: &Limits) -> Result<Profile, ReadError> {
    let too_large = |message| ReadError::TooLarge { name: name.to_owned(), position: Position::Offset(0), message };
    let file: File =
        serde_json::from_reader(BufReader::new(lines.into_rest())).map_err(|error| match error.io_error_kind() {
            Some(std::io::ErrorKind::FileTooLarge) => {
                too_large(format!("the input is larger than {} bytes", limits.input_bytes))
            }
            Some(_) => ReadError::Io { name: name.to_owned(), source: error.into() },
            None => ReadError::Damaged {
                name: name.to_owned(),
                position: Position::Line(error.line() as u64),
                message: explain(&error),
            },
        })?;
    if !file.bklt {
        let (what, advice) =
            ("a DHAT recording of something else than a heap", "record with valgrind --tool=dhat --mode=heap");
        return Err(ReadError::Unsupported { name: name.to_owned(), what, advice });
    }
    convert::convert(file, limits).map_err(|fault| lines_error(name, fault))
}

fn lines_error(name: &str, fault: super::lines::Fault) -> ReadError {
    use super::lines::Fault;
    let (name, position) = (name.to_owned(), Position::Offset(0));
    match fault {
        Fault::Damaged(message) => ReadError::Damaged { name, position, message },
        Fault::TooLarge(message) => ReadError::TooLarge { name, position, message },
    }
}

/// What the parser says, escaped: it quotes the input.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let quoted = excerpt(text.as_bytes());
    if error.is_eof() { format!("the file is cut off: {quoted}") } else { format!("not a DHAT recording: {quoted}") }
}

#[cfg(test)]
mod tests;
