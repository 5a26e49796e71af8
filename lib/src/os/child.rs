//! How a new process notices that it is one.
//!
//! A word on a page that the kernel wipes on fork reads 1 in a process that is in order and 0 in a fresh child, however
//! that child was made (`fork`, `_Fork`, raw `clone`). `vfork`, `posix_spawn` and every other child that shares our
//! memory keep reading 1: there nothing is to be repaired, and nothing may be.

use super::{OffPageStart, PLACE_IN_PAGE};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Used where the kernel cannot wipe a page: always in order, only the fork handler repairs.
static NO_WIPE: AtomicU32 = AtomicU32::new(1);
static WORD: OffPageStart<AtomicPtr<AtomicU32>> =
    OffPageStart::new(AtomicPtr::new(&raw const NO_WIPE as *mut AtomicU32));
static REPAIR: AtomicUsize = AtomicUsize::new(0);
/// The thread that is repairing; 0 = none.
static REPAIRED_BY: AtomicU64 = AtomicU64::new(0);

/// Start to watch for being a new process; `repair` runs once in each, while it has one thread. `page` is a page that is never unmapped
/// and that nobody else uses, or null.
pub(crate) fn watch(repair: fn(), page: *mut u8) {
    REPAIR.store(repair as usize, Release);
    if !page.is_null() && super::wipe_on_fork(page, super::PAGE) {
        let word = page.wrapping_add(PLACE_IN_PAGE).cast::<AtomicU32>();
        // SAFETY: the page is ours, and the place is aligned and in it.
        unsafe { (*word).store(1, Relaxed) };
        WORD.store(word, Release);
    }
}

/// Asked at the start of every slow path and by everybody who waits for a lock: one load in a process that is in order.
#[inline(always)]
pub(crate) fn check() {
    if !is_in_order() {
        repair();
    }
}

/// False in a new process until it is repaired, and while it is.
#[inline(always)]
pub(crate) fn is_in_order() -> bool {
    // SAFETY: WORD always points to a word that lives as long as the process.
    unsafe { (*WORD.load(Relaxed)).load(Relaxed) != 0 }
}

/// Repair at once, as the fork handler of the C library asks for.
#[cold]
#[inline(never)]
pub(crate) fn repair() {
    let repair = REPAIR.load(Acquire);
    // A signal handler may come in between: it must not repair as well.
    if repair != 0 && REPAIRED_BY.swap(super::thread_id(), AcqRel) != super::thread_id() {
        // SAFETY: as in `is_in_order`. Where the kernel has wiped the page this is so already.
        unsafe { (*WORD.load(Relaxed)).store(0, Relaxed) };
        // SAFETY: only `watch` stores here, and only a `fn()`.
        unsafe { core::mem::transmute::<usize, fn()>(repair)() }
        REPAIRED_BY.store(0, Release);
    }
}

/// True in a signal handler that has interrupted this thread's repair.
#[inline(always)]
pub(crate) fn is_repaired_here() -> bool {
    REPAIRED_BY.load(Relaxed) == super::thread_id()
}

/// The process is in order again. The last step of a repair.
pub(crate) fn repaired() {
    // SAFETY: as in `check`.
    unsafe { (*WORD.load(Relaxed)).store(1, Release) }
}
