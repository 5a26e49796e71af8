//! Blocks that lie as asked for, and blocks that are zero to their end.

use crate::heap::classes::SLAB_MAX;
use crate::heap::events::Extent;
use crate::heap::tell::{self, Tell};
use crate::heap::{allocate, release, span, zone};

/// Where a block is to lie: `block + offset` is a multiple of `alignment`.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// A power of two.
    alignment: usize,
    offset: usize,
}

impl Place {
    /// Anywhere, that is at a multiple of 16.
    pub(super) const ANY: Place = Place { alignment: 1, offset: 0 };

    /// `None`: the alignment is no power of two.
    pub(super) fn new(alignment: usize, offset: usize) -> Option<Place> {
        // Offsets beyond the alignment say the same as the rest of their division.
        alignment.is_power_of_two().then(|| Place { alignment, offset: offset & (alignment - 1) })
    }

    fn holds(self, block: *mut u8) -> bool {
        (block as usize).wrapping_add(self.offset).is_multiple_of(self.alignment)
    }
}

/// A block; null with `ENOMEM`.
pub(super) unsafe fn obtain(size: usize, place: Place) -> *mut u8 {
    if place.offset == 0 {
        // SAFETY: a power of two.
        return unsafe { allocate::allocate_aligned_as_asked(size, place.alignment) };
    }
    // In slabs, starts lie at multiples of 16 that depend on the size: only a span can begin anywhere.
    span::allocate_after(place.alignment - place.offset, size.max(1), place.alignment)
}

/// [`obtain`] as a part of a call that is told as a whole.
unsafe fn obtain_part(size: usize, place: Place, tell: Tell) -> *mut u8 {
    // SAFETY: a power of two.
    unsafe {
        match tell {
            Tell::Yes => obtain(size, place),
            Tell::No if place.offset == 0 => allocate::allocate_untold(size, place.alignment),
            Tell::No => span::allocate_untold(place.alignment - place.offset, size.max(1), place.alignment),
        }
    }
}

/// A block that is zero to its end.
pub(super) unsafe fn obtain_zeroed(size: usize, place: Place) -> *mut u8 {
    // SAFETY: all bytes that are written are the block's own.
    unsafe {
        if place.offset == 0 {
            return allocate::allocate_zeroed_aligned_as_asked(size, place.alignment);
        }
        let block = obtain(size, place);
        zero(block, 0);
        block
    }
}

/// Zero a block from an offset to its end; null is left alone.
unsafe fn zero(block: *mut u8, from: usize) {
    // SAFETY: the caller owns the block; that of null has no bytes.
    unsafe {
        let end = release::usable_size(block);
        if from < end {
            block.add(from).write_bytes(0, end - from);
        }
    }
}

/// `realloc` to a size and a place. Null with `errno`, and the block is kept, when that is not to be had.
pub(super) unsafe fn change(block: *mut u8, size: usize, place: Place) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        if block.is_null() {
            return obtain(size, place);
        }
        if place.offset == 0 {
            return allocate::reallocate_aligned(block, size, place.alignment);
        }
        if place.holds(block) && stays(block, size) {
            return allocate::reallocate_aligned(block, size, 1);
        }
        move_to(block, size, |tell| obtain_part(size, place, tell))
    }
}

/// Whether `realloc` to this size leaves a block where it is, as the heap decides it.
unsafe fn stays(block: *mut u8, size: usize) -> bool {
    // SAFETY: the caller owns the block.
    unsafe { zone::is_own(block) && release::stays(block, release::usable_size(block), size) }
}

/// Obtain another block, copy what fits, and free the old one; nothing if there is no new one.
unsafe fn move_to(block: *mut u8, size: usize, obtain: impl FnOnce(Tell) -> *mut u8) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        let usable = release::usable_size(block);
        tell::replace(Extent { block, usable }, size, |tell| {
            let new = obtain(tell);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, size.min(usable));
            }
            new
        })
    }
}

/// [`change`] after which all bytes beyond the end of the old block are zero, to the end of the new one.
pub(super) unsafe fn change_zeroed(block: *mut u8, size: usize, place: Place) -> *mut u8 {
    // SAFETY: the caller owns the block.
    unsafe {
        if block.is_null() {
            return obtain_zeroed(size, place);
        }
        let before = release::usable_size(block);
        if size > SLAB_MAX && before <= SLAB_MAX {
            // Fresh memory is zero: writing all of it would make it resident.
            return move_to(block, size, |tell| match tell {
                Tell::Yes => obtain_zeroed(size, place),
                Tell::No => {
                    let new = obtain_part(size, place, tell);
                    if new.is_null() || span::reads_zero(new) {
                        return new;
                    }
                    zero(new, 0);
                    new
                }
            });
        }
        let new = change(block, size, place);
        let kept = if new == block { before } else { before.min(size) };
        zero(new, kept);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::tests::alone;

    fn place(alignment: usize, offset: usize) -> Place {
        Place::new(alignment, offset).unwrap()
    }

    #[test]
    fn zeroed_blocks_are_zero_to_their_end() {
        let _alone = alone();
        for place in [Place::ANY, place(64, 0), place(4096, 8192), place(1 << 17, 0)] {
            for size in [0, 1, 17, 300, 1000, 5000, 300_000, 700_000] {
                for _ in 0..20 {
                    // SAFETY: the block is used within its usable size.
                    unsafe {
                        let block = obtain_zeroed(size, place);
                        let bytes = core::slice::from_raw_parts_mut(block, release::usable_size(block));
                        assert!(bytes.iter().all(|&byte| byte == 0), "{size}");
                        bytes.fill(0xa5);
                        release::release(block);
                    }
                }
            }
        }
    }

    #[test]
    fn growth_is_zero_in_every_way() {
        let _alone = alone();
        // SAFETY: the block is used within its usable size.
        unsafe {
            let mut block = core::ptr::null_mut();
            for size in [10, 12, 16, 17, 400, 300, 5000, 600_000, 600_001, 2_000_000, 700_000, 40, 1_100_000] {
                // Leave rubbish where the block may go.
                let rubbish = allocate::allocate(size);
                rubbish.write_bytes(0xff, release::usable_size(rubbish));
                release::release(rubbish);
                let before = release::usable_size(block);
                block = change_zeroed(block, size, Place::ANY);
                let bytes = core::slice::from_raw_parts_mut(block, release::usable_size(block));
                assert!(bytes.iter().skip(before).all(|&byte| byte == 0), "{before} to {size}");
                assert!(bytes.iter().take(before.min(size)).all(|&byte| byte == 7), "{before} to {size}");
                bytes.fill(7);
            }
            release::release(block);
        }
    }
}
