//! Huge pages for the dense part of the window.
//!
//! A page fault costs 1.7 µs here, a fault of 2 MiB 190 µs: four and a half times less for the same memory, and lookups of addresses
//! get cheaper besides. The price is memory that is resident without having been touched. So the first part of the window has
//! small pages, as most processes need no more than that, and everything behind it is offered to the kernel as huge pages, one
//! region at a time as the arena grows into it: slices are handed out from the bottom and used densely. Blocks of [`SPARSE`] and
//! more are left out: programs make arrays of that size which they fill in part only.
//!
//! Option `allow_thp`: 0 = never (also where the system's default is always), 1 = as above, 2 = from the first page on.

use super::layout::{FIRST, SLICES};
use super::regions::{self, REGION};
use super::window::address_of;
use super::{SLICE, SLICE_SHIFT};
use crate::options::{self, Name};
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
const _: () = assert!(REGION == HUGE >> SLICE_SHIFT);
/// Bytes of the window with small pages.
const SMALL_PART: usize = 8 << 20;
/// Slices from which on a run is not offered.
const SPARSE: usize = (32 << 20) >> SLICE_SHIFT;

/// Slices below have been offered, or are not to be. Arena lock.
static DECIDED: AtomicUsize = AtomicUsize::new(FIRST);

/// Fresh memory is mapped from slice `start` to `end`: small pages, until [`grown`] says otherwise.
pub(super) fn mapped(start: usize, end: usize) {
    let regions = start.div_ceil(REGION)..end / REGION;
    if options::get(Name::AllowThp) == 2 {
        // Whether the kernel makes huge pages by itself is not known.
        regions.for_each(|region| regions::mark(region, regions::HUGE));
    } else {
        os::advise_huge(address_of(start), (end - start) * SLICE, false);
        regions.for_each(|region| {
            regions::clear(region, regions::HUGE | regions::SMALL);
        });
    }
}

/// The arena is about to grow to slice `end` for a run of `slices`; slices below `mapped` have memory. Lock held.
pub(super) fn grown(end: usize, slices: usize, mapped: usize) {
    let allowed = options::get(Name::AllowThp);
    let first = match allowed {
        2 => FIRST,
        // A block of this size is used whole, most likely.
        _ if slices >= REGION => (end - slices).next_multiple_of(REGION),
        _ => FIRST + (SMALL_PART >> SLICE_SHIFT),
    };
    let start = DECIDED.load(Relaxed).max(first);
    let end = end.next_multiple_of(REGION).min(mapped & !(REGION - 1));
    if allowed == 0 || end <= start {
        return;
    }
    DECIDED.store(end, Relaxed);
    if slices < SPARSE {
        os::advise_huge(address_of(start), (end - start) * SLICE, true);
        (start / REGION..end / REGION).for_each(|region| regions::mark(region, regions::HUGE));
    }
}

/// Nothing is left in memory from slice `start` to `end`: what was split there can be huge pages again.
pub(super) fn emptied(start: usize, end: usize) {
    let first = start.max(FIRST + (SMALL_PART >> SLICE_SHIFT)).next_multiple_of(REGION);
    let end = end.min(SLICES) & !(REGION - 1);
    if first >= end || options::get(Name::AllowThp) != 1 {
        return;
    }
    // What was never offered, as a sparse block had it first, is not offered now.
    let mut regions = first / REGION..end / REGION;
    while let Some(start) = regions.find(|&region| regions::clear(region, regions::SMALL) & regions::SMALL != 0) {
        regions::mark(start, regions::HUGE);
        let more = regions.clone().take_while(|&region| regions::clear(region, regions::SMALL) & regions::SMALL != 0);
        let more = more.inspect(|&region| regions::mark(region, regions::HUGE)).count();
        regions = start + 1 + more..regions.end;
        os::advise_huge(address_of(start * REGION), (1 + more) * REGION * SLICE, true);
    }
}

/// What is below slice `start` is not to be offered any more: somebody else's memory is there. Lock held.
pub(super) fn skip_to(start: usize) {
    DECIDED.store(DECIDED.load(Relaxed).max(start.next_multiple_of(REGION)), Relaxed);
}
