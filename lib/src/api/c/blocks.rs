//! mimalloc's own allocation functions, where they differ from those of the C library.

use super::failure::overflow;
use super::process::is_in_heap_region;
use crate::arena::SLICE;
use crate::heap::classes::{SLAB_MAX, SMALL_MAX, class_size, medium_class, small_class};
use crate::heap::{allocate, grow, release};

/// `mi_realloc`: size 0 gives a block of the least size.
///
/// # Safety
/// As `realloc`.
pub unsafe fn mi_realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe { allocate::reallocate(block, size) }
}

/// `mi_mallocn`: room for `count` objects.
///
/// # Safety
/// As `malloc`.
pub unsafe fn mallocn(count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: no preconditions.
        Some(size) => unsafe { allocate::allocate(size) },
        None => overflow(),
    }
}

/// `mi_reallocn`, `mi_reallocarray`: as [`mi_realloc`], for `count` objects.
///
/// # Safety
/// As `realloc`.
pub unsafe fn reallocn(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller owns the block.
        Some(size) => unsafe { allocate::reallocate(block, size) },
        None => overflow(),
    }
}

/// `mi_reallocf`, `reallocf`: [`mi_realloc`] that frees the block when it fails.
///
/// # Safety
/// As `realloc`.
pub unsafe fn reallocf(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        let new = allocate::reallocate(block, size);
        if new.is_null() {
            release::release(block);
        }
        new
    }
}

/// `mi_expand`: the block itself if it has room for `size` bytes, or can get it where it is; else null. It never moves and is never
/// freed.
///
/// # Safety
/// As `realloc`.
pub unsafe fn expand(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        let usable = release::usable_size(block);
        if size > usable && !grow::extend(block, size) {
            return core::ptr::null_mut();
        }
        release::resized(block, usable, size);
        block
    }
}

/// `mi__expand`: [`expand`] with `ENOMEM` where it gives null.
///
/// # Safety
/// As `realloc`.
pub unsafe fn expand_or_errno(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    let same = unsafe { expand(block, size) };
    if same.is_null() { allocate::no_memory() } else { same }
}

/// `mi_good_size`, `malloc_good_size`: usable bytes of a block for `size` bytes. Sizes that cannot be had are returned
/// as they are.
pub fn good_size(size: usize) -> usize {
    class_of(size).map_or(size.checked_next_multiple_of(SLICE).unwrap_or(size), class_size)
}

/// The class that serves requests of this size; `None` above the slabs.
pub(super) fn class_of(size: usize) -> Option<usize> {
    match size {
        ..=SMALL_MAX => Some(small_class(size).max(1)),
        _ if size <= SLAB_MAX => Some(medium_class(size)),
        _ => None,
    }
}

/// `mi_malloc_size`, `mi_malloc_usable_size`: usable bytes; 0 for what is not a block of ours.
///
/// # Safety
/// The block is live.
pub unsafe fn size_of_own(block: *const u8) -> usize {
    // SAFETY: the caller owns the block.
    if is_in_heap_region(block) { unsafe { release::usable_size(block) } } else { 0 }
}

/// `mi_cfree`: frees what is a block of ours and ignores everything else.
///
/// # Safety
/// As `free`.
pub unsafe fn free_own(block: *mut u8) {
    if is_in_heap_region(block) {
        // SAFETY: the caller owns the block.
        unsafe { release::release(block) }
    }
}

/// `free` that is told size or alignment. Neither is trusted: a sampled block is found through its address alone, and
/// programs delete through base classes with the wrong size.
///
/// # Safety
/// As `free`.
#[inline(always)]
pub unsafe fn free_told(block: *mut u8, _: usize) {
    // SAFETY: the caller owns the block.
    unsafe { release::release(block) }
}

/// `free` that is told size and alignment; see [`free_told`].
///
/// # Safety
/// As `free`.
#[inline(always)]
pub unsafe fn free_told_both(block: *mut u8, _: usize, _: usize) {
    // SAFETY: the caller owns the block.
    unsafe { release::release(block) }
}

/// `reallocarr`, `mi_reallocarr`: the block that `place` points to becomes one for `count` objects. The result is 0, or
/// the error's number and everything is as it was.
///
/// # Safety
/// `place` points to a pointer to a block, or to a null pointer.
pub unsafe fn reallocarr(place: *mut u8, count: usize, size: usize) -> i32 {
    use crate::os::libc::{EINVAL, ENOMEM, errno, set_errno};
    if place.is_null() {
        return EINVAL;
    }
    let before = errno();
    // SAFETY: the caller's promise; the pointer need not be aligned.
    unsafe {
        let place = place.cast::<*mut u8>();
        let new = reallocn(place.read_unaligned(), count, size);
        set_errno(before);
        if new.is_null() {
            return ENOMEM;
        }
        place.write_unaligned(new);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_sizes_are_what_blocks_have() {
        for size in (0..3000).chain((3000..2_000_000).step_by(997)) {
            // SAFETY: the block is freed once.
            unsafe {
                let block = allocate::allocate(size);
                assert_eq!(release::usable_size(block), good_size(size), "{size}");
                release::release(block);
            }
        }
        assert_eq!(good_size(usize::MAX), usize::MAX);
    }
}
