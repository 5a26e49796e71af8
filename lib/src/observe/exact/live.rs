//! How much the process holds, and how much that was at most.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Live bytes of all blocks of a recording. One line of the cache, which every event writes to.
///
/// The peak is the largest value that `bytes` ever had, exactly. It is also the *generation* by which each program point knows
/// whether it has changed since then (see [`super::point`]): it only ever grows.
#[repr(align(128))]
pub(super) struct Live {
    bytes: AtomicU64,
    peak: AtomicU64,
    peak_at: AtomicU64,
}

impl Live {
    pub(super) const fn new() -> Live {
        Live { bytes: AtomicU64::new(0), peak: AtomicU64::new(0), peak_at: AtomicU64::new(0) }
    }

    pub(super) fn reset(&self) {
        [&self.bytes, &self.peak, &self.peak_at].iter().for_each(|word| word.store(0, Relaxed));
    }

    /// A block has come; `now` in ticks.
    #[inline(always)]
    pub(super) fn grow(&self, bytes: u64, now: u64) {
        let live = self.bytes.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        let mut peak = self.peak.load(Relaxed);
        while live > peak {
            match self.peak.compare_exchange_weak(peak, live, Relaxed, Relaxed) {
                Ok(_) => return self.peak_at.store(now, Relaxed),
                Err(now) => peak = now,
            }
        }
    }

    /// A block has gone.
    #[inline(always)]
    pub(super) fn shrink(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// The most that there ever was.
    #[inline(always)]
    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    /// When that was.
    pub(super) fn peak_at(&self) -> u64 {
        self.peak_at.load(Relaxed)
    }
}
