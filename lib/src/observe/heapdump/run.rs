//! A run of the arena as it was when it was looked at: a record, and what lies behind it in memory.

use crate::arena::{BITMAP_WORDS, Residence, address_of};
use crate::heap::zone::Snapshot;
use crate::heap::zone::inspect::{LargeBlock, Place};

/// No heap.
pub(super) const NONE: u32 = u32::MAX;

/// What a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum What {
    Free = 0,
    Slab = 1,
    Span = 2,
    Sampled = 3,
    Transit = 4,
    Foreign = 5,
    Busy = 6,
}

/// A run, as far as it is of one heap. Behind it lie its bitmap, the pages of each slice that were given back, and the sites of its samples.
#[repr(C)]
pub(super) struct Run {
    /// The next run of the same heap.
    pub(super) next: *const Run,
    pub(super) index: usize,
    pub(super) slices: usize,
    /// Of the first block.
    pub(super) start: usize,
    pub(super) block_size: usize,
    /// Bytes that the program asked for; 0 = not known.
    pub(super) requested: usize,
    pub(super) thread: u64,
    pub(super) blocks: u32,
    /// Blocks from this number on were never handed out.
    pub(super) fresh: u32,
    pub(super) used: u32,
    pub(super) cached: u32,
    pub(super) parked: u32,
    /// Pages that are not in memory, and those that were given back; of free runs more or less.
    pub(super) absent: u32,
    pub(super) returned: u32,
    /// Live samples among its blocks.
    pub(super) samples: u32,
    pub(super) heap: u32,
    /// Words of the bitmap, slices of which the pages are told, sites.
    pub(super) words: u32,
    pub(super) places: u32,
    pub(super) sites: u32,
    pub(super) pool: u16,
    pub(super) what: What,
    /// A free run that is being given back at this moment.
    pub(super) purging: bool,
    /// A free run of which nothing is in memory.
    pub(super) clean: bool,
}

impl Run {
    pub(super) fn of(place: Place, what: What) -> Run {
        Run {
            next: core::ptr::null(),
            index: place.index,
            slices: place.slices,
            start: address_of(place.index),
            block_size: 0,
            requested: 0,
            thread: 0,
            blocks: 0,
            fresh: 0,
            used: 0,
            cached: 0,
            parked: 0,
            absent: 0,
            returned: 0,
            samples: 0,
            heap: NONE,
            words: 0,
            places: 0,
            sites: 0,
            pool: place.pool.word(),
            what,
            purging: false,
            clean: false,
        }
    }

    pub(super) fn of_slab(place: Place, slab: &Snapshot, what: What) -> Run {
        Run {
            block_size: slab.area.block_size,
            thread: slab.thread,
            blocks: slab.blocks as u32,
            fresh: slab.fresh as u32,
            used: slab.area.used as u32,
            cached: slab.cached as u32,
            parked: slab.parked as u32,
            returned: slab.returned.iter().map(|pages| pages.count_ones()).sum(),
            words: slab.blocks.div_ceil(64).min(BITMAP_WORDS) as u32,
            ..Run::of(place, what)
        }
    }

    pub(super) fn of_block(place: Place, block: &LargeBlock) -> Run {
        Run {
            start: address_of(place.index) + block.span.lead,
            block_size: block.size,
            requested: block.span.asked,
            blocks: 1,
            fresh: 1,
            used: 1,
            samples: (block.span.site != 0) as u32,
            words: 1,
            sites: (block.span.site != 0) as u32,
            ..Run::of(place, What::Span)
        }
    }

    pub(super) fn of_free(place: Place, residence: Residence, purging: bool) -> Run {
        let Residence { clean, absent, returned, .. } = residence;
        Run { absent, returned, clean, purging, ..Run::of(place, What::Free) }
    }

    /// It has blocks.
    pub(super) fn is_page(&self) -> bool {
        matches!(self.what, What::Slab | What::Span | What::Sampled)
    }

    /// Bytes of blocks that are live.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used as u64 * self.block_size as u64
    }

    fn behind(&self) -> *const u8 {
        (&raw const *self).wrapping_add(1).cast()
    }

    /// One bit for each block: it is live. Empty if that was not wanted.
    pub(super) fn live(&self) -> &[u64] {
        // SAFETY: the record was made with these words behind it.
        unsafe { core::slice::from_raw_parts(self.behind().cast(), self.words as usize) }
    }

    /// One bit for each page of each slice: it was given back.
    pub(super) fn pages(&self) -> &[u16] {
        let at = self.behind().wrapping_add(self.words as usize * 8).cast();
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts(at, self.places as usize) }
    }

    /// Numbers of sites, for each live block that is a sample.
    pub(super) fn sites(&self) -> &[u32] {
        let at = self.behind().wrapping_add(self.words as usize * 8 + (self.places as usize * 2).next_multiple_of(8));
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts(at.cast(), self.sites as usize) }
    }

    /// Addresses of the live blocks.
    pub(super) fn each_live(&self, mut visit: impl FnMut(usize)) {
        for (word, &bits) in self.live().iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                visit(self.start + (word * 64 + bits.trailing_zeros() as usize) * self.block_size);
                bits &= bits - 1;
            }
        }
    }

    /// Bytes with what is behind it.
    pub(super) fn whole(&self) -> usize {
        let behind = self.words as usize * 8 + (self.places as usize * 2).next_multiple_of(8) + self.sites as usize * 4;
        (size_of::<Run>() + behind).next_multiple_of(8)
    }
}

/// Write what lies behind a record. As many sites as there is room for: blocks that were freed meanwhile have site 0.
///
/// # Safety
/// The record is the caller's, has so much room behind it, and there are as many words and pages as it says.
pub(super) unsafe fn fill(run: *mut Run, live: &[u64], pages: &[u16], sites: impl FnOnce(&mut dyn FnMut(u32))) {
    // SAFETY: the caller's promise.
    unsafe {
        let Run { words, places, sites: room, .. } = *run;
        let mut at = run.add(1).cast::<u8>();
        at.cast::<u64>().copy_from_nonoverlapping(live.as_ptr(), words as usize);
        at = at.add(words as usize * 8);
        at.cast::<u16>().copy_from_nonoverlapping(pages.as_ptr(), places as usize);
        at = at.add((places as usize * 2).next_multiple_of(8));
        let mut number = 0;
        sites(&mut |site| {
            if number < room as usize {
                at.cast::<u32>().add(number).write(site);
                number += 1;
            }
        });
    }
}
