//! Guarded blocks: one in so many allocations gets memory of its own, and behind it some that nobody may touch, so that writing
//! or reading beyond its end faults at once.
//!
//! Which allocations are guarded is measured in pops, as samples are ([`interval`](super::interval)): nothing is counted, and
//! while it is off nothing is done. A guarded block is a span whose tail is forbidden; like a sampled allocation it parks the
//! ordinary block that it has popped, and frees it with itself, so that exact counts need no special case.
//!
//! ```text
//! | unused | block | slack, less than 16 bytes | 64 KiB that fault |
//! ```
//!
//! The slack keeps the block aligned to 16 bytes; it is filled with a pattern that is looked at when the block is freed. With
//! the option `guarded_precise` there is none.

use super::classes::class_size;
use super::events::Sample;
use super::interval::{GOLDEN, mix};
use super::magazine::LONG;
use super::sampled::Record;
use super::{CLASSES, Heap, all, slab, span, statistics, zone};
use crate::arena::{self, Pool, Residence, SLICE, address_of};
use crate::options::{self, Name};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// What the slack is filled with.
const PATTERN: u8 = 0xa5;
/// Blocks from here on have no alignment of their own to keep: no class is larger.
const LARGEST_ALIGNMENT: usize = super::classes::SLAB_MAX;

/// Blocks may have been guarded in this process. Never false again.
static POSSIBLE: AtomicBool = AtomicBool::new(false);
/// See [`is_precise`].
static PRECISE_ALLOWED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Which allocations of a heap are guarded. Under the heap's lock; all zero = none.
pub(super) struct Guards {
    /// One in so many; 0 = none.
    rate: u64,
    /// Sizes that are, in bytes.
    least: usize,
    most: usize,
    random: u64,
    /// Allocations above the slabs before the guarded one.
    spans: i64,
}

impl Guards {
    pub(super) const NONE: Guards = Guards { rate: 0, least: 0, most: 0, random: 0, spans: 0 };

    /// What the options say, for the heap with this number.
    fn by_options(number: u64) -> Guards {
        let size = |name| usize::try_from(options::get(name)).unwrap_or(0);
        let rate = options::get_positive(Name::GuardedSampleRate).unwrap_or(0);
        let seed = options::get(Name::GuardedSampleSeed) as u64;
        let mut guards = Guards { rate, least: size(Name::GuardedMin), most: size(Name::GuardedMax), ..Guards::NONE };
        if rate != 0 {
            guards.seed(seed, number);
        }
        guards
    }

    fn seed(&mut self, seed: u64, number: u64) {
        let seed = if seed == 0 { os::random_seed() } else { seed };
        self.random = mix(seed.wrapping_add(number.wrapping_mul(GOLDEN)));
        self.spans = self.next();
    }

    /// Whether blocks of this size are to be guarded.
    pub(super) fn holds(&self, size: usize) -> bool {
        self.rate != 0 && (self.least..=self.most).contains(&size)
    }

    /// Allocations of a class before the guarded one.
    pub(super) fn draw(&mut self, class: usize) -> i64 {
        // Requests of a class are larger than the class before it.
        let none = self.rate == 0 || class_size(class) < self.least || class_size(class - 1) >= self.most.max(1);
        if none { LONG } else { self.next() }
    }

    /// Uniform from 0 to 2 * (rate - 1), which makes it one in `rate`.
    fn next(&mut self) -> i64 {
        self.random = self.random.wrapping_add(GOLDEN);
        let bound = self.rate.clamp(1, LONG as u64 / 2) * 2 - 1;
        (mix(self.random) % bound) as i64
    }
}

/// False: no block of this process is guarded, so a block is as large as its class.
#[inline(always)]
pub(crate) fn is_possible() -> bool {
    POSSIBLE.load(Relaxed)
}

/// Blocks that were guarded so far.
pub(crate) fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// A new heap, which nobody else knows yet, does as the options say.
pub(super) unsafe fn adopt(heap: *mut Heap) {
    if is_possible() {
        // SAFETY: the heap is new and ours.
        unsafe {
            (*heap).guards = Guards::by_options((*heap).sequence);
            draw_anew(heap);
        }
    }
}

/// The options may have changed: all heaps do as they say from their next allocations on. With no lock held.
pub(crate) fn options_changed() {
    if options::get_positive(Name::GuardedSampleRate).is_some() || is_possible() {
        for heap in all() {
            // SAFETY: H3.
            unsafe { change(heap, |guards, number| *guards = Guards::by_options(number)) };
        }
    }
}

/// `mi_theap_guarded_set_sample_rate`: guard one in `rate` allocations of a heap; the same seed guards the same ones, 0 is a
/// seed of chance.
///
/// # Safety
/// `heap` is a heap.
pub(crate) unsafe fn set_rate(heap: *mut Heap, rate: u64, seed: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        change(heap, |guards, number| {
            guards.rate = rate;
            if guards.most == 0 {
                (guards.least, guards.most) = (0, usize::MAX);
            }
            guards.seed(seed, number);
        })
    }
}

/// `mi_theap_guarded_set_size_bound`: guard blocks of these sizes only.
///
/// # Safety
/// `heap` is a heap.
pub(crate) unsafe fn set_bounds(heap: *mut Heap, least: usize, most: usize) {
    // SAFETY: the caller's promise.
    unsafe { change(heap, |guards, _| (guards.least, guards.most) = (least, most.max(least))) }
}

