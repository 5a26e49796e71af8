//! Blocks above the slabs: runs of whole slices.

use super::misuse::{self, Misuse};
use super::sampled::{self, Record};
use super::tell::{self, Tell};
use super::{
    Heap, allocate, child, emergency, grow, guarded, interval, release, secure, shelf, slab, statistics, thread, zone,
};
use crate::arena::{self, Kind, PAGES, Pool, Residence, SLICE, address_of, class_entry, index_of, slice};
use crate::os;

/// Spans from this size on, in bytes, are zeroed by giving their memory back if less than half of it is there: to write zeroes would
/// make all of it resident. (Measured, 64 MiB: a page that is written to costs 0.1 µs, one that is given back and faulted in 2.4.)
const LARGE: usize = 4 << 20;

/// A block of at least `size` bytes whose address is a multiple of `alignment` (a power of two) and of 64 KiB.
pub(crate) fn allocate(size: usize, alignment: usize) -> *mut u8 {
    allocate_after(0, size, alignment)
}

/// A block of at least `size` bytes that begins `lead` bytes after a multiple of `alignment`, where `lead` is less than that.
pub(crate) fn allocate_after(lead: usize, size: usize, alignment: usize) -> *mut u8 {
    allocate_from(thread::current(), lead, size, alignment)
}

/// A block that is likely to grow: [`extend`](super::grow::extend) will find room.
pub(super) fn allocate_growing(size: usize, alignment: usize, tell: Tell) -> *mut u8 {
    allocate_by(thread::current(), 0, size, alignment, true, tell)
}

/// [`allocate_after`] from a particular heap: one of this thread's, or EMPTY.
pub(super) fn allocate_from(heap: *mut Heap, lead: usize, size: usize, alignment: usize) -> *mut u8 {
    allocate_by(heap, lead, size, alignment, false, Tell::Yes)
}

/// [`allocate_after`] that is not told.
pub(crate) fn allocate_untold(lead: usize, size: usize, alignment: usize) -> *mut u8 {
    allocate_by(thread::current(), lead, size, alignment, false, Tell::No)
}

/// What `malloc` asks for above the slabs.
#[inline(never)]
pub(super) fn allocate_quickly(heap: *mut Heap, size: usize) -> *mut u8 {
    // SAFETY: this thread's heap, or EMPTY.
    unsafe { shelf::take_quickly(heap, size).unwrap_or_else(|| allocate_from(heap, 0, size, 1)) }
}

#[inline(always)]
fn allocate_by(heap: *mut Heap, lead: usize, size: usize, alignment: usize, growing: bool, tell: Tell) -> *mut u8 {
    if size > isize::MAX as usize {
        return allocate::too_large();
    }
    if alignment > 1 << 40 {
        return allocate::out_of_memory();
    }
    if arena::is_busy_here() || child::is_repaired_here() {
        // A signal handler interrupted this thread in the arena.
        return if lead == 0 { emergency::allocate(size) } else { allocate::no_memory() };
    }
    child::check();
    let Some(lease) = thread::lease(heap) else {
        return if thread::initialises_here() { emergency::allocate(size) } else { allocate::out_of_memory() };
    };
    emergency::adopt_deferred();
    // SAFETY: the heap is leased by this thread; the run is in transit: ours alone.
    unsafe {
        let guarded = if lead == 0 { guarded::for_span(lease.heap, size, alignment) } else { None };
        let Some((index, block)) = guarded.or_else(|| make(lease.heap, lead, size, alignment, growing)) else {
            drop(lease);
            return allocate::out_of_memory();
        };
        asked(index).write(size);
        zone::publish_span(lease.heap, index);
        let bytes = counted(index);
        statistics::span_allocated(lease.heap, bytes);
        statistics::count_idle(bytes - extent(index).1, 0);
        let epoch = interval::epoch();
        if interval::is_on(epoch) {
            sample(lease.heap, index, bytes, size, epoch);
        }
        if tell::is_due(tell) {
            (crate::HOOKS.allocated)(lease.heap, block, extent(index).1, size);
        }
        block
    }
}

