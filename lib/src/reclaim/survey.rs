//! Where the memory is, and why what is free cannot be given back: a look at every slab, large block and free run.
//!
//! Nothing is changed, and nothing stops: runs are looked at one after the other, each slab for a moment under its lock, caches before
//! all slabs. So the numbers of a process that goes on are of slightly different moments. What is needed is mapped for the time of the look: a bit
//! for each block that some thread has cached, and the [`Survey`] itself.

use super::{HolesStats, sweep};
use crate::arena::regions::{self, SPARED};
use crate::arena::{self, BITMAP_WORDS, Kind, PAGES, Residence, SLICE, address_of, index_of, slice};
use crate::heap::classes::CLASSES;
use crate::heap::look::{self, Slab, Span};
use crate::heap::{self, holes};
use crate::options::{self, Name};
use crate::os::{self, PAGE};
use core::sync::atomic::Ordering::Relaxed;

/// How many live blocks a page has: 1, 2, 3 to 4, 5 to 8, more.
pub(crate) const BUCKETS: usize = 5;
/// Units that the kernel might take memory in: 1, 2, 4, 8, 16 pages.
pub(crate) const UNITS: usize = 5;
/// Runs that are looked at before sweeps get their turn.
const AT_A_TIME: usize = 64;

/// What keeps free bytes in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// They share their page with live blocks.
    Survivors,
    /// The page has no live block, but some that a thread has cached.
    Cached,
    /// The page is wholly free since the last sweep; or nothing is given back without being asked.
    Young,
    /// The same of a free run.
    Runs,
    /// A large block that was freed, and that its thread keeps at hand.
    Shelved,
    /// The slab is wholly free, and kept for its class.
    Kept,
    /// A page of a huge page that is not worth being split.
    Huge,
    /// Behind the last block of a slab, where that is live or cached.
    Tails,
    /// Behind what was asked for of a large block. May never have been touched.
    Slack,
    /// Sampled blocks, and arenas whose pages are not ours to give back.
    Ineligible,
    /// The option `purge_holes` is off.
    Off,
}

pub(crate) const CAUSES: usize = Cause::Off as usize + 1;

impl Cause {
    /// All of them, with their names and what these mean.
    pub(crate) const ALL: [(Cause, &str, &str); CAUSES] = [
        (Cause::Survivors, "pages_with_live_blocks", "in pages that also have live blocks"),
        (Cause::Cached, "caches", "in pages whose last blocks are in the caches of threads"),
        (
            Cause::Young,
            "free_pages",
            "in pages that are free since the last sweep; the next ones give them back, if any may",
        ),
        (Cause::Runs, "free_runs", "in free runs, the same"),
        (Cause::Shelved, "freed_spans", "in larger blocks that their threads have freed last and keep at hand"),
        (Cause::Kept, "empty_slabs", "in empty slabs that are kept for the next blocks"),
        (Cause::Huge, "huge_pages", "in huge pages that have too few free pages to be split for them"),
        (Cause::Tails, "tails", "behind the last blocks of slabs"),
        (Cause::Slack, "slack", "behind what was asked for of larger blocks, if it was ever touched"),
        (Cause::Ineligible, "ineligible", "in slabs of sampled blocks, and in arenas that the program has made"),
        (Cause::Off, "purge_holes_off", "in free pages of slabs, as the option purge_holes is off"),
    ];
}

/// What was seen of the slabs of one class.
#[derive(Clone, Copy)]
pub(crate) struct Class {
    pub(crate) block_size: u64,
    pub(crate) slabs: u64,
    /// Blocks by where they are.
    pub(crate) live: u64,
    pub(crate) cached: u64,
    pub(crate) free: u64,
    /// Pages that have a live block, and the bytes in them that are not live.
    pub(crate) pinned: u64,
    pub(crate) pinned_free_bytes: u64,
    /// Live blocks that lie in those pages, counted in each.
    pub(crate) survivors: u64,
    pub(crate) histogram: [u64; BUCKETS],
    /// Pages that are given back.
    pub(crate) returned: u64,
}

