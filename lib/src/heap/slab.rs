//! Slabs: 64 KiB of blocks of one class (more for blocks above 16 KiB), whose free blocks are bits in memory apart.
//!
//! All functions but [`create`] want the slabs of the slab's heap locked ([`home`](super::home)).

use super::classes::{class_size, slab_slices};
use super::magazine::MAGAZINE_SHIFT;
use super::{Heap, release};
use crate::arena::{self, BITMAP_WORDS, Kind, ListState, SLICE, Slice, address_of, class_entry, slice};
use core::sync::atomic::Ordering::*;

/// `trigger` of a slab that no returned block sets off.
const NO_TRIGGER: u16 = u16::MAX;
/// Wholly free slabs that a class keeps, so that draining to zero and refilling costs no trip to the arena.
const EMPTY_KEPT: u32 = 1;
/// Blocks to prefetch at a refill, those that will be popped first. It replaces the prefetch that a free list inside the
/// blocks gets from being read (measured: random batches take 0.77 of the time instead of 1.05).
const PREFETCHED: usize = 64;

/// The slabs of a class in a heap, by slice index; 0 = none.
pub(crate) struct SlabLists {
    current: u32,
    /// Slabs with free blocks.
    listed: u32,
    /// Wholly free slabs among the listed.
    empty: u32,
}

impl SlabLists {
    pub(crate) const NONE: Self = SlabLists { current: 0, listed: 0, empty: 0 };
}

/// ceil(2^32 / size): see [`Slice::reciprocal`]. Exact for the start of every block (tested).
pub(crate) const fn reciprocal(size: usize) -> u32 {
    ((1u64 << 32) / size as u64 + 1) as u32
}

/// A slab of blocks of `class`, all free. Any thread; needs no lock of a heap.
pub(super) fn create(owner: *mut Heap, class: usize, kind: Kind) -> Option<usize> {
    let slices = slab_slices(class);
    let index = arena::allocate(slices, slices)?;
    let size = class_size(class);
    let blocks = slices * SLICE / size;
    // SAFETY: the run is in transit: ours alone.
    unsafe {
        let slab = &mut *slice(index);
        slab.block_size = size as u32;
        slab.reciprocal = reciprocal(size);
        slab.class = class as u16;
        slab.blocks = blocks as u16;
        slab.free = blocks as u16;
        slab.words = blocks.div_ceil(64) as u16;
        slab.hint = 0;
        slab.state = ListState::Unlisted;
        slab.trigger = NO_TRIGGER;
        for word in 0..blocks.div_ceil(64) {
            let left = blocks - word * 64;
            slab.bitmap[word].store(if left >= 64 { !0 } else { (1 << left) - 1 }, Relaxed);
        }
        // A sampled slab is special: its class map entry sends `free` to the slow path.
        let entry = if kind == Kind::Slab { (class << MAGAZINE_SHIFT) as u16 } else { 0 };
        set_members(index, slices, owner, entry);
        slab.set_run(kind, slices);
    }
    Some(index)
}

/// What each slice of a slab says.
unsafe fn set_members(index: usize, slices: usize, owner: *mut Heap, entry: u16) {
    for member in index..index + slices {
        // SAFETY: the caller owns the run.
        unsafe {
            class_entry(member).write(entry);
            (*slice(member)).first = index as u32;
            (*slice(member)).owner.store(owner.cast(), Release);
        }
    }
}

/// The slab to take blocks from: the current one, else a listed one, else (if `fresh`) a new one.
pub(super) unsafe fn current(heap: *mut Heap, class: usize, fresh: bool) -> Option<usize> {
    // SAFETY: the slabs are locked.
    let lists = unsafe { &mut (*heap).slabs[class] };
    if lists.current != 0 {
        return Some(lists.current as usize);
    }
    let index = if lists.listed != 0 {
        let index = lists.listed as usize;
        // SAFETY: listed slabs are ours.
        unsafe {
            unlist(lists, index);
            if (*slice(index)).free == (*slice(index)).blocks {
                lists.empty -= 1;
            }
        }
        index
    } else if fresh {
        create(heap, class, Kind::Slab)?
    } else {
        return None;
    };
    // SAFETY: as above.
    let slab = unsafe { &mut *slice(index) };
    slab.state = ListState::Current;
    slab.trigger = NO_TRIGGER;
    slab.hint = 0;
    lists.current = index as u32;
    Some(index)
}

