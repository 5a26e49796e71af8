//! `mi_heap_…`: heaps that the program makes, from any of its threads, and gives up as a whole.
//!
//! Whatever is allocated through these lies in the heap, also where it replaces a block of another. Null as the heap means the main
//! one.

use super::arenas::{ArenaId, of};
use super::{aligned, blocks, failure, strings, zeroing};
use crate::heap::zone::subprocess::{current, main_of};
use crate::heap::zone::{self, Zone};
use core::ffi::{c_char, c_int};

/// `mi_heap_t*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct HeapHandle(*mut Zone);

impl HeapHandle {
    pub(super) fn zone(self) -> *mut Zone {
        if self.0.is_null() { main_of(current()) } else { self.0 }
    }

    pub(super) fn of(zone: *mut Zone) -> HeapHandle {
        HeapHandle(zone)
    }

    /// As a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// The handle with this number.
    pub fn at(address: usize) -> HeapHandle {
        HeapHandle(address as *mut Zone)
    }
}

/// `mi_heap_new`: null when there is no memory.
pub fn heap_new() -> HeapHandle {
    let zone = zone::create();
    if zone.is_null() {
        let _ = crate::heap::allocate::out_of_memory();
    }
    HeapHandle(zone)
}

/// `mi_heap_new_in_arena`: of memory of that arena only. Null when there is no such arena, or no memory.
pub fn heap_new_in_arena(id: ArenaId) -> HeapHandle {
    let zone = of(id).map_or(core::ptr::null_mut(), |arena| zone::create_in_pool(arena.pool()));
    if zone.is_null() {
        let _ = crate::heap::allocate::out_of_memory();
    }
    HeapHandle(zone)
}

/// `mi_heap_delete`: its blocks stay, as blocks of the main heap. The main heap and null are left alone.
///
/// # Safety
/// Nobody allocates from the heap meanwhile or uses it afterwards. Its blocks may be freed at any time.
pub unsafe fn heap_delete(heap: HeapHandle) {
    // SAFETY: the caller's promise.
    unsafe { zone::delete(heap.0) }
}

/// `mi_heap_destroy`: frees all its blocks. The main heap and null are left alone.
///
/// # Safety
/// As [`heap_delete`], and nobody uses its blocks.
pub unsafe fn heap_destroy(heap: HeapHandle) {
    // SAFETY: the caller's promise.
    unsafe { zone::destroy(heap.0) }
}

/// `mi_heap_main`: the heap of plain `malloc`; in threads of a sub-process, that one's.
pub fn heap_main() -> HeapHandle {
    HeapHandle(main_of(current()))
}

/// `mi_heap_of`: the heap of the block at or around an address; null for memory that no block is made of.
pub fn heap_of(address: *const u8) -> HeapHandle {
    HeapHandle(zone::zone_of(address))
}

/// `mi_heap_contains`: whether [`heap_of`] the address is this heap.
///
/// # Safety
/// The heap is in use.
pub unsafe fn heap_contains(heap: HeapHandle, address: *const u8) -> bool {
    zone::contains(heap.zone(), address)
}

/// `mi_any_heap_contains`: whether the address is in memory that blocks are made of.
pub fn any_heap_contains(address: *const u8) -> bool {
    zone::is_block(address)
}

/// `mi_heap_collect`: give what this thread has cached of the heap back to its slabs, with `force` what any thread has; then memory goes
/// back to the operating system as with `mi_collect(true)`.
///
/// # Safety
/// The heap is in use.
pub unsafe fn heap_collect(heap: HeapHandle, force: bool) {
    // SAFETY: the caller's promise.
    unsafe { zone::collect(heap.zone(), force) }
    if force {
        super::purging::return_all();
    }
}

/// `mi_heap_set_numa_affinity`: accepted; the kernel places memory near the thread that first touches it.
///
/// # Safety
/// None is needed.
pub unsafe fn heap_set_numa_affinity(_: HeapHandle, _: c_int) {}

/// `mi_heap_malloc`, `mi_heap_malloc_small`.
///
/// # Safety
/// The heap is in use, as for all that follow.
#[inline(always)]
pub unsafe fn heap_malloc(heap: HeapHandle, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::allocate(heap.zone(), size) }
}

