//! Free runs by length, for each pool; those that are in memory apart from those that are not, and the former are used first.
//! Everything here wants the arena's lock.

use super::Slice;
use super::pool::{POOLS, Pool};
use super::spans::{pool_of, slices_to_alignment};
use super::window::slice;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// Bins for lengths 1 ..= EXACT; bin 0 holds longer runs.
const EXACT: usize = 64;
/// Longer runs looked at for the best fit.
const LOOKS: usize = 200;

/// The first run of each length, 0 = none.
struct Bins([AtomicU32; EXACT + 1]);

/// Slices in free runs that read zero.
static CLEAN: AtomicUsize = AtomicUsize::new(0);

/// By pool, then by whether a run reads zero.
static BINS: [[Bins; 2]; POOLS] = [const { [const { Bins([const { AtomicU32::new(0) }; EXACT + 1]) }; 2] }; POOLS];

/// The bins of runs like this one.
unsafe fn bins_of(run: usize) -> &'static Bins {
    // SAFETY: the lock is held; `run` is the head of a free run.
    unsafe { &BINS[pool_of(run).number()][(*slice(run)).clean as usize] }
}

impl Bins {
    fn of_length(&self, length: usize) -> &AtomicU32 {
        &self.0[if length <= EXACT { length } else { 0 }]
    }
}

/// A free run in which `slices` slices at a multiple of `alignment` fit: the best fitting one that fits wherever it lies, else one
/// that happens to lie well.
pub(super) fn find_for(pool: Pool, slices: usize, alignment: usize) -> Option<usize> {
    // SAFETY: the caller holds the lock.
    unsafe {
        let found = find(pool, slices.checked_add(alignment - 1)?);
        if found.is_some() || alignment == 1 || pool == Pool::COMMON {
            return found; // the window can grow
        }
        let fits = |&run: &usize| slices_to_alignment(run, alignment) + slices <= (*slice(run)).length();
        BINS[pool.number()].iter().flat_map(|bins| (0..=EXACT).flat_map(|bin| runs(bins, bin).take(LOOKS))).find(fits)
    }
}

/// The best fitting free run of at least `need` slices.
unsafe fn find(pool: Pool, need: usize) -> Option<usize> {
    // SAFETY: as the caller says.
    BINS[pool.number()].iter().find_map(|bins| unsafe { find_in(bins, need) })
}

unsafe fn find_in(bins: &Bins, need: usize) -> Option<usize> {
    if let Some(bin) = (need..=EXACT).find(|&n| bins.0[n].load(Relaxed) != 0) {
        return Some(bins.0[bin].load(Relaxed) as usize);
    }
    // SAFETY: runs in bins are heads of free runs.
    let lengths = unsafe { runs(bins, 0).take(LOOKS).map(|run| ((*slice(run)).length(), run)) };
    lengths.filter(|&(length, _)| length >= need).min_by_key(|&(length, _)| length).map(|(_, run)| run)
}

/// The runs in a bin. They stay there as long as this is used.
unsafe fn runs(bins: &Bins, bin: usize) -> impl Iterator<Item = usize> + use<> {
    let mut next = bins.0[bin].load(Relaxed) as usize;
    core::iter::from_fn(move || {
        let run = next;
        // SAFETY: the lock is held: runs in bins are heads of free runs.
        (run != 0).then(|| next = unsafe { (*slice(run)).next as usize });
        (run != 0).then_some(run)
    })
}

/// Put a run into the bin of its length, in its pool.
pub(super) unsafe fn link(run: usize, length: usize) {
    // SAFETY: the lock is held; `run` is the head of a free run of this length.
    unsafe {
        let bin = bins_of(run).of_length(length);
        let first = bin.load(Relaxed);
        (*slice(run)).previous = 0;
        (*slice(run)).next = first;
        if first != 0 {
            (*slice(first as usize)).previous = run as u32;
        }
        (*slice(run + length - 1)).back = run as u32;
        if (*slice(run)).clean {
            CLEAN.store(CLEAN.load(Relaxed) + length, Relaxed);
        }
        bin.store(run as u32, Relaxed);
    }
}

/// Take a run out of its bin.
pub(super) unsafe fn unlink(run: usize, length: usize) {
    // SAFETY: the lock is held; `run` is in the bin of its length.
    unsafe {
        let Slice { next, previous, clean, .. } = *slice(run);
        if clean {
            CLEAN.store(CLEAN.load(Relaxed) - length, Relaxed);
        }
        if previous != 0 {
            (*slice(previous as usize)).next = next;
        } else {
            bins_of(run).of_length(length).store(next, Relaxed);
        }
        if next != 0 {
            (*slice(next as usize)).previous = previous;
        }
    }
}

/// Slices in free runs that read zero.
pub(super) fn clean_slices() -> usize {
    CLEAN.load(Relaxed)
}

/// In a forked child: all bins are to be filled again.
pub(super) fn forget() {
    CLEAN.store(0, Relaxed);
    BINS.as_flattened().iter().flat_map(|bins| &bins.0).for_each(|bin| bin.store(0, Relaxed));
}
