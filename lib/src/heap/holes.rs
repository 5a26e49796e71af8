//! Pages of slabs that hold free blocks only, among others that do not: claimed, given back to the kernel, made free again.
//!
//! A sweeper *claims* pages: under the lock of the slabs it clears the bits of all blocks that overlap them, so that nobody can hand
//! one out. Then, with that lock free, the kernel takes the pages, and then the bits are set again. A slab with a claim is never
//! wholly free, so it stays where it is (H2). The blocks themselves know nothing of all this, nor do their owners.
//!
//! # Invariants
//!
//! * C1 A record in [`RECORDS`] is made before the first bit is cleared and goes after the last one is set, both under the lock of the slabs.
//!   So in a forked child: a record whose slabs no vanished thread had locked means that the bits are clear; one whose slabs
//!   such a thread had locked, that nobody can have taken the blocks since. Setting the bits is right in both cases.
//! * C2 All records of a slab are made, and go, in one section: blocks may overlap two slices.
//! * C3 `returned` is set only after the kernel has agreed, and cleared before a block that overlaps the page is handed out.
//! * C4 Records are made, read and removed by who holds [`LOCK`]. It is taken before all other locks.

use super::{Heap, home, slab};
use crate::arena::{self, Kind, ListState, PAGES, Slice, regions, slice};
use crate::os::{self, lock::Lock};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, compiler_fence};

/// Most claims at a time.
pub(crate) const CLAIMS: usize = 1024;
/// Slices in wholly free slabs that sweeps leave to their classes (1 MiB in a process): what is drained and filled again now and then
/// should find them.
const RETAINED: usize = 16;

static LOCK: Lock = Lock::new();
/// Slice and pages of each claim; 0 = none.
static RECORDS: [AtomicU64; CLAIMS] = [const { AtomicU64::new(0) }; CLAIMS];
/// How many there are. Derived.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// A sweeper that this process does not have has left some.
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// Pages were given back that may still hold what they held.
static LAZILY: AtomicBool = AtomicBool::new(false);

/// Pages given back, pages of these handed out again, and pages that left with their slabs; sections that gave some back.
static PURGED: AtomicU64 = AtomicU64::new(0);
static REUSED: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);
/// Blocks of the slabs that were looked at.
static VISITED: AtomicU64 = AtomicU64::new(0);
/// How often pages were handed out again.
static REUSES: AtomicU64 = AtomicU64::new(0);
/// See [`given_up`].
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);

/// Counts since the process began.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    /// Pages given back.
    pub(crate) purged: u64,
    /// Of these, pages that are so still.
    pub(crate) purged_now: u64,
    pub(crate) reuses: u64,
    pub(crate) visited: u64,
    pub(crate) given_up: u64,
}

pub(crate) fn counts() -> Counts {
    let purged = PURGED.load(Relaxed);
    Counts {
        purged,
        purged_now: purged.saturating_sub(REUSED.load(Relaxed) + LEFT.load(Relaxed)),
        reuses: REUSES.load(Relaxed),
        visited: VISITED.load(Relaxed),
        given_up: GIVEN_UP.load(Relaxed),
    }
}

/// The right to claim, for as long as this lives.
pub(crate) struct Sweeper(());

impl Drop for Sweeper {
    fn drop(&mut self) {
        LOCK.unlock();
    }
}

/// Wait for the right to claim. `None`: a signal handler has interrupted this thread, which has it, or is in slabs where a claim of a
/// vanished sweeper is still to be ended. With no lock held.
pub(crate) fn sweeper() -> Option<Sweeper> {
    if LOCK.held_by_me() {
        return None;
    }
    LOCK.lock();
    if ORPHANED.swap(false, Relaxed) {
        ORPHANED.store(!arena::repair_purges(), Relaxed);
        COUNT.store(CLAIMS, Relaxed);
        give_back_from(0, |_| false);
        if ORPHANED.load(Relaxed) {
            LOCK.unlock();
            return None;
        }
    }
    Some(Sweeper(()))
}

/// True in a signal handler that has interrupted this thread while it had that right.
pub(crate) fn is_sweeper() -> bool {
    LOCK.held_by_me()
}

/// From now on the kernel takes pages when it needs them: that one was given back does not mean that it reads zero.
pub(crate) fn lazily() {
    LAZILY.store(true, Relaxed);
}

/// Whether a page that was given back reads zero.
pub(super) fn reads_zero() -> bool {
    !LAZILY.load(Relaxed)
}

