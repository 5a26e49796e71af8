//! What has changed since the last sweep, by regions of 2 MiB: sweeps look at nothing else.
//!
//! One byte a region. Who gives memory back looks before it writes, so that the line of the cache stays shared among threads that do so
//! all the time; the sweeper clears the flag first, in one locked step, and then takes the lock that guards what it looks at. So
//! whatever came back under that lock before is seen now, and all that comes back later finds the flag cleared.

use super::layout::{FIRST, INDICES};
use super::window::end_of_mapped;
use super::{SLICES, alias};
use core::sync::atomic::{AtomicU8, Ordering::*};

/// Slices of a region: as many as a huge page has.
pub(crate) const REGION: usize = 32;

/// Blocks or runs came back.
pub(crate) const TOUCHED: u8 = 1;
/// The last sweep has left something for the next one.
pub(crate) const WAITING: u8 = 2;
/// Was offered to the kernel as a huge page, and not split since.
pub(crate) const HUGE: u8 = 4;
/// Has holes that were not worth to split its huge page for.
pub(crate) const SPARED: u8 = 8;
/// Was offered, too, but is to have small pages as long as it has holes.
pub(crate) const SMALL: u8 = 16;

static FLAGS: [AtomicU8; INDICES / REGION] = [const { AtomicU8::new(0) }; INDICES / REGION];

/// Something came back in the run whose first slice this is.
#[inline(always)]
pub(crate) fn touch(index: usize) {
    let flags = &FLAGS[index / REGION % FLAGS.len()];
    if flags.load(Relaxed) & TOUCHED == 0 {
        flags.fetch_or(TOUCHED, Relaxed);
    }
}

/// Set flags of a region. Who [clears](clear) them sees all that was done before.
pub(crate) fn mark(region: usize, flags: u8) {
    FLAGS[region].fetch_or(flags, Release);
}

/// Everything is to be looked at.
pub(crate) fn touch_all() {
    let outside = alias::indices();
    let regions =
        (FIRST / REGION..end_of_mapped().div_ceil(REGION)).chain(outside.start / REGION..outside.end.div_ceil(REGION));
    regions.for_each(|region| mark(region, TOUCHED));
}

/// Clear flags of a region. Returns those it had.
pub(crate) fn clear(region: usize, flags: u8) -> u8 {
    FLAGS[region].fetch_and(!flags, AcqRel)
}

/// Whether the region of a slice has a flag.
pub(crate) fn has(index: usize, flag: u8) -> bool {
    FLAGS[index / REGION].load(Relaxed) & flag != 0
}

/// The first region from `from` on that there is something to do in: one that has any of these flags.
pub(crate) fn next(from: usize, flags: u8) -> Option<usize> {
    let window = end_of_mapped().div_ceil(REGION);
    let wanted = |&region: &usize| FLAGS[region].load(Relaxed) & flags != 0;
    (from..window).find(wanted).or_else(|| {
        let outside = alias::indices();
        (from.max(outside.start / REGION)..outside.end.div_ceil(REGION)).find(wanted)
    })
}

const _: () = assert!(SLICES.is_multiple_of(REGION));
