//! Every allocation and every free of the process, for those of the instruments that want to hear of each.
//!
//! Called by whatever thread allocates or frees, also in a signal handler that has interrupted this very thread in here: nothing
//! may wait for it.

use crate::heap::Heap;
use crate::heap::events::Extent;

/// A block was allocated.
pub(crate) unsafe fn allocated(heap: *mut Heap, block: *mut u8, usable: usize, requested: usize) {
    let _ = heap;
    #[cfg(test)]
    tests::allocated(block, usable, requested);
    let _ = (block, usable, requested);
}

/// A block is to be freed.
pub(crate) unsafe fn freed(block: *mut u8, usable: usize) {
    #[cfg(test)]
    tests::freed(block, usable);
    let _ = (block, usable);
}

/// A block has taken the place of another, or has another size where it is.
pub(crate) unsafe fn reallocated(heap: *mut Heap, old: Extent, new: Extent, requested: usize) {
    let _ = heap;
    #[cfg(test)]
    tests::reallocated(old, new, requested);
    let _ = (old, new, requested);
}

#[cfg(test)]
mod tests;
