//! Every block of a zone, beside threads that run.
//!
//! Runs are looked at in the order of their addresses, one at a time. Of a slab, what is free is copied in one moment: its bits and
//! what is cached of it, under the locks of all heaps that can have some and of its home. So a block that is live all the time is seen,
//! once, and one that is free all the time is not; with the exceptions of blocks of other homes on their way from a stack, and of blocks
//! whose free was put off. Who looks is called with no lock held.

use super::guest::of_zone;
use super::whose::{run_with, zone_of_run};
use super::{Heap, Zone, is_main, main};
use crate::arena::{self, BITMAP_WORDS, Kind, ListState, SLICE, address_of, slice};
use crate::heap::{guarded, holes, home, sampled, span, steal};
use core::sync::atomic::Ordering::*;

/// Blocks of one size that lie together.
pub(crate) struct Area {
    pub(crate) blocks: *mut u8,
    /// Bytes of address space.
    pub(crate) reserved: usize,
    /// Live blocks.
    pub(crate) used: usize,
    pub(crate) block_size: usize,
}

/// A slab's live blocks at one moment.
struct Snapshot {
    area: Area,
    live: [u64; BITMAP_WORDS],
}

impl Snapshot {
    fn each(&self, mut visit: impl FnMut(*mut u8) -> bool) -> bool {
        self.live.iter().enumerate().all(|(word, &bits)| {
            let mut bits = bits;
            while bits != 0 {
                let bit = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if !visit(self.area.blocks.wrapping_add(bit * self.area.block_size)) {
                    return false;
                }
            }
            true
        })
    }
}

/// What is seen of a run under the arena's lock.
enum Seen {
    Slab,
    Sampled,
    /// Its owner, and address and size of its block.
    Span(*mut Heap, (usize, usize)),
}

/// Call `visit` with each live block of the process and its usable bytes, until it returns false.
pub(crate) fn visit_all(mut visit: impl FnMut(*mut u8, usize) -> bool) -> bool {
    let block_of = |area: &Area, block: *mut u8| block.is_null() || visit(block, area.block_size);
    // SAFETY: no zone is looked for: what is gone meanwhile is seen as that.
    unsafe { visit_those(None, true, block_of) }
}

/// Call `visit` with each area, and then with each of its blocks, until it returns false.
///
/// # Safety
/// The zone is in use, to the end.
pub(crate) unsafe fn visit(zone: *mut Zone, blocks: bool, visit: impl FnMut(&Area, *mut u8) -> bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { visit_those(Some(zone), blocks, visit) }
}

/// [`visit`] of one zone, or of all.
unsafe fn visit_those(of: Option<*mut Zone>, blocks: bool, mut visit: impl FnMut(&Area, *mut u8) -> bool) -> bool {
    let mut from = 0;
    let is_wanted = |zone: *mut Zone| !zone.is_null() && of.is_none_or(|of| core::ptr::eq(of, zone));
    // The arena's lock is held meanwhile: a span that is freed now is not handed out again.
    let look = |index: usize, kind| match kind {
        // SAFETY: its metadata are those of this span.
        Kind::Span => unsafe { Seen::Span((*slice(index)).owner.load(Acquire).cast(), span::extent(index)) },
        Kind::Sampled => Seen::Sampled,
        _ => Seen::Slab,
    };
    while let Some((index, length, seen)) = arena::next_with_blocks(from, look) {
        from = index + length;
        let snapshot = match seen {
            Seen::Span(owner, (block, size)) => {
                // SAFETY: homes are never unmapped.
                if !is_wanted(if owner.is_null() { main() } else { unsafe { (*owner).zone.load(Relaxed) } }) {
                    continue;
                }
                let block = block as *mut u8;
                let area = Area { blocks: block, reserved: length * SLICE, used: 1, block_size: size };
                if !(visit(&area, core::ptr::null_mut()) && (!blocks || visit(&area, block))) {
                    return false;
                }
                continue;
            }
            Seen::Sampled => Some(snapshot_sampled(of, index, length)).filter(|snapshot| snapshot.area.used != 0),
            // SAFETY: the caller's promise.
            Seen::Slab => unsafe { snapshot(of, index) },
        };
        let Some(snapshot) = snapshot else { continue };
        let area = &snapshot.area;
        if !(visit(area, core::ptr::null_mut()) && (!blocks || snapshot.each(|block| visit(area, block)))) {
            return false;
        }
    }
    true
}

