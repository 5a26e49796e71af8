//! The allocation functions of the C library.
//!
//! They differ from each other in `errno`, in what size 0 and impossible sizes give, and in what an alignment may be;
//! where the standards leave a choice, these do as the GNU C library does.

use super::failure::{overflow, refuse};
use crate::heap::{allocate, release};
use crate::os::{
    PAGE,
    libc::{EINVAL, ENOMEM},
};

/// `malloc`, `mi_malloc`: size 0 gives a unique block; null and `ENOMEM` on failure.
///
/// # Safety
/// As `malloc`.
#[inline(always)]
pub unsafe fn malloc(size: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    unsafe { allocate::allocate(size) }
}

/// `free`, `mi_free`: null is allowed, `errno` is kept, blocks of the C library are handed on to it.
///
/// # Safety
/// As `free`.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    // SAFETY: the caller owns the block.
    unsafe { release::release(block) }
}

/// `calloc`: null and `ENOMEM` also when the product overflows.
///
/// # Safety
/// As `calloc`.
#[inline(always)]
pub unsafe fn calloc(count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: no preconditions.
        Some(size) => unsafe { allocate::allocate_zeroed(size) },
        None => overflow(),
    }
}

/// `realloc` as the GNU C library has it: size 0 frees the block and gives null, with `errno` kept.
///
/// # Safety
/// As `realloc`.
pub unsafe fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        if size == 0 && !block.is_null() {
            release::release(block);
            return core::ptr::null_mut();
        }
        allocate::reallocate(block, size)
    }
}

/// `reallocarray` of the GNU C library: null and `ENOMEM` when the product overflows; the block is kept.
///
/// # Safety
/// As `realloc`.
pub unsafe fn reallocarray(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller owns the block.
        Some(size) => unsafe { realloc(block, size) },
        None => overflow(),
    }
}

/// `memalign`: an alignment that is no power of two is rounded up to one.
///
/// # Safety
/// As `memalign`.
#[inline(always)]
pub unsafe fn memalign(alignment: usize, size: usize) -> *mut u8 {
    match alignment.checked_next_power_of_two() {
        // SAFETY: a power of two.
        Some(alignment) => unsafe { allocate::allocate_aligned_as_asked(size, alignment) },
        None => refuse(),
    }
}

/// `aligned_alloc`, `mi_malloc_aligned`: null and `EINVAL` for an alignment that is no power of two.
///
/// # Safety
/// As `aligned_alloc`.
#[inline(always)]
pub unsafe fn aligned_alloc(alignment: usize, size: usize) -> *mut u8 {
    if !alignment.is_power_of_two() {
        return refuse();
    }
    // SAFETY: a power of two.
    unsafe { allocate::allocate_aligned_as_asked(size, alignment) }
}

/// `posix_memalign`: the result is written on success only. On `ENOMEM` also `errno` says so, as programs expect.
///
/// # Safety
/// `result` can be written.
#[inline(always)]
pub unsafe fn posix_memalign(result: *mut *mut u8, alignment: usize, size: usize) -> i32 {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*const u8>()) {
        return EINVAL;
    }
    // SAFETY: a power of two.
    let block = unsafe { allocate::allocate_aligned_as_asked(size, alignment) };
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { result.write(block) };
    0
}

/// `valloc`: a block on a page boundary.
///
/// # Safety
/// As `valloc`.
pub unsafe fn valloc(size: usize) -> *mut u8 {
    // SAFETY: a power of two.
    unsafe { allocate::allocate_aligned_as_asked(size, PAGE) }
}

/// `pvalloc`: whole pages.
///
/// # Safety
/// As `pvalloc`.
pub unsafe fn pvalloc(size: usize) -> *mut u8 {
    match size.max(1).checked_next_multiple_of(PAGE) {
        // SAFETY: a power of two.
        Some(size) => unsafe { allocate::allocate_aligned_as_asked(size, PAGE) },
        None => overflow(),
    }
}

/// `malloc_usable_size`, `mi_usable_size`: 0 for null. Every one of these bytes may be written and is kept by
/// `realloc`.
///
/// # Safety
/// The block is live.
pub unsafe fn usable_size(block: *const u8) -> usize {
    // SAFETY: the caller owns the block.
    unsafe { release::usable_size(block) }
}
