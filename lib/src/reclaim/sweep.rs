//! One look at everything that has changed since the last one: claim what is wholly free, give it to the kernel, make it free again.
//!
//! Regions of 2 MiB are looked at in the order of their addresses, so that neighbouring pages become one range, and many ranges go to
//! the kernel in one call. Where the kernel was offered huge pages it is decided by region: what is wholly free goes as it is; holes are
//! punched only if they are worth that the huge page is split for them, since a hole in a huge page frees nothing.

use crate::arena::regions::{self, HUGE, REGION, SMALL, SPARED, TOUCHED, WAITING};
use crate::arena::{self, PAGES, Purged, SLICE, address_of};
use crate::heap::holes::{self, How, Sweeper, each_run};
use crate::options::{self, Name};
use crate::os::{self, PAGE, Range};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Ranges at a time: two calls.
const RANGES: usize = 2048;
/// Most that a region can add: every other page of it, and runs that begin in it.
const OF_REGION: usize = REGION * SLICE / PAGE / 2 + 3 * REGION;
/// Most claims on one region's slabs: the largest have 128 slices, and reach beyond it.
const CLAIMS_OF_REGION: usize = REGION + 128;
const PIECES: usize = 512;
/// Pages to be had in a region for which its huge page is split (an eighth of it), unless everything is wanted. To split one takes
/// as long as it takes to fault these in again.
const WORTH_SPLITTING: usize = 64;
/// Regions between two that are punched which are not to become huge pages, either.
const GAP: usize = 8;
/// Ranges that the kernel refuses one after the other, until it is not asked for more. Some memory may be locked: that is to keep back
/// no other. All of it may be: that is not to cost a call for each range.
const REFUSALS: usize = 16;
/// Bytes of a region.
const REGION_BYTES: usize = REGION * SLICE;

/// How much a sweep wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effort {
    /// What was free at the last sweep, where huge pages are not split for little.
    Aged,
    /// The same, however little it is.
    Thorough,
    /// Everything but what was just used of the slabs that blocks are taken from.
    Hurried,
    /// Everything.
    Forced,
}

/// What a sweep has done.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Swept {
    /// Bytes of free runs that are the kernel's now.
    pub(crate) arena_bytes: usize,
    /// Bytes inside slabs that are.
    pub(crate) hole_bytes: usize,
    /// Something was left for the next sweep.
    pub(crate) waits: bool,
}

impl Swept {
    pub(crate) fn bytes(&self) -> usize {
        self.arena_bytes + self.hole_bytes
    }
}

/// Sweeps, and ranges that the kernel has refused, since the process began.
pub(super) static SWEEPS: AtomicU64 = AtomicU64::new(0);
pub(super) static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Huge pages that were split.
pub(super) static SPLITS: AtomicU64 = AtomicU64::new(0);

/// What is on its way to the kernel.
struct Batch {
    ranges: [Range; RANGES],
    count: usize,
    /// By range: the kernel has not taken it.
    refused: [bool; RANGES],
    /// By claim: its first range and its last one.
    claims: [(u16, u16); holes::CLAIMS],
    /// Each with its range.
    pieces: [(Purged, u16); PIECES],
    piece_count: usize,
    /// Regions from here to there were punched.
    punched: Option<(usize, usize)>,
}

struct Shared(UnsafeCell<Batch>);
// SAFETY: one sweep at a time uses it.
unsafe impl Sync for Shared {}

static BATCH: Shared = Shared(UnsafeCell::new(Batch {
    ranges: [Range { address: 0, length: 0 }; RANGES],
    count: 0,
    refused: [false; RANGES],
    claims: [(0, 0); holes::CLAIMS],
    pieces: [(Purged { index: 0, slices: 0 }, 0); PIECES],
    piece_count: 0,
    punched: None,
}));

