//! Slabs: 64 KiB of blocks of one class (more for blocks above 16 KiB), whose free blocks are bits in memory apart.
//!
//! All functions but [`create`] want the slabs of the slab's heap locked ([`home`](super::home)).

use super::classes::{CLASSES, class_size, next_slab_slices, slab_alignment};
use super::magazine::MAGAZINE_SHIFT;
use super::{Heap, holes, home, notes, shelf, zone};
use crate::arena::{self, Kind, ListState, PAGES, Pool, Residence, SLICE, Slice, class_entry, regions, slice};
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*, compiler_fence};

/// `trigger` of a slab that no returned block sets off.
const NO_TRIGGER: u16 = u16::MAX;
/// Slices in wholly free slabs that their classes keep. A class keeps all of them, so that draining and refilling costs no trips
/// to the arena (measured: 100,000 blocks taken and given back in order: 15 ns a pair instead of 22), until the arena would have to
/// grow: then they are given up for whatever is wanted; or until a sweep finds them unused since the one before.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The slabs of a class in a heap, by slice index; 0 = none.
pub(crate) struct SlabLists {
    current: u32,
    /// Slabs with free blocks and others.
    partial: u32,
    /// Slabs with free blocks only.
    empty: u32,
    /// How many slabs there are. After a repair in a forked child fewer: those with free blocks.
    slabs: u32,
}

impl SlabLists {
    pub(crate) const NONE: Self = SlabLists { current: 0, partial: 0, empty: 0, slabs: 0 };

    /// How many slabs there are.
    pub(crate) fn count(&self) -> u32 {
        self.slabs
    }

    fn head(&mut self, state: ListState) -> &mut u32 {
        if state == ListState::Empty { &mut self.empty } else { &mut self.partial }
    }
}

/// ceil(2^32 / size): see [`Slice::reciprocal`]. Exact for the start of every block (tested).
pub(crate) const fn reciprocal(size: usize) -> u32 {
    ((1u64 << 32) / size as u64 + 1) as u32
}

/// A slab of blocks of `class`, all free. Any thread; needs no lock of a heap.
pub(super) fn create(owner: *mut Heap, class: usize, kind: Kind) -> Option<usize> {
    // SAFETY: the slabs of an owner are locked.
    let slabs = if owner.is_null() { 0 } else { unsafe { (*owner).slabs[class].slabs } };
    let slices = next_slab_slices(class, slabs as usize);
    let index = obtain_for(owner, owner, slices, slab_alignment(class))?;
    let size = class_size(class);
    let blocks = slices * SLICE / size;
    // SAFETY: the run is in transit: ours alone.
    unsafe {
        let slab = &mut *slice(index);
        slab.block_size = size as u32;
        slab.reciprocal = reciprocal(size);
        slab.class = class as u8;
        slab.blocks = blocks as u16;
        slab.free = blocks as u16;
        slab.words = blocks.div_ceil(64) as u8;
        slab.hint = 0;
        slab.fresh = if slab.clean { 0 } else { u16::MAX };
        slab.state = ListState::Unlisted;
        slab.trigger = NO_TRIGGER;
        for word in 0..blocks.div_ceil(64) {
            let left = blocks - word * 64;
            slab.bitmap[word].store(if left >= 64 { !0 } else { (1 << left) - 1 }, Relaxed);
        }
        for member in index..index + slices {
            (*slice(member)).candidates = 0;
            (*slice(member)).returned = 0;
        }
        set_members(index, slices, owner, entry_of(kind, class));
        slab.set_run(kind, slices);
        if !slab.clean {
            // A sweep may have passed by while nobody had it. It looks who has it with no lock held: so this does not ask whether the
            // region is marked already, as the answer could be older than what was just stored.
            regions::mark(index / regions::REGION, regions::TOUCHED);
        }
        slab.clean = true;
        if !owner.is_null() {
            (*owner).slabs[class].slabs += 1;
        }
    }
    Some(index)
}

/// A run of slices, in transit. Before the arena grows, wholly free slabs go back to it. `locked`: the home whose slabs this thread
/// has locked, or null.
pub(super) fn obtain(locked: *mut Heap, slices: usize, alignment: usize) -> Option<usize> {
    if KEPT.load(Relaxed) != 0 || shelf::is_in_use() {
        if let Some(index) = arena::reuse(slices, alignment) {
            return Some(index);
        }
        give_up_empty(locked);
        shelf::clear_all();
    }
    arena::allocate(slices, alignment)
}

