//! Compressed sections: what is packed how, by the headers of its own that such a section starts with.

use object::Endianness;

use super::{bad, read_u32, read_u64};
use crate::Error;
use crate::file::FileData;
use crate::packed::{Packed, Packing};
use crate::section::Section;

/// The place of a section in its file: offset and size.
type Place = (u64, u64);

/// A section with the flag `SHF_COMPRESSED`, whose content starts with a compression header.
pub(super) fn elf_section(
    place: Place,
    is_64: bool,
    endian: Endianness,
    file: &FileData,
    name: &str,
) -> Result<Section, Error> {
    // ELF32: type, size, alignment, four bytes each. ELF64: type, four bytes unused, size and alignment of eight each.
    let header_size = if is_64 { 24 } else { 12 };
    let (header, rest) = split(place, header_size, file, name)?;
    let fields = || {
        let kind = read_u32(&header, 0, endian)?;
        let size = if is_64 { read_u64(&header, 8, endian)? } else { u64::from(read_u32(&header, 4, endian)?) };
        Some((kind, size))
    };
    let (kind, size) = fields().ok_or_else(|| too_short(file, name))?;
    let packing = match kind {
        1 => Packing::Zlib,
        2 => Packing::Zstd,
        _ => return Err(bad(file, &format!("section {name}: compression {kind}, expected 1 (zlib) or 2 (zstd)"))),
    };
    Packed::new(file.source(), name, packing, rest, size).map(Section::packed)
}

/// A section called `.zdebug_…`: `ZLIB`, the size in eight bytes (most significant first), zlib data.
pub(super) fn gnu_section(place: Place, file: &FileData, name: &str) -> Result<Section, Error> {
    let (header, rest) = split(place, 12, file, name)?;
    match header.split_first_chunk::<4>() {
        Some((b"ZLIB", size)) => {
            let size = size.try_into().map(u64::from_be_bytes).map_err(|_| too_short(file, name))?;
            Packed::new(file.source(), name, Packing::Zlib, rest, size).map(Section::packed)
        }
        _ => Err(bad(file, &format!("section {name}: no `ZLIB` header where one is expected"))),
    }
}

/// The first bytes of a section, and the place of the rest.
fn split((offset, size): Place, header: u64, file: &FileData, name: &str) -> Result<(Vec<u8>, Place), Error> {
    let rest = size.checked_sub(header).ok_or_else(|| too_short(file, name))?;
    let mut bytes = vec![0; header as usize];
    file.source().read_at(offset, &mut bytes)?;
    Ok((bytes, (offset + header, rest)))
}

fn too_short(file: &FileData, name: &str) -> Error {
    bad(file, &format!("section {name}: too short for its compression header"))
}
