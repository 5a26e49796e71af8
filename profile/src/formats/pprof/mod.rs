//! pprof's `profile.proto`, packed with gzip or not.
//!
//! # What is read
//!
//! Heap profiles of any writer: those with values named `inuse_space` or `space`, `alloc_space`, and the numbers of blocks beside them.
//! In this format values are **estimates**. In files that our own library wrote (known by the comment `stacks_marked = 1`) each sample has
//! blocks of one size, told by its label `bytes`, so what was recorded can be computed back exactly, and everything is the
//! same as in the text form of the same dump. If that does not work out, because another program has added profiles up or cut
//! parts out, and in files of other writers, the values are kept as estimates ([`Amounts::Estimated`](crate::Amounts)).
//!
//! Addresses in the file are those of calls; the model has return addresses, which are one more.
//!
//! Of functions, the name, the file and the linker's name are read. A path that ends in ` (deleted)` is that of a file that was gone.
//!
//! # What is refused
//!
//! * Files that are cut off or damaged: fields that do not end, numbers of strings, locations, functions or mappings that do not exist, or
//!   exist twice, samples with another number of values than there are types.
//! * Two files joined: a type that occurs twice.
//! * Profiles of something else, and differences of profiles, which have negative values.
//! * Sums of 2^63 and more.

mod build;
mod columns;
mod fields;
mod message;
mod raw;
mod source;
#[cfg(test)]
mod tests;
mod writer;

use std::io::Read;

use super::Limits;
use super::lines::Fault;
use crate::error::{Position, ReadError};
use crate::model::Profile;

pub(super) use source::is_damage;
pub use writer::{write, write_packed};

/// A fault, and where it is: an offset in the data, unpacked.
struct Wrong {
    offset: u64,
    fault: Fault,
}

impl Wrong {
    fn damaged(offset: u64, message: impl Into<String>) -> Self {
        Self { offset, fault: Fault::Damaged(message.into()) }
    }

    fn too_large(offset: u64, message: impl Into<String>) -> Self {
        Self { offset, fault: Fault::TooLarge(message.into()) }
    }
}

/// Why reading stopped.
enum Stop {
    Wrong(Wrong),
    Io(std::io::Error),
    Other(ReadError),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

/// Reads a profile that is not packed, or not any more.
pub(super) fn read(input: impl Read, name: &str, limits: &Limits) -> Result<Profile, ReadError> {
    let read =
        raw::Raw::read(source::Source::new(input, limits), limits).and_then(|raw| build::profile(raw, name, limits));
    read.map_err(|stop| match stop {
        Stop::Wrong(Wrong { offset, fault }) => {
            let (name, position) = (name.to_owned(), Position::Offset(offset));
            match fault {
                Fault::Damaged(message) => ReadError::Damaged { name, position, message },
                Fault::TooLarge(message) => ReadError::TooLarge { name, position, message },
            }
        }
        Stop::Io(source) => ReadError::Io { name: name.to_owned(), source },
        Stop::Other(error) => error,
    })
}
