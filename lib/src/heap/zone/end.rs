//! The end of a zone: destroyed with all its blocks, or deleted, which leaves them to the main zone.
//!
//! First its guests lose it, so that nothing of it is in any stack. Then its slabs and spans leave one at a time. A child forked in
//! between finds the state of the zone and goes on ([`finish_vanished`](super::finish_vanished)); each step may be done again.

use super::counts;
use super::guest::{DETACHED, of_zone, spare_one};
use super::members::{all as members_of, link, unlink};
use super::subprocess::{main_of, of};
use super::{DELETED, DESTROYED, Heap, IDLE, IDLE_ZONES, IN_USE, REGISTRY, Zone, is_main, main, of_heap};
use crate::arena::{self, BITMAP_WORDS, Kind, address_of, index_of, slice};
use crate::heap::classes::CLASSES;
use crate::heap::{bits, holes, home, notes, sampled, slab, span, steal, tell, thread, watch};
use crate::os;
use core::sync::atomic::Ordering::*;

/// `mi_heap_destroy`: free all blocks at once. The main zone stays.
///
/// # Safety
/// Z5, and no block of the zone is used any more.
pub(crate) unsafe fn destroy(zone: *mut Zone) {
    if !is_main_of_its(zone) && begin(zone, DESTROYED) {
        let spans = counts::spans(zone);
        // SAFETY: the caller's promise.
        unsafe { finish(zone, None) }
        (crate::HOOKS.span_freed)(spans.allocated_bytes.saturating_sub(spans.freed_bytes) as usize);
    }
}

/// `mi_heap_delete`: its blocks become blocks of the main zone.
///
/// # Safety
/// Z5.
pub(crate) unsafe fn delete(zone: *mut Zone) {
    if !is_main_of_its(zone) && begin(zone, DELETED) {
        // SAFETY: the caller's promise.
        unsafe { finish(zone, Some(main_of(of(zone)))) }
        (crate::HOOKS.span_freed)(0);
    }
}

/// The main zone of a sub-process ends with that only.
fn is_main_of_its(zone: *mut Zone) -> bool {
    zone.is_null() || is_main(zone) || core::ptr::eq(main_of(of(zone)), zone)
}

/// True: the zone was in use and is this thread's to end.
pub(super) fn begin(zone: *mut Zone, state: u32) -> bool {
    if zone.is_null() || is_main(zone) || REGISTRY.held_by_me() || holes::is_sweeper() {
        return false;
    }
    // SAFETY: Z3.
    unsafe {
        if (*zone).state.compare_exchange(IN_USE, state, AcqRel, Relaxed).is_err() {
            return false;
        }
        (*zone).ended_by.store(os::thread_id(), Release);
    }
    true
}

/// Go on with what was begun. `heir`: who gets the blocks; `None`: nobody.
pub(super) unsafe fn finish(zone: *mut Zone, heir: Option<*mut Zone>) {
    // SAFETY: Z5: nobody allocates from the zone any more.
    unsafe {
        let told = heir.is_none() && watch::is_on();
        detach_guests(zone, heir.is_some() || told);
        if heir.is_none() && (*zone).sampled.load(Relaxed) {
            forget_samples(zone, told);
        }
        if told {
            tell_frees(zone);
        }
        loop {
            match leave_one(zone, heir) {
                Left::One => {}
                Left::None => break,
                Left::Kept => return, // and it is never used again
            }
        }
        REGISTRY.lock();
        bequeath(zone, heir);
        (*zone).ended_by.store(0, Relaxed);
        (*zone).state.store(IDLE, Release);
        (*zone).next_idle.store(IDLE_ZONES.load(Relaxed), Relaxed);
        IDLE_ZONES.store(zone, Relaxed);
        REGISTRY.unlock();
    }
}

