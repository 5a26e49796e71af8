//! Other people's mappings inside the window.
//!
//! The window is not reserved, so somebody may map memory where it would grow next. It then goes on behind that: the slices
//! in between are one *foreign* run, which is never handed out and whose addresses are not ours to free. The runs form a list through
//! their heads that only grows; read without a lock.

use super::Kind;
use super::window::slice;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// The newest foreign run, 0 = none.
static NEWEST: AtomicU32 = AtomicU32::new(0);
/// Slices in all of them.
static SLICES: AtomicUsize = AtomicUsize::new(0);

/// Slices from `run` on are not ours. Arena lock held, and nothing but the metadata of the first one needs to be there.
pub(super) fn add(run: usize, slices: usize) {
    // SAFETY: the lock is held, and nobody else knows the run yet.
    unsafe {
        (*slice(run)).set_run(Kind::Foreign, slices);
        (*slice(run)).next = NEWEST.load(Relaxed);
    }
    SLICES.fetch_add(slices, Relaxed);
    NEWEST.store(run as u32, Release);
}

/// Slices in all foreign runs.
pub(super) fn slices() -> usize {
    SLICES.load(Relaxed)
}

/// Whether a slice below the end of what is mapped is foreign.
pub(super) fn holds(index: usize) -> bool {
    let mut run = NEWEST.load(Acquire) as usize;
    while run != 0 {
        // SAFETY: the list has heads of foreign runs, which never change.
        let (length, next) = unsafe { ((*slice(run)).length(), (*slice(run)).next as usize) };
        if index.wrapping_sub(run) < length {
            return true;
        }
        run = next;
    }
    false
}

/// In a forked child: the list is to be filled again from the chain of heads.
pub(super) fn forget() {
    NEWEST.store(0, Relaxed);
    SLICES.store(0, Relaxed);
}
