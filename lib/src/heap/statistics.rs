//! Exact counts that nothing counts: differences of stack positions (see [`magazine`](super::magazine)).

use super::classes::{CLASSES, class_size};
use super::{EMPTY, Heap, all, thread, zone};
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Spans ever allocated and ever freed, and their bytes. Each thread counts in its heap, where only it adds; who has none counts in
/// EMPTY. (Measured: four sums that all threads share cost 12 ns a pair in one thread, and much more in several.)
pub(crate) struct SpanCounts {
    pub(super) allocated: AtomicUsize,
    pub(super) allocated_bytes: AtomicUsize,
    pub(super) freed: AtomicUsize,
    pub(super) freed_bytes: AtomicUsize,
    /// Of the bytes, those that are in no block: before one that begins in the midst of its run, or around a guarded one.
    idle_allocated: AtomicUsize,
    idle_freed: AtomicUsize,
}

impl SpanCounts {
    #[allow(clippy::declare_interior_mutable_const, reason = "copied into each place")]
    pub(super) const NONE: Self = SpanCounts {
        allocated: AtomicUsize::new(0),
        allocated_bytes: AtomicUsize::new(0),
        freed: AtomicUsize::new(0),
        freed_bytes: AtomicUsize::new(0),
        idle_allocated: AtomicUsize::new(0),
        idle_freed: AtomicUsize::new(0),
    };

    /// Another number after each span.
    pub(super) fn position(&self) -> usize {
        self.allocated.load(Relaxed).wrapping_add(self.freed.load(Relaxed))
    }

    /// Count a span. Only the thread whose heap this is in.
    #[inline(always)]
    pub(super) fn allocated(&self, bytes: usize) {
        os::add_at_once(&self.allocated, 1);
        os::add_at_once(&self.allocated_bytes, bytes);
    }

    /// The same for one that is freed.
    #[inline(always)]
    pub(super) fn freed(&self, bytes: usize) {
        os::add_at_once(&self.freed, 1);
        os::add_at_once(&self.freed_bytes, bytes);
    }
}

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

/// This thread, which has leased this heap, allocates a span.
pub(super) fn span_allocated(heap: *mut Heap, bytes: usize) {
    // SAFETY: H3.
    unsafe { (*heap).spans.allocated(bytes) }
}

/// This thread frees a span.
pub(super) fn span_freed(bytes: usize) {
    let heap = thread::own();
    if Heap::is_empty_heap(heap) {
        EMPTY.spans.freed.fetch_add(1, Relaxed);
        EMPTY.spans.freed_bytes.fetch_add(bytes, Relaxed);
    } else {
        // SAFETY: H3; it is this thread's.
        unsafe { (*heap).spans.freed(bytes) }
    }
}

/// Of a block that is allocated or freed, more bytes are counted than can be used: a few spans that begin in the midst of their run, and
/// guarded blocks. Wraps around where it is less.
pub(super) fn count_idle(allocated: usize, freed: usize) {
    if allocated | freed == 0 {
        return;
    }
    let heap = thread::own();
    let add = |word: &AtomicUsize, bytes| {
        if Heap::is_empty_heap(heap) {
            word.fetch_add(bytes, Relaxed);
        } else {
            os::add_at_once(word, bytes);
        }
    };
    // SAFETY: H3; it is this thread's, or EMPTY.
    unsafe {
        add(&(*heap).spans.idle_allocated, allocated);
        add(&(*heap).spans.idle_freed, freed);
    }
}

/// Allocations and frees of one class over all threads; off by at most the one call in flight per thread.
pub(crate) fn of_class(class: usize) -> (u64, u64) {
    zone::at_rest(|waits| {
        let mut sum = zone::outside_stacks(class);
        for heap in all() {
            let (allocated, freed) = of_heap(heap, class, waits);
            sum = (sum.0 + allocated, sum.1 + freed);
        }
        sum
    })
}

/// Allocations and frees of one class by the thread of a heap. `waits`: for whoever is in it; see [`zone::at_rest`].
pub(super) fn of_heap(heap: *mut Heap, class: usize, waits: bool) -> (u64, u64) {
    // SAFETY: H3; the counts are read under the lock.
    unsafe {
        // A signal handler that has interrupted its thread in the heap reads what it finds, in this heap and in others: a thread that is in
        // one of those may be in a handler, too, and wait for this one.
        let locked = (*heap).lock.try_lock();
        let locks = waits && !locked && !(*heap).lock.held_by_me();
        if locks {
            (*heap).lock.lock();
        }
        let (magazine, state) = Heap::class(heap, class);
        let counts = state.counts(magazine);
        if locked || locks {
            (*heap).lock.unlock();
        }
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
    let mut totals = Totals::default();
    // What was freed first: so it is never more than what was allocated.
    for spans in counts_of_spans() {
        totals.freed_blocks += spans.freed.load(Acquire) as u64;
        totals.freed_bytes += spans.freed_bytes.load(Acquire) as u64;
    }
    for spans in counts_of_spans() {
        totals.allocated_blocks += spans.allocated.load(Relaxed) as u64;
        totals.allocated_bytes += spans.allocated_bytes.load(Relaxed) as u64;
    }
    totals
}

/// Bytes in spans that the program holds; off by the calls in flight.
pub(crate) fn bytes_in_spans() -> usize {
    let held = |sum: usize, spans: &SpanCounts| {
        sum.wrapping_add(spans.allocated_bytes.load(Relaxed)).wrapping_sub(spans.freed_bytes.load(Relaxed))
    };
    (counts_of_spans().fold(0, held) as isize).max(0) as usize
}

fn counts_of_spans() -> impl Iterator<Item = &'static SpanCounts> {
    // SAFETY: H3.
    core::iter::once(&EMPTY.spans).chain(all().map(|heap| unsafe { &(*heap).spans }))
}

/// Everything that was ever allocated, in all sizes.
pub(crate) fn totals() -> Totals {
    let mut totals = spans();
    for class in 1..CLASSES {
        totals.add(class_size(class), of_class(class));
    }
    totals
}

/// [`totals`] of the bytes that the program can use, which are those that [`Hooks::allocated`](super::events::Hooks) and the others tell.
pub(crate) fn usable_totals() -> Totals {
    let mut totals = totals();
    let (mut allocated, mut freed) = (0usize, 0usize);
    for spans in counts_of_spans() {
        allocated = allocated.wrapping_add(spans.idle_allocated.load(Relaxed));
        freed = freed.wrapping_add(spans.idle_freed.load(Relaxed));
    }
    totals.allocated_bytes = totals.allocated_bytes.wrapping_sub(allocated as u64);
    totals.freed_bytes = totals.freed_bytes.wrapping_sub(freed as u64);
    totals
}
