//! Memory outside the window.
//!
//! It gets indices beyond those of the window, *aliases*, and metadata and class map entries under them. `free` finds no alias by
//! itself: to it such a block is foreign, and only on that way is it looked up here. So nothing changes for all others.

use super::arenas;
use super::layout::{ALIASES, SLICES};
use super::window::{class_entry, slice};
use super::{Kind, Pool, Residence, SLICE, Slice};
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Ranges begin at multiples of so many slices, so that each has whole pages of metadata and of the class map.
const UNIT: usize = os::PAGE / 2;
const _: () = assert!((UNIT * size_of::<Slice>()).is_multiple_of(os::PAGE));

/// Aliases below are given away, and those given back by nobody.
static NEXT: AtomicUsize = AtomicUsize::new(SLICES);
/// All memory outside the window lies between.
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);

/// An index that nothing has.
pub(crate) const NONE: usize = usize::MAX;

/// Index of the slice outside the window that holds `address`, else [`NONE`].
#[cold]
#[inline(never)]
pub(crate) fn index_of(address: usize) -> usize {
    if !(LOW.load(Relaxed)..HIGH.load(Acquire)).contains(&address) {
        return NONE;
    }
    let arena = arenas::all().find(|arena| arena.is_outside() && arena.contains(address));
    arena.map_or(NONE, |arena| arena.range().0 + (address - arena.area().0) / SLICE)
}

/// Start of a slice outside the window.
#[cold]
#[inline(never)]
pub(super) fn address_of(index: usize) -> usize {
    let arena = arenas::all().find(|arena| index.wrapping_sub(arena.range().0) < arena.range().1);
    arena.map_or(0, |arena| arena.area().0 + (index - arena.range().0) * SLICE)
}

/// The aliases given away so far.
pub(super) fn indices() -> core::ops::Range<usize> {
    SLICES..NEXT.load(Relaxed).min(SLICES + ALIASES)
}

/// Whether an alias stands for something.
pub(super) fn is_used(index: usize) -> bool {
    address_of(index) != 0
}

/// Aliases for slices from `start` on, which the caller makes an arena of next, as a run in transit. `None`: no memory for what is
/// to be known of them, or too many.
pub(super) fn describe(start: usize, slices: usize, clean: bool) -> Option<usize> {
    // One before and one behind them have metadata too, and are the inside of no run.
    let units = (slices + 2).div_ceil(UNIT);
    let from = NEXT.fetch_add(units * UNIT, Relaxed); // so nobody gets them, should this process fork and the child stop here
    if units > ALIASES / UNIT || from + units * UNIT > SLICES + ALIASES {
        NEXT.fetch_sub(units * UNIT, Relaxed);
        return None;
    }
    let map = |address: usize, length: usize| os::map_at(address, length.next_multiple_of(os::PAGE)).is_ok();
    if !map(slice(from) as usize, (slices + 2) * size_of::<Slice>())
        || !map(class_entry(from) as usize, (slices + 2) * 2)
    {
        return None;
    }
    // SAFETY: the metadata was just mapped, for us alone.
    unsafe {
        let residence = if clean { Residence::fresh(slices) } else { Residence::UNKNOWN };
        (*slice(from + 1)).set_residence(residence);
        (*slice(from + 1)).pool = Pool::COMMON;
        (*slice(from + 1)).set_run(Kind::Transit, slices);
    }
    LOW.fetch_min(start, Relaxed);
    HIGH.fetch_max(start + slices * SLICE, Release);
    Some(from + 1)
}
