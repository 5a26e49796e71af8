//! Zones in a forked child: see [`repair`](crate::heap::repair).

use super::guest::repair_spares;
use super::members::link;
use super::subprocess::{main_of, of};
use super::{DELETED, DESTROYED, Heap, IDLE, IDLE_ZONES, REGISTRY, all, end, of_heap};
use crate::arena::Kind;
use crate::heap::classes::CLASSES;
use crate::heap::slab::SlabLists;
use crate::heap::{holes, home, slab};
use crate::os;
use core::sync::atomic::Ordering::*;

/// Mark the homes in whose slabs a vanished thread was, and empty their lists. True: there was one.
pub(crate) fn repair_lists() -> bool {
    let mut any = false;
    for zone in all() {
        // SAFETY: one thread.
        unsafe {
            let home = (*zone).home();
            (*home).damaged = home::slabs_held_by_vanished(home);
            any |= (*home).damaged;
            if (*home).damaged {
                (*home).slabs = [const { SlabLists::NONE }; CLASSES];
                (*zone).members.store(0, Relaxed);
            }
        }
    }
    any
}

/// The members of the zone of this home, if it has one, are to be found again.
pub(crate) unsafe fn lose_members(home: *mut Heap) {
    if let Some(zone) = of_heap(home) {
        // SAFETY: Z3; one thread.
        unsafe { (*zone).members.store(0, Relaxed) };
    }
}

/// Count and list what belongs to a home whose lists were lost. A slab may have been changing hands.
pub(crate) unsafe fn relist(home: *mut Heap, index: usize, kind: Kind) {
    // SAFETY: one thread.
    unsafe {
        if kind != Kind::Span {
            end::change_owner(index, home);
            slab::relist(home, index);
        }
        if let Some(zone) = of_heap(home) {
            link(zone, index);
        }
    }
}

/// Free what vanished threads held. Guests of those threads are everybody's.
pub(crate) fn repair_locks() {
    let registry = REGISTRY.held_by_vanished();
    for zone in all() {
        // SAFETY: one thread.
        unsafe {
            let home = (*zone).home();
            (*home).damaged = false;
            if (*home).slab_lock.held_by_vanished() {
                (*home).slab_lock.reset();
            }
        }
    }
    if registry {
        REGISTRY.reset();
        IDLE_ZONES.store(core::ptr::null_mut(), Relaxed);
        for zone in all() {
            // SAFETY: one thread.
            unsafe {
                if (*zone).state.load(Relaxed) == IDLE {
                    (*zone).next_idle.store(IDLE_ZONES.load(Relaxed), Relaxed);
                    IDLE_ZONES.store(zone, Relaxed);
                }
            }
        }
    }
    if !REGISTRY.held_by_me() {
        repair_spares();
    }
}

/// A guest or an ordinary heap whose thread is not here.
pub(crate) unsafe fn orphan(heap: *mut Heap) {
    // SAFETY: one thread.
    unsafe {
        if (*heap).guest {
            (*heap).host.store(core::ptr::null_mut(), Relaxed);
        } else {
            (*heap).guests.clear();
        }
    }
}

/// End the zones that vanished threads were ending.
pub(crate) fn finish_vanished() {
    if REGISTRY.held_by_me() || holes::is_sweeper() {
        return;
    }
    for zone in all() {
        // SAFETY: one thread; the zone was being ended, and its thread is not here.
        unsafe {
            let by = (*zone).ended_by.load(Relaxed);
            match (*zone).state.load(Relaxed) {
                _ if by == os::thread_id() => {}
                DESTROYED => end::finish(zone, None),
                DELETED => end::finish(zone, Some(main_of(of(zone)))),
                _ => {}
            }
        }
    }
}
