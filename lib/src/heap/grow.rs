//! Blocks that grow: where they are if that can be, else their pages move with them.
//!
//! What `realloc` makes larger than a small block becomes a span with free slices behind it, and then grows into those. A large span
//! that cannot is given another run, to which the kernel moves its pages; the old run stays mapped, empty. So both runs are mapped
//! at every instant, and a child that is forked in between has what its parent had.
//!
//! Pages that came from elsewhere are a mapping of their own, of which a process may have 65,530. So moved spans are counted, and
//! when one is freed a fresh mapping takes its place, which becomes one with those around it.

use super::span::{self, Marks, allocate_growing, marks, moved, record, start, tail};
use super::tell::Tell;
use super::{interval, release, sampled, statistics, thread, zone};
use crate::arena::{self, Kind, PAGES, Pool, Residence, SLICE, address_of, index_of, slice};
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Blocks that `realloc` makes larger than this become spans, in bytes: there they can grow where they are. (Measured: growth by
/// half to 64 KiB takes 65 ns a step with this, 46 with 16 KiB and 95 without; by doubling to 1 MiB, 44, 27 and 1300. With 16 KiB,
/// where spans are whole slices, many blocks that grew a little would take up to four times what they hold.)
pub(super) const GROWN_TO_SPAN: usize = 32 * 1024;
/// Spans from this size on are moved by the kernel, in bytes. Smaller ones are copied: memory that was freed is kept for a while, so
/// both runs are resident, and faulting the old one in again takes longer than copying. (Measured, two blocks that double in turn,
/// again and again, per step: to 64 MiB 0.4 ms by copying and 1.5 by moving; to 128 MiB 0.7 and 3.0. But a block that grows only
/// once is there twice for a moment when it is copied, and what it leaves behind is resident until the next sweep.)
const MOVED_BY_KERNEL: usize = 64 << 20;
/// Most spans that live in pages from elsewhere at a time.
const MOST_MOVED: usize = 4096;
/// Page tables as a whole can be moved between addresses that are multiples of this, in slices.
const TABLE: usize = (2 << 20) / SLICE;
/// `moved` of a span with several pieces: not to be moved again.
const PIECES: usize = usize::MAX;

static MOVED: AtomicUsize = AtomicUsize::new(0);

/// Give a block that is too small a larger place. Null with `ENOMEM`: it is as it was.
pub(super) unsafe fn grow(block: *mut u8, usable: usize, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        let new = obtain(block, usable, size, alignment, Tell::Yes);
        if !new.is_null() {
            sampled::moved(block, new);
            release::release(block);
        }
        new
    }
}

/// A larger place with what is in a block, which is then to be freed. Null with `ENOMEM`: it is as it was.
pub(super) unsafe fn obtain(block: *mut u8, usable: usize, size: usize, alignment: usize, tell: Tell) -> *mut u8 {
    let by_kernel = usable >= MOVED_BY_KERNEL;
    let new = allocate_growing(size, if by_kernel { alignment.max(TABLE * SLICE) } else { alignment }, tell);
    // SAFETY: the caller owns the block, whose usable size this is, and the new one is larger.
    unsafe {
        if !new.is_null() && (!by_kernel || !move_pages(block, new)) {
            new.copy_from_nonoverlapping(block, usable);
        }
    }
    new
}

/// Move all pages of a span to a new one. False: it is to be copied.
unsafe fn move_pages(block: *mut u8, new: *mut u8) -> bool {
    let run_of = |block: *mut u8| match release::run_of(index_of(block as usize)) {
        Some((Kind::Span, index)) if arena::pool_of(index) == Pool::COMMON => Some(index),
        _ => None,
    };
    let (Some(from), Some(to)) = (run_of(block), run_of(new)) else { return false };
    // SAFETY: both spans are the caller's.
    unsafe {
        let length = (*slice(from)).length() * SLICE;
        let piece = moved(from).read();
        if start(from).read() != 0
            || tail(from).read() != 0
            || tail(to).read() != 0
            || piece == PIECES
            || MOVED.load(Relaxed) >= MOST_MOVED
        {
            return false;
        }
        let (old, new) = (address_of(from) as *mut u8, address_of(to) as *mut u8);
        // A mapping at a time: what was moved before, and what the span has grown by since.
        let first = if piece == 0 { length } else { piece };
        if !os::move_pages(old, new, first) {
            return false;
        }
        MOVED.fetch_add(1, Relaxed);
        moved(to).write(first);
        if first != length {
            moved(to).write(PIECES);
            if !os::move_pages(old.add(first), new.add(first), length - first) {
                new.add(first).copy_from_nonoverlapping(old.add(first), length - first);
            }
        }
        (*slice(to)).clean = false;
        true
    }
}

/// Give back the run of a moved span, which is in transit.
#[cold]
pub(super) unsafe fn give_back_moved(index: usize) {
    // SAFETY: the run is the caller's.
    unsafe {
        let (run, length) = (address_of(index) as *mut u8, (*slice(index)).length() * SLICE);
        MOVED.fetch_sub(1, Relaxed);
        moved(index).write(0);
        // If neither is to be had, the run is not to be used again.
        if arena::renew(index) || os::discard(run, length) {
            let slices = length / SLICE;
            arena::note_discard(slices * PAGES);
            arena::free(index, Residence::returned(slices));
        }
    }
}

/// Make a span larger where it is, if the memory behind it is free. Counted and sampled as a free and a new allocation are.
pub(crate) unsafe fn extend(block: *mut u8, size: usize) -> bool {
    if size > isize::MAX as usize || arena::is_busy_here() || sampled::is_busy_here() {
        return false;
    }
    let Some((Kind::Span, index)) = release::run_of(index_of(block as usize)) else {
        return false; // the C library's
    };
    let Some(lease) = thread::lease(thread::current()) else { return false };
    // SAFETY: the caller holds the block.
    unsafe {
        let before = (*slice(index)).length();
        if tail(index).read() != 0 {
            return false; // what is behind it is not to be used
        }
        let slices = (start(index).read() + size).div_ceil(SLICE);
        if !arena::extend(index, slices) {
            return false;
        }
        marks(index).write(Marks { plain: false, growing: true });
        zone::span_resized(index, before * SLICE, slices * SLICE);
        statistics::span_freed(before * SLICE);
        statistics::span_allocated(lease.heap, slices * SLICE);
        statistics::count_idle(start(index).read(), start(index).read());
        let before = sampled::outgrown(record(index));
        let epoch = interval::epoch();
        if interval::is_on(epoch) {
            span::sample(lease.heap, index, slices * SLICE, size, epoch);
            sampled::is_as_old(record(index), before);
        }
        true
    }
}
