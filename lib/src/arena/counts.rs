//! How much address space there is, and what was asked of the kernel.

use super::{SLICE, arenas, bins, spans, window};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Mappings asked for. Arena lock.
pub(super) static MAPPINGS: AtomicU64 = AtomicU64::new(0);
/// Ranges given back, and their bytes.
static DISCARDS: AtomicU64 = AtomicU64::new(0);
static DISCARDED: AtomicU64 = AtomicU64::new(0);

/// Since the process began, or now.
#[derive(Clone, Copy, Default, Debug)]
#[allow(dead_code, reason = "for the statistics of the layers above")]
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
        purged: DISCARDED.load(Relaxed),
        arenas: arenas::all().count() as u64,
    }
}

/// So many bytes were given back to the kernel.
pub(crate) fn note_discard(bytes: usize) {
    DISCARDS.fetch_add(1, Relaxed);
    DISCARDED.fetch_add(bytes as u64, Relaxed);
}