/// Move free blocks of the current slab into slots, from `end` down to `start`, in ascending address order as they will
/// be popped. Returns the first slot filled. The slab stops being the current one when it has no more.
pub(super) unsafe fn take(heap: *mut Heap, index: usize, start: usize, end: usize) -> usize {
    // SAFETY: H1: the slabs are locked, so bitmap and counts are ours.
    let slab = unsafe { &mut *slice(index) };
    let (base, size) = (address_of(index), slab.block_size as usize);
    let prefetched = end - PREFETCHED * 8;
    let mut slot = end;
    let mut word = slab.hint as usize;
    while slot != start && word < slab.words as usize {
        let mut bits = slab.bitmap[word].load(Relaxed);
        let first = base + word * 64 * size;
        while bits != 0 && slot != start {
            let block = first + bits.trailing_zeros() as usize * size;
            bits &= bits - 1;
            slot -= 8;
            // SAFETY: slots in [start, end) belong to the caller's stack.
            unsafe { (slot as *mut usize).write(block) };
            if slot >= prefetched {
                prefetch_write(block);
            }
        }
        slab.bitmap[word].store(bits, Relaxed);
        if bits == 0 {
            word += 1;
        }
    }
    slab.free -= ((end - slot) / 8) as u16;
    slab.hint = word as u16;
    if slot != start {
        if slab.free != 0 {
            slab.hint = 0; // blocks came back behind the scan: go round again
        } else {
            slab.state = ListState::Unlisted;
            slab.trigger = 1;
            // SAFETY: as above.
            unsafe { (*heap).slabs[slab.class as usize].current = 0 };
        }
    }
    slot
}

#[inline(always)]
fn prefetch_write(block: usize) {
    // SAFETY: a hint to the cache; it cannot fault.
    unsafe { core::arch::asm!("prefetchw [{}]", in(reg) block, options(nostack, preserves_flags, readonly)) };
}

/// Mark a block free. `index` is the first slice of its slab.
#[inline(always)]
pub(super) unsafe fn put(heap: *mut Heap, index: usize, block: usize) {
    // SAFETY: H1.
    let slab = unsafe { &mut *slice(index) };
    let offset = block - address_of(index);
    let bit = ((offset as u64 * slab.reciprocal as u64) >> 32) as usize;
    let word = &slab.bitmap[bit / 64 % BITMAP_WORDS];
    let (old, mask) = (word.load(Relaxed), 1u64 << (bit % 64));
    if old & mask != 0 || bit * slab.block_size as usize != offset {
        release::misuse(block, old & mask != 0);
    }
    word.store(old | mask, Relaxed);
    slab.free += 1;
    if slab.free == slab.trigger {
        // SAFETY: as above.
        unsafe { returned(heap, index, slab) };
    }
}

/// A returned block changes where its slab belongs: the first makes it listed, the last makes it empty.
#[cold]
#[inline(never)]
unsafe fn returned(heap: *mut Heap, index: usize, slab: &mut Slice) {
    // SAFETY: the slabs are locked.
    let lists = unsafe { &mut (*heap).slabs[slab.class as usize] };
    if slab.state == ListState::Unlisted {
        // SAFETY: as above.
        unsafe { list(lists, index) };
    }
    if slab.free < slab.blocks || slab.state != ListState::Listed {
        return;
    }
    if lists.empty < EMPTY_KEPT {
        lists.empty += 1;
        return;
    }
    // SAFETY: H2: every block is here, so nobody else can know the slab.
    unsafe {
        unlist(lists, index);
        let slices = slab.length();
        set_members(index, slices, core::ptr::null_mut(), 0);
        slab.set_run(Kind::Transit, slices);
        arena::free(index, false);
    }
}

/// In a forked child: count and list a slab of a heap whose lists were lost.
pub(super) unsafe fn relist(heap: *mut Heap, index: usize) {
    // SAFETY: one thread.
    unsafe {
        let slab = &mut *slice(index);
        let words = slab.words as usize;
        slab.free = slab.bitmap[..words].iter().map(|w| w.load(Relaxed).count_ones() as u16).sum();
        slab.state = ListState::Unlisted;
        slab.trigger = slab.free + 1;
        if slab.free != 0 {
            let lists = &mut (*heap).slabs[slab.class as usize];
            list(lists, index);
            lists.empty += (slab.free == slab.blocks) as u32;
        }
    }
}

unsafe fn list(lists: &mut SlabLists, index: usize) {
    // SAFETY: the lock is held.
    unsafe {
        let slab = &mut *slice(index);
        slab.state = ListState::Listed;
        slab.trigger = slab.blocks;
        slab.next = lists.listed;
        slab.previous = 0;
        if lists.listed != 0 {
            (*slice(lists.listed as usize)).previous = index as u32;
        }
        lists.listed = index as u32;
    }
}

unsafe fn unlist(lists: &mut SlabLists, index: usize) {
    // SAFETY: the lock is held.
    unsafe {
        let slab = &mut *slice(index);
        if slab.previous != 0 {
            (*slice(slab.previous as usize)).next = slab.next;
        } else {
            lists.listed = slab.next;
        }
        if slab.next != 0 {
            (*slice(slab.next as usize)).previous = slab.previous;
        }
        slab.state = ListState::Unlisted;
    }
}
