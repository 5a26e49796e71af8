//! Where functions begin and end, by the table that unwinding the stack needs (`.pdata`).
//!
//! It has all functions but those that neither call others nor touch the stack. A function may be in several pieces;
//! all but the first are "chained" to another one.

use super::{EXCEPTIONS, MACHINE_ARM64, MACHINE_X86_64, Pe};
use crate::cursor::Cursor;
use crate::pdb::Boundaries;

/// Longest chain of pieces that is followed; there is one link as a rule.
const MAX_CHAIN: usize = 32;

/// Most functions of an image for ARM. Each takes a look into another place; large browsers have half a million.
const MAX_LOOKS: usize = 2 << 20;

/// The functions of one image.
#[derive(Debug)]
pub(crate) struct Functions<'p> {
    pe: &'p Pe,
    /// Ordered by start.
    pieces: Vec<Piece>,
}

/// A function, or a piece of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// First address and the one after the last, relative to the image.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Address of what tells how to unwind it.
    unwind: u32,
}

impl<'p> Functions<'p> {
    /// Reads the table; `None` when the machine has none, or the file.
    pub(crate) fn read(pe: &'p Pe) -> Option<Self> {
        let table = match pe.machine {
            MACHINE_X86_64 | MACHINE_ARM64 => pe.table(EXCEPTIONS)?,
            _ => return None,
        };
        let mut pieces: Vec<Piece> = if pe.machine == MACHINE_X86_64 {
            table.chunks_exact(12).filter_map(x86_64).collect()
        } else {
            table.chunks_exact(8).take(MAX_LOOKS).filter_map(|entry| arm64(pe, entry)).collect()
        };
        pieces.sort_by_key(|piece| piece.start);
        Some(Functions { pe, pieces })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The last piece that starts at or before `address`.
    fn before(&self, address: u32) -> Option<Piece> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        self.pieces.get(after.checked_sub(1)?).copied()
    }

    /// Where the function starts that `piece` belongs to.
    pub(super) fn first_piece(&self, piece: Piece) -> Piece {
        let mut piece = piece;
        for _ in 0..MAX_CHAIN {
            match self.chained_to(piece) {
                Some(other) => piece = other,
                None => break,
            }
        }
        piece
    }

    /// The piece that this one continues. Version and flags, size of the prologue, number of codes, register; the
    /// codes, two bytes each and an even number of them; the other piece.
    fn chained_to(&self, piece: Piece) -> Option<Piece> {
        const CHAINED: u8 = 4 << 3;
        if self.pe.machine != MACHINE_X86_64 {
            return None;
        }
        // An odd address is that of the other piece itself.
        let at = if piece.unwind & 1 != 0 {
            piece.unwind - 1
        } else {
            let header = self.pe.bytes(piece.unwind, 4)?;
            let [flags, _, codes, _] = *header.first_chunk()?;
            if flags & CHAINED == 0 {
                return None;
            }
            piece.unwind.checked_add(4 + 2 * u32::from(codes).next_multiple_of(2))?
        };
        x86_64(&self.pe.bytes(at, 12)?)
    }
}

impl Boundaries for Functions<'_> {
    fn belongs(&self, start: u32, address: u32) -> bool {
        match self.before(address) {
            Some(piece) if address < piece.end => self.first_piece(piece).start == start,
            // A function that unwinding need not know of: no other may begin or end between the name and the address.
            Some(piece) => piece.end <= start,
            None => true,
        }
    }
}

/// First address, the one after the last, how to unwind.
fn x86_64(entry: &[u8]) -> Option<Piece> {
    let mut cursor = Cursor::new(entry);
    let (start, end, unwind) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    (start < end).then_some(Piece { start, end, unwind })
}

/// First address, then either where it is told how to unwind, or all about that; both have the length of the function
/// in words of four bytes.
fn arm64(pe: &Pe, entry: &[u8]) -> Option<Piece> {
    let mut cursor = Cursor::new(entry);
    let (start, unwind) = (cursor.u32()?, cursor.u32()?);
    let words =
        if unwind & 3 == 0 { Cursor::new(&pe.bytes(unwind, 4)?).u32()? & 0x3_ffff } else { unwind >> 2 & 0x7ff };
    Some(Piece { start, end: start.checked_add(words * 4)?, unwind })
}