/// Have all guests lose the zone. What they have cached goes back to the slabs if those are kept, and their counts to the zone.
///
/// A thief holds blocks of the zone while it brings them back from a guest: it must not come with them when the slabs are gone.
unsafe fn detach_guests(zone: *mut Zone, keep: bool) {
    let _at_rest = steal::at_rest();
    REGISTRY.lock();
    // SAFETY: Z3: under both locks. Nobody pops from a guest of a zone that ends (Z5), and pushes take its lock.
    unsafe {
        for guest in of_zone(zone).filter(|&guest| (*guest).zone.load(Relaxed) == zone) {
            (*guest).lock.lock();
            for class in 1..CLASSES {
                let (magazine, state) = Heap::enter(guest, class);
                state.settle(magazine);
                if keep && state.blocks(magazine) != 0 {
                    let _locked = home::lock((*zone).home(), guest);
                    for (slots, count) in [state.cached(magazine), state.cached_frees(magazine)] {
                        for slot in 0..count {
                            let block = *slots.add(slot);
                            bits::put((*zone).home(), (*slice(index_of(block))).first as usize, block);
                        }
                    }
                }
                let (allocated, freed) = state.counts(magazine);
                (*zone).allocated[class].fetch_add(allocated, Relaxed);
                (*zone).freed[class].fetch_add(freed, Relaxed);
                state.empty_both(magazine);
                state.forget_counts(magazine);
                Heap::leave(guest, magazine, state, watch::word());
            }
            (*guest).home.store(core::ptr::null_mut(), Relaxed);
            (*guest).zone.store(core::ptr::null_mut(), Release);
            (*guest).lock.unlock();
            if (*guest).live.load(Acquire) == 0 {
                spare_one(guest);
            }
        }
        (*zone).guests.store(core::ptr::null_mut(), Release);
    }
    DETACHED.fetch_add(1, Release);
    REGISTRY.unlock();
}

/// Tell the profiler that the sampled blocks of a zone are gone. With no lock held.
unsafe fn forget_samples(zone: *mut Zone, tell: bool) {
    sampled::each(|index, bit, parked| {
        // SAFETY: a parked block keeps its slab, and those of this zone are ours. Others may come and go.
        unsafe {
            if core::ptr::eq((*slice(index_of(parked as usize))).owner.load(Acquire), (*zone).home().cast()) {
                if tell {
                    let usable = (*slice(index)).block_size as usize;
                    tell::freed((address_of(index) + bit * usable) as *mut u8, usable);
                    free_parked(zone, parked);
                }
                sampled::drop_sample(index, bit);
            }
        }
    });
    // SAFETY: Z3.
    unsafe { (*zone).sampled.store(false, Relaxed) };
}

/// A block of the zone that was parked for one whose free has been told is not told apart.
unsafe fn free_parked(zone: *mut Zone, parked: *mut u8) {
    // SAFETY: the zone's blocks are the caller's.
    unsafe {
        if let Some(_locked) = home::lock((*zone).home(), core::ptr::null_mut()) {
            bits::mark_free((*slice(index_of(parked as usize))).first as usize, parked as usize);
        }
    }
}

/// Tell of each block of a zone that it is freed; of what is parked for another, through that one. With no lock held.
unsafe fn tell_frees(zone: *mut Zone) {
    // SAFETY: nobody else uses the zone, and what was cached of it is back in its slabs.
    unsafe {
        let home = (*zone).home();
        let members = || members_of(zone);
        for index in members().filter(|&index| (*slice(index)).kind() == Kind::Span) {
            let (block, usable) = span::extent(index);
            tell::freed(block as *mut u8, usable);
            let parked = (*span::record(index)).parked();
            if !parked.is_null() {
                free_parked(zone, parked);
            }
        }
        for index in members().filter(|&index| (*slice(index)).kind() == Kind::Zone) {
            let mut live = [0; BITMAP_WORDS];
            {
                // What is being given back to the kernel is not free for a while, and yet not live.
                let Some(_at_rest) = holes::sweeper() else { return };
                let Some(_locked) = home::lock(home, core::ptr::null_mut()) else { return };
                bits::copy_live(index, &mut live);
            }
            let size = (*slice(index)).block_size as usize;
            for (word, bits) in live.into_iter().enumerate() {
                bits::each_bit(bits, |bit| {
                    tell::freed((address_of(index) + (word * 64 + bit) * size) as *mut u8, size);
                });
            }
        }
    }
}

/// What has left a zone.
enum Left {
    /// A slab or a span.
    One,
    /// There was none.
    None,
    /// What there is cannot be had: a signal handler has interrupted this thread where it is in use.
    Kept,
}

