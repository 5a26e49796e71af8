//! Between stacks and slabs, many blocks at a time.

use super::classes::LARGEST_CAPACITY;
use super::magazine::{ClassState, Magazine};
use super::{Heap, interval, slab};
use crate::arena::{slice, slice_index};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::*;

/// Fill the empty alloc stack of a class from its slabs. It stays empty when there is no memory. Lock held.
pub(super) unsafe fn refill(heap: *mut Heap, class: usize, magazine: &Magazine, state: &mut ClassState) {
    debug_assert!(state.is_empty(magazine));
    let slots = state.slots();
    let mut slot = slots.end;
    while slot != slots.start {
        // A new slab only for a stack that got nothing: a partly filled one is good enough.
        // SAFETY: the lock is held.
        let Some(index) = (unsafe { slab::current(heap, class, &mut state.slabs, slot == slots.end) }) else { break };
        // SAFETY: as above.
        slot = unsafe { slab::take(&mut state.slabs, index, slots.start, slot) };
    }
    let count = (slots.end - slot) / 8;
    if slot != slots.start {
        // SAFETY: both ranges lie in this stack's slots.
        unsafe { core::ptr::copy(slot as *const usize, slots.start as *mut usize, count) };
    }
    state.filled(magazine, count);
}

/// Give the whole alloc stack of a class back to the slabs. Lock held on entry, released on return.
#[inline(never)]
pub(super) unsafe fn flush(heap: *mut Heap, class: usize) {
    let mut foreign = MaybeUninit::<[usize; LARGEST_CAPACITY]>::uninit();
    let foreign = foreign.as_mut_ptr().cast::<usize>();
    // SAFETY: the lock is held; `foreign` has room for every slot of a stack.
    unsafe {
        let (magazine, state) = Heap::enter(heap, class);
        let (slots, count) = state.cached(magazine);
        let mut left = put_own(heap, slots, count, foreign);
        let (magazine, state) = Heap::class(heap, class);
        state.drained(magazine);
        Heap::leave(heap, magazine, state, interval::epoch());
        (*heap).lock.unlock();
        while left != 0 {
            left = put_foreign(foreign, left);
        }
    }
}

/// Give back the blocks whose home is `heap`, whose lock is held; the others go to `rest`. Returns how many those are.
///
/// `rest` may be `blocks` itself.
pub(super) unsafe fn put_own(heap: *mut Heap, blocks: *const usize, count: usize, rest: *mut usize) -> usize {
    let mut left = 0;
    for i in 0..count {
        // SAFETY: the caller's arrays; whoever holds a block may read its slab's owner (H2).
        unsafe {
            let block = *blocks.add(i);
            let member = slice(slice_index(block));
            if core::ptr::eq((*member).owner.load(Relaxed), heap.cast()) {
                slab::put(heap, (*member).first as usize, block);
            } else {
                *rest.add(left) = block;
                left += 1;
            }
        }
    }
    left
}

/// Give back all blocks with the same home as the first. Returns how many are left.
#[inline(never)]
pub(super) unsafe fn put_foreign(blocks: *mut usize, count: usize) -> usize {
    // SAFETY: as in `put_own`; a slab that has blocks out has an owner.
    unsafe {
        let home = (*slice(slice_index(*blocks))).owner.load(Acquire).cast::<Heap>();
        (*home).lock.lock();
        let left = put_own(home, blocks, count, blocks);
        (*home).lock.unlock();
        left
    }
}
