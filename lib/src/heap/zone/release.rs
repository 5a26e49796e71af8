//! `free` of a block in a slab of a zone.

use super::{Heap, guest, is_busy, of_heap};
use crate::arena::{Kind, class_entry, is_ours, slice};
use crate::heap::classes::class_size;
use crate::heap::misuse::{self, Misuse};
use crate::heap::tell::{self, Tell};
use crate::heap::{bits, child, emergency, home, release as ordinary, secure};
use core::sync::atomic::Ordering::*;

/// Free a block; `index` is the slice it begins in. With no lock held.
pub(crate) unsafe fn release(index: usize, block: *mut u8, mut tell: Tell) {
    // SAFETY: the caller frees the block, so its slab stays; the slab's zone may be deleted meanwhile (Z2).
    unsafe {
        loop {
            if class_entry(index).read_volatile() != 0 {
                // An ordinary block by now.
                return if tell == Tell::Yes { ordinary::release(block) } else { ordinary::release_told(block) };
            }
            let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
            if home.is_null() || (*home).home.load(Relaxed) != home {
                return misuse::note(Misuse::Double, block as usize); // the slab is given up at this moment
            }
            if is_busy(home) {
                return emergency::defer(block, tell);
            }
            let class = (*slice((*slice(index)).first as usize)).class as usize;
            if tell::is_due(tell) {
                if secure::checks_frees() {
                    match is_live(home, index, block) {
                        Some(true) => {}
                        Some(false) => return,
                        None => continue,
                    }
                }
                tell::freed(block, class_size(class));
                tell = Tell::No;
            }
            if push(home, class, index, block) || put(home, class, index, block) {
                return;
            }
        }
    }
}

/// The short way of most frees: into the free stack of this thread's guest, if that is at hand, unlocked and has room. `index` is the
/// slice that the block begins in, and special.
#[inline(always)]
pub(crate) unsafe fn push_quickly(index: usize, block: *mut u8) -> bool {
    // SAFETY: described slices have metadata; heaps and homes are never unmapped; the guest is this thread's. Its lock cannot be
    // taken where a signal handler has interrupted this thread in it.
    unsafe {
        if !child::is_in_order() || !is_ours(index) || secure::checks_frees() {
            return false;
        }
        let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if home.is_null() {
            return false;
        }
        let Some(guest) = of_heap(home).and_then(|zone| guest::at_hand(zone)) else { return false };
        if !(*guest).lock.try_lock() {
            return false;
        }
        let run = slice((*slice(index)).first as usize);
        // Z1, and it may be a span.
        let right = home::of(guest) == home
            && core::ptr::eq((*slice(index)).owner.load(Relaxed), home.cast())
            && (*run).kind() == Kind::Zone;
        let pushed = right && {
            let (magazine, state) = Heap::class(guest, (*run).class as usize);
            state.push_locked(magazine, block)
        };
        (*guest).lock.unlock();
        pushed
    }
}

/// Into the free stack of this thread's guest, if it has one at hand.
unsafe fn push(home: *mut Heap, class: usize, index: usize, block: *mut u8) -> bool {
    // SAFETY: Z3; the guest is this thread's.
    unsafe {
        if secure::checks_frees() {
            return false; // each is to be looked at in its slab
        }
        let Some(guest) = of_heap(home).and_then(|zone| guest::at_hand(zone)) else { return false };
        if (*guest).lock.held_by_me() {
            return false; // a signal handler has interrupted this thread there
        }
        for _ in 0..2 {
            (*guest).lock.lock();
            // Z1: the guest may have lost its zone, and the slab its owner.
            let right = home::of(guest) == home && core::ptr::eq((*slice(index)).owner.load(Relaxed), home.cast());
            let (magazine, state) = Heap::class(guest, class);
            let pushed = right && state.push_locked(magazine, block);
            (*guest).lock.unlock();
            if pushed || !right {
                return pushed;
            }
            ordinary::make_room(guest, class);
        }
        false
    }
}

/// Whether the block is live; if it is not, that is noted. `None`: its slab has another owner.
unsafe fn is_live(home: *mut Heap, index: usize, block: *mut u8) -> Option<bool> {
    // SAFETY: homes are never unmapped.
    unsafe {
        let _locked = home::lock(home, core::ptr::null_mut())?;
        core::ptr::eq((*slice(index)).owner.load(Relaxed), home.cast())
            .then(|| bits::is_live((*slice(index)).first as usize, block as usize))
    }
}

/// Back to its slab. False: that has another owner.
unsafe fn put(home: *mut Heap, class: usize, index: usize, block: *mut u8) -> bool {
    // SAFETY: homes are never unmapped.
    unsafe {
        let Some(_locked) = home::lock(home, core::ptr::null_mut()) else { return false };
        if !core::ptr::eq((*slice(index)).owner.load(Relaxed), home.cast()) {
            return false;
        }
        let first = (*slice(index)).first as usize;
        if secure::clears() && bits::is_live(first, block as usize) {
            block.write_bytes(0, class_size(class));
        }
        if bits::put(home, first, block as usize)
            && let Some(zone) = of_heap(home)
        {
            (*zone).freed[class].fetch_add(1, Relaxed);
        }
        true
    }
}
