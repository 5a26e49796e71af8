//! What slow paths tell who [watches](super::watch).
//!
//! A call may consist of several smaller ones: `realloc` allocates, copies and frees, and the free of a sampled block frees the one that
//! is parked for it. It is told once, and its parts are done untold.

use super::classes::class_size;
use super::events::Extent;
use super::grow::{self, GROWN_TO_SPAN};
use super::{Heap, allocate, release, sampled, thread, watch};

/// Whether a part of a call is to be told, if somebody watches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tell {
    Yes,
    /// Who called does that, or has done it.
    No,
}

/// Somebody watches, and is to hear of this.
#[inline(always)]
pub(super) fn is_due(tell: Tell) -> bool {
    watch::is_on() && tell == Tell::Yes
}

/// A block of a class was allocated from a heap that is this thread's for the moment. With no lock held.
pub(super) unsafe fn allocated(heap: *mut Heap, block: *mut u8, requested: usize, class: usize, guarded: bool) {
    // SAFETY: the block was allocated just now, and nobody else knows it.
    unsafe {
        // A guarded block has memory of its own.
        let usable = if guarded { release::usable_size(block) } else { class_size(class) };
        (crate::HOOKS.allocated)(heap, block, usable, requested);
    }
}

/// An aligned block, told with the size that was asked for.
#[cold]
#[inline(never)]
pub(super) unsafe fn allocate_aligned(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: no preconditions but the alignment; a block is nobody else's yet.
    unsafe {
        let block = allocate::allocate_untold(size, alignment);
        if !block.is_null()
            && let Some(lease) = thread::lease(thread::current())
        {
            (crate::HOOKS.allocated)(lease.heap, block, release::usable_size(block), size);
        }
        block
    }
}

/// This block is to be freed by its owner, this thread. With no lock held.
#[inline(always)]
pub(super) unsafe fn freed(block: *mut u8, usable: usize) {
    // SAFETY: the caller's promise.
    unsafe { (crate::HOOKS.freed)(block, usable) }
}

/// A block of this thread's is where it was, and has another requested size now, and maybe other usable bytes than `before`.
#[cold]
#[inline(never)]
pub(super) unsafe fn resized(block: Extent, before: usize, requested: usize) {
    // SAFETY: the caller's promise.
    unsafe { reallocated(Extent { usable: before, ..block }, block, requested) }
}

unsafe fn reallocated(old: Extent, new: Extent, requested: usize) {
    // Without memory for a heap there is nothing to be told with.
    let Some(lease) = thread::lease(thread::current()) else { return };
    // SAFETY: the caller holds the blocks; the heap is this thread's until the lease ends.
    unsafe { (crate::HOOKS.reallocated)(lease.heap, old, new, requested) }
}

/// `realloc` that moves a block of which only the first `used` bytes matter, while somebody watches. Null: it is as it was.
#[cold]
#[inline(never)]
pub(super) unsafe fn move_to(old: Extent, used: usize, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller owns the block, which has the used bytes; the new one has `size` bytes.
    unsafe {
        replace(old, size, |tell| {
            if size > old.usable && size >= GROWN_TO_SPAN {
                return grow::obtain(old.block, used, size, alignment, tell);
            }
            let new = match tell {
                Tell::Yes => allocate::allocate_aligned(size, alignment),
                Tell::No => allocate::allocate_untold(size, alignment),
            };
            if !new.is_null() {
                new.copy_from_nonoverlapping(old.block, size.min(used));
            }
            new
        })
    }
}

/// Have another block take the place of an old one, which is freed. `obtain` makes it, with what is kept of the old one in it; null: all
/// is as it was.
///
/// # Safety
/// The caller owns the old block.
pub(crate) unsafe fn replace(old: Extent, size: usize, obtain: impl FnOnce(Tell) -> *mut u8) -> *mut u8 {
    // What the C library has allocated nobody has heard of.
    let as_one = watch::is_on() && release::is_ours(old.block);
    let new = obtain(if as_one { Tell::No } else { Tell::Yes });
    if new.is_null() {
        return new;
    }
    // SAFETY: both blocks are the caller's.
    unsafe {
        sampled::moved(old.block, new);
        if as_one {
            reallocated(old, Extent { block: new, usable: release::usable_size(new) }, size);
            release::release_told(old.block);
        } else {
            release::release(old.block);
        }
    }
    new
}
