//! Slabs and caches as they are at one moment, for who wants to know why memory cannot be given back. Nothing is changed.

use super::classes::{CLASSES, slab_slices};
use super::{Heap, all, guarded, holes, home, sampled, shelf, span, steal, zone};
use crate::arena::{self, BITMAP_WORDS, Kind, ListState, slice};
use crate::os;
use core::sync::atomic::Ordering::*;

/// Slices of the largest slabs.
pub(crate) const MOST_SLICES: usize = {
    let (mut most, mut class) = (0, 1);
    while class < CLASSES {
        most = if slab_slices(class) > most { slab_slices(class) } else { most };
        class += 1;
    }
    most
};

/// A copy of what is known of a slab.
pub(crate) struct Slab {
    pub(crate) class: usize,
    pub(crate) block_size: usize,
    pub(crate) blocks: usize,
    pub(crate) slices: usize,
    /// Blocks from this number on were never handed out.
    pub(crate) fresh: usize,
    /// All blocks are free, and the class keeps it.
    pub(crate) is_kept: bool,
    /// One bit per block: it is free. Words behind the last block are not set.
    pub(crate) free: [u64; BITMAP_WORDS],
    /// By slice: pages that were given back, and pages that will be if nothing happens until the next sweep.
    pub(crate) returned: [u16; MOST_SLICES],
    pub(crate) candidates: [u16; MOST_SLICES],
}

impl Slab {
    pub(crate) const NONE: Slab = Slab {
        class: 0,
        block_size: 0,
        blocks: 0,
        slices: 0,
        fresh: 0,
        is_kept: false,
        free: [0; BITMAP_WORDS],
        returned: [0; MOST_SLICES],
        candidates: [0; MOST_SLICES],
    };

    /// Whether a block is free.
    pub(crate) fn is_free(&self, block: usize) -> bool {
        self.free[block / 64] >> (block % 64) & 1 != 0
    }
}

/// Copy what is known of the slab that begins at a slice. False: there is none (any more), or a signal handler has interrupted this
/// thread in it. With no lock held.
pub(crate) fn slab(index: usize, copy: &mut Slab) -> bool {
    // SAFETY: metadata can be read; homes are never unmapped; what is found is looked at again under the lock.
    unsafe {
        let is_slab = || matches!((*slice(index)).run(), Some((Kind::Slab | Kind::Zone, _)));
        let owner = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if !is_slab() || owner.is_null() {
            return false;
        }
        let Some(_locked) = home::lock(owner, core::ptr::null_mut()) else { return false };
        if !is_slab() || (*slice(index)).owner.load(Relaxed).cast() != owner {
            return false;
        }
        take(index, copy);
        copy.is_kept = (*slice(index)).state == ListState::Empty;
    }
    true
}

/// How long a home is kept locked before those who wait for it get their turn, in cycles of the processor.
const TURN: u64 = 100_000;

/// Whose a slab is, for [`slabs_of`]; null: there is none.
pub(crate) fn home_of(index: usize) -> *mut Heap {
    // SAFETY: metadata can be read.
    unsafe { (*slice(index)).owner.load(Acquire).cast() }
}

/// Nothing is claimed, as a claim looks like live blocks, and no blocks are with a thief, as long as this lives. Sweeps and ends of heaps wait for that.
pub(crate) struct Quiet {
    _sweeper: Option<holes::Sweeper>,
    _at_rest: steal::AtRest,
}

/// See [`Quiet`]. With no lock held.
pub(crate) fn quiet() -> Quiet {
    Quiet { _sweeper: holes::sweeper(), _at_rest: steal::at_rest() }
}

/// A copy of each of several slabs that are of one home, made under one lock: `next` says which, until it has no more or it is the turn of
/// others. `tell` gets the copy, the zone and the thread of the home; it may do no more than write that down. With no other lock held.
pub(crate) fn slabs_of(
    _: &Quiet,
    home: *mut Heap,
    copy: &mut Slab,
    mut next: impl FnMut() -> Option<usize>,
    mut tell: impl FnMut(usize, &Slab, *mut zone::Zone, u64),
) {
    // SAFETY: metadata can be read; homes are never unmapped.
    unsafe {
        let Some(_locked) = home::lock(home, core::ptr::null_mut()) else { return };
        let (of, thread) = ((*home).zone.load(Relaxed), (*home).live.load(Relaxed));
        let began = os::cycles();
        while os::cycles().wrapping_sub(began) < TURN
            && let Some(index) = next()
        {
            let is_slab = matches!((*slice(index)).run(), Some((Kind::Slab | Kind::Zone, _)));
            if is_slab && home_of(index) == home {
                take(index, copy);
                tell(index, copy, of, thread);
            }
        }
    }
}

