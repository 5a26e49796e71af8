//! Size classes.
//!
//! Multiples of 16 bytes to 1 KiB, then eight per doubling to 512 KiB: at most 12.5 % of a block is lost to rounding above
//! 128 bytes. A block's alignment is that of its class size (blocks start at multiples of it in a slab, and slabs at
//! multiples of the powers of two in it), so that no block ever needs a pointer to its inside.

use crate::arena::SLICE;

/// Largest request with 16-byte classes, in bytes.
pub(crate) const SMALL_MAX: usize = 1024;
/// Largest request served from slabs, in bytes.
pub(crate) const SLAB_MAX: usize = 512 * 1024;
/// Largest blocks whose slab is one slice, in bytes.
const ONE_SLICE_MAX: usize = 16 * 1024;
const SMALL_CLASSES: usize = SMALL_MAX / 16;
const DOUBLINGS: usize = (SLAB_MAX / SMALL_MAX).ilog2() as usize;
/// Classes including class 0, which stands for everything special and never has a block.
pub(crate) const CLASSES: usize = 1 + SMALL_CLASSES + DOUBLINGS * 8;

/// Class of a request of 1 ..= `SMALL_MAX` bytes; 0 gives class 0.
#[inline(always)]
pub(crate) const fn small_class(size: usize) -> usize {
    size.wrapping_add(15) / 16
}

/// Class of a request of `SMALL_MAX` + 1 ..= `SLAB_MAX` bytes.
#[inline(always)]
pub(crate) const fn medium_class(size: usize) -> usize {
    let last = size - 1;
    let doubling = (usize::BITS - 1 - (last | 1).leading_zeros()) as usize; // 10 ..= 18
    let eighth = last >> (doubling - 3); // 8 ..= 15
    1 + SMALL_CLASSES + (doubling - 10) * 8 + (eighth - 8)
}

/// Bytes of a block of a class.
#[inline(always)]
pub(crate) const fn class_size(class: usize) -> usize {
    if class <= SMALL_CLASSES {
        return class * 16;
    }
    let step = class - 1 - SMALL_CLASSES;
    let doubling = 10 + step / 8;
    (1 << doubling) + ((step % 8 + 1) << (doubling - 3))
}

/// Slices of the largest slabs of a class: one, and above 16 KiB as many (a power of two) as eight blocks need.
#[inline(always)]
pub(crate) const fn slab_slices(class: usize) -> usize {
    let size = class_size(class);
    if size <= ONE_SLICE_MAX { 1 } else { (size * 8).div_ceil(SLICE).next_power_of_two() }
}

/// Slices of the next slab of a class that has `slabs` of them: room for one block, then for twice as many each time.
///
/// Most processes have but one block of most classes above 16 KiB, and where pages are huge its slab is resident as a whole.
pub(crate) const fn next_slab_slices(class: usize, slabs: usize) -> usize {
    let most = slab_slices(class);
    let blocks = if slabs < 3 { 1 << slabs } else { 8 };
    let slices = (class_size(class) * blocks).div_ceil(SLICE);
    if slices < most { slices } else { most }
}

/// A slab of a class begins at a multiple of this many slices: of the largest power of two that divides the block size, so that blocks are
/// aligned as their size is.
pub(crate) const fn slab_alignment(class: usize) -> usize {
    let alignment = (1 << class_size(class).trailing_zeros()) / SLICE;
    if alignment == 0 { 1 } else { alignment }
}

/// Slots in use at first in each of the two stacks of a class: 8 KiB of blocks, but at least 8 and at most 64; of blocks above 16 KiB
/// 256 KiB, but at least 2 and at most 8.
///
/// What is in the stacks of an idle thread is out of reach for others: with twice as many, 64 threads of 4000 blocks take 107 MB
/// instead of 77, and nothing is faster.
pub(crate) const fn first_capacity(class: usize) -> usize {
    let size = class_size(class);
    if size > ONE_SLICE_MAX {
        return match 256 * 1024 / size {
            ..2 => 2,
            n @ 2..=8 => n,
            _ => 8,
        };
    }
    match 8 * 1024 / size {
        ..8 => 8,
        n @ 8..=64 => n,
        _ => 64,
    }
}