/// A run in transit for a block.
unsafe fn make(heap: *mut Heap, lead: usize, size: usize, alignment: usize, growing: bool) -> Option<(usize, *mut u8)> {
    let slices = (lead + size).div_ceil(SLICE).max(1);
    // Memory of an arena may be the program's, whose access is left as it is.
    let common = zone::pool_of(heap) == Pool::COMMON;
    let guard = (common && secure::guards_spans()) as usize;
    let aligned = (alignment / SLICE).max(1);
    let roomy = if growing && common && guard == 0 { arena::with_room(slices, aligned) } else { None };
    // SAFETY: the heap is leased by this thread.
    let shelved = || unsafe { if common { shelf::take(heap, slices + guard, aligned) } else { None } };
    let obtained = || slab::obtain_for(heap, core::ptr::null_mut(), slices + guard, aligned);
    let index = roomy.or_else(shelved).or_else(obtained)?;
    // Without the guard, if the kernel has no more of them to give.
    let guarded = guard != 0 && os::forbid(address_of(index + slices), SLICE);
    // SAFETY: the run is in transit: ours alone.
    unsafe {
        lay(index, lead, if guarded { SLICE } else { 0 });
        (*marks(index)).growing = growing;
    }
    Some((index, (address_of(index) + lead) as *mut u8))
}

/// Describe the block of a run in transit: it begins after `lead` bytes, and the last `tail` bytes are not its.
pub(super) unsafe fn lay(index: usize, lead: usize, tail: usize) {
    // SAFETY: the run is in transit, and the caller's.
    unsafe {
        // The slice that the block begins in need not be the first one.
        for slice_index in [index, index + lead / SLICE] {
            class_entry(slice_index).write(0);
            (*slice(slice_index)).first = index as u32;
        }
        record(index).write(Record::NONE);
        start(index).write(lead);
        self::tail(index).write(tail);
        moved(index).write(0);
        marks(index).write(Marks { plain: false, growing: false });
    }
}

#[cold]
#[inline(never)]
pub(super) unsafe fn sample(heap: *mut Heap, index: usize, bytes: usize, requested: usize, epoch: u32) {
    // SAFETY: the heap is leased by this thread, and nobody else knows the span yet.
    unsafe {
        if interval::takes_span(heap, bytes, epoch) {
            let sample = (crate::HOOKS.sampled)(heap, bytes, requested, epoch);
            record(index).write(Record::parking(core::ptr::null_mut(), 0, requested, sample, epoch));
        }
    }
}

/// Free a span. Returns the block that was parked for it and is to be freed as well; null: none.
pub(super) unsafe fn release(index: usize, block: *mut u8, tell: Tell) -> *mut u8 {
    // SAFETY: the caller frees the block: the run is ours.
    unsafe {
        let (address, usable) = extent(index);
        if block as usize != address {
            misuse::note(Misuse::Invalid, block as usize);
            return core::ptr::null_mut();
        }
        if !zone::withdraw_span(index, block, tell) {
            return core::ptr::null_mut(); // put off
        }
        // Two threads may free the same block at the same time.
        if !(*slice(index)).become_transit(Kind::Span) {
            misuse::note(Misuse::Double, block as usize);
            return core::ptr::null_mut();
        }
        if tell::is_due(tell) {
            tell::freed(block, usable);
        }
        give_back(index)
    }
}

/// Give a span back to the arena that is in transit, and in no zone. Returns its parked block.
pub(super) unsafe fn give_back(index: usize) -> *mut u8 {
    // SAFETY: the caller has taken the span for itself.
    unsafe {
        let (block, usable) = extent(index);
        let block = block as *mut u8;
        let run = address_of(index) as *mut u8;
        if (*record(index)).site != 0 {
            sampled::forget(record(index), 0);
        }
        let (slices, tail, parked) = ((*slice(index)).length(), tail(index).read(), (*record(index)).parked);
        if parked.is_null() {
            statistics::span_freed(counted(index));
        }
        statistics::count_idle(0, idle(index));
        if tail != 0 {
            if !guarded::is_intact(block.add(usable), tail) {
                misuse::note(Misuse::Corrupted, block as usize);
            }
            if !os::allow(run as usize + (slices - 1) * SLICE, SLICE) {
                return parked; // the run is lost: others could not use it
            }
        }
        if moved(index).read() != 0 {
            grow::give_back_moved(index);
            return parked;
        }
        let mut residence = Residence::UNKNOWN;
        if secure::clears() {
            if is_zeroed_by_kernel(index) {
                arena::note_discard(slices * PAGES);
                residence = Residence::returned(slices);
            } else {
                block.write_bytes(0, usable);
            }
        }
        if residence.clean {
            arena::free(index, residence);
        } else if let Some(index) = shelf::exchange(index) {
            arena::free(index, residence);
        }
        parked
    }
}

