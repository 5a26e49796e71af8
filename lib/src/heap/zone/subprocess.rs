//! Sub-processes: zones that are ended together, and threads whose plain allocations come from one of them.

use super::guest::{set_default_theap, theap_of};
use super::{DESTROYED, REGISTRY, Zone, all, create_in, end, main};
use crate::arena::Pool;
use crate::heap::{Heap, thread};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

/// A main zone, and all zones that its threads make.
pub(crate) struct Subprocess {
    main: AtomicPtr<Zone>,
    in_use: AtomicBool,
    next: AtomicPtr<Subprocess>,
}

/// The one that threads are in that were added to none.
static FIRST: Subprocess = Subprocess {
    main: AtomicPtr::new(main()),
    in_use: AtomicBool::new(true),
    next: AtomicPtr::new(core::ptr::null_mut()),
};
/// All others ever made; grows only. Never unmapped.
static OTHERS: AtomicPtr<Subprocess> = AtomicPtr::new(core::ptr::null_mut());

/// The first one as a pointer.
pub(crate) const fn first() -> *mut Subprocess {
    (&raw const FIRST).cast_mut()
}

/// The one of a zone.
pub(super) fn of(zone: *mut Zone) -> *mut Subprocess {
    // SAFETY: Z3.
    let process = unsafe { (*zone).subprocess.load(Relaxed) };
    if process.is_null() { first() } else { process }
}

/// How many were made before it; the first one is 0.
pub(super) fn number_of(process: *mut Subprocess) -> usize {
    let mut at = OTHERS.load(Acquire);
    while !at.is_null() && at != process {
        // SAFETY: never unmapped; the list grows at its front only.
        at = unsafe { (*at).next.load(Relaxed) };
    }
    let mut number = 0;
    while !at.is_null() {
        number += 1;
        // SAFETY: as above.
        at = unsafe { (*at).next.load(Relaxed) };
    }
    number
}

/// The number of this thread's.
pub(crate) fn current_number() -> usize {
    number_of(current())
}

/// The one of this thread.
pub(crate) fn current() -> *mut Subprocess {
    // SAFETY: H3; never unmapped.
    unsafe {
        let process = (*thread::own()).guests.subprocess.load(Relaxed);
        if process.is_null() || !(*process).in_use.load(Relaxed) { first() } else { process }
    }
}

/// The main zone of a sub-process; that of the first for null.
pub(crate) fn main_of(process: *mut Subprocess) -> *mut Zone {
    // SAFETY: never unmapped.
    if process.is_null() { main() } else { unsafe { (*process).main.load(Relaxed) } }
}

/// A new one. Null: no memory.
pub(crate) fn create() -> *mut Subprocess {
    let zone = create_in(core::ptr::null_mut(), Pool::COMMON);
    if zone.is_null() {
        return core::ptr::null_mut();
    }
    REGISTRY.lock();
    let mut process = OTHERS.load(Relaxed);
    // SAFETY: never unmapped; the registry is locked.
    unsafe {
        while !process.is_null() && (*process).in_use.load(Relaxed) {
            process = (*process).next.load(Relaxed);
        }
        if process.is_null() {
            process = os::map(os::PAGE).cast::<Subprocess>();
            if !process.is_null() {
                (*process).next.store(OTHERS.load(Relaxed), Relaxed);
                OTHERS.store(process, Release);
            }
        }
        if !process.is_null() {
            (*process).main.store(zone, Relaxed);
            (*process).in_use.store(true, Release);
            (*zone).subprocess.store(process, Release);
        }
    }
    REGISTRY.unlock();
    if process.is_null() {
        // SAFETY: nobody knows the zone.
        unsafe { super::destroy(zone) };
    }
    process
}

/// End all its zones and their blocks. The first one stays.
///
/// # Safety
/// As [`destroy`](super::destroy) for all its zones.
pub(crate) unsafe fn destroy(process: *mut Subprocess) {
    // SAFETY: the caller's promise; never unmapped.
    unsafe {
        if process.is_null() || process == first() || !(*process).in_use.load(Acquire) {
            return;
        }
        for zone in all().filter(|&zone| of(zone) == process) {
            if end::begin(zone, DESTROYED) {
                end::finish(zone, None);
            }
        }
        (*process).in_use.store(false, Release);
    }
}

/// Have plain allocations of this thread come from the main zone of a sub-process. False: no memory.
///
/// # Safety
/// It is in use.
pub(crate) unsafe fn join(process: *mut Subprocess) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let theap: *mut Heap = theap_of(main_of(process));
        if theap.is_null() {
            return false;
        }
        set_default_theap(theap);
        (*thread::own()).guests.subprocess.store(process, Relaxed);
        true
    }
}

/// Call `visit` with each zone of a sub-process, until it returns false. With no lock held.
pub(crate) fn each_zone(process: *mut Subprocess, mut visit: impl FnMut(*mut Zone) -> bool) -> bool {
    let process = if process.is_null() { first() } else { process };
    // SAFETY: Z3.
    let others =
        all().filter(|&zone| unsafe { (*zone).is_in_use() } && of(zone) == process && zone != main_of(process));
    core::iter::once(main_of(process)).chain(others).all(&mut visit)
}
