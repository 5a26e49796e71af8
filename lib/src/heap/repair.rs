//! fork takes no lock and has no prepare handler: the child repairs.
//!
//! fork copies a causal cut: memory looks as if every other thread had stopped between two instructions. Structures under
//! a lock have a truth that changes by single stores (bitmaps; heads of runs; stack pointers, but for the class being
//! changed); all else is derived from it and rebuilt here, where the lock was held by a thread that this process does
//! not have. Locks of *this* thread are left alone, and so is all they guard: a signal handler interrupted it inside
//! its section, and will return there.
//!
//! What is lost per vanished thread: the block in its registers, or one run in transit, or the cached blocks of one class.

use super::classes::CLASSES;
use super::slab::SlabLists;
use super::{Heap, THEFT, all, holes, home, interval, sampled, secure, slab, steal, thread, watch, zone};
use crate::arena::{self, Kind, slice};
use crate::os::{self, child};
use core::sync::atomic::Ordering::*;

/// Runs once in each new process, while it has one thread.
#[cold]
#[inline(never)]
pub(super) fn repair() {
    thread::repair_initialisation();
    let me = os::thread_id();
    let mut damaged = false;
    for heap in all() {
        // SAFETY: one thread; H3.
        unsafe {
            (*heap).damaged = home::slabs_held_by_vanished(heap);
            damaged |= (*heap).damaged;
            if (*heap).damaged {
                (*heap).slabs = [const { SlabLists::NONE }; CLASSES];
            }
            repair_stacks(heap, (*heap).live.load(Relaxed) == me);
        }
    }
    damaged |= zone::repair_lists();
    arena::repair();
    // SAFETY: one thread; homes are never unmapped.
    unsafe {
        holes::repair(|home| {
            damaged = true;
            if !(*home).damaged {
                (*home).damaged = true;
                (*home).slabs = [const { SlabLists::NONE }; CLASSES];
                zone::lose_members(home);
            }
        });
    }
    slab::recount_kept();
    if damaged {
        arena::walk(|index, kind| {
            // SAFETY: one thread; heads of runs are valid at every instant.
            unsafe {
                let owner = (*slice(index)).owner.load(Relaxed).cast::<Heap>();
                let owned = matches!(kind, Kind::Slab | Kind::Zone | Kind::Span);
                if owned && !owner.is_null() && (*owner).damaged {
                    zone::relist(owner, index, kind);
                }
            }
        });
    }
    sampled::repair();
    steal::repair();
    interval::repair(os::process_id() as u64);
    watch::repair();
    for heap in all() {
        // SAFETY: one thread.
        unsafe {
            (*heap).damaged = false;
            secure::repair(heap);
            for lock in [&(*heap).lock, &(*heap).slab_lock] {
                if lock.held_by_vanished() {
                    lock.reset();
                }
            }
            let live = (*heap).live.load(Relaxed);
            if live != 0 && live != me {
                zone::orphan(heap);
                (*heap).live.store(0, Release); // the next thread takes heap, slabs and cached blocks
            }
        }
    }
    zone::repair_locks();
    (crate::HOOKS.forked)();
    zone::finish_vanished();
    child::repaired();
}

unsafe fn repair_stacks(heap: *mut Heap, mine: bool) {
    // SAFETY: one thread, and the lock is not held by it when the heap is damaged.
    unsafe {
        let damaged = (*heap).lock.held_by_vanished();
        let busy = (*heap).busy.load(Relaxed);
        for class in 1..CLASSES {
            let (magazine, state) = Heap::class(heap, class);
            if damaged && class as u32 == busy {
                state.empty_both(magazine);
                state.open(magazine, watch::word());
                continue;
            }
            if damaged && busy == THEFT {
                state.drop_claim(magazine, watch::word());
            }
            if !mine {
                state.settle(magazine);
            }
        }
        if damaged {
            (*heap).busy.store(0, Relaxed);
        }
    }
}
