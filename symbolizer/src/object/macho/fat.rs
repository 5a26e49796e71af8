//! A file that holds Mach-O files for several architectures.

use std::sync::Arc;

use super::MachO;
use crate::Error;
use crate::file::Source;
use crate::object::ObjectFile as _;

/// First bytes of the two kinds: with offsets of 32 and of 64 bits. All numbers are stored with the highest byte first.
const FAT_32: u32 = 0xcafe_babe;
const FAT_64: u32 = 0xcafe_babf;

/// Most architectures in one file. Class files of Java start with the same bytes, and have at least 45 (their version)
/// where the number of architectures is.
const MAX_ARCHITECTURES: u32 = 40;

/// Reads the part with the UUID `wanted`, or the only one; `None` if it is not such a file. Two parts are different
/// programs: without a UUID, none is taken for the other.
pub(super) fn read(file: &Arc<Source>, start: &[u8], wanted: Option<&[u8]>) -> Result<Option<MachO>, Error> {
    let number =
        |bytes: &[u8], at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_be_bytes);
    let (magic, count) = (number(start, 0), number(start, 4));
    if !matches!(magic, FAT_32 | FAT_64) || count == 0 || count > MAX_ARCHITECTURES {
        return Ok(None);
    }
    // Kind and variant of processor; offset, size; alignment, and with 64 bits something not used.
    let entry_size = if magic == FAT_64 { 32 } else { 20 };
    let table = file.piece(8, u64::from(count) * entry_size)?;
    let mut parts = Vec::new();
    for entry in table.chunks_exact(entry_size as usize) {
        let (offset, size) = if magic == FAT_64 {
            let long = |at| u64::from(number(entry, at)) << 32 | u64::from(number(entry, at + 4));
            (long(8), long(16))
        } else {
            (number(entry, 8).into(), number(entry, 12).into())
        };
        if !file.holds(offset, size) {
            return Err(Error::CutShort { path: file.path().to_owned(), offset, size });
        }
        parts.push((offset, size));
    }
    let mut first = None;
    for &(offset, size) in &parts {
        let part = MachO::read_at(file, offset, size)?;
        if wanted.is_some() && part.identity() == wanted {
            return Ok(Some(part));
        }
        first.get_or_insert(part);
    }
    // With a UUID that none has, the caller refuses whichever it gets.
    if wanted.is_none() && parts.len() > 1 {
        let what = format!(
            "it holds {} architectures, and no UUID tells which is meant; take one out with `lipo -thin ARCH`",
            parts.len()
        );
        return Err(Error::BadMachO { path: file.path().to_owned(), what });
    }
    Ok(first)
}