/// Blocks taken from the slabs at a class's first refill; each further refill takes twice as many as the one before.
///
/// A loop of single allocations and frees goes round in these, with one slow path a round (measured at 8 KiB: 11.4 ns a pair with one
/// block, 7.0 with eight). Of large blocks only one, so that the one just freed is used again while it is in the cache and its
/// pages are there, rather than a fresh one.
pub(crate) const fn first_batch(class: usize) -> usize {
    if class_size(class) > ONE_SLICE_MAX { 1 } else { first_capacity(class) }
}

/// Slots that each of the two stacks of a class may grow to: 1 MiB of blocks, but no more than 128.
///
/// A stack grows only where blocks go back to the slabs and are wanted again soon after.
pub(crate) const fn largest_capacity(class: usize) -> usize {
    let n = 1024 * 1024 / class_size(class);
    if n > LARGEST_CAPACITY { LARGEST_CAPACITY } else { n }
}

/// The most slots a stack can have.
pub(crate) const LARGEST_CAPACITY: usize = 128;

/// Slots of both stacks of all classes as they are at first.
pub(crate) const FIRST_SLOTS: usize = {
    let (mut slots, mut class) = (0, 1);
    while class < CLASSES {
        assert!(first_capacity(class) <= largest_capacity(class));
        slots += 2 * first_capacity(class);
        class += 1;
    }
    slots
};

/// Slots of both stacks of all classes as they are at their largest.
pub(crate) const LARGEST_SLOTS: usize = {
    let (mut slots, mut class) = (0, 1);
    while class < CLASSES {
        slots += 2 * largest_capacity(class);
        class += 1;
    }
    slots
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_fits_its_class_and_no_smaller_one() {
        for size in 1..=SLAB_MAX {
            let class = if size <= SMALL_MAX { small_class(size) } else { medium_class(size) };
            assert!(class_size(class) >= size, "{size}");
            assert!(class == 1 || class_size(class - 1) < size, "{size}");
            assert!(size <= 128 || class_size(class) * 8 <= (size + 15) * 9, "{size} wastes over an eighth");
        }
        assert_eq!(class_size(CLASSES - 1), SLAB_MAX);
    }

    #[test]
    fn the_reciprocal_finds_every_block_and_no_other_address() {
        for class in 1..CLASSES {
            let size = class_size(class);
            let reciprocal = crate::heap::slab::reciprocal(size) as u64;
            let room = slab_slices(class) * SLICE;
            for offset in 0..room as u64 {
                let block = (offset * reciprocal) >> 32;
                let starts_here = offset.is_multiple_of(size as u64);
                assert_eq!(block * size as u64 == offset, starts_here, "class {class} offset {offset}");
                assert!(!starts_here || block == offset / size as u64, "class {class} offset {offset}");
            }
        }
    }

    #[test]
    fn sizes_rounded_to_an_alignment_have_aligned_classes() {
        for alignment in (0..=SLAB_MAX.ilog2()).map(|shift| 1 << shift) {
            for size in (alignment..=SLAB_MAX).step_by(alignment) {
                let class = if size <= SMALL_MAX { small_class(size) } else { medium_class(size) };
                let size = class_size(class);
                assert!(alignment <= 16 || size.is_multiple_of(alignment), "{size} at {alignment}");
            }
        }
    }

    #[test]
    fn slabs_grow_with_their_number_and_keep_blocks_aligned() {
        for class in 1..CLASSES {
            let size = class_size(class);
            let mut before = 0;
            for slabs in 0..10 {
                let slices = next_slab_slices(class, slabs);
                assert!(slices >= before && slices * SLICE >= size, "class {class}");
                before = slices;
            }
            assert_eq!(before, slab_slices(class).min((size * 8).div_ceil(SLICE)), "class {class}");
            assert!((slab_alignment(class) * SLICE).is_multiple_of(1 << size.trailing_zeros()), "class {class}");
        }
    }

    #[test]
    fn slabs_hold_enough_blocks() {
        for class in 1..CLASSES {
            let blocks = slab_slices(class) * SLICE / class_size(class);
            assert!((4..=4096).contains(&blocks), "class {class}");
            assert!((2..=largest_capacity(class)).contains(&first_capacity(class)), "class {class}");
        }
    }
}
