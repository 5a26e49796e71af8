//! The families with an alignment. In those that end in `_at` the address plus `offset` is what is aligned.
//!
//! Null with `EINVAL` for an alignment that is no power of two; with `ENOMEM` as everywhere.

use super::failure::{overflow, refuse};
use super::placement::{Place, change, change_zeroed, obtain, obtain_zeroed};

/// `mi_malloc_aligned`: a block.
///
/// # Safety
/// As `malloc`.
pub unsafe fn malloc_aligned(size: usize, alignment: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, 0) else { return refuse() };
    // SAFETY: no preconditions.
    unsafe { obtain(size, place) }
}

/// `mi_zalloc_aligned`: a block that is zero to its end.
///
/// # Safety
/// As `malloc`.
pub unsafe fn zalloc_aligned(size: usize, alignment: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, 0) else { return refuse() };
    // SAFETY: no preconditions.
    unsafe { obtain_zeroed(size, place) }
}

/// `mi_calloc_aligned`: a zeroed block for `count` objects.
///
/// # Safety
/// As `malloc`.
pub unsafe fn calloc_aligned(count: usize, size: usize, alignment: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, 0) else { return refuse() };
    let Some(size) = count.checked_mul(size) else { return overflow() };
    // SAFETY: no preconditions.
    unsafe { obtain_zeroed(size, place) }
}

/// `mi_realloc_aligned`: the block with another size, and in this place.
///
/// # Safety
/// As `realloc`.
pub unsafe fn realloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, 0) else { return refuse() };
    // SAFETY: the caller owns the block.
    unsafe { change(block, size, place) }
}

/// `mi_rezalloc_aligned`: the same; every byte beyond the old usable size is zero.
///
/// # Safety
/// As `realloc`.
pub unsafe fn rezalloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, 0) else { return refuse() };
    // SAFETY: the caller owns the block.
    unsafe { change_zeroed(block, size, place) }
}

/// `mi_recalloc_aligned`: the same for `count` objects.
///
/// # Safety
/// As `realloc`.
pub unsafe fn recalloc_aligned(block: *mut u8, count: usize, size: usize, alignment: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, 0) else { return refuse() };
    let Some(size) = count.checked_mul(size) else { return overflow() };
    // SAFETY: the caller owns the block.
    unsafe { change_zeroed(block, size, place) }
}

/// `mi_malloc_aligned_at`: a block.
///
/// # Safety
/// As `malloc`.
pub unsafe fn malloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, offset) else { return refuse() };
    // SAFETY: no preconditions.
    unsafe { obtain(size, place) }
}

/// `mi_zalloc_aligned_at`: a block that is zero to its end.
///
/// # Safety
/// As `malloc`.
pub unsafe fn zalloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, offset) else { return refuse() };
    // SAFETY: no preconditions.
    unsafe { obtain_zeroed(size, place) }
}

/// `mi_calloc_aligned_at`: a zeroed block for `count` objects.
///
/// # Safety
/// As `malloc`.
pub unsafe fn calloc_aligned_at(count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, offset) else { return refuse() };
    let Some(size) = count.checked_mul(size) else { return overflow() };
    // SAFETY: no preconditions.
    unsafe { obtain_zeroed(size, place) }
}

/// `mi_realloc_aligned_at`: the block with another size, and in this place.
///
/// # Safety
/// As `realloc`.
pub unsafe fn realloc_aligned_at(block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, offset) else { return refuse() };
    // SAFETY: the caller owns the block.
    unsafe { change(block, size, place) }
}

/// `mi_rezalloc_aligned_at`: the same; every byte beyond the old usable size is zero.
///
/// # Safety
/// As `realloc`.
pub unsafe fn rezalloc_aligned_at(block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8 {
    let Some(place) = Place::new(alignment, offset) else { return refuse() };
    // SAFETY: the caller owns the block.
    unsafe { change_zeroed(block, size, place) }
}

/// `mi_recalloc_aligned_at`: the same for `count` objects.
///
/// # Safety
/// As `realloc`.
pub unsafe fn recalloc_aligned_at(
    block: *mut u8,
    count: usize,
    size: usize,
    alignment: usize,
    offset: usize,
) -> *mut u8 {
    let Some(place) = Place::new(alignment, offset) else { return refuse() };
    let Some(size) = count.checked_mul(size) else { return overflow() };
    // SAFETY: the caller owns the block.
    unsafe { change_zeroed(block, size, place) }
}