/// [`obtain`] for a heap or a home, which may belong to a zone that is in one arena.
pub(super) fn obtain_for(heap: *mut Heap, locked: *mut Heap, slices: usize, alignment: usize) -> Option<usize> {
    match zone::pool_of(heap) {
        Pool::COMMON => obtain(locked, slices, alignment),
        pool => arena::allocate_in(pool, slices, alignment),
    }
}

/// Slices in wholly free slabs that are kept.
pub(super) fn kept() -> usize {
    KEPT.load(Relaxed)
}

/// Give the wholly free slabs of all homes back to the arena, but for homes that are locked by others.
pub(super) fn give_up_empty(locked: *mut Heap) {
    home::each(|home| {
        // SAFETY: the slabs are locked in both cases. Others are only tried: no order of locks is violated.
        unsafe {
            if home == locked {
                give_up_empty_of(home);
            } else if let Some(_locked) = home::try_lock(home) {
                give_up_empty_of(home);
            }
        }
    });
}

unsafe fn give_up_empty_of(home: *mut Heap) {
    for class in 1..CLASSES {
        // SAFETY: the slabs are locked. H2: every block of these is here, so nobody else can know them.
        unsafe {
            let lists = &mut (*home).slabs[class];
            while lists.empty != 0 {
                let index = lists.empty as usize;
                give_up_one(lists, index);
            }
        }
    }
}

/// Give a wholly free slab of a list back to the arena.
pub(super) unsafe fn give_up(home: *mut Heap, index: usize) {
    // SAFETY: the slabs are locked. H2.
    unsafe { give_up_one(&mut (*home).slabs[(*slice(index)).class as usize], index) }
}

unsafe fn give_up_one(lists: &mut SlabLists, index: usize) {
    // SAFETY: the slabs are locked. H2.
    unsafe {
        unlist(lists, index);
        lists.slabs = lists.slabs.saturating_sub(1);
        holes::note_given_up();
        free(index);
    }
}

/// Give a slab back to the arena that is on no list.
unsafe fn free(index: usize) {
    // SAFETY: H2: nobody knows it.
    unsafe {
        let residence = residence(index);
        holes::left(residence.returned);
        notes::left(index, (*slice(index)).blocks as usize);
        withdraw(index);
        arena::free(index, residence);
    }
}

/// What of a slab is in memory: not what was given back, nor what was never handed out.
pub(super) unsafe fn residence(index: usize) -> Residence {
    // SAFETY: the slabs are locked, or the slab is the caller's alone.
    unsafe {
        let slab = &*slice(index);
        let slices = slab.length();
        let used = (slab.fresh as usize * slab.block_size as usize).div_ceil(os::PAGE).min(slices * PAGES);
        let (mut returned, mut absent) = (0, 0);
        for (number, member) in (index..index + slices).enumerate() {
            let given_back = (*slice(member)).returned;
            // A page may be both.
            let untouched = u16::MAX.checked_shl(used.saturating_sub(number * PAGES) as u32).unwrap_or(0);
            returned += given_back.count_ones();
            absent += (given_back | untouched).count_ones();
        }
        let residence = Residence { absent, returned, ..Residence::UNKNOWN };
        if holes::reads_zero() { residence.settled(slices) } else { residence }
    }
}

/// The class map entry of a slab. Those of sampled slabs and zones send `free` to the slow path.
pub(super) fn entry_of(kind: Kind, class: usize) -> u16 {
    if kind == Kind::Slab { (class << MAGAZINE_SHIFT) as u16 } else { 0 }
}

