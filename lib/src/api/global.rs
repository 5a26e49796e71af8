//! [`MiMalloc`]: the allocator of a Rust program.

use crate::heap::{allocate, release};
use core::alloc::{GlobalAlloc, Layout};

/// The allocator, for `#[global_allocator]`.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
///
/// let text = String::from("served by mimalloc-pprof");
/// assert_eq!(text.len(), 24);
/// ```
///
/// It serves this program's Rust code only; C code in the same process goes on using the C library's `malloc`. Thread-safe.
#[derive(Clone, Copy, Debug, Default)]
pub struct MiMalloc;

// SAFETY: blocks are at least as large and as aligned as asked for, disjoint, and stay until freed; nothing unwinds.
unsafe impl GlobalAlloc for MiMalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout's alignment is a power of two.
        unsafe {
            if layout.align() <= 16 {
                allocate::allocate(layout.size())
            } else {
                allocate::allocate_aligned(layout.size(), layout.align())
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller owns the block.
        unsafe { release::release(block) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe {
            if layout.align() <= 16 {
                return allocate::allocate_zeroed(layout.size());
            }
            let block = allocate::allocate_aligned(layout.size(), layout.align());
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller owns the block.
        unsafe { allocate::reallocate_aligned(block, new_size, layout.align()) }
    }
}
