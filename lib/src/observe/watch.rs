//! Every allocation and every free of the process, for those of the instruments that want to hear of each.
//!
//! Called by whatever thread allocates or frees, also in a signal handler that has interrupted this very thread in here: nothing
//! may wait for it.

use super::{events, exact};
use crate::heap::Heap;
use crate::heap::events::Extent;
use crate::heap::watch::{Watcher, has};

/// A block was allocated, from a heap that is this thread's for the moment.
pub(crate) unsafe fn allocated(heap: *mut Heap, block: *mut u8, usable: usize, requested: usize) {
    if has(Watcher::Events) {
        // SAFETY: the caller's heap.
        unsafe { events::allocated(heap, block, usable, requested) }
    }
    if has(Watcher::Exact) {
        // SAFETY: the caller's heap and block.
        unsafe { exact::allocated(heap, block, requested) }
    }
    #[cfg(test)]
    tests::allocated(block, usable, requested);
}

/// A block is to be freed by its owner, this thread.
pub(crate) unsafe fn freed(block: *mut u8, usable: usize) {
    if has(Watcher::Events) {
        events::freed(block, usable);
    }
    #[cfg(test)]
    tests::freed(block, usable);
    if has(Watcher::Exact) {
        // SAFETY: the caller's block.
        unsafe { exact::freed(block) }
    }
}

/// A block has taken the place of another, which is to be freed, or has another size where it is.
pub(crate) unsafe fn reallocated(heap: *mut Heap, old: Extent, new: Extent, requested: usize) {
    if has(Watcher::Events) {
        // SAFETY: the caller's heap.
        unsafe { events::reallocated(heap, old, new, requested) }
    }
    if has(Watcher::Exact) {
        // SAFETY: the caller's heap and blocks.
        unsafe { exact::reallocated(heap, old, new, requested) }
    }
    #[cfg(test)]
    tests::reallocated(old, new, requested);
}

/// In a forked child with one thread.
pub(crate) fn repair() {
    events::repair();
}

#[cfg(test)]
mod tests;
