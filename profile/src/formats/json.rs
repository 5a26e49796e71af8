//! What the formats that are JSON share.

use std::io::{Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Limits;
use super::lines::Fault;
use crate::error::{Position, ReadError, WriteError};
use crate::text::excerpt;

/// Reads the whole input; `what` is what it should be.
pub(super) fn read<T: DeserializeOwned>(
    input: impl Read,
    name: &str,
    what: &str,
    limits: &Limits,
) -> Result<T, ReadError> {
    serde_json::from_reader(input).map_err(|error| {
        let quoted = excerpt(error.to_string().as_bytes());
        let position = Position::Line(error.line() as u64);
        match error.io_error_kind() {
            Some(std::io::ErrorKind::FileTooLarge) => {
                let message = format!("the input is larger than {} bytes", limits.input_bytes);
                ReadError::TooLarge { name: name.into(), position: Position::Offset(0), message }
            }
            // What comes from a packed file that is damaged.
            Some(kind) if super::pprof::is_damage(&kind.into()) => {
                let message = "the gzip data is damaged or cut off".to_owned();
                ReadError::Damaged { name: name.into(), position: Position::Offset(0), message }
            }
            Some(_) => ReadError::Io { name: name.into(), source: error.into() },
            None if error.is_eof() => {
                ReadError::Damaged { name: name.into(), position, message: format!("the file is cut off: {quoted}") }
            }
            None => ReadError::Damaged { name: name.into(), position, message: format!("not {what}: {quoted}") },
        }
    })
}

/// A fault in what was read: no place is known any more.
pub(super) fn error(name: &str, fault: Fault) -> ReadError {
    let (name, position) = (name.to_owned(), Position::Offset(0));
    match fault {
        Fault::Damaged(message) => ReadError::Damaged { name, position, message },
        Fault::TooLarge(message) => ReadError::TooLarge { name, position, message },
    }
}

/// A number of bytes or blocks. Fractions are rounded: some writers have estimates.
pub(super) fn amount(number: &serde_json::Number) -> Option<u64> {
    let rounded =
        || number.as_f64().filter(|number| (0.0..9.2e18).contains(number)).map(|number| number.round() as u64);
    number.as_u64().or_else(rounded)
}

pub(super) fn write<T: Serialize>(value: &T, mut output: impl Write) -> Result<(), WriteError> {
    serde_json::to_writer(&mut output, value).map_err(|error| WriteError::Io(error.into()))?;
    writeln!(output)?;
    Ok(output.flush()?)
}