/// What was seen. Bytes, if nothing else is said. All zero is a valid one.
pub(crate) struct Survey {
    pub(crate) classes: [Class; CLASSES],
    /// Free and in memory, by [`Cause`].
    pub(crate) causes: [u64; CAUSES],
    /// Inside slabs: what of the memory that was ever used is wholly free in pieces of 1, 2, 4, 8, 16 pages.
    pub(crate) units: [u64; UNITS],
    pub(crate) live: u64,
    pub(crate) cached: u64,
    pub(crate) cached_blocks: u64,
    /// Given back inside slabs, and never touched there.
    pub(crate) returned: u64,
    pub(crate) untouched: u64,
    pub(crate) pinned_pages: u64,
    /// Blocks that are kept for sampled and guarded ones; they count as live.
    pub(crate) parked: u64,
    pub(crate) parked_blocks: u64,
    pub(crate) spans: u64,
    pub(crate) span_bytes: u64,
    /// Free runs: in memory, and not.
    pub(crate) runs: u64,
    pub(crate) run_bytes: u64,
    pub(crate) absent_run_bytes: u64,
    /// Free blocks that lie in pages that are given back, wholly or in part.
    pub(crate) returned_blocks: u64,
    /// Slabs whose pages are never given back, and bytes of all their blocks and of the free ones.
    pub(crate) ineligible_slabs: u64,
    pub(crate) ineligible_bytes: u64,
    pub(crate) ineligible_free_bytes: u64,
}

impl Survey {
    /// Sweeps, ranges that the kernel has refused, and huge pages that were split, since the process began.
    pub(crate) fn events() -> [u64; 3] {
        [&sweep::SWEEPS, &sweep::REFUSED, &sweep::SPLITS].map(|count| count.load(Relaxed))
    }

    /// Free and in memory, whatever the cause.
    pub(crate) fn free_in_memory(&self) -> u64 {
        self.causes.iter().sum()
    }

    /// Free and in memory because of this.
    pub(crate) fn kept_by(&self, cause: Cause) -> u64 {
        self.causes[cause as usize]
    }

    fn add(&mut self, cause: Cause, bytes: usize) {
        self.causes[cause as usize] += bytes as u64;
    }
}

/// Memory for the time of a look.
struct Scratch {
    at: *mut u8,
    length: usize,
}

impl Scratch {
    fn new(length: usize) -> Option<Scratch> {
        let length = length.next_multiple_of(PAGE);
        let at = os::map(length);
        (!at.is_null()).then_some(Scratch { at, length })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        os::unmap(self.at, self.length);
    }
}

/// Which blocks are cached, in slabs of the window: a bitmap for each slice that a slab may begin in.
struct Marks {
    bits: Scratch,
    slices: core::ops::Range<usize>,
}

impl Marks {
    fn take(survey: &mut Survey) -> Option<Marks> {
        let slices = arena::used();
        let marks = Marks { bits: Scratch::new(slices.len() * BITMAP_WORDS * 8)?, slices };
        look::each_cached(|class, block| {
            // SAFETY: a block lies in a slab, whose slices know the first one; metadata can be read.
            let (first, size) = unsafe {
                let first = (*slice(index_of(block))).first as usize;
                (first, (*slice(first)).block_size as usize)
            };
            survey.cached_blocks += 1;
            survey.cached += size as u64;
            debug_assert!(class != 0);
            let number = block.wrapping_sub(address_of(first)).checked_div(size).unwrap_or(usize::MAX);
            if let Some(words) = marks.of(first)
                && number < BITMAP_WORDS * 64
            {
                // SAFETY: the words of a slice are there.
                unsafe { *words.add(number / 64) |= 1 << (number % 64) };
            }
        });
        Some(marks)
    }

    fn of(&self, first: usize) -> Option<*mut u64> {
        let number = first.checked_sub(self.slices.start)?;
        (first < self.slices.end).then(|| self.bits.at.cast::<u64>().wrapping_add(number * BITMAP_WORDS))
    }

    fn has(&self, first: usize, block: usize) -> bool {
        // SAFETY: as above; nobody else knows this memory.
        self.of(first).is_some_and(|words| unsafe { *words.add(block / 64) } >> (block % 64) & 1 != 0)
    }
}

/// What is seen of a run under the arena's lock.
enum Seen {
    Slab,
    Sampled,
    Span(Span),
    Free(Residence),
}

/// Look at everything, and have `tell` told what there was. False: there is no memory for that. With no lock held.
pub(crate) fn survey(tell: impl FnOnce(&Survey)) -> bool {
    let Some(scratch) = Scratch::new(size_of::<Survey>()) else { return false };
    // SAFETY: fresh memory, all zero, of the right size; nobody else knows it.
    let survey = unsafe { &mut *scratch.at.cast::<Survey>() };
    let Some(marks) = Marks::take(survey) else { return false };
    (survey.parked_blocks, survey.parked) = {
        let (blocks, bytes) = look::parked();
        (blocks as u64, bytes as u64)
    };
    survey.add(Cause::Shelved, look::shelved());
    let mut next = Some(0);
    while let Some(from) = next {
        // No page is claimed meanwhile, as a claim looks like live blocks.
        let _sweeper = if heap::holds_locks() { None } else { holes::sweeper() };
        next = some_runs(survey, &marks, from);
    }
    drop(marks);
    tell(survey);
    true
}