/// Heaps that may have blocks of a zone cached; the first of them, to see whether there are new ones.
fn heaps(zone: *mut Zone) -> (*mut Heap, impl Iterator<Item = *mut Heap>) {
    // SAFETY: H3; constant.
    let ordinary = crate::heap::all().filter(|&heap| unsafe { !(*heap).guest });
    let (main, other) = if is_main(zone) { (Some(ordinary), None) } else { (None, Some(of_zone(zone))) };
    let mut heaps = main.into_iter().flatten().chain(other.into_iter().flatten()).peekable();
    (heaps.peek().copied().unwrap_or(core::ptr::null_mut()), heaps)
}

/// The live blocks of a slab, if it is the zone's; with no zone named, of whatever zone it is.
unsafe fn snapshot(wanted: Option<*mut Zone>, index: usize) -> Option<Snapshot> {
    // SAFETY: heaps, homes and metadata are never unmapped.
    unsafe {
        loop {
            let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
            if home.is_null() {
                return None;
            }
            let zone = (*home).zone.load(Relaxed);
            if zone.is_null() || wanted.is_some_and(|wanted| wanted != zone) {
                return None;
            }
            let parked = parked_in(index);
            let (first, all) = heaps(zone);
            if all.filter(|&heap| (*heap).lock.held_by_me()).count() != 0 || (*home).slab_lock.held_by_me() {
                return None;
            }
            let at_rest = (holes::sweeper(), steal::at_rest());
            if !lock_all(first, zone) {
                continue;
            }
            let locked = home::lock_for_a_while(home);
            let as_it_was =
                locked.is_some() && heaps(zone).0 == first && (*slice(index)).owner.load(Relaxed).cast() == home;
            let snapshot = as_it_was.then(|| look_at(zone, index, first, &parked));
            drop(locked);
            from(first, zone).for_each(|heap| (*heap).lock.unlock());
            drop(at_rest);
            if let Some(snapshot) = snapshot {
                return Some(snapshot);
            }
        }
    }
}

/// Lock the stacks of all heaps, or of none: then it is to be tried again.
///
/// Only who looks holds more than one of these locks; all do so in this order. But a signal handler may have interrupted a thread that
/// holds another's, or the slabs' lock, and wait for its own, which this thread has already.
unsafe fn lock_all(first: *mut Heap, zone: *mut Zone) -> bool {
    // SAFETY: H3.
    let held_up = from(first, zone).position(|heap| unsafe { !(*heap).lock.lock_for_a_while() });
    let Some(locked) = held_up else { return true };
    // SAFETY: as above.
    from(first, zone).take(locked).for_each(|heap| unsafe { (*heap).lock.unlock() });
    false
}

/// The heaps of a zone from a certain one on: that list does not change.
fn from(first: *mut Heap, zone: *mut Zone) -> impl Iterator<Item = *mut Heap> {
    heaps(zone).1.skip_while(move |&heap| heap != first)
}

