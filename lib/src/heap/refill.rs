//! Between stacks and slabs, many blocks at a time.

use super::classes::LARGEST_CAPACITY;
use super::magazine::{ClassState, Magazine};
use super::misuse::{self, Misuse};
use super::tell::Tell;
use super::{Heap, bits, emergency, home, secure, slab, watch};
use crate::arena::{index_of, slice};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::*;

/// Fill the empty alloc stack of a class from the slabs of the heap's home. It stays empty when there is no memory. Lock held.
pub(super) unsafe fn refill(heap: *mut Heap, class: usize, magazine: &Magazine, state: &mut ClassState) {
    debug_assert!(state.is_empty(magazine));
    let slots = if secure::checks_frees() { state.one_slot() } else { state.slots(magazine) };
    let (mut slot, mut fresh) = (slots.end, 0);
    // SAFETY: the heap's lock is held, and then its home's slabs are locked.
    unsafe {
        let home = home::of(heap);
        let locked = home::lock(home, heap);
        while locked.is_some() && slot != slots.start {
            // A new slab only for a stack that got nothing: a partly filled one is good enough.
            let Some(index) = slab::current(home, class, slot == slots.end) else { break };
            let taken = if secure::checks_frees() {
                bits::take_any(home, index, slots.start, heap)
            } else {
                bits::take(home, index, slots.start, slot)
            };
            // Only the slots that are popped last are told apart.
            fresh = taken.fresh + if taken.fresh == (slot - taken.slot) / 8 { fresh } else { 0 };
            slot = taken.slot;
        }
    }
    let count = (slots.end - slot) / 8;
    if secure::shuffles() {
        // SAFETY: these slots hold blocks, and the lock is held.
        unsafe { secure::shuffle(heap, slot as *mut usize, count) };
        fresh = if fresh == count { count } else { 0 };
    }
    if slot != slots.start {
        // SAFETY: both ranges lie in this stack's slots.
        unsafe { core::ptr::copy(slot as *const usize, slots.start as *mut usize, count) };
    }
    state.filled(magazine, count);
    state.holds_fresh(fresh);
}

/// Take the lock of a heap with the alloc stack of a class empty: what it holds goes back to the slabs.
pub(super) unsafe fn lock_emptied(heap: *mut Heap, class: usize) {
    // SAFETY: the caller owns the heap.
    unsafe {
        loop {
            (*heap).lock.lock();
            let (magazine, state) = Heap::class(heap, class);
            state.settle(magazine);
            if state.is_empty(magazine) {
                return;
            }
            flush(heap, class); // unlocks, and a signal handler may fill it again before we look
        }
    }
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
        let home = home::of(heap);
        let mut left = put_at_home(home, heap, slots, count, foreign);
        state.drained(magazine, left * 2 > count);
        Heap::leave(heap, magazine, state, watch::word());
        (*heap).lock.unlock();
        while left != 0 {
            left = put_foreign(foreign, left);
        }
    }
}

/// Give back the blocks whose home is `home`; the others go to `rest`. Returns how many those are.
///
/// `rest` may be `blocks` itself. `held` is the heap whose lock this thread holds, or null.
#[inline(always)]
unsafe fn put_at_home(home: *mut Heap, held: *mut Heap, blocks: *const usize, count: usize, rest: *mut usize) -> usize {
    // SAFETY: homes are never unmapped.
    let Some(_locked) = (unsafe { home::lock(home, held) }) else {
        // SAFETY: the caller's arrays.
        return unsafe { defer_those_at_home(home, blocks, count, rest) };
    };
    let (mut left, mut bytes) = (0, 0);
    let mut slab = bits::Open::NONE;
    for i in 0..count {
        // SAFETY: the caller's arrays; whoever holds a block may read its slab's owner (H2).
        unsafe {
            let block = *blocks.add(i);
            if !slab.begins_with(block) {
                let member = index_of(block);
                if !core::ptr::eq((*slice(member)).owner.load(Relaxed), home.cast()) {
                    *rest.add(left) = block;
                    left += 1;
                    continue;
                }
                slab = bits::Open::of(block, member, (*slice(member)).first as usize);
            }
            let size = slab.block_size();
            if slab.put(home, block) {
                bytes += size;
            }
        }
    }
    // SAFETY: the slabs are locked.
    unsafe { bits::came_back(home, bytes) };
    left
}

/// [`put_at_home`] in a signal handler that has interrupted this thread in those slabs.
#[cold]
#[inline(never)]
unsafe fn defer_those_at_home(home: *mut Heap, blocks: *const usize, count: usize, rest: *mut usize) -> usize {
    let mut left = 0;
    for i in 0..count {
        // SAFETY: as in `put_at_home`.
        unsafe {
            let block = *blocks.add(i);
            if core::ptr::eq((*slice(index_of(block))).owner.load(Relaxed), home.cast()) {
                emergency::defer(block as *mut u8, Tell::No);
            } else {
                *rest.add(left) = block;
                left += 1;
            }
        }
    }
    left
}

/// Give back all blocks with the same home as the first, with no lock held. Returns how many are left.
///
/// A slab that has blocks out has an owner. If this one has none, its last block came back before this one did: some block was
/// freed twice.
#[inline(never)]
pub(super) unsafe fn put_foreign(blocks: *mut usize, count: usize) -> usize {
    // SAFETY: as in `put_at_home`.
    unsafe {
        let home = (*slice(index_of(*blocks))).owner.load(Acquire).cast::<Heap>();
        if home.is_null() {
            misuse::note(Misuse::Double, *blocks);
            core::ptr::copy(blocks.add(1), blocks, count - 1);
            return count - 1;
        }
        put_at_home(home, core::ptr::null_mut(), blocks, count, blocks)
    }
}
