//! A site at the end of a recursion of random depth: many distinct stacks, in which one function occurs many times.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use super::block::Made;
use super::place::{Place, place};

/// The deepest recursion unless the user asks for another.
pub const DEFAULT_DEPTH: u32 = 24;

static DEPTH: AtomicU32 = AtomicU32::new(DEFAULT_DEPTH);

/// Sets the deepest recursion of all later calls of [`keep_deep`].
pub(super) fn set_depth(depth: u32) {
    DEPTH.store(depth, Ordering::Relaxed);
}

#[inline(never)]
pub(super) fn keep_deep(seed: u64) -> Made {
    let depth = seed % u64::from(DEPTH.load(Ordering::Relaxed).max(1));
    let made = descend(depth, seed);
    black_box(depth);
    made
}

#[inline(never)]
fn descend(depth: u64, seed: u64) -> Made {
    if black_box(depth) > 0 {
        let made = descend(depth - 1, seed);
        // Work after the call, so that the compiler cannot turn the recursion into a loop.
        black_box(depth);
        return made;
    }
    let (at, value) = (place!(), Box::new([seed; 24]));
    Made::from_box(value, at)
}
