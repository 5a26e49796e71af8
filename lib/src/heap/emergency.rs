//! Calls that come while this very thread is inside the allocator: from a signal handler, or from a function of the C
//! library that we call while we initialise. There is no promise for those, but they neither hang nor corrupt.

use super::hot::WORDS;
use super::release;
use super::tell::Tell;
use crate::os;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering::*};

const ROOM: usize = 256 * 1024;

#[repr(C, align(16))]
struct Range(UnsafeCell<[u8; ROOM]>);
// SAFETY: disjoint parts are handed out by an atomic counter.
unsafe impl Sync for Range {}

static RANGE: Range = Range(UnsafeCell::new([0; ROOM]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// A block with 16-byte alignment that is never given back; null with `ENOMEM` when the range is used up.
#[cold]
#[inline(never)]
pub(super) fn allocate(size: usize) -> *mut u8 {
    const HEADER: usize = 16;
    let size = size.max(1).next_multiple_of(16);
    let at = if size < ROOM { USED.fetch_add(HEADER + size, Relaxed) } else { ROOM };
    if at > ROOM - HEADER - size.min(ROOM - HEADER) {
        os::libc::set_errno(os::libc::ENOMEM);
        return core::ptr::null_mut();
    }
    // SAFETY: [at, at + HEADER + size) lies in the range and was given to us alone.
    unsafe {
        let header = RANGE.0.get().cast::<u8>().add(at);
        header.cast::<usize>().write(size);
        header.add(HEADER)
    }
}

/// Whether a block is from here.
pub(super) fn owns(block: *const u8) -> bool {
    (block as usize).wrapping_sub(RANGE.0.get() as usize) < ROOM
}

/// Usable bytes of a block that is from here.
pub(super) unsafe fn usable_size(block: *const u8) -> usize {
    // SAFETY: its size stands before it.
    unsafe { block.sub(16).cast::<usize>().read() }
}

/// In a link: the free of the block was told already. No address of ours has this bit.
const TOLD: usize = 1 << 63;

/// Free this block at the next ordinary slow path; it is told then, unless it is not to be.
#[cold]
pub(super) unsafe fn defer(block: *mut u8, tell: Tell) {
    let link = block.map_addr(|address| if tell == Tell::Yes { address } else { address | TOLD });
    // Chained through their first word.
    let mut first = WORDS.deferred.load(Relaxed);
    loop {
        // SAFETY: the block is free, and every block has room for a pointer.
        unsafe { block.cast::<*mut u8>().write_unaligned(first) };
        match WORDS.deferred.compare_exchange(first, link, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Free what was deferred. With no lock held.
#[inline(always)]
pub(super) fn adopt_deferred() {
    if !WORDS.deferred.load(Relaxed).is_null() {
        adopt();
    }
}

#[cold]
#[inline(never)]
fn adopt() {
    let mut link = WORDS.deferred.swap(core::ptr::null_mut(), AcqRel);
    while !link.is_null() {
        let block = link.map_addr(|address| address & !TOLD);
        // SAFETY: the list was made by `defer`, and is now ours alone.
        unsafe {
            let next = block.cast::<*mut u8>().read_unaligned();
            if link == block {
                release::release(block);
            } else {
                release::release_told(block);
            }
            link = next;
        }
    }
}