/// What to claim.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// Also what was not free at the last sweep, and all slabs that are kept.
    pub(crate) forced: bool,
    /// But of slabs that blocks are taken from only what was free at the last sweep.
    pub(crate) but_current: bool,
    /// Pages inside slabs, and not only whole slabs.
    pub(crate) holes: bool,
    /// Also pages that were never handed out: they are part of a huge page, and so in memory.
    pub(crate) untouched: bool,
    /// The shortest range, in pages.
    pub(crate) least: usize,
}

/// Claim what is wholly free in the slab that begins here, if there is one: `claimed` hears of slices and their pages. Returns whether
/// something waits for the next sweep. There is room for as many claims as the slab has slices.
pub(crate) fn claim(_: &Sweeper, index: usize, how: How, mut claimed: impl FnMut(usize, u16)) -> bool {
    // SAFETY: metadata can be read; homes are never unmapped; what is found is looked at again under the lock.
    unsafe {
        let owner = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if !is_slab(index) || owner.is_null() || !arena::is_plain(index) {
            return false;
        }
        let Some(_locked) = home::lock(owner, core::ptr::null_mut()) else { return true };
        if !core::ptr::eq((*slice(index)).owner.load(Relaxed), owner.cast()) || !is_slab(index) {
            return true;
        }
        let slab = slice(index);
        VISITED.fetch_add((*slab).blocks as u64, Relaxed);
        if (*slab).state == ListState::Empty {
            return empty(owner, index, how.forced);
        }
        if !how.holes || ((*slab).free as usize * (*slab).block_size as usize) < os::PAGE {
            return false;
        }
        let (mut member, mut pages, mut waits) = (index, 0, false);
        free_pages(slab, how.untouched, |range| {
            // A range may reach over several slices.
            let mut first = range.start;
            while first < range.end {
                let of = index + first / PAGES;
                if of != member {
                    waits |= claim_in(slab, index, member, pages, how, &mut claimed);
                    (member, pages) = (of, 0);
                }
                let end = range.end.min((of - index + 1) * PAGES);
                pages |= mask(first % PAGES, first % PAGES + (end - first));
                first = end;
            }
        });
        waits | claim_in(slab, index, member, pages, how, &mut claimed)
    }
}

/// Pages `start` to `end` of a slice, as bits.
fn mask(start: usize, end: usize) -> u16 {
    (((1u32 << (end - start)) - 1) << start) as u16
}

/// Slabs that others free into under a lock.
unsafe fn is_slab(index: usize) -> bool {
    // SAFETY: metadata can be read.
    unsafe { matches!((*slice(index)).run(), Some((Kind::Slab | Kind::Zone, _))) }
}

/// A wholly free slab goes back to the arena if nobody has wanted it since the last sweep. Returns whether it waits for the next one.
unsafe fn empty(home: *mut Heap, index: usize, forced: bool) -> bool {
    // SAFETY: the slabs are locked.
    unsafe {
        let slab = &mut *slice(index);
        let is_old = slab.candidates == !0;
        let is_too_much = slab::kept() > RETAINED;
        if forced || (is_old && is_too_much) {
            slab::give_up(home, index);
            return false;
        }
        slab.candidates = !0;
        !is_old && is_too_much
    }
}

/// Call `found` with each range of pages that are wholly free; without those that were never handed out, unless `untouched`.
unsafe fn free_pages(slab: *mut Slice, untouched: bool, mut found: impl FnMut(Range<usize>)) {
    // SAFETY: the slabs are locked.
    let (slab, mut at) = unsafe { (&*slab, 0) };
    let (size, blocks) = (slab.block_size as usize, slab.blocks as usize);
    let all = slab.length() * PAGES;
    let used = if untouched { all } else { (slab.fresh as usize * size).div_ceil(os::PAGE).min(all) };
    while let Some(start) = next_bit(slab, at, blocks, true) {
        let end = next_bit(slab, start, blocks, false).unwrap_or(blocks);
        at = end;
        let first = (start * size).div_ceil(os::PAGE);
        // What is behind the last block belongs to nobody.
        let last = if end == blocks { all } else { end * size / os::PAGE };
        if first < last.min(used) {
            found(first..last.min(used));
        }
    }
}

/// The first block from `at` on whose bit is set (or clear, if not `set`).
fn next_bit(slab: &Slice, at: usize, blocks: usize, set: bool) -> Option<usize> {
    let mut word = at / 64;
    let mut skip = !0u64 << (at % 64);
    while word * 64 < blocks {
        let bits = slab.bitmap[word].load(Relaxed);
        let bits = (if set { bits } else { !bits }) & skip;
        if bits != 0 {
            return Some(word * 64 + bits.trailing_zeros() as usize).filter(|&bit| bit < blocks);
        }
        skip = !0;
        word += 1;
    }
    None
}

