//! `mi_theap_guarded_…`: which allocations of one thread's heap get a guard behind them. The options `guarded_…` are for all
//! heaps.

use crate::heap::{Heap, allocate, guarded, release, thread};

/// `mi_theap_guarded_set_sample_rate`: guard one in `rate` of the allocations through this heap, 0 = none. The same seed guards
/// the same ones; 0 is a seed of chance. Null is the calling thread's heap.
///
/// # Safety
/// `theap` is null or a theap.
pub unsafe fn theap_guarded_set_sample_rate(theap: *mut u8, rate: usize, seed: usize) {
    // SAFETY: the caller's promise.
    unsafe { guarded::set_rate(heap_of(theap), rate as u64, seed as u64) }
}

/// `mi_theap_guarded_set_size_bound`: guard only blocks of `least` to `most` bytes.
///
/// # Safety
/// `theap` is null or a theap.
pub unsafe fn theap_guarded_set_size_bound(theap: *mut u8, least: usize, most: usize) {
    // SAFETY: the caller's promise.
    unsafe { guarded::set_bounds(heap_of(theap), least, most) }
}

fn heap_of(theap: *mut u8) -> *mut Heap {
    if !theap.is_null() {
        return theap.cast();
    }
    // SAFETY: a block is allocated and freed, so that the thread has a heap.
    unsafe { release::release(allocate::allocate(1)) }
    thread::current()
}
