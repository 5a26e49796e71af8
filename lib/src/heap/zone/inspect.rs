//! Every run of the arena with what is in it, whatever zone it belongs to: what dumps of the heap are made from.
//!
//! Runs are looked at one at a time, in the order of their addresses and under the arena's lock. Of slabs this is where they are and whose; what is in
//! them is seen under the lock of their home ([`look::slabs_of`]). So runs that come or go meanwhile may be missed.

use super::whose::zone_of_run;
use super::{Heap, Zone, all, is_main, main, subprocess};
use crate::arena::{self, BITMAP_WORDS, Kind, Pool, Residence, slice};
use crate::heap::look::{self, Span};
use crate::heap::sampled;
use core::sync::atomic::Ordering::*;

/// What is in a run.
pub(crate) enum Content<'a> {
    /// Blocks of one class: how many, as far as can be seen without a lock.
    Slab(usize),
    /// Blocks that were sampled.
    Sampled(&'a Sampled),
    /// One large block.
    Span(LargeBlock),
    /// Nothing; what is known of its pages, and whether they are being given back at this moment.
    Free(Residence, bool),
    /// It is on its way between the arena and an owner: somebody takes it or gives it back, or it is a freed block that a thread keeps at
    /// hand.
    Transit,
    /// Somebody else's memory.
    Foreign,
}

/// A large block.
pub(crate) struct LargeBlock {
    pub(crate) zone: *mut Zone,
    pub(crate) span: Span,
    /// Usable bytes.
    pub(crate) size: usize,
}

/// A slab of sampled blocks, as far as they are of one zone: there is one of these for each zone that has some in it.
pub(crate) struct Sampled {
    pub(crate) zone: *mut Zone,
    pub(crate) block_size: usize,
    pub(crate) blocks: usize,
    pub(crate) used: usize,
    pub(crate) live: [u64; BITMAP_WORDS],
    index: usize,
}

impl Sampled {
    fn of(zone: *mut Zone, index: usize) -> Sampled {
        let mut live = [0u64; BITMAP_WORDS];
        sampled::each_in(index, |bit, parked| {
            if core::ptr::eq(zone_of_run(arena::index_of(parked as usize)), zone) {
                live[bit / 64] |= 1 << (bit % 64);
            }
        });
        let used = live.iter().map(|word| word.count_ones() as usize).sum();
        // SAFETY: sampled slabs are never given back.
        let (block_size, blocks) = unsafe { ((*slice(index)).block_size as usize, (*slice(index)).blocks as usize) };
        Sampled { zone, block_size, blocks, used, live, index }
    }

    /// The number of the site of each live block, in their order; 0 = it is free by now.
    pub(crate) fn each_site(&self, mut tell: impl FnMut(u32)) {
        for block in (0..self.blocks).filter(|block| self.live[block / 64] >> (block % 64) & 1 != 0) {
            tell(sampled::site_in(self.index, block));
        }
    }
}

/// Where a run lies.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) slices: usize,
    pub(crate) pool: Pool,
}

/// What is seen of a run under the arena's lock.
enum Seen {
    Slab,
    Sampled,
    Span(LargeBlock),
    Free(Residence, bool),
    Transit,
    Foreign,
}

/// Look at the first run from slice `from` on. Returns where to go on; `None`: there are no more. With no lock held.
pub(crate) fn inspect(from: usize, mut tell: impl FnMut(Place, Content<'_>)) -> Option<usize> {
    let (index, slices, (seen, pool)) = arena::next_of(from, |_| true, look_at)?;
    let place = Place { index, slices, pool };
    match seen {
        Seen::Free(residence, purging) => tell(place, Content::Free(residence, purging)),
        Seen::Span(block) => tell(place, Content::Span(block)),
        Seen::Transit => tell(place, Content::Transit),
        Seen::Foreign => tell(place, Content::Foreign),
        // SAFETY: metadata can be read.
        Seen::Slab => tell(place, Content::Slab(unsafe { (*slice(index)).blocks as usize })),
        Seen::Sampled => each_zone_in(index, |zone| tell(place, Content::Sampled(&Sampled::of(zone, index)))),
    }
    Some(index + slices)
}

/// The arena's lock is held meanwhile: what is seen of a span or of a free run is of this very one.
fn look_at(index: usize, kind: Kind) -> (Seen, Pool) {
    let seen = match kind {
        // SAFETY: as above.
        Kind::Free | Kind::Purge => Seen::Free(unsafe { (*slice(index)).residence() }, kind == Kind::Purge),
        Kind::Span => Seen::Span(large_block(index)),
        Kind::Sampled => Seen::Sampled,
        Kind::Slab | Kind::Zone => Seen::Slab,
        Kind::Transit => Seen::Transit,
        Kind::Foreign => Seen::Foreign,
    };
    (seen, arena::pool_of(index))
}

/// The arena is locked.
fn large_block(index: usize) -> LargeBlock {
    // SAFETY: its metadata are those of this span; homes are never unmapped.
    let zone = unsafe {
        let owner = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if owner.is_null() { main() } else { (*owner).zone.load(Relaxed) }
    };
    let span = look::span(index);
    let behind = span.whole - span.lead - span.tail;
    LargeBlock { zone, span, size: behind }
}

/// Every zone that has a block in a sampled slab, once; the main one if there is none.
fn each_zone_in(index: usize, mut visit: impl FnMut(*mut Zone)) {
    let mut at = None;
    if next_zone(index, at).is_none() {
        visit(main());
    }
    // They are few: most often it is one.
    while let Some(zone) = next_zone(index, at) {
        visit(zone);
        at = Some(zone);
    }
}

/// The zone with blocks in a sampled slab that follows another, in the order of their addresses.
fn next_zone(index: usize, after: Option<*mut Zone>) -> Option<*mut Zone> {
    let mut next: Option<*mut Zone> = None;
    sampled::each_in(index, |_, parked| {
        let zone = zone_of_run(arena::index_of(parked as usize));
        if !zone.is_null() && after.is_none_or(|after| zone > after) && next.is_none_or(|next| zone < next) {
            next = Some(zone);
        }
    });
    next
}

/// What is told of a zone.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) number: u64,
    /// Of the sub-process; the first one is 0.
    pub(crate) process: usize,
    /// Where its memory comes from.
    pub(crate) pool: Pool,
}

/// Every zone in use, the main one first. With no lock held.
pub(crate) fn each_in_use(mut visit: impl FnMut(*mut Zone)) {
    // SAFETY: Z3.
    let others = all().filter(|&zone| unsafe { (*zone).is_in_use() });
    core::iter::once(main()).chain(others).for_each(&mut visit);
}

/// What is told of a zone; it may have been ended meanwhile.
pub(crate) fn identity(zone: *mut Zone) -> Identity {
    debug_assert!(!zone.is_null());
    // SAFETY: Z3.
    let pool = if is_main(zone) { Pool::COMMON } else { Pool::of_word(unsafe { (*zone).pool.load(Relaxed) }) };
    Identity { number: super::number_of(zone), process: subprocess::number_of(subprocess::of(zone)), pool }
}
