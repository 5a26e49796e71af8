//! Of the blocks that are live in a forked child: which of them did its parent allocate?
//!
//! A child has all blocks of its parent, and their samples. They are told apart by when they were born.

use crate::os;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};

/// Samples that are live.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// Those of them that were live at the fork.
static INHERITED: AtomicI64 = AtomicI64::new(0);
/// The processor's count when this process was forked; 0 = it was not.
static FORKED: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
pub(super) fn allocated() {
    LIVE.fetch_add(1, Relaxed);
}

/// A sample that was born at this count of the processor has ended.
#[inline(always)]
pub(super) fn ended(birth: u64) {
    LIVE.fetch_sub(1, Relaxed);
    if birth < FORKED.load(Relaxed) {
        INHERITED.fetch_sub(1, Relaxed);
    }
}

/// A run has ended, and all samples with it.
pub(super) fn forget() {
    LIVE.store(0, Relaxed);
    INHERITED.store(0, Relaxed);
}

/// In a forked child with one thread.
pub(super) fn forked() {
    INHERITED.store(LIVE.load(Relaxed), Relaxed);
    FORKED.store(os::cycles(), Relaxed);
}

/// Live samples that the parent process has allocated. `None` in a process that was not forked since it began to sample.
pub(crate) fn live() -> Option<u64> {
    (FORKED.load(Relaxed) != 0).then(|| INHERITED.load(Relaxed).max(0) as u64)
}
