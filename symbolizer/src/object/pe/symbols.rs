//! The symbols of object files, which MinGW's linker keeps in images that were not stripped.

use super::functions::Functions;
use super::{MACHINE_386, Pe};
use crate::Error;
use crate::cursor::Cursor;
use crate::object::symbols::{Symbol, Symbols};

/// Size of an entry, in bytes.
pub(super) const ENTRY: usize = 18;

/// Storage classes: seen by other files, only by this one, replaceable.
const EXTERNAL: u8 = 2;
const STATIC: u8 = 3;
const WEAK: u8 = 105;

/// Reads the table of functions, `None` when the file has none. Where a function ends is told by the table of
/// functions; those that are not in it end at the next symbol or with their section.
pub(super) fn read(pe: &Pe) -> Result<Option<Symbols<'static>>, Error> {
    let (offset, count) = pe.symbols;
    let size = u64::from(count) * ENTRY as u64;
    if offset == 0 || count == 0 {
        return Ok(None);
    }
    let file = &pe.file;
    file.charge(size)?;
    let entries = file.piece(offset.into(), size)?;
    let strings_at = pe.strings_offset();
    // The size comes first, and counts itself.
    let strings_size = file.piece(strings_at, 4).ok().and_then(|size| Cursor::new(&size).u32()).unwrap_or_default();
    file.charge(strings_size.into())?;
    let mut strings = file.piece(strings_at, strings_size.into())?;
    let functions = Functions::read(pe);
    let mut symbols = Vec::new();
    let mut skip = 0;
    for entry in entries.chunks_exact(ENTRY) {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        skip = entry.last().copied().unwrap_or_default();
        let function = function(pe, entry, &mut strings);
        symbols.extend(function.and_then(|(symbol, is_function)| {
            let symbol = end_of(pe, functions.as_ref(), symbol);
            // Others are labels within functions, and tables that the linker makes.
            (is_function || symbol.sized).then_some(symbol)
        }));
    }
    Ok(Symbols::new(symbols, strings.into()))
}

/// A symbol in code, and whether it is said to be a function. Name, value, section, type, storage class; how many
/// entries of more follow.
fn function(pe: &Pe, entry: &[u8], strings: &mut Vec<u8>) -> Option<(Symbol, bool)> {
    /// In the type: a function.
    const FUNCTION: u16 = 2 << 4;
    let mut cursor = Cursor::new(entry);
    let name = cursor.take(8)?;
    let (value, section, kind, class) = (cursor.u32()?, cursor.u16()?, cursor.u16()?, cursor.u8()?);
    let is_function = kind & 0x30 == FUNCTION;
    let section = pe.sections.get(usize::from(section).checked_sub(1)?).filter(|section| section.is_code)?;
    // Static ones that are no functions are sections and labels.
    let rank = match class {
        EXTERNAL => 2,
        WEAK => 1,
        STATIC if is_function => 0,
        _ => return None,
    };
    if value >= section.size {
        return None;
    }
    let mut name_at = match name.strip_prefix(&[0; 4]) {
        Some(offset) => u32::from_le_bytes(offset.try_into().ok()?),
        None => {
            let at = u32::try_from(strings.len()).ok()?;
            strings.extend_from_slice(name);
            strings.push(0);
            at
        }
    };
    // Compilers for 32-bit x86 put `_` before each name.
    if pe.machine == MACHINE_386 && strings.get(name_at as usize) == Some(&b'_') {
        name_at += 1;
    }
    let start = pe.base.wrapping_add(section.address.into());
    let end = start.wrapping_add(section.size.into());
    let start = start.wrapping_add(value.into());
    Some((Symbol { start, end, name: name_at, rank, sized: false }, is_function))
}

fn end_of(pe: &Pe, functions: Option<&Functions<'_>>, symbol: Symbol) -> Symbol {
    let piece = functions.and_then(|functions| {
        let pieces = functions.pieces();
        let start = u32::try_from(symbol.start.wrapping_sub(pe.base)).ok()?;
        pieces.get(pieces.binary_search_by_key(&start, |piece| piece.start).ok()?)
    });
    match piece {
        Some(piece) => Symbol { end: pe.base.wrapping_add(piece.end.into()), sized: true, ..symbol },
        None => symbol,
    }
}
