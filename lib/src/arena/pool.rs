//! Who may use which slices.

use super::arenas::ARENAS;

/// A set of slices with free runs of its own. A run belongs to one pool for ever, and is never merged with runs of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct Pool(u8);

/// The common pool, and one for each arena.
pub(super) const POOLS: usize = 1 + ARENAS;

impl Pool {
    /// What everybody allocates from: the window, as far as it belongs to no arena.
    pub(crate) const COMMON: Pool = Pool(0);

    /// The pool of an arena, by its place in the table.
    pub(super) const fn of_arena(place: usize) -> Pool {
        Pool(1 + place as u8)
    }

    /// As a number, and back.
    pub(crate) const fn word(self) -> u16 {
        self.0 as u16
    }

    pub(crate) const fn of_word(word: u16) -> Pool {
        Pool(word as u8)
    }

    pub(super) fn number(self) -> usize {
        self.0 as usize
    }
}

const _: () = assert!(POOLS <= 1 << u8::BITS);
