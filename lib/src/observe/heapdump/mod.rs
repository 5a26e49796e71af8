//! What the heap holds, told as JSON ([`json`]) or as a snapshot ([`version1`], [`version2`]).
//!
//! The heap is looked at first, run by run ([`inventory`]): a slab is seen as it is at one moment, with what all threads have cached of it. Nothing is
//! locked while that is written, however slow the reader is, and nothing here is kept between calls: any number of threads may be at it.
//! Memory for all this is mapped, so nothing that is told changes by being told.

mod addresses;
pub(crate) mod at_exit;
mod bytes;
mod ids;
mod inventory;
mod json;
mod run;
mod version1;
mod version2;

pub(crate) use json::{Options, dump};

use super::output::{self, Path};
use crate::os::{self, Descriptor, libc};
use bytes::{Bytes, Sink};
use core::ffi::CStr;
use inventory::Inventory;

const EIO: i32 = 5;

/// With a bitmap of the blocks of each slab.
pub(crate) const BLOCKS: u32 = 1;
/// Version 2 of the format.
pub(crate) const VERSION2: u32 = 2;

/// Write a snapshot to a descriptor. An error is as `errno` has it; what was written before it stays.
pub(crate) fn to_descriptor(descriptor: i32, flags: u32) -> Result<(), i32> {
    os::without_write_signals(|| to_any(Descriptor(descriptor), flags))
}

/// Write a snapshot to a file, which takes its place when it is complete; devices and pipes are written to.
pub(crate) fn to_file(path: &CStr, flags: u32) -> Result<(), i32> {
    if let Some((_file, special)) = os::open_special(path, true)? {
        return os::without_write_signals(|| to_any(special, flags));
    }
    let mut file = Path::EMPTY;
    if !file.push(path.to_bytes()) {
        return Err(libc::ENAMETOOLONG);
    }
    output::to_file(&file, |sink| Ok(to_sink(&mut |bytes| sink(bytes).map_err(|why| why.cause), flags)?))
        .map_err(|why| why.cause)
}

fn to_any(descriptor: Descriptor, flags: u32) -> Result<(), i32> {
    to_sink(&mut |bytes| descriptor.write_all(bytes), flags)
}

fn to_sink(write: &mut dyn FnMut(&[u8]) -> Result<(), i32>, flags: u32) -> Result<(), i32> {
    if flags & !(BLOCKS | VERSION2) != 0 {
        return Err(libc::EINVAL);
    }
    let mut written = Ok(());
    let mut sink = |bytes: &[u8]| {
        written = write(bytes);
        written.is_ok()
    };
    let done = to(&mut sink, flags);
    written.and(done)
}

/// Write a snapshot to a sink.
fn to(sink: Sink<'_>, flags: u32) -> Result<(), i32> {
    let (blocks, details) = (flags & BLOCKS != 0, flags & VERSION2 != 0);
    let inventory = Inventory::take().ok_or(libc::ENOMEM)?;
    let mut out = Bytes::to(sink).ok_or(libc::ENOMEM)?;
    if details {
        version2::write(&mut out, &inventory, blocks);
    } else {
        version1::write(&mut out, &inventory, blocks);
    }
    if out.end() { Ok(()) } else { Err(EIO) }
}