/// Blocks of a slab that are parked for sampled or guarded ones. With no lock held: where that changes meanwhile, the block that it is
/// about is being allocated or freed.
unsafe fn parked_in(index: usize) -> [u64; BITMAP_WORDS] {
    let mut parked = [0; BITMAP_WORDS];
    // SAFETY: metadata can be read.
    let (base, size, count, class) = unsafe {
        let slab = &*slice(index);
        (address_of(index), slab.block_size as usize, slab.blocks as usize, slab.class as usize)
    };
    let mut add = |block: *mut u8| {
        let bit = (block as usize).wrapping_sub(base).checked_div(size).unwrap_or(count);
        if bit < count.min(BITMAP_WORDS * 64) {
            parked[bit / 64] |= 1 << (bit % 64);
        }
    };
    sampled::each_slab(|index, of| {
        if of == class {
            sampled::each_in(index, |_, block| add(block));
        }
    });
    if guarded::count() != 0 {
        let mut from = 0;
        let look = |index: usize, kind| match kind {
            // SAFETY: the arena's lock is held, so its metadata are those of this span.
            Kind::Span => unsafe { (*span::record(index)).parked },
            _ => core::ptr::null_mut(),
        };
        while let Some((index, length, block)) = arena::next_with_blocks(from, look) {
            add(block);
            from = index + length;
        }
    }
    parked
}

/// Under the locks.
unsafe fn look_at(zone: *mut Zone, index: usize, first: *mut Heap, parked: &[u64; BITMAP_WORDS]) -> Snapshot {
    // SAFETY: the slab's home is locked, and so are the stacks.
    unsafe {
        let slab = &*slice(index);
        let (base, size, class) = (address_of(index), slab.block_size as usize, slab.class as usize);
        let count = slab.blocks as usize;
        let mut live = [0u64; BITMAP_WORDS];
        for (word, live) in live.iter_mut().enumerate().take(slab.words as usize) {
            let left = count - word * 64;
            let all = if left >= 64 { !0 } else { (1 << left) - 1 };
            *live = all & !slab.bitmap[word].load(Relaxed);
        }
        let mut free = |block: usize| {
            let bit = block.wrapping_sub(base) / size;
            if bit < count {
                live[bit / 64] &= !(1 << (bit % 64));
            }
        };
        for heap in from(first, zone) {
            let (magazine, state) = Heap::class(heap, class);
            state.each(magazine, &mut free);
        }
        live.iter_mut().zip(parked).for_each(|(live, parked)| *live &= !parked);
        let used = ones(&live);
        Snapshot {
            area: Area { blocks: base as *mut u8, reserved: slab.length() * SLICE, used, block_size: size },
            live,
        }
    }
}

fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// The sampled blocks of a zone, or of all of them, in one slab.
fn snapshot_sampled(wanted: Option<*mut Zone>, index: usize, length: usize) -> Snapshot {
    let is_wanted = |zone: *mut Zone| !zone.is_null() && wanted.is_none_or(|wanted| core::ptr::eq(wanted, zone));
    let mut live = [0u64; BITMAP_WORDS];
    sampled::each_in(index, |bit, parked| {
        if is_wanted(zone_of_run(arena::index_of(parked as usize))) {
            live[bit / 64] |= 1 << (bit % 64);
        }
    });
    let used = ones(&live);
    // SAFETY: sampled slabs are never given back.
    let block_size = unsafe { (*slice(index)).block_size as usize };
    let area = Area { blocks: address_of(index) as *mut u8, reserved: length * SLICE, used, block_size };
    Snapshot { area, live }
}

/// Whether the block at an address lies in a slab of the zone that is used to less than `percent`, and that new blocks are not being
/// taken from: then it pays to move the block.
pub(crate) fn is_under_utilized(zone: *mut Zone, address: *const u8, percent: usize) -> bool {
    let address = match run_with(address) {
        Some((Kind::Sampled, index)) => sampled::parked_with(index, address),
        _ => address,
    };
    let Some((Kind::Slab | Kind::Zone, index)) = run_with(address) else { return false };
    // SAFETY: metadata is never unmapped; this is a hint.
    unsafe {
        let slab = &*slice(index);
        let used = slab.blocks.saturating_sub(slab.free) as usize;
        core::ptr::eq(zone_of_run(index), zone)
            && slab.state != ListState::Current
            && used * 100 < percent.min(100) * slab.blocks as usize
    }
}