/// Sweep.
///
/// # Safety
/// The caller is the only one who sweeps, and has no lock of a heap or of the arena.
pub(super) unsafe fn sweep(effort: Effort) -> Swept {
    SWEEPS.fetch_add(1, Relaxed);
    // SAFETY: the caller's promise.
    let batch = unsafe { &mut *BATCH.0.get() };
    (batch.count, batch.piece_count, batch.punched) = (0, 0, None);
    let least = (options::get(Name::MinimalPurgeSize).max(0) as usize).saturating_mul(1024) / PAGE;
    let how = How {
        forced: effort >= Effort::Hurried,
        but_current: effort == Effort::Hurried,
        holes: options::get(Name::PurgeHoles) != 0,
        untouched: false,
        least,
    };
    let mut swept = Swept::default();
    let wanted = TOUCHED | WAITING | if effort == Effort::Aged { 0 } else { SPARED };
    let mut next = regions::next(0, wanted);
    while next.is_some() {
        let Some(sweeper) = holes::sweeper() else { break };
        while let Some(region) = next
            && batch.has_room(&sweeper)
        {
            if sweep_region(&sweeper, batch, region, how, effort == Effort::Aged) {
                regions::mark(region, WAITING);
                swept.waits = true;
            }
            next = regions::next(region + 1, wanted);
        }
        batch.flush(&sweeper, &mut swept);
    }
    batch.advise_small();
    swept
}

/// Claim what a region has. Returns whether something waits for the next sweep. `spare`: do not split its huge page for little.
fn sweep_region(sweeper: &Sweeper, batch: &mut Batch, region: usize, how: How, spare: bool) -> bool {
    let flags = regions::clear(region, TOUCHED | WAITING | SPARED);
    let is_huge = flags & HUGE != 0;
    let how = How { untouched: is_huge, ..how };
    let (mut waits, mut pages) = (false, 0);
    // Whole runs first: if there is much of them, the huge page goes anyway.
    waits |= purge_runs(batch, region, how, &mut pages);
    let (before, claims, given_up) = (batch.mark(), holes::claims(sweeper), holes::given_up());
    for index in region * REGION..(region + 1) * REGION {
        if !arena::is_used(index) || !arena::is_ours(index) {
            continue;
        }
        waits |= holes::claim(sweeper, index, how, |member, claimed| {
            pages += claimed.count_ones() as usize;
            let mut first = None;
            each_run(claimed, |start, end| {
                let range = batch.add(address_of(member) + start * PAGE, (end - start) * PAGE);
                first = first.or(Some(range));
            });
            batch.claims[holes::claims(sweeper) - 1] = (first.unwrap_or(0) as u16, batch.count as u16 - 1);
        });
    }
    if is_huge && pages != 0 {
        if !spare || pages >= WORTH_SPLITTING {
            arena::begin_purge_of_untouched(region, |piece| batch.add_piece(piece));
        } else if holes::claims(sweeper) != claims {
            holes::give_back(sweeper, claims, |_| false);
            batch.back_to(before);
            regions::mark(region, SPARED);
        }
    }
    if holes::given_up() != given_up {
        waits |= purge_runs(batch, region, how, &mut pages);
    }
    waits
}

/// Have free runs that begin in a region taken away. Returns whether others wait for the next sweep.
fn purge_runs(batch: &mut Batch, region: usize, how: How, pages: &mut usize) -> bool {
    arena::begin_purge(region, how.forced, how.least.div_ceil(PAGES), |piece| {
        *pages += piece.slices * PAGES;
        batch.add_piece(piece);
    })
}

/// Give ranges to the kernel, and note those that it refuses.
fn discard(ranges: &[Range], lazily: bool, refused: &mut [bool]) {
    refused.fill(false);
    let (mut next, mut in_a_row) = (0, 0);
    while next < ranges.len() {
        let done = os::discard_ranges(&ranges[next..], lazily);
        next += done;
        if next < ranges.len() {
            in_a_row = if done == 0 { in_a_row + 1 } else { 1 };
            let end = if in_a_row == REFUSALS { ranges.len() } else { next + 1 };
            refused[next..end].fill(true);
            next = end;
        }
    }
}

impl Batch {
    fn has_room(&self, sweeper: &Sweeper) -> bool {
        self.count + OF_REGION <= RANGES
            && holes::claims(sweeper) + CLAIMS_OF_REGION <= holes::CLAIMS
            && self.piece_count + 3 * REGION <= PIECES
    }

