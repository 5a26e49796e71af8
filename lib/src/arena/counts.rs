//! How much address space there is, and what was asked of the kernel.

use super::{SLICE, arenas, bins, spans, window};
use crate::os;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Mappings asked for. Arena lock.
pub(super) static MAPPINGS: AtomicU64 = AtomicU64::new(0);
/// Ranges given back, and their pages.
static DISCARDS: AtomicU64 = AtomicU64::new(0);
static DISCARDED: AtomicU64 = AtomicU64::new(0);
/// Of these pages, how many were handed out again, or are no longer known one by one.
static REUSED: AtomicU64 = AtomicU64::new(0);

/// Since the process began, or now.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    /// Bytes that blocks can be made from without asking for more.
    pub(crate) reserved: u64,
    /// Of these, bytes that were handed out since they came from the kernel or were given back to it.
    pub(crate) committed: u64,
    pub(crate) mmap_calls: u64,
    pub(crate) purge_calls: u64,
    /// Bytes given back.
    pub(crate) purged: u64,
    pub(crate) arenas: u64,
}

/// No lock: each number is right, but they may be of different moments.
pub(crate) fn counts() -> Counts {
    let outside: usize = arenas::all().filter(|arena| arena.is_outside()).map(|arena| arena.area().1).sum();
    let reserved = window::mapped_slices() * SLICE + outside;
    let untouched = spans::unused_slices() + bins::clean_slices();
    Counts {
        reserved: reserved as u64,
        committed: reserved.saturating_sub(untouched * SLICE) as u64,
        mmap_calls: MAPPINGS.load(Relaxed),
        purge_calls: DISCARDS.load(Relaxed),
        purged: DISCARDED.load(Relaxed) * os::PAGE as u64,
        arenas: arenas::all().count() as u64,
    }
}

/// A range was given back to the kernel, with so many pages that may have been in memory.
pub(crate) fn note_discard(pages: usize) {
    DISCARDS.fetch_add(1, Relaxed);
    DISCARDED.fetch_add(pages as u64, Relaxed);
}

/// Pages that had been given back are handed out again.
pub(crate) fn note_reuse(pages: usize) {
    if pages != 0 {
        REUSED.fetch_add(pages as u64, Relaxed);
    }
}

/// Pages that were given back and are handed out again, so far: each has cost a fault that would not have been.
pub(crate) fn reused_pages() -> u64 {
    REUSED.load(Relaxed)
}

/// Bytes that were given back and are not handed out at present.
pub(crate) fn purged_now() -> u64 {
    DISCARDED.load(Relaxed).saturating_sub(REUSED.load(Relaxed)) * os::PAGE as u64
}
