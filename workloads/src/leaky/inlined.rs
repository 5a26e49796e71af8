//! A site two levels of inlining deep: machine code knows only [`keep_inlined`], the debug information all three.

use std::alloc::{Layout, alloc};
use std::hint::black_box;

use super::block::Made;
use super::place::{Place, place};

#[inline(never)]
pub(super) fn keep_inlined(seed: u64) -> Made {
    let made = middle(seed);
    black_box(seed);
    made
}

#[inline(always)]
fn middle(seed: u64) -> Made {
    let made = innermost(seed.rotate_left(1));
    black_box(seed);
    made
}

#[inline(always)]
fn innermost(seed: u64) -> Made {
    const INLINED: Layout = Layout::new::<[u64; 64]>();
    black_box(seed);
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(INLINED) });
    // SAFETY: as above.
    unsafe { Made::from_raw(memory, INLINED, at) }
}
