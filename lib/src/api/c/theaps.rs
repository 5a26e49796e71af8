//! `mi_theap_…`: the part of a heap that one thread allocates from. Only for that thread.
//!
//! Null stands for the thread's default: what its plain `mi_malloc` allocates from.

use super::{HeapHandle, aligned, blocks, failure, zeroing};
use crate::heap::{Heap, thread, zone};

/// `mi_theap_t*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct TheapHandle(*mut Heap);

impl TheapHandle {
    /// The heap that it is a part of.
    pub(super) fn whole(self) -> HeapHandle {
        // SAFETY: heaps are never unmapped.
        HeapHandle::of(unsafe { zone::of_theap(self.0) })
    }
}

/// `mi_heap_theap`: the calling thread's part of a heap. Null: no memory, or the thread has ended but for some destructors.
///
/// # Safety
/// The heap is in use.
pub unsafe fn heap_theap(heap: HeapHandle) -> TheapHandle {
    // SAFETY: the caller's promise.
    TheapHandle(unsafe { zone::theap_of(heap.zone()) })
}

/// `mi_theap_get_default`: what plain allocations of the calling thread come from.
pub fn theap_get_default() -> TheapHandle {
    TheapHandle(zone::default_theap())
}

/// `mi_theap_set_default`: have plain allocations of the calling thread come from here. Returns the one before. Null, and one of
/// another thread, change nothing. When its heap ends, the main heap is the default again.
///
/// # Safety
/// The heap is in use, as for all that follow.
pub unsafe fn theap_set_default(theap: TheapHandle) -> TheapHandle {
    // SAFETY: the caller's promise.
    TheapHandle(unsafe { zone::set_default_theap(theap.0) })
}

/// `mi_theap_collect`: give what is cached here back to the slabs; with `force`, memory then goes back to the operating system as with
/// `mi_collect(true)`.
///
/// # Safety
/// As [`theap_set_default`], and it is the calling thread's.
pub unsafe fn theap_collect(theap: TheapHandle, force: bool) {
    // SAFETY: the caller's promise.
    unsafe { zone::collect_theap(if theap.0.is_null() { zone::default_theap() } else { theap.0 }) }
    if force {
        super::purging::return_all();
    }
}

/// `mi_theap_malloc`, `mi_theap_malloc_small`.
///
/// # Safety
/// As [`theap_collect`].
#[inline(always)]
pub unsafe fn theap_malloc(theap: TheapHandle, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::allocate_from_theap(theap.0, size) }
}

/// `mi_theap_zalloc`, `mi_theap_zalloc_small`.
///
/// # Safety
/// As [`theap_collect`].
pub unsafe fn theap_zalloc(theap: TheapHandle, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::within_theap(theap.0, || zeroing::zalloc(size)) }
}

/// `mi_theap_calloc`.
///
/// # Safety
/// As [`theap_collect`].
pub unsafe fn theap_calloc(theap: TheapHandle, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe { theap_zalloc(theap, size) },
        None => failure::overflow(),
    }
}

/// `mi_theap_malloc_aligned`.
///
/// # Safety
/// As [`theap_collect`].
pub unsafe fn theap_malloc_aligned(theap: TheapHandle, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::within_theap(theap.0, || aligned::malloc_aligned(size, alignment)) }
}

/// `mi_theap_zalloc_aligned`.
///
/// # Safety
/// As [`theap_collect`].
pub unsafe fn theap_zalloc_aligned(theap: TheapHandle, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::within_theap(theap.0, || aligned::zalloc_aligned(size, alignment)) }
}

/// `mi_theap_realloc`: a block of another heap moves.
///
/// # Safety
/// As [`theap_collect`], and as `realloc`.
pub unsafe fn theap_realloc(theap: TheapHandle, block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::within_theap(theap.0, || blocks::mi_realloc(block, size)) }
}

/// `mi_theap_rezalloc`: the same; every byte beyond the old usable size is zero.
///
/// # Safety
/// As [`theap_realloc`].
pub unsafe fn theap_rezalloc(theap: TheapHandle, block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::within_theap(theap.0, || zeroing::rezalloc(block, size)) }
}

/// `mi_thread_done`: give back what the calling thread has cached in all heaps, as its end would. It may go on, and begins anew.
pub fn thread_done() {
    thread::detach();
}
