//! A block that a site made, and the chain that keeps blocks reachable for ever.

use std::alloc::{Layout, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::place::Place;
use crate::driver::seed::mix;

/// A block of raw memory, owned, with the place that allocated it.
#[derive(Debug)]
pub(super) struct Made {
    memory: NonNull<u8>,
    layout: Layout,
    /// Where the block was allocated.
    pub(super) at: Place,
    /// How many blocks were allocated on the way: 1, or one for each size a growing block had.
    pub(super) blocks: u64,
    /// The bytes of all of these.
    pub(super) bytes: u64,
}

// SAFETY: a Made is the only owner of plain memory; nothing in it is bound to a thread.
unsafe impl Send for Made {}

impl Made {
    /// Takes over a block.
    ///
    /// # Safety
    /// `memory` is null (then the process ends as Rust's out-of-memory rule says) or a live block that the global
    /// allocator gave for `layout` and that nobody else owns.
    pub(super) unsafe fn from_raw(memory: *mut u8, layout: Layout, at: Place) -> Self {
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        Self { memory, layout, at, blocks: 1, bytes: layout.size() as u64 }
    }

    /// Takes over the block of a box.
    pub(super) fn from_box<T: Copy>(value: Box<T>, at: Place) -> Self {
        // SAFETY: a box of a sized, non-empty type owns a block of the global allocator with the layout of that type.
        unsafe { Self::from_raw(Box::into_raw(value).cast(), Layout::new::<T>(), at) }
    }

    /// Takes over the block of a vector, which must have one.
    pub(super) fn from_vec<T: Copy>(mut values: Vec<T>, at: Place) -> Self {
        let layout = Layout::array::<T>(values.capacity()).expect("a vector's layout exists");
        assert_ne!(layout.size(), 0, "a vector without a block");
        let memory = values.as_mut_ptr();
        std::mem::forget(values);
        // SAFETY: a vector with a capacity owns a block of the global allocator with the layout of that array.
        unsafe { Self::from_raw(memory.cast(), layout, at) }
    }

    /// Says that the block grew to its size through `blocks` blocks of `bytes` bytes in sum.
    pub(super) fn grown(self, blocks: u64, bytes: u64) -> Self {
        Self { blocks, bytes, ..self }
    }

    /// The size of the block in bytes.
    pub(super) fn size(&self) -> usize {
        self.layout.size()
    }

    /// Gives the block back to the allocator.
    pub(super) fn free(self) {
        // SAFETY: from_raw promised a block of the global allocator with this layout, and self is its only owner.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }

    /// Gives up ownership; [`Made::from_raw`] with the layout takes it back.
    pub(super) fn into_raw(self) -> (*mut u8, Layout) {
        (self.memory.as_ptr(), self.layout)
    }
}

/// What the chain writes at the start of a kept block: 16 bytes, so even the smallest block holds it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Link {
    next: *mut u8,
    /// The number of the owner, scrambled: a link that was overwritten does not decode, and is not followed.
    stamp: u64,
}

/// What scrambles the stamp of the block at `memory`.
fn scramble(memory: *mut u8, next: *mut u8) -> u64 {
    mix(memory.addr() as u64 ^ mix(next.addr() as u64))
}

/// A list of kept blocks that lives within the blocks, so that keeping a block needs no other memory.
#[derive(Debug, Default)]
pub struct Chain {
    head: AtomicPtr<u8>,
}

impl Chain {
    /// An empty chain.
    #[must_use]
    pub const fn new() -> Self {
        Self { head: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Keeps `made` for ever, on behalf of `owner`.
    ///
    /// # Panics
    /// When the block has less than 16 bytes.
    pub(super) fn keep(&self, made: Made, owner: u64) {
        assert!(made.size() >= size_of::<Link>(), "a kept block of {} bytes", made.size());
        let (memory, _) = made.into_raw();
        let mut next = self.head.load(Ordering::Relaxed);
        loop {
            let stamp = owner ^ scramble(memory, next);
            // SAFETY: the block is ours, has room for a link, and no reader reaches it before the exchange below.
            unsafe { memory.cast::<Link>().write_unaligned(Link { next, stamp }) };
            match self.head.compare_exchange_weak(next, memory, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => next = newer,
            }
        }
    }

    /// Walks the chain and counts the blocks of each owner below `owners`.
    ///
    /// # Errors
    /// The number of blocks walked so far, when a block no longer holds what was written into it.
    pub(super) fn count(&self, owners: usize) -> Result<Vec<u64>, u64> {
        let mut counts = vec![0u64; owners];
        let mut walked = 0u64;
        let mut memory = self.head.load(Ordering::Acquire);
        while !memory.is_null() {
            // SAFETY: every block in the chain was given up for ever with a link at its start.
            let link = unsafe { memory.cast::<Link>().read_unaligned() };
            let owner = usize::try_from(link.stamp ^ scramble(memory, link.next)).unwrap_or(usize::MAX);
            *counts.get_mut(owner).ok_or(walked)? += 1;
            walked += 1;
            memory = link.next;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::place;
    use super::*;

    #[test]
    fn the_chain_counts_what_it_keeps() {
        let chain = Chain::new();
        for owner in [0, 2, 2, 1, 2] {
            chain.keep(Made::from_box(Box::new([0u64; 2]), place!()), owner);
        }
        assert_eq!(chain.count(3), Ok(vec![1, 1, 3]));
        assert_eq!(chain.count(2).unwrap_err(), 0);
    }

    #[test]
    fn an_overwritten_block_is_noticed() {
        let chain = Chain::new();
        let block = Box::into_raw(Box::new([0u64; 2]));
        // SAFETY: the block comes from a box of this layout.
        chain.keep(unsafe { Made::from_raw(block.cast(), Layout::new::<[u64; 2]>(), place!()) }, 0);
        chain.keep(Made::from_box(Box::new([0u64; 2]), place!()), 0);
        // SAFETY: kept blocks are never freed, and no other thread uses this chain.
        unsafe { block.cast::<u64>().write(16) };
        assert_eq!(chain.count(1), Err(1));
    }

    #[test]
    #[should_panic(expected = "a kept block of 8 bytes")]
    fn a_block_without_room_is_refused() {
        Chain::new().keep(Made::from_box(Box::new(0u64), place!()), 0);
    }

    #[test]
    fn a_vectors_block_has_its_capacity() {
        let made = Made::from_vec(Vec::<u64>::with_capacity(10), place!());
        assert_eq!((made.size(), made.blocks, made.bytes), (80, 1, 80));
        assert_eq!(made.at.function(), "mpp_workloads::leaky::block::tests::a_vectors_block_has_its_capacity");
        made.free();
    }
}