/// Claim pages of one slice of a slab, of those that are wholly free. Returns whether others wait for the next sweep.
unsafe fn claim_in(
    slab: *mut Slice,
    index: usize,
    member: usize,
    free: u16,
    how: How,
    claimed: &mut impl FnMut(usize, u16),
) -> bool {
    // SAFETY: the slabs are locked.
    unsafe {
        let part = slice(member);
        let wanted = free & !(*part).returned;
        let all = how.forced && !(how.but_current && (*slab).state == ListState::Current);
        let taken = long_runs(if all { wanted } else { wanted & (*part).candidates }, how.least);
        (*part).candidates = wanted & !taken;
        if wanted != 0 {
            (*slab).clean = false;
        }
        if taken != 0 {
            let count = COUNT.load(Relaxed);
            RECORDS[count].store((member as u64) << PAGES | taken as u64, Relaxed);
            COUNT.store(count + 1, Relaxed);
            compiler_fence(SeqCst); // C1
            let changed = each_block(slab, index, member, taken, |word, bits| word & !bits);
            (*slab).free -= changed as u16;
            claimed(member, taken);
        }
        (*part).candidates != 0
    }
}

/// Of some pages, those in runs of at least `least`.
fn long_runs(pages: u16, least: usize) -> u16 {
    if least <= 1 {
        return pages;
    }
    let mut kept = 0;
    each_run(pages, |start, end| {
        if end - start >= least {
            kept |= mask(start, end);
        }
    });
    kept
}

/// The runs of set bits.
pub(crate) fn each_run(pages: u16, mut run: impl FnMut(usize, usize)) {
    let mut left = pages as u32;
    while left != 0 {
        let start = left.trailing_zeros();
        let end = start + (left >> start).trailing_ones();
        run(start as usize, end as usize);
        left &= !(((1 << (end - start)) - 1) << start);
    }
}

/// Change the bits of all blocks that overlap some pages of a slice. Returns how many have changed.
unsafe fn each_block(
    slab: *mut Slice,
    index: usize,
    member: usize,
    pages: u16,
    change: impl Fn(u64, u64) -> u64,
) -> usize {
    // SAFETY: the slabs are locked, or there is one thread.
    let slab = unsafe { &*slab };
    let (size, mut changed) = (slab.block_size as usize, 0);
    each_run(pages, |start, end| {
        let base = (member - index) * PAGES;
        // What is behind the last block is claimed with it: a claim without a block would not keep the slab.
        let most = slab.blocks as usize - 1;
        let first = ((base + start) * os::PAGE / size).min(most);
        let last = (((base + end) * os::PAGE - 1) / size).min(most);
        for word in first / 64..=last / 64 {
            let low = first.saturating_sub(word * 64);
            let high = (last - word * 64).min(63);
            let bits = (!0u64 >> (63 - high)) & (!0u64 << low);
            let before = slab.bitmap[word].load(Relaxed);
            let after = change(before, bits);
            slab.bitmap[word].store(after, Relaxed);
            changed += (before ^ after).count_ones() as usize;
        }
    });
    changed
}

/// Wholly free slabs that went from the lists of their classes to the arena, so far.
pub(crate) fn given_up() -> u64 {
    GIVEN_UP.load(Relaxed)
}

/// There was one more.
pub(super) fn note_given_up() {
    GIVEN_UP.fetch_add(1, Relaxed);
}

/// How many claims there are.
pub(crate) fn claims(_: &Sweeper) -> usize {
    COUNT.load(Relaxed)
}

/// End the claims from number `first` on. `done` says of each whether the kernel has taken its pages. Returns the number of those pages.
pub(crate) fn give_back(_: &Sweeper, first: usize, done: impl Fn(usize) -> bool) -> usize {
    give_back_from(first, done)
}

fn give_back_from(first: usize, done: impl Fn(usize) -> bool) -> usize {
    let (count, mut at, mut pages) = (COUNT.load(Relaxed), first, 0);
    while at < count {
        let Some((index, _)) = record(at) else {
            at += 1;
            continue;
        };
        let end = (at..count).find(|&next| record(next).is_none_or(|(of, _)| of != index)).unwrap_or(count);
        // SAFETY: a slab with a claim stays; its owner changes only while nobody has the right to claim.
        pages += unsafe { give_back_to(index, at..end, &done) };
        at = end;
    }
    COUNT.store(first, Relaxed);
    if pages != 0 {
        PURGED.fetch_add(pages as u64, Relaxed);
        arena::note_discard(pages);
    }
    pages
}

