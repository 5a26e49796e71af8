//! The symbol table of a Mach-O file. Symbols have no sizes, but the file lists where functions begin.

use super::{MachO, SymbolTable};
use crate::Error;
use crate::cursor::Cursor;
use crate::object::symbols::{Symbol, Symbols};

/// Reads the functions; `None` when the file has no such table.
pub(super) fn read(macho: &MachO) -> Result<Option<Symbols<'static>>, Error> {
    let Some(SymbolTable { offset, count, strings, strings_size }) = macho.symbols else { return Ok(None) };
    let entry_size = if macho.is_64 { 16 } else { 12 };
    let size = u64::from(count) * entry_size;
    macho.file.charge(size)?;
    let entries = macho.piece(offset.into(), size)?;
    macho.file.charge(strings_size.into())?;
    let strings = macho.piece(strings.into(), strings_size.into())?;
    let starts = starts(macho).unwrap_or_default();
    let functions = entries.chunks_exact(entry_size as usize).filter_map(|entry| function(macho, entry, &strings));
    let symbols = functions.map(|function| end_of(&starts, function)).collect();
    Ok(Symbols::new(symbols, strings.into()))
}

/// Name, type, section, description, value.
fn function(macho: &MachO, entry: &[u8], strings: &[u8]) -> Option<Symbol> {
    /// Types: for debuggers, defined in a section, seen by other files.
    const DEBUGGING: u8 = 0xe0;
    const KIND: u8 = 0x0e;
    const EXTERNAL: u8 = 0x01;
    /// Description: may be replaced.
    const WEAK: u16 = 0x80;
    let mut cursor = Cursor::new(entry);
    let (mut name, kind, section, description) = (cursor.u32()?, cursor.u8()?, cursor.u8()?, cursor.u16()?);
    let value = if macho.is_64 { cursor.u64()? } else { cursor.u32()?.into() };
    if kind & DEBUGGING != 0 || kind & KIND != KIND {
        return None;
    }
    let section = macho.sections.get(usize::from(section).checked_sub(1)?).filter(|section| section.is_code)?;
    let end = section.address.checked_add(section.size)?;
    if value < section.address || value >= end {
        return None;
    }
    let text = strings.get(name as usize..)?;
    if text.starts_with(b"\0") || text.starts_with(b"ltmp") {
        return None;
    }
    // Compilers put `_` before each name.
    if text.starts_with(b"_") {
        name += 1;
    }
    let rank = match (kind & EXTERNAL != 0, description & WEAK != 0) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    };
    Some(Symbol { start: value, end, name, rank, sized: false })
}

/// A symbol at the beginning of a function ends where the next function begins.
fn end_of(starts: &[u64], symbol: Symbol) -> Symbol {
    match starts.binary_search(&symbol.start) {
        Ok(index) => {
            let next = starts.get(index + 1).copied().unwrap_or(symbol.end);
            Symbol { end: next.min(symbol.end), sized: true, ..symbol }
        }
        Err(_) => symbol,
    }
}

/// The beginnings of functions, ascending: how far each is from the one before, in as many bytes of seven bits as it
/// takes; the first from the start of the segment that has the header.
fn starts(macho: &MachO) -> Option<Vec<u64>> {
    let (offset, size) = macho.starts?;
    macho.file.charge(u64::from(size)).ok()?;
    let bytes = macho.piece(offset.into(), size.into()).ok()?;
    let header = macho.segments.iter().find(|segment| segment.offset == 0 && segment.file_size != 0)?;
    let mut address = header.address;
    let mut starts = Vec::new();
    let (mut delta, mut shift) = (0_u64, 0);
    for &byte in &bytes {
        delta |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 != 0 {
            continue;
        }
        // The list is filled up with zeros.
        if delta == 0 {
            break;
        }
        address = address.checked_add(delta)?;
        starts.push(address);
        (delta, shift) = (0, 0);
    }
    // Eight times what is in the file.
    macho.file.charge(starts.len() as u64 * 8).ok()?;
    Some(starts)
}
