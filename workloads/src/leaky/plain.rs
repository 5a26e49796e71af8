//! Sites that call the allocator functions directly: `alloc`, `alloc_zeroed`, aligned memory, large memory.

use std::alloc::{Layout, alloc, alloc_zeroed};

use super::block::Made;
use super::place::{Place, place};

const fn layout(size: usize, align: usize) -> Layout {
    match Layout::from_size_align(size, align) {
        Ok(layout) => layout,
        Err(_) => panic!("not a layout"),
    }
}

#[inline(never)]
pub(super) fn keep_tiny(_seed: u64) -> Made {
    const TINY: Layout = layout(16, 8);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(TINY) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, TINY, at) }
}

#[inline(never)]
pub(super) fn keep_small(_seed: u64) -> Made {
    const SMALL: Layout = layout(64, 8);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(SMALL) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, SMALL, at) }
}

#[inline(never)]
pub(super) fn keep_zeroed(_seed: u64) -> Made {
    const ZEROED: Layout = layout(256, 8);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc_zeroed(ZEROED) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, ZEROED, at) }
}

/// Above an alignment of 16, Rust's `System` asks with `posix_memalign` instead of `malloc`.
#[inline(never)]
pub(super) fn keep_aligned(_seed: u64) -> Made {
    const ALIGNED: Layout = layout(2048, 256);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(ALIGNED) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, ALIGNED, at) }
}

#[inline(never)]
pub(super) fn keep_64_kib(_seed: u64) -> Made {
    const LARGE: Layout = layout(64 << 10, 8);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(LARGE) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, LARGE, at) }
}

#[inline(never)]
pub(super) fn keep_1_mib(_seed: u64) -> Made {
    const HUGE: Layout = layout(1 << 20, 8);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(HUGE) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, HUGE, at) }
}
