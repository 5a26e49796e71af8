//! The functions that a library offers to others.
//!
//! They have no sizes, and most functions between them have no names. So only those names count whose code is in the
//! table of functions, which tells where it ends.

use super::functions::Functions;
use super::{EXPORTS, Pe};
use crate::cursor::Cursor;
use crate::object::symbols::{Symbol, Symbols};

/// Most names that are read. Ordinal numbers have two bytes.
const MAX_NAMES: u32 = 1 << 16;

/// Longest name, in bytes; longer ones are left out.
const MAX_NAME: u32 = 4 << 10;

pub(super) fn read(pe: &Pe) -> Option<Symbols<'static>> {
    let functions = Functions::read(pe)?;
    let table = pe.table(EXPORTS)?;
    let &(table_address, _) = pe.tables.get(EXPORTS)?;
    // Flags, time, version, name of the library, first ordinal; how many addresses and names; where addresses, names
    // and the ordinals of the names are.
    let mut cursor = Cursor::starting_at(&table, 20)?;
    let (address_count, name_count) = (cursor.u32()?.min(MAX_NAMES), cursor.u32()?.min(MAX_NAMES));
    let (addresses, names, ordinals) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let addresses = pe.bytes(addresses, address_count.checked_mul(4)?)?;
    let name_places = pe.bytes(names, name_count.checked_mul(4)?)?;
    let ordinals = pe.bytes(ordinals, name_count.checked_mul(2)?)?;
    let mut symbols = Vec::new();
    let mut strings = Vec::new();
    for (place, ordinal) in name_places.as_chunks::<4>().0.iter().zip(ordinals.as_chunks::<2>().0) {
        let at = usize::from(u16::from_le_bytes(*ordinal)) * 4;
        let Some(start) = Cursor::starting_at(&addresses, at).and_then(|mut cursor| cursor.u32()) else { continue };
        let pieces = functions.pieces();
        // Others are leaf functions, data, or names of functions in other libraries.
        let Ok(index) = pieces.binary_search_by_key(&start, |piece| piece.start) else { continue };
        let Some(piece) = pieces.get(index) else { continue };
        let within = u32::from_le_bytes(*place).checked_sub(table_address);
        // Names are in the same table as a rule.
        let name = within.and_then(|at| Cursor::starting_at(&table, at as usize)?.string());
        let Some(name) = name.filter(|name| name.len() <= MAX_NAME as usize) else { continue };
        let name_at = strings.len() as u32;
        strings.extend_from_slice(name);
        strings.push(0);
        let (start, end) = (pe.base.wrapping_add(piece.start.into()), pe.base.wrapping_add(piece.end.into()));
        symbols.push(Symbol { start, end, name: name_at, rank: 2, sized: true });
    }
    Symbols::new(symbols, strings.into())
}
