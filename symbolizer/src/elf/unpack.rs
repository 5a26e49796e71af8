//! Compressed sections, and how much they may unpack to.

use object::Endianness;
use object::read::{CompressedData, CompressionFormat};

use super::{bad, read_u32, read_u64};
use crate::Error;
use crate::file::FileData;
use crate::section::Section;

/// The most that one byte of zlib data can unpack to: a match of 258 bytes takes at least two bits. A header that
/// claims more is wrong, and believing it would let a small file ask for any amount of memory.
const MAX_ZLIB_RATIO: u64 = 1032;

/// Unpacks a section with the flag `SHF_COMPRESSED`, whose content starts with a compression header.
pub(super) fn elf_section(
    content: &Section,
    is_64: bool,
    endian: Endianness,
    file: &FileData,
    name: &str,
) -> Result<Section, Error> {
    let content = &*content.all()?;
    // ELF32: type, size, alignment, four bytes each. ELF64: type, four bytes unused, size and alignment of eight each.
    let header_size = if is_64 { 24 } else { 12 };
    let header = || {
        let kind = read_u32(content, 0, endian)?;
        let size = if is_64 { read_u64(content, 8, endian)? } else { u64::from(read_u32(content, 4, endian)?) };
        Some((kind, size, content.get(header_size..)?))
    };
    let (kind, size, packed) =
        header().ok_or_else(|| bad(file, &format!("section {name}: too short for its compression header")))?;
    let format = match kind {
        1 => CompressionFormat::Zlib,
        2 => CompressionFormat::Zstandard,
        _ => return Err(bad(file, &format!("section {name}: compression {kind}, expected 1 (zlib) or 2 (zstd)"))),
    };
    unpack(format, packed, size, file, name)
}

/// Unpacks a section called `.zdebug_…`: `ZLIB`, the size in eight bytes (most significant first), zlib data.
pub(super) fn gnu_section(content: &Section, file: &FileData, name: &str) -> Result<Section, Error> {
    let content = &*content.all()?;
    let size = content.get(4..12).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    match (content.strip_prefix(b"ZLIB"), size) {
        (Some(_), Some(size)) => unpack(CompressionFormat::Zlib, &content[12..], size, file, name),
        _ => Err(bad(file, &format!("section {name}: no `ZLIB` header where one is expected"))),
    }
}

fn unpack(format: CompressionFormat, packed: &[u8], size: u64, file: &FileData, name: &str) -> Result<Section, Error> {
    if format == CompressionFormat::Zlib && size / MAX_ZLIB_RATIO > packed.len() as u64 {
        return Err(bad(file, &format!("section {name}: {} bytes cannot unpack to {size}", packed.len())));
    }
    file.source().charge(size)?;
    let data = CompressedData { format, data: packed, uncompressed_size: size }.decompress();
    let data = data.map_err(|error| bad(file, &format!("section {name}: {error}")))?;
    Ok(Section::unpacked(file.source(), data.into_owned()))
}