/// `mi_heap_zalloc`, `mi_heap_zalloc_small`.
///
/// # Safety
/// As [`heap_malloc`].
pub unsafe fn heap_zalloc(heap: HeapHandle, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zone::within(heap.zone(), || zeroing::zalloc(size)) }
}

/// `mi_heap_calloc`.
///
/// # Safety
/// As [`heap_malloc`].
pub unsafe fn heap_calloc(heap: HeapHandle, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe { heap_zalloc(heap, size) },
        None => failure::overflow(),
    }
}

/// `mi_heap_mallocn`.
///
/// # Safety
/// As [`heap_malloc`].
pub unsafe fn heap_mallocn(heap: HeapHandle, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe { heap_malloc(heap, size) },
        None => failure::overflow(),
    }
}

/// A function of the heap `heap` that does what the one of the main heap does.
macro_rules! in_heap {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $of_main:path;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As [`heap_malloc`], and as the function of the main heap.
        pub unsafe fn $name(heap: HeapHandle, $($arg: $type),*) -> $result {
            // SAFETY: the caller's promise.
            unsafe { zone::within(heap.zone(), || $of_main($($arg),*)) }
        }
    )*};
}

in_heap! {
    /// `mi_heap_realloc`: a block of another heap always moves.
    heap_realloc(block: *mut u8, size: usize) -> *mut u8 = blocks::mi_realloc;
    /// `mi_heap_reallocn`.
    heap_reallocn(block: *mut u8, count: usize, size: usize) -> *mut u8 = blocks::reallocn;
    /// `mi_heap_reallocf`.
    heap_reallocf(block: *mut u8, size: usize) -> *mut u8 = blocks::reallocf;
    /// `mi_heap_rezalloc`.
    heap_rezalloc(block: *mut u8, size: usize) -> *mut u8 = zeroing::rezalloc;
    /// `mi_heap_recalloc`.
    heap_recalloc(block: *mut u8, count: usize, size: usize) -> *mut u8 = zeroing::recalloc;
    /// `mi_heap_strdup`.
    heap_strdup(text: *const c_char) -> *mut c_char = strings::strdup;
    /// `mi_heap_strndup`.
    heap_strndup(text: *const c_char, most: usize) -> *mut c_char = strings::strndup;
    /// `mi_heap_realpath`: what is not a block of ours is returned as it is.
    heap_realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char = strings::realpath;
    /// `mi_heap_malloc_aligned`.
    heap_malloc_aligned(size: usize, alignment: usize) -> *mut u8 = aligned::malloc_aligned;
    /// `mi_heap_malloc_aligned_at`.
    heap_malloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut u8 = aligned::malloc_aligned_at;
    /// `mi_heap_zalloc_aligned`.
    heap_zalloc_aligned(size: usize, alignment: usize) -> *mut u8 = aligned::zalloc_aligned;
    /// `mi_heap_zalloc_aligned_at`.
    heap_zalloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut u8 = aligned::zalloc_aligned_at;
    /// `mi_heap_calloc_aligned`.
    heap_calloc_aligned(count: usize, size: usize, alignment: usize) -> *mut u8 = aligned::calloc_aligned;
    /// `mi_heap_calloc_aligned_at`.
    heap_calloc_aligned_at(count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8
        = aligned::calloc_aligned_at;
    /// `mi_heap_realloc_aligned`.
    heap_realloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 = aligned::realloc_aligned;
    /// `mi_heap_realloc_aligned_at`.
    heap_realloc_aligned_at(block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8
        = aligned::realloc_aligned_at;
    /// `mi_heap_rezalloc_aligned`.
    heap_rezalloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 = aligned::rezalloc_aligned;
    /// `mi_heap_rezalloc_aligned_at`.
    heap_rezalloc_aligned_at(block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8
        = aligned::rezalloc_aligned_at;
    /// `mi_heap_recalloc_aligned`.
    heap_recalloc_aligned(block: *mut u8, count: usize, size: usize, alignment: usize) -> *mut u8
        = aligned::recalloc_aligned;
    /// `mi_heap_recalloc_aligned_at`.
    heap_recalloc_aligned_at(block: *mut u8, count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8
        = aligned::recalloc_aligned_at;
}