/// Look at some runs. Returns where to go on.
fn some_runs(survey: &mut Survey, marks: &Marks, mut from: usize) -> Option<usize> {
    let wanted = |kind| !matches!(kind, Kind::Transit | Kind::Foreign);
    let mut copy = Slab::NONE;
    for _ in 0..AT_A_TIME {
        let look = |index: usize, kind| match kind {
            // SAFETY: the arena is locked: its metadata is that of this run.
            Kind::Free | Kind::Purge => Seen::Free(unsafe { (*slice(index)).residence() }),
            Kind::Span => Seen::Span(look::span(index)),
            Kind::Sampled => Seen::Sampled,
            _ => Seen::Slab,
        };
        let (index, length, seen) = arena::next_of(from, wanted, look)?;
        from = index + length;
        match seen {
            Seen::Free(residence) => free_run(survey, index, length, residence),
            Seen::Span(span) => large_block(survey, &span),
            Seen::Sampled => {
                look::sampled(index, &mut copy);
                ineligible(survey, &copy);
            }
            Seen::Slab if look::slab(index, &mut copy) => slab(survey, marks, index, &copy),
            Seen::Slab => {}
        }
    }
    Some(from)
}

fn free_run(survey: &mut Survey, index: usize, length: usize, residence: Residence) {
    let absent = residence.absent as usize * PAGE;
    let present = (length * SLICE).saturating_sub(absent);
    survey.absent_run_bytes += absent as u64;
    if present != 0 {
        survey.runs += 1;
        survey.run_bytes += present as u64;
        survey.add(if arena::is_plain(index) { Cause::Runs } else { Cause::Ineligible }, present);
    }
}

fn large_block(survey: &mut Survey, span: &Span) {
    survey.spans += 1;
    let end = (span.lead + span.asked).next_multiple_of(PAGE).min(span.whole);
    survey.span_bytes += end as u64;
    survey.add(Cause::Slack, (span.whole - end).saturating_sub(span.forbidden));
    if !span.parked.is_null() {
        survey.parked_blocks += 1;
        survey.parked += look::size_of_parked(span.parked) as u64;
    }
}

/// What the statistics of holes have no counter for.
pub(crate) fn complete(stats: &mut HolesStats) {
    survey(|survey| {
        stats.purged_blocks = survey.returned_blocks as usize;
        stats.ineligible_pages = survey.ineligible_slabs as usize;
        stats.ineligible_bytes = survey.ineligible_bytes as usize;
        stats.ineligible_free_bytes = survey.ineligible_free_bytes as usize;
    });
}

fn free_blocks(slab: &Slab) -> usize {
    slab.free.iter().map(|word| word.count_ones() as usize).sum()
}

fn count_ineligible(survey: &mut Survey, slab: &Slab) {
    survey.ineligible_slabs += 1;
    survey.ineligible_bytes += (slab.slices * SLICE) as u64;
    survey.ineligible_free_bytes += (free_blocks(slab) * slab.block_size) as u64;
}

/// A slab of sampled blocks.
fn ineligible(survey: &mut Survey, slab: &Slab) {
    count_ineligible(survey, slab);
    let free = free_blocks(slab);
    let untouched = (slab.blocks - slab.fresh.min(slab.blocks)) * slab.block_size;
    survey.live += (slab.blocks.saturating_sub(free) * slab.block_size) as u64;
    survey.untouched += untouched as u64;
    survey.add(Cause::Ineligible, (free * slab.block_size).saturating_sub(untouched));
}

/// The blocks of a page, by where they are; and bytes of live ones in it.
#[derive(Clone, Copy, Default)]
struct Page {
    live: usize,
    cached: usize,
    live_bytes: usize,
}

fn look_at_page(slab: &Slab, page: usize, is_cached: impl Fn(usize) -> bool) -> Page {
    let (start, end, size) = (page * PAGE, (page + 1) * PAGE, slab.block_size);
    let mut seen = Page::default();
    for block in start / size..end.div_ceil(size).min(slab.blocks) {
        if slab.is_free(block) {
            continue;
        }
        if is_cached(block) {
            seen.cached += 1;
        } else {
            seen.live += 1;
            seen.live_bytes += end.min((block + 1) * size) - start.max(block * size);
        }
    }
    seen
}