    /// Number of the range that it is part of.
    fn add(&mut self, address: usize, length: usize) -> usize {
        if let Some(last) = self.ranges[..self.count].last_mut()
            && last.address + last.length == address
        {
            last.length += length;
        } else {
            self.ranges[self.count] = Range { address, length };
            self.count += 1;
        }
        self.count - 1
    }

    fn add_piece(&mut self, piece: Purged) {
        let range = self.add(address_of(piece.index), piece.slices * SLICE);
        self.pieces[self.piece_count] = (piece, range as u16);
        self.piece_count += 1;
    }

    /// The ranges there are, and the length of the last one.
    fn mark(&self) -> (usize, usize) {
        (self.count, self.ranges[..self.count].last().map_or(0, |last| last.length))
    }

    fn back_to(&mut self, (count, length): (usize, usize)) {
        self.count = count;
        if let Some(last) = self.ranges[..count].last_mut() {
            last.length = length;
        }
    }

    /// Have the kernel take it all, and end the claims.
    fn flush(&mut self, sweeper: &Sweeper, swept: &mut Swept) {
        self.split_huge_pages();
        let ranges = &self.ranges[..self.count];
        if options::get(Name::PurgeHolesEagerZero) != 0 {
            for range in ranges {
                // SAFETY: the pages are claimed: nobody uses what is in them.
                unsafe { (range.address as *mut u8).write_bytes(0, range.length) };
            }
        }
        let lazily = options::get(Name::PurgeDecommits) == 0;
        if lazily {
            holes::lazily();
        }
        let refused = &mut self.refused[..self.count];
        discard(ranges, lazily, refused);
        REFUSED.fetch_add(refused.iter().filter(|&&refused| refused).count() as u64, Relaxed);
        let is_done = |claim: usize| {
            let (first, last) = self.claims[claim];
            !self.refused[first as usize..=last as usize].contains(&true)
        };
        swept.hole_bytes += holes::give_back(sweeper, 0, is_done) * PAGE;
        for &(piece, range) in &self.pieces[..self.piece_count] {
            swept.arena_bytes += arena::end_purge(piece, !self.refused[range as usize], lazily);
        }
        (self.count, self.piece_count) = (0, 0);
    }

    /// Split the huge pages in which holes are to be punched.
    fn split_huge_pages(&mut self) {
        let mut pages = [Range { address: 0, length: 0 }; 64];
        let mut count = 0;
        for number in 0..self.count {
            let Range { address, length } = self.ranges[number];
            let end = address + length;
            // Only at its ends can a range cover a part of a region.
            for page in [address, end - PAGE] {
                let region = page & !(REGION_BYTES - 1);
                if region >= address && region + REGION_BYTES <= end {
                    continue;
                }
                let index = arena::slice_index(region);
                if index >= arena::SLICES || regions::clear(index / REGION, HUGE) & HUGE == 0 {
                    continue;
                }
                pages[count] = Range { address: page, length: PAGE }; // one that is there

                count += 1;
                self.keep_small(region);
                if count == pages.len() {
                    SPLITS.fetch_add(os::split_huge(&pages) as u64, Relaxed);
                    count = 0;
                }
            }
        }
        SPLITS.fetch_add(os::split_huge(&pages[..count]) as u64, Relaxed);
    }

    /// What was punched is not to become huge pages again behind our back, which would fill the holes. Regions come in order, and what
    /// is not far apart is done at once: each stretch is a mapping of its own.
    fn keep_small(&mut self, region: usize) {
        self.punched = match self.punched {
            Some((first, last)) if (first..=last + GAP * REGION_BYTES).contains(&region) => {
                Some((first, last.max(region)))
            }
            _ => {
                self.advise_small();
                Some((region, region))
            }
        };
    }

    fn advise_small(&mut self) {
        if let Some((first, last)) = self.punched.take() {
            os::advise_huge(first, last + REGION_BYTES - first, false);
            let (first, last) = (arena::slice_index(first) / REGION, arena::slice_index(last) / REGION);
            (first..=last).for_each(|region| regions::mark(region, SMALL));
        }
    }
}
