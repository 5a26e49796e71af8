//! Exact counts that nothing counts: differences of stack positions (see [`magazine`](super::magazine)).

use super::classes::{CLASSES, class_size};
use super::{Heap, all, zone};
use core::sync::atomic::{AtomicU64, Ordering::*};

static SPANS_ALLOCATED: AtomicU64 = AtomicU64::new(0);
static SPANS_FREED: AtomicU64 = AtomicU64::new(0);
static SPAN_BYTES_ALLOCATED: AtomicU64 = AtomicU64::new(0);
static SPAN_BYTES_FREED: AtomicU64 = AtomicU64::new(0);

/// Blocks and usable bytes since the process began.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) allocated_blocks: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) freed_blocks: u64,
    pub(crate) freed_bytes: u64,
}

impl Totals {
    fn add(&mut self, size: usize, (allocated, freed): (u64, u64)) {
        self.allocated_blocks += allocated;
        self.allocated_bytes += allocated * size as u64;
        self.freed_blocks += freed;
        self.freed_bytes += freed * size as u64;
    }
}

pub(super) fn span_allocated(bytes: usize) {
    SPANS_ALLOCATED.fetch_add(1, Relaxed);
    SPAN_BYTES_ALLOCATED.fetch_add(bytes as u64, Relaxed);
}

pub(super) fn span_freed(bytes: usize) {
    SPANS_FREED.fetch_add(1, Relaxed);
    SPAN_BYTES_FREED.fetch_add(bytes as u64, Relaxed);
}

/// Allocations and frees of one class over all threads; off by at most the one call in flight per thread.
pub(crate) fn of_class(class: usize) -> (u64, u64) {
    zone::at_rest(|| {
        let mut sum = zone::outside_stacks(class);
        for heap in all() {
            let (allocated, freed) = of_heap(heap, class);
            sum = (sum.0 + allocated, sum.1 + freed);
        }
        sum
    })
}

/// Allocations and frees of one class by the thread of a heap.
pub(super) fn of_heap(heap: *mut Heap, class: usize) -> (u64, u64) {
    // SAFETY: H3; the counts are read under the lock.
    unsafe {
        (*heap).lock.lock();
        let (magazine, state) = Heap::class(heap, class);
        let counts = state.counts(magazine);
        (*heap).lock.unlock();
        counts
    }
}

/// Slabs of one class in the home of a heap that is its own.
pub(super) fn slabs_of(home: *mut Heap, class: usize) -> u64 {
    // SAFETY: homes are never unmapped. A signal handler that has interrupted this thread there reads what it finds.
    unsafe {
        let _locked = super::home::lock(home, core::ptr::null_mut());
        (*home).slabs[class].count() as u64
    }
}

/// Blocks above the slabs.
pub(crate) fn spans() -> Totals {
    Totals {
        allocated_blocks: SPANS_ALLOCATED.load(Relaxed),
        allocated_bytes: SPAN_BYTES_ALLOCATED.load(Relaxed),
        freed_blocks: SPANS_FREED.load(Relaxed),
        freed_bytes: SPAN_BYTES_FREED.load(Relaxed),
    }
}

/// Everything that was ever allocated, in all sizes.
pub(crate) fn totals() -> Totals {
    let mut totals = spans();
    for class in 1..CLASSES {
        totals.add(class_size(class), of_class(class));
    }
    totals
}
