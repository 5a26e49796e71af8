//! mimalloc's functions for zeroed blocks without an alignment. Their blocks are zero to their end, not only as far as
//! was asked: memory that a block grows into later is then zero too.

use super::failure::overflow;
use super::placement::{Place, change_zeroed, obtain_zeroed};

/// `mi_zalloc`: a zeroed block.
///
/// # Safety
/// As `malloc`.
pub unsafe fn zalloc(size: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    unsafe { obtain_zeroed(size, Place::ANY) }
}

/// `mi_calloc`: a zeroed block for `count` objects; null and `ENOMEM` also when the product overflows.
///
/// # Safety
/// As `calloc`.
pub unsafe fn mi_calloc(count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: no preconditions.
        Some(size) => unsafe { obtain_zeroed(size, Place::ANY) },
        None => overflow(),
    }
}

/// `mi_rezalloc`: `mi_realloc`, and every byte beyond the old usable size is zero.
///
/// # Safety
/// As `realloc`.
pub unsafe fn rezalloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe { change_zeroed(block, size, Place::ANY) }
}

/// `mi_recalloc`: [`rezalloc`] for `count` objects.
///
/// # Safety
/// As `realloc`.
pub unsafe fn recalloc(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller owns the block.
        Some(size) => unsafe { change_zeroed(block, size, Place::ANY) },
        None => overflow(),
    }
}