/// The same for a slab of sampled blocks: those are never given back, and their bits may change meanwhile.
pub(crate) fn sampled(index: usize, copy: &mut Slab) {
    // SAFETY: their geometry never changes.
    unsafe { take(index, copy) };
    copy.is_kept = false;
}

unsafe fn take(index: usize, copy: &mut Slab) {
    // SAFETY: the slab stays what it is, as the caller knows.
    unsafe {
        let slab = &*slice(index);
        copy.class = slab.class as usize;
        copy.block_size = slab.block_size as usize;
        copy.blocks = slab.blocks as usize;
        copy.slices = slab.length().min(MOST_SLICES);
        copy.fresh = slab.fresh as usize;
        let words = copy.blocks.div_ceil(64).min(BITMAP_WORDS);
        for (word, bits) in copy.free.iter_mut().enumerate() {
            *bits = if word < words { slab.bitmap[word].load(Relaxed) } else { 0 };
        }
        for number in 0..copy.slices {
            copy.returned[number] = (*slice(index + number)).returned;
            copy.candidates[number] = (*slice(index + number)).candidates;
        }
    }
}

/// A large block and its run.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// Bytes before the block, of the block as far as it was asked for, and of the whole run.
    pub(crate) lead: usize,
    pub(crate) asked: usize,
    pub(crate) whole: usize,
    /// The bytes at its end that nobody may touch, and those with the slack before them that are not the block's.
    pub(crate) forbidden: usize,
    pub(crate) tail: usize,
    /// Where it was allocated, if it is a sample; else 0.
    pub(crate) site: u32,
    /// It is a guarded one, and this is the ordinary block that is parked for it; else null.
    pub(crate) parked: *mut u8,
}

/// What is known of a span. The arena's lock is held, so its metadata is that of this span.
pub(crate) fn span(index: usize) -> Span {
    // SAFETY: as above.
    unsafe {
        let tail = span::tail(index).read();
        let whole = (*slice(index)).length() * arena::SLICE;
        let (block, usable) = span::extent(index);
        Span {
            lead: block - arena::address_of(index),
            asked: span::asked(index).read().min(usable),
            whole,
            forbidden: if tail == 0 { 0 } else { arena::SLICE.min(whole) },
            tail,
            site: (*span::record(index)).site,
            parked: (*span::record(index)).parked,
        }
    }
}

/// Every block that some thread has cached, and the class. One heap is locked at a time.
pub(crate) fn each_cached(mut visit: impl FnMut(usize, usize)) {
    for heap in all() {
        // SAFETY: H3; stacks are read under the lock.
        unsafe {
            if home::is_busy_here(heap) {
                continue;
            }
            (*heap).lock.lock();
            for class in 1..CLASSES {
                let (magazine, state) = Heap::class(heap, class);
                state.each(magazine, |block| visit(class, block));
            }
            (*heap).lock.unlock();
        }
    }
}

/// Bytes of large blocks that were freed and that their threads keep at hand.
pub(crate) fn shelved() -> usize {
    shelf::bytes()
}

/// Every block that is kept for a sampled or a guarded one.
pub(crate) fn each_parked(mut visit: impl FnMut(usize)) {
    sampled::each(|_, _, parked| visit(parked as usize));
    if guarded::count() != 0 {
        let mut from = 0;
        // The arena is locked, so its metadata is that of this span.
        let look = |index: usize, kind| if kind == Kind::Span { span(index).parked } else { core::ptr::null_mut() };
        while let Some((index, length, parked)) = arena::next_with_blocks(from, look) {
            if !parked.is_null() {
                visit(parked as usize);
            }
            from = index + length;
        }
    }
}

/// Blocks that are kept for sampled ones, and their bytes. (Those that are kept for guarded ones are told with their spans.)
pub(crate) fn parked() -> (usize, usize) {
    let (mut blocks, mut bytes) = (0, 0);
    sampled::each(|_, _, parked| {
        blocks += 1;
        bytes += size_of_parked(parked);
    });
    (blocks, bytes)
}

/// Bytes of an ordinary block that is kept for another.
pub(crate) fn size_of_parked(parked: *mut u8) -> usize {
    let index = arena::index_of(parked as usize);
    // SAFETY: the block is not free, so it lies in a slab, which has metadata. It may be freed meanwhile: then this is out of date.
    unsafe { (*slice((*slice(index)).first as usize)).block_size as usize }
}
