//! Whose slabs a heap takes blocks from, and which lock guards them.
//!
//! Each of the first 4 × processors heaps is its own **home**. Further heaps are guests: they keep their own stacks and lock, but
//! take blocks from the slabs of one of the homes. Many threads with slabs of their own in every class would need memory
//! that only they can use (measured: 64 threads, 4000 blocks each: 148 MB instead of 102).
//!
//! While a heap has no guests, its one lock guards its stacks and its slabs. With its first guest it becomes *shared*, for ever:
//! from then on `slab_lock` guards the slabs, also against the owner.

use super::Heap;
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

/// Homes per processor.
const PER_PROCESSOR: usize = 4;
const MOST_HOMES: usize = 256;

/// The homes, by the number of the heap.
static HOMES: [AtomicPtr<Heap>; MOST_HOMES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_HOMES];
/// How many there may be; 0 = not known yet.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Give a new heap its home. `number` counts heaps from 0.
pub(super) fn settle(heap: *mut Heap, number: usize) {
    if LIMIT.load(Relaxed) == 0 {
        LIMIT.store((os::processors() * PER_PROCESSOR).min(MOST_HOMES), Relaxed);
    }
    let limit = LIMIT.load(Relaxed);
    let host = if number < limit { core::ptr::null_mut() } else { HOMES[number % limit].load(Acquire) };
    // SAFETY: the heap is new and ours; homes are never unmapped.
    unsafe {
        if host.is_null() {
            (*heap).home.store(heap, Relaxed);
            if number < limit {
                HOMES[number].store(heap, Release);
            }
        } else {
            share(host);
            (*heap).home.store(host, Relaxed);
        }
    }
}

unsafe fn share(host: *mut Heap) {
    // SAFETY: homes are never unmapped. Under the old lock, so that nobody is in the slabs at this moment.
    unsafe {
        if !(*host).shared.load(Acquire) && !(*host).lock.held_by_me() {
            (*host).lock.lock();
            (*host).shared.store(true, Release);
            (*host).lock.unlock();
        }
    }
}

/// The home of a heap.
#[inline(always)]
pub(super) unsafe fn of(heap: *mut Heap) -> *mut Heap {
    // SAFETY: set before the heap was published.
    unsafe { (*heap).home.load(Relaxed) }
}

/// The slabs of a home are locked for as long as this lives.
pub(super) struct Locked(Option<&'static Lock>);

impl Drop for Locked {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.unlock();
        }
    }
}

/// Lock the slabs of `home`. `held` is the heap whose lock this thread holds, or null. `None`: a signal handler has interrupted
/// this thread in those very slabs.
#[inline(always)]
pub(super) unsafe fn lock(home: *mut Heap, held: *mut Heap) -> Option<Locked> {
    // SAFETY: homes are never unmapped.
    unsafe {
        loop {
            if (*home).shared.load(Acquire) {
                if (*home).slab_lock.held_by_me() {
                    return None;
                }
                (*home).slab_lock.lock();
                return Some(Locked(Some(&(*home).slab_lock)));
            }
            if home == held {
                return Some(Locked(None)); // and nobody can make it shared before we release its lock
            }
            if (*home).lock.held_by_me() {
                return None;
            }
            (*home).lock.lock();
            if !(*home).shared.load(Relaxed) {
                return Some(Locked(Some(&(*home).lock)));
            }
            (*home).lock.unlock();
        }
    }
}

/// [`lock`] by who holds the locks of many heaps, that of `home` among them, and so does not wait for ever. `None`: to be tried again.
pub(super) unsafe fn lock_for_a_while(home: *mut Heap) -> Option<Locked> {
    // SAFETY: homes are never unmapped. Nobody can make it shared as long as its lock is held.
    unsafe {
        if !(*home).shared.load(Acquire) {
            return Some(Locked(None));
        }
        (*home).slab_lock.lock_for_a_while().then(|| Locked(Some(&(*home).slab_lock)))
    }
}

/// [`lock`], without waiting and by a thread that has other homes locked.
pub(super) unsafe fn try_lock(home: *mut Heap) -> Option<Locked> {
    // SAFETY: homes are never unmapped.
    unsafe {
        let shared = (*home).shared.load(Acquire);
        let lock = if shared { &(*home).slab_lock } else { &(*home).lock };
        if !lock.try_lock() {
            return None;
        }
        let locked = Locked(Some(lock));
        (shared || !(*home).shared.load(Relaxed)).then_some(locked)
    }
}

/// Every home.
pub(super) fn each(mut visit: impl FnMut(*mut Heap)) {
    let homes = HOMES[..LIMIT.load(Relaxed)].iter().map(|home| home.load(Acquire));
    homes.filter(|home| !home.is_null()).for_each(&mut visit);
}

/// True while this thread is in the stacks of a heap or in the slabs of its home: a signal handler must keep away.
#[inline(always)]
pub(super) unsafe fn is_busy_here(heap: *mut Heap) -> bool {
    // SAFETY: as above; EMPTY has no home.
    unsafe {
        let home = of(heap);
        (*heap).lock.held_by_me() || (!home.is_null() && ((*home).slab_lock.held_by_me() || (*home).lock.held_by_me()))
    }
}

/// True while this thread is in the slabs of the home of `heap`, whose own lock it holds.
#[inline(always)]
pub(super) unsafe fn is_busy_in_slabs_here(heap: *mut Heap) -> bool {
    // SAFETY: as above.
    unsafe {
        let home = of(heap);
        (*home).slab_lock.held_by_me() || (home != heap && (*home).lock.held_by_me())
    }
}

/// True while this thread has the slabs of this home locked.
pub(super) unsafe fn slabs_held_by_me(home: *mut Heap) -> bool {
    // SAFETY: homes are never unmapped.
    unsafe {
        let shared = (*home).shared.load(Relaxed);
        (*home).slab_lock.held_by_me() || (!shared && (*home).lock.held_by_me())
    }
}

/// In a forked child: a thread that is not here was in the slabs of this heap.
pub(super) unsafe fn slabs_held_by_vanished(heap: *mut Heap) -> bool {
    // SAFETY: one thread.
    unsafe {
        let shared = (*heap).shared.load(Relaxed);
        (*heap).slab_lock.held_by_vanished() || (!shared && (*heap).lock.held_by_vanished())
    }
}