/// What a page of a slab is to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not there: given back, or never touched.
    Returned,
    Untouched,
    /// Wholly free, and there.
    Free,
    /// Some block keeps it.
    Used,
}

fn slab(survey: &mut Survey, marks: &Marks, index: usize, slab: &Slab) {
    if slab.block_size == 0 || slab.class >= CLASSES {
        return;
    }
    count_blocks(survey, marks, index, slab);
    let plain = arena::is_plain(index);
    if !plain {
        count_ineligible(survey, slab);
    }
    let used_pages = (slab.fresh * slab.block_size).div_ceil(PAGE);
    let tail = slab.blocks * slab.block_size;
    // Of the piece of each size that is being looked at: bytes that were used, and whether all of it is free so far.
    let mut pieces = [(0u64, true); UNITS];
    let mut last_returned = None;
    for page in 0..slab.slices * PAGES {
        let bit = 1 << (page % PAGES);
        let seen = look_at_page(slab, page, |block| marks.has(index, block));
        let state = if slab.returned[page / PAGES] & bit != 0 {
            State::Returned
        } else if page >= used_pages {
            State::Untouched
        } else if seen.live + seen.cached == 0 {
            State::Free
        } else {
            State::Used
        };
        match state {
            State::Returned => {
                survey.returned += PAGE as u64;
                survey.classes[slab.class].returned += 1;
                survey.returned_blocks += blocks_from_here(slab, page, last_returned);
                last_returned = Some(page);
            }
            State::Untouched => survey.untouched += PAGE as u64,
            State::Free => {
                let is_candidate = slab.candidates[page / PAGES] & bit != 0;
                survey.add(cause_of_free(index, slab, plain, is_candidate), PAGE);
            }
            State::Used => used_page(survey, slab, seen, (page * PAGE + PAGE).saturating_sub(tail).min(PAGE)),
        }
        for (number, (bytes, free)) in pieces.iter_mut().enumerate() {
            *bytes += if state == State::Untouched { 0 } else { PAGE as u64 };
            *free &= state != State::Used;
            if (page + 1).is_multiple_of(1 << number) {
                survey.units[number] += if *free { *bytes } else { 0 };
                (*bytes, *free) = (0, true);
            }
        }
    }
}

fn count_blocks(survey: &mut Survey, marks: &Marks, index: usize, slab: &Slab) {
    let class = &mut survey.classes[slab.class];
    class.block_size = slab.block_size as u64;
    class.slabs += 1;
    let free = free_blocks(slab) as u64;
    let cached = (0..slab.blocks).filter(|&block| !slab.is_free(block) && marks.has(index, block)).count() as u64;
    let live = (slab.blocks as u64).saturating_sub(free + cached);
    class.free += free;
    class.cached += cached;
    class.live += live;
    survey.live += live * slab.block_size as u64;
}

/// Blocks that overlap a page, but for those that overlap the page `before`, too.
pub(super) fn blocks_from_here(slab: &Slab, page: usize, before: Option<usize>) -> u64 {
    let start = page * PAGE / slab.block_size;
    let start = before.map_or(start, |before| start.max(((before + 1) * PAGE).div_ceil(slab.block_size)));
    let end = ((page + 1) * PAGE).div_ceil(slab.block_size).min(slab.blocks);
    end.saturating_sub(start) as u64
}

fn cause_of_free(index: usize, slab: &Slab, plain: bool, is_candidate: bool) -> Cause {
    if !plain {
        Cause::Ineligible
    } else if slab.is_kept {
        Cause::Kept
    } else if options::get(Name::PurgeHoles) == 0 {
        Cause::Off
    } else if is_candidate && regions::has(index, SPARED) {
        Cause::Huge
    } else {
        Cause::Young
    }
}

/// A page that is kept by its blocks; `tail` bytes of it are behind the last block of the slab.
fn used_page(survey: &mut Survey, slab: &Slab, seen: Page, tail: usize) {
    let free = PAGE - seen.live_bytes - tail;
    survey.add(Cause::Tails, tail);
    if seen.live == 0 {
        return survey.add(Cause::Cached, free);
    }
    survey.add(Cause::Survivors, free);
    survey.pinned_pages += 1;
    let class = &mut survey.classes[slab.class];
    class.pinned += 1;
    class.pinned_free_bytes += free as u64;
    class.survivors += seen.live as u64;
    let bucket = match seen.live {
        ..=2 => seen.live.saturating_sub(1),
        3..=4 => 2,
        5..=8 => 3,
        _ => 4,
    };
    class.histogram[bucket] += 1;
}
