//! [`MiMalloc`]: the allocator of a Rust program.
//!
//! The fast paths are inlined into the program. Where the compiler knows the layout (`Box::new`, say), the size class and the
//! alignment are constants, and an allocation is a pop from a known stack: `lib/tests/rust_fast_paths.rs` reads it from the
//! machine code. In a program without link-time optimisation that is so in the crate that declares the global allocator; other
//! crates call one function, which does not know the layout.
//!
//! Two things were tried and measured as no gain: `dealloc` that compares the class map's entry with the class that the
//! layout stands for, so that the push need not wait for the map (2.13 ns instead of 2.05 for a box of 48 bytes, 2.4 instead
//! of 2.2 where the size is not constant); it cannot do without the entry, as only that tells a sampled block. And the
//! medium classes in line, too (3.9 ns instead of 3.1 at 1 KiB, 6.2 instead of 3.7 at 8 KiB).

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
/// It serves this program's Rust code only; C code in the same process goes on using the C library's `malloc`. Thread-safe, and
/// may be used before `main`, in destructors of threads, and in signal handlers.
///
/// `realloc` leaves a block where it is as long as the new size fits and is at least half of it; blocks above 512 KiB also grow
/// where they are when the memory behind them is free. `alloc_zeroed` does not write what the kernel has just zeroed. A failed
/// allocation is a null pointer.
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
        unsafe { allocate::allocate_zeroed_aligned(layout.size(), layout.align()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller owns the block, and uses no more of it than the layout says.
        unsafe { allocate::reallocate_used(block, layout.size(), new_size, layout.align()) }
    }
}