/// Bytes that a span counts for: all but the forbidden ones.
pub(super) unsafe fn counted(index: usize) -> usize {
    // SAFETY: the caller's span.
    unsafe { ((*slice(index)).length() - (tail(index).read() != 0) as usize) * SLICE }
}

/// Bytes that a span counts for and its block has not; less than none, as a number that wraps around, where a guarded block has more than
/// the block of its class that is parked for it.
pub(super) unsafe fn idle(index: usize) -> usize {
    // SAFETY: the caller's span.
    unsafe {
        let usable = extent(index).1;
        let counts_for =
            if (*record(index)).parked.is_null() { counted(index) } else { allocate::class_size_of(usable) };
        counts_for.wrapping_sub(usable)
    }
}

/// Address and usable bytes of the block in a span.
pub(super) unsafe fn extent(index: usize) -> (usize, usize) {
    // SAFETY: the run is a span, or was one a moment ago.
    unsafe {
        let lead = start(index).read();
        (address_of(index) + lead, (*slice(index)).length() * SLICE - lead - tail(index).read())
    }
}

/// The sample record of a span; it lies where a slab has its bitmap.
pub(super) unsafe fn record(index: usize) -> *mut Record {
    // SAFETY: only an address is formed.
    unsafe { (&raw mut (*slice(index)).bitmap).cast() }
}

/// Bytes of a span before its block; behind the record.
pub(super) unsafe fn start(index: usize) -> *mut usize {
    // SAFETY: only an address is formed.
    unsafe { record(index).add(1).cast() }
}

/// Bytes of a span behind its block: what is forbidden, and the slack before that; 0 = none. Behind `start`.
pub(super) unsafe fn tail(index: usize) -> *mut usize {
    // SAFETY: only an address is formed.
    unsafe { start(index).add(1) }
}

/// Bytes that the program asked for last.
pub(super) unsafe fn asked(index: usize) -> *mut usize {
    // SAFETY: only an address is formed.
    unsafe { start(index).add(2) }
}

/// Bytes from its start that lie in pages from elsewhere: see [`grow`].
pub(super) unsafe fn moved(index: usize) -> *mut usize {
    // SAFETY: only an address is formed.
    unsafe { start(index).add(3) }
}

/// What is known of a span for the [shelf](super::shelf).
#[derive(Clone, Copy)]
pub(super) struct Marks {
    /// It has been on a shelf: it has no record and no zone, and begins and ends with its block.
    pub(super) plain: bool,
    /// It was made larger. Its run is left to others that grow, who need room.
    pub(super) growing: bool,
}

/// Where a slab has its hint, in a line that is needed anyway.
pub(super) unsafe fn marks(index: usize) -> *mut Marks {
    const { assert!(size_of::<Marks>() == size_of::<u16>()) };
    // SAFETY: only an address is formed.
    unsafe { (&raw mut (*slice(index)).hint).cast() }
}

/// Whether `size` is no less than half of what the program has asked for before, if the block is a span.
pub(super) unsafe fn is_growing(block: *mut u8, size: usize) -> bool {
    let run = release::run_of(index_of(block as usize));
    // SAFETY: the caller holds the block.
    matches!(run, Some((Kind::Span, index)) if unsafe { asked(index).read() } / 2 <= size)
}

/// Give the memory of a large run of the caller's back, so that it reads zero. False: to write zeroes is better.
unsafe fn is_zeroed_by_kernel(index: usize) -> bool {
    // SAFETY: the caller's run, of which nothing is needed.
    unsafe {
        let bytes = (*slice(index)).length() * SLICE;
        let (run, pages) = (address_of(index) as *mut u8, bytes / os::PAGE);
        bytes >= LARGE
            && arena::is_plain(index)
            && os::resident_pages(run, pages).is_none_or(|there| there < pages / 2)
            && os::discard(run, bytes)
    }
}

/// Zero a fresh block of any kind, to its end.
pub(super) unsafe fn zero(block: *mut u8) {
    let index = index_of(block as usize);
    // SAFETY: the caller has just got the block.
    unsafe {
        let is_span = index < arena::INDICES && (*slice(index)).kind() == Kind::Span;
        if !is_span || !is_zeroed_by_kernel(index) {
            block.write_bytes(0, release::usable_size(block));
        }
    }
}

/// Whether all bytes of a fresh block (of any kind) read zero.
pub(crate) unsafe fn reads_zero(block: *mut u8) -> bool {
    let index = index_of(block as usize);
    // SAFETY: the caller has just got the block.
    index < arena::INDICES && unsafe { (*slice(index)).kind() == Kind::Span && (*slice(index)).clean }
}