/// One slab or span leaves.
unsafe fn leave_one(zone: *mut Zone, heir: Option<*mut Zone>) -> Left {
    // SAFETY: Z2, Z4: the slabs are locked.
    unsafe {
        let home = (*zone).home();
        let Some(_at_rest) = holes::sweeper() else { return Left::Kept }; // nothing of it is being given back to the kernel
        let Some(locked) = home::lock(home, core::ptr::null_mut()) else { return Left::Kept };
        (*home).out.store(0, Relaxed);
        let index = (*zone).members.load(Relaxed) as usize;
        if index == 0 {
            return Left::None;
        }
        unlink(zone, index);
        let run = slice(index);
        let (is_span, used) = ((*run).kind() != Kind::Zone, (*run).free < (*run).blocks);
        if !is_span {
            // Blocks of those that are left still come back, and move them on these lists.
            slab::leave_lists(home, index);
        }
        match heir {
            Some(heir) if is_span => adopt_span(heir, index),
            Some(heir) if used => adopt_slab(heir, index),
            _ if is_span => {
                (*run).owner.store(core::ptr::null_mut(), Relaxed);
                let mine = (*run).become_transit(Kind::Span);
                drop(locked);
                if mine {
                    span::give_back(index); // and what is parked for it goes with its slab
                }
            }
            _ => {
                let residence = slab::residence(index);
                holes::left(residence.returned);
                notes::left(index, (*run).blocks as usize);
                slab::withdraw(index);
                drop(locked);
                arena::free(index, residence);
            }
        }
        Left::One
    }
}

/// The old owner's slabs are locked.
unsafe fn adopt_span(heir: *mut Zone, index: usize) {
    // SAFETY: Z2: both are locked, where the new one has a list.
    unsafe {
        let home = (*heir).home();
        let _locked = (!is_main(heir)).then(|| home::lock(home, core::ptr::null_mut()));
        (*slice(index)).owner.store(home.cast(), Release);
        if !is_main(heir) {
            link(heir, index);
        }
    }
}

/// The old owner's slabs are locked. A slab of the main zone goes to the home of this thread.
unsafe fn adopt_slab(heir: *mut Zone, index: usize) {
    // SAFETY: Z2: both are locked; homes are never unmapped.
    unsafe {
        let home = if is_main(heir) { ordinary_home() } else { (*heir).home() };
        let _locked = home::lock(home, core::ptr::null_mut());
        change_owner(index, home);
        if !is_main(heir) {
            link(heir, index);
        }
        slab::relist(home, index);
        let slab = &*slice(index);
        let out = (slab.blocks - slab.free) as usize * slab.block_size as usize;
        (*home).out.store((*home).out.load(Relaxed).wrapping_add(out), Relaxed);
    }
}

/// Some home of ordinary heaps: that of this thread if it has one, else the first ever made.
fn ordinary_home() -> *mut Heap {
    let own = thread::own();
    // SAFETY: homes are set before heaps are published. The oldest heap is last, and ordinary: a zone is made by a thread with a heap.
    unsafe {
        match home::of(own) {
            home if !home.is_null() => home,
            _ => crate::heap::all().filter(|&heap| !(*heap).guest).last().map_or(own, |heap| home::of(heap)),
        }
    }
}

/// The owner of the first slice is the truth; all else follows from it.
pub(super) unsafe fn change_owner(index: usize, home: *mut Heap) {
    // SAFETY: both owners' slabs are locked, or there is one thread.
    unsafe {
        (*slice(index)).owner.store(home.cast(), Release);
        let kind = if of_heap(home).is_some() { Kind::Zone } else { Kind::Slab };
        let slices = (*slice(index)).length();
        slab::set_members(index, slices, home, slab::entry_of(kind, (*slice(index)).class as usize));
        (*slice(index)).set_run(kind, slices);
    }
}

/// Registry locked. The counts of a zone go to its heir, or to the main zone as those of blocks that were all freed.
unsafe fn bequeath(zone: *mut Zone, heir: Option<*mut Zone>) {
    // SAFETY: Z3; nobody else counts in the zone any more.
    unsafe {
        let to = heir.unwrap_or(main());
        for class in 1..CLASSES {
            let allocated = (*zone).allocated[class].swap(0, Relaxed);
            let freed = (*zone).freed[class].swap(0, Relaxed);
            (*to).allocated[class].fetch_add(allocated, Relaxed);
            (*to).freed[class].fetch_add(if heir.is_some() { freed } else { allocated }, Relaxed);
        }
        // Of spans, the whole process keeps counts of its own.
        let (from, to) = (&(*zone).spans, &(*to).spans);
        let allocated = (from.allocated.swap(0, Relaxed), from.allocated_bytes.swap(0, Relaxed));
        let freed = (from.freed.swap(0, Relaxed), from.freed_bytes.swap(0, Relaxed));
        let freed = if heir.is_some() { freed } else { allocated };
        to.allocated.fetch_add(allocated.0, Relaxed);
        to.allocated_bytes.fetch_add(allocated.1, Relaxed);
        to.freed.fetch_add(freed.0, Relaxed);
        to.freed_bytes.fetch_add(freed.1, Relaxed);
    }
}
