//! Blocks beyond what `GlobalAlloc` has words for.

use crate::api::c;

/// Bytes of a block that may be used: what was asked for, rounded up as [`good_size`] does. 0 for null.
///
/// ```
/// let text = Box::new([0u8; 100]);
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// assert_eq!(unsafe { mimalloc_pprof::usable_size(text.as_ptr()) }, 112);
/// ```
///
/// # Safety
/// The block is null, or a live one of this allocator.
pub unsafe fn usable_size(block: *const u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { c::usable_size(block) }
}

/// The usable size of a block of which `size` bytes are asked for, in bytes. A size that cannot be had is returned as it is.
///
/// ```
/// assert_eq!(mimalloc_pprof::good_size(1000), 1008);
/// ```
pub fn good_size(size: usize) -> usize {
    c::good_size(size)
}

/// Change the size of a block; all bytes beyond its old **usable** size are zero.
///
/// Those between the size asked for before and the usable one are as the program left them, and zero if it never wrote them
/// and the block was made zeroed. On failure the result is null and the block is kept. A null block makes a new one.
///
/// ```
/// use std::alloc::{alloc_zeroed, dealloc, Layout};
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
///
/// unsafe {
///     let block = alloc_zeroed(Layout::new::<[u8; 10]>());
///     let block = mimalloc_pprof::rezalloc(block, 1000);
///     assert!(std::slice::from_raw_parts(block, 1000).iter().all(|&byte| byte == 0));
///     dealloc(block, Layout::new::<[u8; 1000]>());
/// }
/// ```
///
/// # Safety
/// The block is null, or a live one of this allocator whose alignment is at most 16. It must not be used again unless the
/// result is null.
pub unsafe fn rezalloc(block: *mut u8, new_size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { c::rezalloc(block, new_size) }
}

/// [`rezalloc`] to `count * size` bytes; null, and the block is kept, also when that is more than a size can be.
///
/// # Safety
/// As [`rezalloc`].
pub unsafe fn recalloc(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { c::recalloc(block, count, size) }
}

/// The block itself if it has room for `new_size` bytes where it is, else null. It stays live in both cases.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let mut block = Box::new([0u8; 100]);
/// let at = block.as_mut_ptr();
/// assert_eq!(unsafe { mimalloc_pprof::expand(at, 112) }, at);
/// assert!(unsafe { mimalloc_pprof::expand(at, 10_000) }.is_null());
/// ```
///
/// # Safety
/// The block is null, or a live one of this allocator.
pub unsafe fn expand(block: *mut u8, new_size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { c::expand(block, new_size) }
}

/// Call the deferred free that was registered through the C interface; with `force`, all memory that no live block needs goes back to
/// the operating system, what running threads have cached, too. Thread-safe. [`purge_all`](crate::purge_all) tells how much that was.
pub fn collect(force: bool) {
    c::collect(force);
}

/// Memory straight from the operating system, zeroed and in whole pages, at a multiple of `alignment` (a power of two, or 0 for that of a pointer):
/// no instrument sees it and no statistics count it. For programs that instrument this allocator themselves. Null: no memory, or no such alignment.
///
/// ```
/// let block = mimalloc_pprof::unwrapped_malloc;
/// unsafe {
///     let block = block(100, 64);
///     assert!(!block.is_null() && block as usize % 64 == 0);
///     mimalloc_pprof::unwrapped_free(block);
/// }
/// ```
///
/// # Safety
/// None is needed; it is as unsafe as the function it takes the place of.
pub unsafe fn unwrapped_malloc(size: usize, alignment: usize) -> *mut u8 {
    c::unwrapped_malloc(size, alignment)
}

/// Give back what [`unwrapped_malloc`] gave. Null is allowed.
///
/// # Safety
/// It came from there and is used no more.
pub unsafe fn unwrapped_free(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { c::unwrapped_free(block) }
}

/// Change the size of what [`unwrapped_malloc`] gave. Of null it allocates, to 0 bytes it frees and gives null. Null: no memory, and the block is as it
/// was.
///
/// # Safety
/// It came from there, and is used no more unless the result is null.
pub unsafe fn unwrapped_realloc(block: *mut u8, new_size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { c::unwrapped_realloc(block, new_size, alignment) }
}