unsafe fn change(heap: *mut Heap, how: impl FnOnce(&mut Guards, u64)) {
    POSSIBLE.store(true, Relaxed);
    // SAFETY: guards are read and written under the lock.
    unsafe {
        if Heap::is_empty_heap(heap) || (*heap).lock.held_by_me() {
            return; // no heap, or a signal handler has interrupted its thread
        }
        (*heap).lock.lock();
        how(&mut (*heap).guards, (*heap).sequence);
        draw_anew(heap);
        (*heap).lock.unlock();
    }
}

unsafe fn draw_anew(heap: *mut Heap) {
    for class in 1..CLASSES {
        // SAFETY: the caller holds the lock.
        let (magazine, state) = unsafe { Heap::class(heap, class) };
        state.draw_anew(magazine);
    }
}

/// Exchange the block of a drawn allocation for a guarded one. `None`: no memory, or the kernel refuses.
pub(super) unsafe fn exchange(
    heap: *mut Heap,
    class: usize,
    requested: usize,
    parked: *mut u8,
    epoch: Option<u32>,
) -> Option<*mut u8> {
    if zone::pool_of(heap) != Pool::COMMON {
        return None; // memory of an arena may be the program's, whose access is left as it is
    }
    let (index, block) = make(requested.max(1), if is_precise() { 1 } else { 16 })?;
    // SAFETY: the run is in transit: ours alone.
    unsafe {
        let take = |epoch| (crate::HOOKS.sampled)(heap, class_size(class), requested, epoch);
        let sample = epoch.map_or(Sample::NONE, take);
        span::record(index).write(Record::parking(parked, class, requested, sample, epoch.unwrap_or(0)));
        statistics::count_idle(span::idle(index), 0);
        zone::publish_span(heap, index);
    }
    Some(block)
}

/// A run in transit with a guarded block at its end, for an allocation above the slabs that is drawn.
pub(super) unsafe fn for_span(heap: *mut Heap, size: usize, alignment: usize) -> Option<(usize, *mut u8)> {
    // SAFETY: the heap is leased by this thread. It has the lock if this is a signal handler that has interrupted it.
    if !is_possible() || unsafe { (*heap).lock.held_by_me() } || zone::pool_of(heap) != Pool::COMMON {
        return None;
    }
    // SAFETY: as above.
    let due = unsafe {
        (*heap).lock.lock();
        let guards = &mut (*heap).guards;
        let due = guards.holds(size) && guards.spans <= 0;
        if due {
            guards.spans = guards.next();
        } else if guards.holds(size) {
            guards.spans -= 1;
        }
        (*heap).lock.unlock();
        due
    };
    let least = if is_precise() { 1 } else { 16 };
    (due && alignment <= SLICE).then(|| make(size, alignment.max(least)))?
}

/// Blocks need not be aligned. `malloc` of a program that asks for it may do so; `GlobalAlloc` has promised an alignment.
fn is_precise() -> bool {
    PRECISE_ALLOWED.load(Relaxed) && options::get(Name::GuardedPrecise) != 0
}

/// This is the allocator of a C program.
pub(crate) fn allow_precise() {
    PRECISE_ALLOWED.store(true, Relaxed);
}

/// A run in transit, its last slice forbidden, and the block before that.
fn make(size: usize, alignment: usize) -> Option<(usize, *mut u8)> {
    // Aligned allocations ask for a multiple of their alignment and rely on it that blocks are aligned as their size is.
    let natural = (1 << size.trailing_zeros()).min(LARGEST_ALIGNMENT);
    let body = size.div_ceil(SLICE);
    let index = slab::obtain(core::ptr::null_mut(), body + 1, (natural / SLICE).max(1))?;
    let guard = address_of(index + body);
    if !os::forbid(guard, SLICE) {
        arena::free(index, Residence::UNKNOWN);
        return None;
    }
    let block = (guard - size) & !(alignment - 1);
    let slack = guard - block - size;
    // SAFETY: the run is in transit: ours alone. The slack lies in it, before the guard.
    unsafe {
        span::lay(index, block - address_of(index), SLICE + slack);
        (block as *mut u8).add(size).write_bytes(PATTERN, slack);
    }
    COUNT.fetch_add(1, Relaxed);
    Some((index, block as *mut u8))
}

/// Whether nobody has written between the end of a block and its guard, `tail` bytes before the end of the run.
pub(super) unsafe fn is_intact(end: *const u8, tail: usize) -> bool {
    // SAFETY: the slack of a live guarded block can be read.
    (0..tail - SLICE).all(|at| unsafe { *end.add(at) } == PATTERN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many() {
        let mut guards = Guards { rate: 1, least: 100, most: 200, ..Guards::NONE };
        guards.seed(5, 1);
        assert!((0..100).all(|_| guards.next() == 0));
        guards.rate = 50;
        let sum: i64 = (0..100_000).map(|_| guards.next()).sum();
        assert!((48_500..49_500).contains(&(sum / 100)), "{sum}");
        let most = guards.next().max((0..1000).map(|_| guards.next()).max().unwrap());
        assert!((90..=98).contains(&most), "{most}");
    }

    #[test]
    fn only_classes_with_such_sizes() {
        let mut guards = Guards { rate: 1, least: 100, most: 200, ..Guards::NONE };
        for class in 1..CLASSES {
            let (above, up_to) = (class_size(class - 1), class_size(class));
            let any = (above + 1..=up_to).any(|size| guards.holds(size));
            assert_eq!(guards.draw(class) != LONG, any, "{class}");
        }
    }
}
