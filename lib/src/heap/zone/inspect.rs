//! Every run of the arena with what is in it, whatever zone it belongs to: what dumps of the heap are made from.
//!
//! As in [`visit`](super::visit) runs are looked at one at a time, in the order of their addresses: each slab in one moment under the
//! locks that guard it and the caches of its blocks, all else under the arena's lock. Nothing is held in between, so nobody waits for
//! more than one such moment, and runs that come or go meanwhile may be missed.

use super::visit::{Snapshot, Unseen, snapshot, snapshot_sampled};
use super::whose::zone_of_run;
use super::{Heap, Zone, all, is_main, main, subprocess};
use crate::arena::{self, Kind, Pool, Residence, slice};
use crate::heap::look::{self, Span};
use crate::heap::sampled;
use core::sync::atomic::Ordering::*;

/// What is in a run.
pub(crate) enum Content<'a> {
    /// Blocks of one class.
    Slab(&'a Snapshot),
    /// Blocks that were sampled, as far as they are of one zone: there is one of these for each zone that has some in the run. For each live block
    /// in their order the number of its site.
    Sampled(&'a Snapshot, &'a Sites<'a>),
    /// One large block.
    Span(LargeBlock),
    /// Nothing; what is known of its pages, and whether they are being given back at this moment.
    Free(Residence, bool),
    /// It is on its way between the arena and an owner: somebody takes it or gives it back, or it is a freed block that a thread keeps at
    /// hand.
    Transit,
    /// Somebody else's memory.
    Foreign,
    /// It cannot be looked at, as a signal handler has interrupted this thread there.
    Busy,
}

/// Calls a function with numbers of sites.
pub(crate) type Sites<'a> = dyn Fn(&mut dyn FnMut(u32)) + 'a;

/// A large block.
pub(crate) struct LargeBlock {
    pub(crate) zone: *mut Zone,
    pub(crate) span: Span,
    /// Usable bytes.
    pub(crate) size: usize,
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

/// Look at the first run from slice `from` on. Returns where to go on; `None`: there are no more. With no lock held but the right to claim
/// pages.
pub(crate) fn inspect(from: usize, mut tell: impl FnMut(Place, Content<'_>)) -> Option<usize> {
    // The arena's lock is held meanwhile: what is seen of a span or of a free run is of this very one.
    let look = |index: usize, kind| {
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
    };
    let (index, slices, (seen, pool)) = arena::next_of(from, |_| true, look)?;
    let place = Place { index, slices, pool };
    match seen {
        Seen::Free(residence, purging) => tell(place, Content::Free(residence, purging)),
        Seen::Span(block) => tell(place, Content::Span(block)),
        Seen::Transit => tell(place, Content::Transit),
        Seen::Foreign => tell(place, Content::Foreign),
        Seen::Sampled => each_zone_in(index, |zone| {
            let snapshot = snapshot_sampled(Some(zone), index, slices);
            let sites = |tell: &mut dyn FnMut(u32)| each_site(index, &snapshot, tell);
            tell(place, Content::Sampled(&snapshot, &sites));
        }),
        // SAFETY: metadata can be read.
        Seen::Slab => match unsafe { snapshot(None, index) } {
            Ok(snapshot) => tell(place, Content::Slab(&snapshot)),
            Err(Unseen::Busy) => tell(place, Content::Busy),
            Err(Unseen::Gone) => tell(place, Content::Transit),
        },
    }
    Some(index + slices)
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

fn each_site(index: usize, snapshot: &Snapshot, tell: &mut dyn FnMut(u32)) {
    for block in (0..snapshot.blocks).filter(|block| snapshot.live[block / 64] >> (block % 64) & 1 != 0) {
        tell(sampled::site_in(index, block));
    }
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
