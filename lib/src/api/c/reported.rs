//! The functions that also say how large a block is. Each place for a size may be null; it is set to 0 where there is
//! no block.

use super::{aligned, blocks, standard, zeroing};

/// # Safety
/// `block` is a live block or null, and `size` can be written or is null.
unsafe fn report(block: *mut u8, size: *mut usize) -> *mut u8 {
    if !size.is_null() {
        // SAFETY: the caller's promise.
        unsafe { size.write(standard::usable_size(block)) };
    }
    block
}

/// `mi_umalloc`, `mi_umalloc_small`.
///
/// # Safety
/// `usable` can be written or is null.
pub unsafe fn umalloc(size: usize, usable: *mut usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { report(standard::malloc(size), usable) }
}

/// `mi_uzalloc_small`.
///
/// # Safety
/// As [`umalloc`].
pub unsafe fn uzalloc(size: usize, usable: *mut usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { report(zeroing::zalloc(size), usable) }
}

/// `mi_ucalloc`.
///
/// # Safety
/// As [`umalloc`].
pub unsafe fn ucalloc(count: usize, size: usize, usable: *mut usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { report(zeroing::mi_calloc(count, size), usable) }
}

/// `mi_urealloc`: `before` gets the usable size of the old block, `after` that of the new one.
///
/// # Safety
/// As `realloc`; `before` and `after` can be written or are null.
pub unsafe fn urealloc(block: *mut u8, size: usize, before: *mut usize, after: *mut usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { report(blocks::mi_realloc(report(block, before), size), after) }
}

/// `mi_ufree`.
///
/// # Safety
/// As `free`; `usable` can be written or is null.
pub unsafe fn ufree(block: *mut u8, usable: *mut usize) {
    // SAFETY: the caller's promise.
    unsafe { standard::free(report(block, usable)) }
}

/// `mi_umalloc_aligned`.
///
/// # Safety
/// As [`umalloc`].
pub unsafe fn umalloc_aligned(size: usize, alignment: usize, usable: *mut usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { report(aligned::malloc_aligned(size, alignment), usable) }
}

/// `mi_uzalloc_aligned`.
///
/// # Safety
/// As [`umalloc`].
pub unsafe fn uzalloc_aligned(size: usize, alignment: usize, usable: *mut usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { report(aligned::zalloc_aligned(size, alignment), usable) }
}
