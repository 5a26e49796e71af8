//! A run of the arena as it was when it was looked at: a record, and what lies behind it in memory.

use crate::arena::{BITMAP_WORDS, Residence, address_of};
use crate::heap::look::Slab;
use crate::heap::zone::Zone;
use crate::heap::zone::inspect::{LargeBlock, Place, Sampled};

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
    /// The next slab that is still to be looked at; later the next run of the same heap.
    pub(super) next: *mut Run,
    pub(super) zone: *mut Zone,
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
    /// Blocks that some thread has cached, and those that are kept for sampled or guarded ones. Neither are live.
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
    /// Bytes with what is behind it.
    pub(super) whole: u32,
    pub(super) pool: u16,
    pub(super) what: What,
    /// A free run that is being given back at this moment.
    pub(super) purging: bool,
    /// A free run of which nothing is in memory.
    pub(super) clean: bool,
    /// How often a slab was looked for and was not there.
    pub(super) tries: u8,
}

impl Run {
    pub(super) fn of(place: Place, what: What) -> Run {
        Run {
            next: core::ptr::null_mut(),
            zone: core::ptr::null_mut(),
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
            whole: 0,
            pool: place.pool.word(),
            what,
            purging: false,
            clean: false,
            tries: 0,
        }
    }

    /// Of a slab that is still to be looked at.
    pub(super) fn of_slab(place: Place, blocks: usize) -> Run {
        let words = blocks.div_ceil(64).min(BITMAP_WORDS) as u32;
        Run { words, places: place.slices as u32, ..Run::of(place, What::Busy) }
    }

    pub(super) fn of_samples(place: Place, slab: &Sampled) -> Run {
        Run {
            zone: slab.zone,
            block_size: slab.block_size,
            blocks: slab.blocks as u32,
            fresh: slab.blocks as u32,
            used: slab.used as u32,
            samples: slab.used as u32,
            words: slab.blocks.div_ceil(64).min(BITMAP_WORDS) as u32,
            sites: slab.used as u32,
            ..Run::of(place, What::Sampled)
        }
    }

    pub(super) fn of_block(place: Place, block: &LargeBlock) -> Run {
        let sampled = (block.span.site != 0) as u32;
        Run {
            zone: block.zone,
            start: address_of(place.index) + block.span.lead,
            block_size: block.size,
            requested: block.span.asked,
            blocks: 1,
            fresh: 1,
            used: 1,
            samples: sampled,
            words: 1,
            sites: sampled,
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

    fn behind(&self) -> *mut u8 {
        (&raw const *self).wrapping_add(1).cast_mut().cast()
    }

    fn places_at(&self) -> *mut u16 {
        self.behind().wrapping_add(self.words as usize * 8).cast()
    }

    fn sites_at(&self) -> *mut u32 {
        self.places_at().cast::<u8>().wrapping_add((self.places as usize * 2).next_multiple_of(8)).cast()
    }

    /// Bytes of a record that says that so much is behind it.
    pub(super) fn needed(&self) -> usize {
        let behind = self.words as usize * 8 + (self.places as usize * 2).next_multiple_of(8) + self.sites as usize * 4;
        (size_of::<Run>() + behind).next_multiple_of(8)
    }

    /// One bit for each block: it is live.
    pub(super) fn live(&self) -> &[u64] {
        // SAFETY: the record was made with these words behind it.
        unsafe { core::slice::from_raw_parts(self.behind().cast(), self.words as usize) }
    }

    fn live_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.behind().cast(), self.words as usize) }
    }

    /// One bit for each page of each slice: it was given back. Empty where none was.
    pub(super) fn pages(&self) -> &[u16] {
        let places = if self.returned == 0 { 0 } else { self.places as usize };
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts(self.places_at(), places) }
    }

    /// Numbers of sites, for each live block that is a sample.
    pub(super) fn sites(&self) -> &[u32] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts(self.sites_at(), self.sites as usize) }
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

    /// The block at this address is not live, though no bit says so. True: it was taken for live until now.
    pub(super) fn is_not_live(&mut self, address: usize) -> bool {
        let block = address.wrapping_sub(self.start).checked_div(self.block_size).unwrap_or(usize::MAX);
        if self.what != What::Slab || block >= self.blocks as usize {
            return false;
        }
        let word = &mut self.live_mut()[block / 64];
        let was_live = *word >> (block % 64) & 1 != 0;
        *word &= !(1 << (block % 64));
        self.used -= was_live as u32;
        was_live
    }

    /// Write the bitmap of a run that has one from the start.
    pub(super) fn set_live(&mut self, live: &[u64]) {
        self.live_mut().iter_mut().zip(live).for_each(|(word, &live)| *word = live);
    }

    /// Write the sites, as many as there is room for.
    pub(super) fn set_sites(&mut self, each: impl FnOnce(&mut dyn FnMut(u32))) {
        let (at, room) = (self.sites_at(), self.sites as usize);
        let mut number = 0;
        each(&mut |site| {
            if number < room {
                // SAFETY: the record was made with so many behind it.
                unsafe { at.add(number).write(site) };
                number += 1;
            }
        });
    }

    /// The slab was looked at. All blocks are taken for live whose bits are not set.
    pub(super) fn see(&mut self, slab: &Slab, zone: *mut Zone, thread: u64) {
        if slab.blocks.div_ceil(64) != self.words as usize || slab.slices != self.slices {
            return self.miss(); // it is another slab by now
        }
        self.what = What::Slab;
        self.zone = zone;
        self.thread = thread;
        self.block_size = slab.block_size;
        self.blocks = slab.blocks as u32;
        self.fresh = slab.fresh.min(slab.blocks) as u32;
        for (number, word) in self.live_mut().iter_mut().enumerate() {
            let left = slab.blocks - number * 64;
            let all = if left >= 64 { !0 } else { (1 << left) - 1 };
            *word = all & !slab.free[number];
        }
        self.used = self.live().iter().map(|word| word.count_ones()).sum();
        let places = self.places_at();
        for number in 0..self.slices {
            // SAFETY: the record was made with so many behind it.
            unsafe { places.add(number).write(slab.returned[number]) };
            self.returned += slab.returned[number].count_ones();
        }
    }

    /// The slab has gone before it could be looked at.
    pub(super) fn miss(&mut self) {
        (self.what, self.words, self.places) = (What::Transit, 0, 0);
    }
}
