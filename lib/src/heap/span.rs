//! Blocks above the slabs: runs of whole slices.

use super::sampled::{self, Record};
use super::{Heap, allocate, child, emergency, interval, release, slab, statistics, thread};
use crate::arena::{self, Kind, SLICE, address_of, class_entry, slice, slice_index};
use crate::os;

/// Spans of this size go back to the operating system when they are freed, in bytes.
const RETURNED_AT_ONCE: usize = 32 << 20;

/// A block of at least `size` bytes whose address is a multiple of `alignment` (a power of two) and of 64 KiB.
pub(crate) fn allocate(size: usize, alignment: usize) -> *mut u8 {
    allocate_after(0, size, alignment)
}

/// A block of at least `size` bytes that begins `lead` bytes after a multiple of `alignment`, where `lead` is less than that.
pub(crate) fn allocate_after(lead: usize, size: usize, alignment: usize) -> *mut u8 {
    if size > isize::MAX as usize || alignment > 1 << 40 {
        return allocate::out_of_memory();
    }
    if arena::is_busy_here() || child::is_repaired_here() {
        // A signal handler interrupted this thread in the arena.
        return if lead == 0 { emergency::allocate(size) } else { allocate::out_of_memory() };
    }
    child::check();
    let Some(lease) = thread::lease(thread::current()) else {
        return if thread::initialises_here() { emergency::allocate(size) } else { allocate::out_of_memory() };
    };
    emergency::adopt_deferred();
    let slices = (lead + size).div_ceil(SLICE).max(1);
    let Some(index) = slab::obtain(core::ptr::null_mut(), slices, (alignment / SLICE).max(1)) else {
        return allocate::out_of_memory();
    };
    // SAFETY: the run is in transit: ours alone.
    unsafe {
        class_entry(index).write(0);
        (*slice(index)).first = index as u32;
        // The slice that the block begins in need not be the first one.
        class_entry(index + lead / SLICE).write(0);
        (*slice(index + lead / SLICE)).first = index as u32;
        (*record(index)).site = 0;
        start(index).write(lead);
        (*slice(index)).set_run(Kind::Span, slices);
        statistics::span_allocated(slices * SLICE);
        let epoch = interval::epoch();
        if interval::is_on(epoch) {
            sample(lease.heap, index, slices * SLICE, size, epoch);
        }
    }
    (address_of(index) + lead) as *mut u8
}

#[cold]
#[inline(never)]
unsafe fn sample(heap: *mut Heap, index: usize, bytes: usize, requested: usize, epoch: u32) {
    // SAFETY: the heap is leased by this thread, and nobody else knows the span yet.
    unsafe {
        if interval::takes_span(heap, bytes, epoch) {
            let site = (crate::HOOKS.sampled)(heap, bytes, requested, epoch);
            record(index).write(Record::of_span(requested, site, epoch));
        }
    }
}

/// Free a span.
pub(super) unsafe fn release(index: usize, block: *mut u8) {
    // SAFETY: the caller frees the block: the run is ours.
    unsafe {
        if block as usize != address_of(index) + start(index).read() {
            release::misuse(block as usize, false);
        }
        let run = address_of(index) as *mut u8;
        if (*record(index)).site != 0 {
            sampled::forget(record(index));
        }
        let slices = (*slice(index)).length();
        statistics::span_freed(slices * SLICE);
        (*slice(index)).set_run(Kind::Transit, slices);
        // Memory of this size costs more to keep than to fault in again.
        let clean = slices * SLICE >= RETURNED_AT_ONCE && os::discard(run, slices * SLICE);
        arena::free(index, clean);
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

/// Whether all bytes of a fresh block (of any kind) read zero.
pub(super) unsafe fn reads_zero(block: *mut u8) -> bool {
    let index = slice_index(block as usize);
    // SAFETY: the caller has just got the block.
    index < arena::SLICES && unsafe { (*slice(index)).kind() == Kind::Span && (*slice(index)).clean }
}

/// Make a span larger where it is, if the memory behind it is free. Counted and sampled as a free and a new allocation are.
pub(super) unsafe fn extend(block: *mut u8, size: usize) -> bool {
    if size > isize::MAX as usize || arena::is_busy_here() || sampled::is_busy_here() {
        return false;
    }
    let Some(lease) = thread::lease(thread::current()) else { return false };
    // SAFETY: the caller holds the block.
    unsafe {
        let index = (*slice(slice_index(block as usize))).first as usize;
        let before = (*slice(index)).length();
        let slices = (start(index).read() + size).div_ceil(SLICE);
        if !arena::extend(index, slices) {
            return false;
        }
        statistics::span_freed(before * SLICE);
        statistics::span_allocated(slices * SLICE);
        if (*record(index)).site != 0 {
            sampled::forget(record(index));
        }
        let epoch = interval::epoch();
        if interval::is_on(epoch) {
            sample(lease.heap, index, slices * SLICE, size, epoch);
        }
        true
    }
}