/// First slice of the slab of a record, and its slice and pages.
fn record(number: usize) -> Option<(usize, (usize, u16))> {
    let word = RECORDS[number].load(Relaxed);
    let (member, pages) = ((word >> PAGES) as usize, word as u16);
    // SAFETY: a slab with a claim stays.
    (word != 0).then(|| (unsafe { (*slice(member)).first as usize }, (member, pages)))
}

/// End the claims on one slab. Returns the number of pages that the kernel has taken.
unsafe fn give_back_to(index: usize, records: Range<usize>, done: &impl Fn(usize) -> bool) -> usize {
    // SAFETY: as the caller says.
    unsafe {
        let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        let Some(_locked) = home::lock(home, core::ptr::null_mut()) else {
            ORPHANED.store(true, Relaxed); // this thread was interrupted there: the next sweeper does it
            return 0;
        };
        let (slab, mut returned) = (slice(index), 0);
        for number in records.clone() {
            let Some((_, (member, pages))) = record(number) else { continue };
            if done(number) {
                (*slice(member)).returned |= pages;
                returned += pages.count_ones() as usize;
            } else {
                (*slice(member)).candidates |= pages;
            }
            let changed = each_block(slab, index, member, pages, |word, bits| word | bits);
            (*slab).free += changed as u16;
        }
        (*slab).hint = 0;
        if returned != 0 && reads_zero() {
            forget_rear(index);
        }
        compiler_fence(SeqCst); // C1
        records.for_each(|number| RECORDS[number].store(0, Relaxed));
        // As if the last block had come back just now.
        let is_whole = (*slab).free == (*slab).blocks;
        match (*slab).state {
            ListState::Unlisted if (*slab).free != 0 => slab::returned(home, index, &mut *slab),
            ListState::Partial if is_whole => slab::returned(home, index, &mut *slab),
            _ => {}
        }
        returned
    }
}

/// What lies in the last pages of a slab reads zero again if they were given back. The slabs are locked.
unsafe fn forget_rear(index: usize) {
    // SAFETY: as the caller says.
    unsafe {
        let slab = &mut *slice(index);
        let size = slab.block_size as usize;
        let used = (slab.fresh as usize * size).div_ceil(os::PAGE).min(slab.length() * PAGES);
        let is_back = |page: usize| (*slice(index + page / PAGES)).returned >> (page % PAGES) & 1 != 0;
        let kept = (0..used).rev().find(|&page| !is_back(page)).map_or(0, |page| page + 1);
        slab.fresh = slab.fresh.min((kept * os::PAGE).div_ceil(size) as u16);
    }
}

/// Bytes from `from` to `to` of a slab are handed out. The slabs are locked.
#[cold]
#[inline(never)]
pub(super) unsafe fn used(index: usize, from: usize, to: usize) {
    let (mut first, end) = (from / os::PAGE, to.div_ceil(os::PAGE));
    let mut reused = 0;
    while first < end {
        let member = first / PAGES;
        let last = end.min((member + 1) * PAGES);
        let pages = mask(first % PAGES, first % PAGES + (last - first));
        // SAFETY: as the caller says.
        unsafe {
            let part = slice(index + member);
            reused += ((*part).returned & pages).count_ones();
            (*part).returned &= !pages;
            (*part).candidates &= !pages;
        }
        first = last;
    }
    if reused != 0 {
        REUSES.fetch_add(1, Relaxed);
        REUSED.fetch_add(reused as u64, Relaxed);
        arena::note_reuse(reused as usize);
    }
}

/// A slab goes back to the arena, with so many pages that were given back.
pub(super) fn left(pages: u32) {
    if pages != 0 {
        LEFT.fetch_add(pages as u64, Relaxed);
    }
}

/// In a forked child: end what a vanished sweeper was at. `damaged` hears of homes whose lists are to be made anew.
pub(super) unsafe fn repair(mut damaged: impl FnMut(*mut Heap)) {
    if !LOCK.held_by_vanished() {
        return;
    }
    // It may have cleared the flags of regions that it had not looked at yet.
    regions::touch_all();
    for (number, word) in RECORDS.iter().enumerate() {
        let Some((index, (member, pages))) = record(number) else { continue };
        // SAFETY: one thread; a slab with a claim stays.
        unsafe {
            let home = (*slice(index)).owner.load(Relaxed).cast::<Heap>();
            if home::slabs_held_by_me(home) {
                ORPHANED.store(true, Relaxed);
                continue;
            }
            each_block(slice(index), index, member, pages, |word, bits| word | bits);
            word.store(0, Relaxed);
            damaged(home);
        }
    }
    if !arena::repair_purges() {
        ORPHANED.store(true, Relaxed);
    }
    COUNT.store(0, Relaxed);
    LOCK.reset();
}
