//! Whether somebody wants to hear of every allocation and every free of the process.
//!
//! That costs nothing as long as nobody does, and no other instructions when somebody does: a bit in the word of the
//! [epoch](super::interval) says so, and no class ever has an epoch with that bit. So stacks that are [opened](super::magazine::ClassState::open) for such a
//! word stay shut: each pop and each push fails, and the slow paths [tell](super::tell) what they do. Both go on counting by position, and
//! a due sample is found as ever.
//!
//! # What is told
//!
//! Once [`begin`] has returned, each call that begins later is told, exactly once: the bit is set first, then the stacks of each heap are shut under
//! its lock. An owner that has read the word without the bit opens its stacks before that, under the same lock. Calls that were on their way
//! are told or not.

use super::hot::WORDS;
use super::magazine::{Magazine, POISON};
use super::{CLASSES, Heap, all, zone};
use crate::os::lock::Lock;
use core::sync::atomic::{AtomicU32, Ordering::*, fence};

/// In the word of the epoch: somebody watches.
const WATCHED: u32 = 1 << 31;

/// Who wants to hear, as bits.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Watcher {
    /// Callbacks and totals for the program.
    Events = 1,
    /// The exact profiler.
    Exact = 2,
}

/// Who watches now.
static WATCHERS: AtomicU32 = AtomicU32::new(0);
/// Begin and end exclude each other.
static SWITCH: Lock = Lock::new();

/// What stacks are opened for: the epoch, and whether somebody watches.
#[inline(always)]
pub(super) fn word() -> u32 {
    WORDS.epoch.load(Relaxed)
}

/// The epoch in a word.
#[inline(always)]
pub(super) fn epoch_of(word: u32) -> u32 {
    word & !WATCHED
}

#[inline(always)]
pub(super) fn is_watched(word: u32) -> bool {
    word & WATCHED != 0
}

/// Somebody watches.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    is_watched(word())
}

/// This one watches.
#[inline(always)]
pub(crate) fn has(who: Watcher) -> bool {
    WATCHERS.load(Relaxed) & who as u32 != 0
}

/// Tell `who` of every call that begins after this returns. A second call changes nothing. With no lock held; not in a signal handler that
/// has interrupted the allocator.
pub(crate) fn begin(who: Watcher) {
    SWITCH.lock();
    WATCHERS.fetch_or(who as u32, SeqCst);
    if !is_on() {
        zone::look_closer();
        WORDS.epoch.fetch_or(WATCHED, SeqCst);
        all().for_each(shut);
    }
    // Who begins later finds the stacks shut, on whatever processor.
    fence(SeqCst);
    SWITCH.unlock();
}

/// Tell `who` no more. What is on its way may still be told for a moment. Each class opens again at its next slow paths.
pub(crate) fn end(who: Watcher) {
    SWITCH.lock();
    if WATCHERS.fetch_and(!(who as u32), SeqCst) == who as u32 {
        WORDS.epoch.fetch_and(!WATCHED, SeqCst);
    }
    SWITCH.unlock();
}

/// A new heap is known to all from now on: if somebody has begun to watch meanwhile, that one may have looked before.
pub(super) fn adopt(heap: *mut Heap) {
    fence(SeqCst);
    if is_on() {
        shut(heap);
    }
}

fn shut(heap: *mut Heap) {
    // SAFETY: H3; the limits are written under the lock.
    unsafe {
        (*heap).lock.lock();
        shut_locked(heap);
        (*heap).lock.unlock();
    }
}

/// The lock is held, or there is one thread.
unsafe fn shut_locked(heap: *mut Heap) {
    for class in 1..CLASSES {
        // SAFETY: as the caller says.
        unsafe { (*heap).magazines[class].shut() };
    }
}

impl Magazine {
    /// Have the owner come to the slow paths.
    fn shut(&self) {
        self.bottom.store(POISON, Relaxed);
        self.free_limit.store(0, Relaxed);
    }
}

/// In a forked child: a vanished thread may have begun, and not have come to every heap.
pub(super) fn repair() {
    if SWITCH.held_by_vanished() {
        SWITCH.reset();
        if is_on() {
            // SAFETY: one thread.
            all().for_each(|heap| unsafe { shut_locked(heap) });
        }
    }
}
