//! The moment when the estimated live bytes of the process were highest, without a look at all sites at each new high.
//!
//! Each new high raises a generation. A site keeps what it had *before its first change in a generation*; one that has not changed since
//! has now what it had then. Threads that sample at the same moment may be off by what is in flight.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Estimates of a run, in bytes.
#[derive(Default)]
pub(super) struct Peak {
    live: AtomicU64,
    highest: AtomicU64,
    allocated: AtomicU64,
    generation: AtomicU64,
}

impl Peak {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// A sample stands for so many bytes; its site has been changed already.
    #[inline(always)]
    pub(super) fn allocated(&self, bytes: u64) {
        self.allocated.fetch_add(bytes, Relaxed);
        let live = self.live.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        if live > self.highest.load(Relaxed) && live > self.highest.fetch_max(live, Relaxed) {
            self.generation.fetch_add(1, Release);
        }
    }

    pub(super) fn freed(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Relaxed);
    }

    /// The present is the highest so far, and nothing was allocated.
    pub(super) fn restart(&self) {
        self.allocated.store(0, Relaxed);
        self.highest.store(self.live_bytes(), Relaxed);
        self.generation.fetch_add(1, Release);
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.live.load(Relaxed)
    }

    pub(super) fn highest_bytes(&self) -> u64 {
        self.highest.load(Relaxed)
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocated.load(Relaxed)
    }
}

/// What a site had at the peak.
#[derive(Default)]
pub(super) struct AtPeak {
    /// The generation for which the rest holds.
    generation: AtomicU64,
    blocks: AtomicU64,
    requested: AtomicU64,
}

impl AtPeak {
    /// The site is about to change, and had this until now.
    #[inline(always)]
    pub(super) fn keep(&self, generation: u64, blocks: &AtomicU64, requested: &AtomicU64) {
        if self.generation.load(Relaxed) != generation {
            self.blocks.store(blocks.load(Relaxed), Relaxed);
            self.requested.store(requested.load(Relaxed), Relaxed);
            self.generation.store(generation, Release);
        }
    }

    /// Blocks and requested bytes at the peak, of a site that has `now`.
    pub(super) fn get(&self, generation: u64, now: (u64, u64)) -> (u64, u64) {
        if self.generation.load(Acquire) != generation {
            return now;
        }
        (self.blocks.load(Relaxed), self.requested.load(Relaxed))
    }
}
