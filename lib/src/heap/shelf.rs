//! The span that a thread freed last, kept at hand for its next request of the same length.
//!
//! Who takes and gives back one buffer again and again would go to the arena twice a round, take its lock, and split and join runs
//! there each time (measured, 1 MiB: 50 ns a pair; with the shelf 10).
//!
//! A run on a shelf is in transit. The word of the shelf names it, and whoever takes the word out owns the run: the heap's thread
//! for its next block, or anybody who wants the memory. Only the heap's thread puts something there.
//!
//! What is on a shelf is memory that others cannot use. So it is one run a thread, of not more than [`MOST`]; the thread gives it up
//! with its next request of another length, and all are given up before the arena grows.

use super::span::{asked, marks, moved, record, start, tail};
use super::{Heap, all, due, guarded, interval, secure, thread, watch};
use crate::arena::{self, Kind, Pool, Residence, SLICE, address_of, slice};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// Slices of the longest run that is kept.
const MOST: usize = (1 << 20) / SLICE;

/// Runs are named by their first slice, and above that their length in slices; 0 = none.
pub(super) struct Shelf {
    run: AtomicUsize,
    /// The run that was last taken from here, wherever it may be by now.
    lent: AtomicUsize,
    /// How many spans the thread had allocated and freed when [`clear_idle`] was called last.
    seen: AtomicUsize,
}

const LENGTH: u32 = 32;

/// There may be something on some shelf.
static IN_USE: AtomicBool = AtomicBool::new(false);

impl Shelf {
    pub(super) const fn empty() -> Self {
        Shelf { run: AtomicUsize::new(0), lent: AtomicUsize::new(0), seen: AtomicUsize::new(0) }
    }

    /// Take the run off the shelf: it is the caller's from here on.
    fn clear(&self) -> Option<usize> {
        let found = if self.run.load(Relaxed) == 0 { 0 } else { self.run.swap(0, AcqRel) };
        (found != 0).then_some(run_of(found))
    }
}

/// Bytes of the runs that are on shelves.
pub(super) fn bytes() -> usize {
    // SAFETY: H3.
    all().map(|heap| unsafe { ((*heap).shelf.run.load(Relaxed) >> LENGTH) * SLICE }).sum()
}

fn word_of(run: usize, slices: usize) -> usize {
    slices << LENGTH | run
}

fn run_of(word: usize) -> usize {
    word as u32 as usize
}

/// A block of `size` bytes, more than slabs have, from the shelf of a heap: one of this thread's, or EMPTY. `None`: ask
/// [`span::allocate_from`](super::span::allocate_from), which looks at all that is not looked at here.
#[inline(always)]
pub(super) unsafe fn take_quickly(heap: *mut Heap, size: usize) -> Option<*mut u8> {
    // SAFETY: H3. Whoever takes the word off the shelf owns the run.
    unsafe {
        let shelf = &(*heap).shelf;
        let found = shelf.run.load(Relaxed);
        let (index, slices) = (run_of(found), found >> LENGTH);
        if slices != size.div_ceil(SLICE)
            || interval::is_on(interval::epoch())
            || watch::is_on()
            || guarded::is_possible()
            || shelf.run.compare_exchange(found, 0, AcqRel, Relaxed).is_err()
        {
            return None;
        }
        shelf.lent.store(found, Relaxed);
        asked(index).write(size);
        (*heap).spans.allocated(slices * SLICE);
        (*slice(index)).set_run(Kind::Span, slices);
        Some(address_of(index) as *mut u8)
    }
}

/// Free a span back to the shelf of this thread, whose current heap is `heap`, if it was taken from there and was nowhere else in
/// between. `index` is the slice that the block begins in, and special. False: it was not, or there is no room.
#[inline(always)]
pub(super) unsafe fn put_quickly(heap: *mut Heap, index: usize, block: *mut u8) -> bool {
    // SAFETY: heaps are never unmapped. The slice was lent once, so it has metadata; what is there now is looked at.
    unsafe {
        let heap = thread::host_of(heap);
        let shelf = &(*heap).shelf;
        let lent = shelf.lent.load(Relaxed);
        let slices = lent >> LENGTH;
        if run_of(lent) != index
            || lent == 0
            || !(block as usize).is_multiple_of(SLICE)
            || shelf.run.load(Relaxed) != 0
            || !(*marks(index)).plain
            || due::is_due()
            || watch::is_on()
            || !(*slice(index)).become_transit_from(Kind::Span, slices)
        {
            return false;
        }
        if !os::fill_at_once(&shelf.run, lent) {
            // A signal handler was faster: this span goes the long way.
            (*slice(index)).set_run(Kind::Span, slices);
            return false;
        }
        (*heap).spans.freed(slices * SLICE);
        note_use();
        true
    }
}

/// A run in transit of that length and alignment, in slices, from the shelf of a heap that is leased by this thread. What is there and
/// does not fit goes back to the arena, whose lock is free.
pub(super) unsafe fn take(heap: *mut Heap, slices: usize, alignment: usize) -> Option<usize> {
    // SAFETY: H3; the run is ours once it is off the shelf.
    unsafe {
        let run = (*heap).shelf.clear()?;
        if (*slice(run)).length() == slices && address_of(run).is_multiple_of(alignment * SLICE) {
            return Some(run);
        }
        arena::free(run, Residence::UNKNOWN);
        None
    }
}

/// Put a run in transit that was a span of the caller's on this thread's shelf. Returns the run that is to go to the arena instead: what
/// was there, or the same if it is not kept.
pub(super) unsafe fn exchange(index: usize) -> Option<usize> {
    // SAFETY: the run is the caller's; H3.
    unsafe {
        let slices = (*slice(index)).length();
        if slices > MOST {
            return Some(index);
        }
        let heap = thread::own();
        let kept = !(*marks(index)).growing
            && !Heap::is_empty_heap(heap)
            && (*slice(index)).owner.load(Relaxed).is_null()
            && arena::pool_of(index) == Pool::COMMON
            && (*record(index)).site == 0
            && (*record(index)).parked.is_null()
            && start(index).read() | tail(index).read() | moved(index).read() == 0
            && !secure::clears();
        if !kept {
            return Some(index);
        }
        (*marks(index)).plain = true;
        (*slice(index)).clean = false;
        let before = (*heap).shelf.run.swap(word_of(index, slices), AcqRel);
        note_use();
        (before != 0).then_some(run_of(before))
    }
}

#[inline(always)]
fn note_use() {
    if !IN_USE.load(Relaxed) {
        IN_USE.store(true, Relaxed);
    }
}

/// Give what is on the shelf of a heap back to the arena, whose lock this thread does not have.
pub(super) unsafe fn clear(heap: *mut Heap) {
    // SAFETY: H3; the run is ours once it is off the shelf.
    unsafe { (*heap).shelf.clear() }.into_iter().for_each(|run| arena::free(run, Residence::UNKNOWN));
}

/// The same, if the thread has allocated and freed no span since this was called last.
pub(super) unsafe fn clear_idle(heap: *mut Heap) {
    // SAFETY: H3; as above.
    unsafe {
        let now = (*heap).spans.position();
        if (*heap).shelf.seen.swap(now, Relaxed) == now {
            clear(heap);
        }
    }
}

/// Whether there may be something on some shelf.
pub(super) fn is_in_use() -> bool {
    IN_USE.load(Relaxed)
}

/// Clear the shelves of all threads.
pub(super) fn clear_all() {
    if IN_USE.swap(false, Relaxed) {
        // SAFETY: H3.
        all().for_each(|heap| unsafe { clear(heap) });
    }
}

#[cfg(test)]
mod tests;