/// What each slice of a slab says. Who finds the entry finds this owner, too.
pub(super) unsafe fn set_members(index: usize, slices: usize, owner: *mut Heap, entry: u16) {
    for member in index..index + slices {
        // SAFETY: the caller owns the run.
        unsafe {
            (*slice(member)).first = index as u32;
            (*slice(member)).owner.store(owner.cast(), Release);
            compiler_fence(SeqCst);
            class_entry(member).write_volatile(entry);
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
    let index = if lists.partial != 0 || lists.empty != 0 {
        let index = if lists.partial != 0 { lists.partial } else { lists.empty } as usize;
        // SAFETY: listed slabs are ours.
        unsafe { unlist(lists, index) };
        regions::touch(index); // what a sweep has left to its class is looked at again
        index
    } else if fresh {
        // SAFETY: as above.
        unsafe { zone::create_slab(heap, class)? }
    } else {
        return None;
    };
    // SAFETY: as above.
    let slab = unsafe { &mut *slice(index) };
    slab.state = ListState::Current;
    slab.trigger = NO_TRIGGER;
    slab.hint = 0;
    slab.candidates = 0;
    lists.current = index as u32;
    Some(index)
}

/// The current slab of its class has no free block any more.
pub(super) unsafe fn used_up(heap: *mut Heap, slab: &mut Slice) {
    slab.state = ListState::Unlisted;
    slab.trigger = 1;
    // SAFETY: the slabs are locked.
    unsafe { (*heap).slabs[slab.class as usize].current = 0 };
}

/// A returned block changes where its slab belongs: the first makes it listed, the last makes it empty.
#[cold]
#[inline(never)]
pub(super) unsafe fn returned(heap: *mut Heap, index: usize, slab: &mut Slice) {
    // SAFETY: the slabs are locked.
    let lists = unsafe { &mut (*heap).slabs[slab.class as usize] };
    // SAFETY: as above.
    unsafe {
        if slab.state == ListState::Partial {
            unlist(lists, index);
        }
        if slab.free == slab.blocks && zone::forget_slab(heap, index) {
            // Zones keep none: there may be very many.
            lists.slabs = lists.slabs.saturating_sub(1);
            return free(index);
        }
        list(lists, index);
    }
}

/// A slab goes to another home: it is on no list of this one any more.
pub(super) unsafe fn leave_lists(home: *mut Heap, index: usize) {
    // SAFETY: the slabs are locked.
    unsafe {
        let slab = &mut *slice(index);
        let lists = &mut (*home).slabs[slab.class as usize];
        match slab.state {
            ListState::Current => lists.current = 0,
            ListState::Partial | ListState::Empty => unlist(lists, index),
            ListState::Unlisted => {}
        }
        slab.state = ListState::Unlisted;
        lists.slabs = lists.slabs.saturating_sub(1);
    }
}

/// Take a slab out of use: in transit, it belongs to the caller.
pub(super) unsafe fn withdraw(index: usize) {
    // SAFETY: every block is free, or will not be used again.
    unsafe {
        let slices = (*slice(index)).length();
        set_members(index, slices, core::ptr::null_mut(), 0);
        (*slice(index)).set_run(Kind::Transit, slices);
    }
}

/// Count and list a slab that the heap's lists do not have: of a heap whose lists were lost, or one that was another's.
pub(super) unsafe fn relist(heap: *mut Heap, index: usize) {
    // SAFETY: the slabs are locked, or there is one thread.
    unsafe {
        let slab = &mut *slice(index);
        let words = slab.words as usize;
        slab.free = slab.bitmap[..words].iter().map(|w| w.load(Relaxed).count_ones() as u16).sum();
        slab.state = ListState::Unlisted;
        slab.trigger = slab.free + 1;
        if slab.free != 0 {
            let lists = &mut (*heap).slabs[slab.class as usize];
            lists.slabs += 1;
            list(lists, index);
        }
    }
}

/// In a forked child, before slabs are listed again: how many slices the heaps keep whose lists are in order.
pub(super) fn recount_kept() {
    let mut slices = 0;
    home::each(|home| {
        // SAFETY: one thread.
        for lists in unsafe { &(*home).slabs } {
            let mut index = lists.empty as usize;
            while index != 0 {
                // SAFETY: as above.
                unsafe {
                    slices += (*slice(index)).length();
                    index = (*slice(index)).next as usize;
                }
            }
        }
    });
    KEPT.store(slices, Relaxed);
}

/// Put a slab with free blocks on the list where it belongs.
unsafe fn list(lists: &mut SlabLists, index: usize) {
    // SAFETY: the lock is held.
    unsafe {
        let slab = &mut *slice(index);
        // Zones list none as such: nobody would look for them there.
        if slab.free == slab.blocks && slab.kind() != Kind::Zone {
            slab.state = ListState::Empty;
            slab.trigger = NO_TRIGGER;
            KEPT.fetch_add(slab.length(), Relaxed);
        } else {
            slab.state = ListState::Partial;
            slab.trigger = slab.blocks;
        }
        let head = lists.head(slab.state);
        slab.next = *head;
        slab.previous = 0;
        if *head != 0 {
            (*slice(*head as usize)).previous = index as u32;
        }
        *head = index as u32;
    }
}

unsafe fn unlist(lists: &mut SlabLists, index: usize) {
    // SAFETY: the lock is held.
    unsafe {
        let slab = &mut *slice(index);
        if slab.state == ListState::Empty {
            KEPT.fetch_sub(slab.length(), Relaxed);
        }
        if slab.previous != 0 {
            (*slice(slab.previous as usize)).next = slab.next;
        } else {
            *lists.head(slab.state) = slab.next;
        }
        if slab.next != 0 {
            (*slice(slab.next as usize)).previous = slab.previous;
        }
        slab.state = ListState::Unlisted;
    }
}
