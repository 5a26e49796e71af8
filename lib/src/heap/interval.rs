//! When to sample: one Poisson process per class and thread, measured in pops.
//!
//! An allocation of a class with blocks of `s` bytes is sampled with probability `p = 1 - exp(-s / R)`, independently of
//! all others, so the number of allocations until the next sampled one is geometric; it is drawn once and then costs
//! nothing until it is used up. The geometric distribution has no memory, so whatever is stolen, flushed or reused in
//! between cannot bias it. Estimates divide by `p`.

use super::classes::{CLASSES, class_size};
use super::hot::WORDS;
use super::magazine::{LONG, POISON, Waits};
use super::{Heap, all, watch};
use crate::os::lock::Lock;
use core::sync::atomic::{AtomicU64, Ordering::*};

static SEED: AtomicU64 = AtomicU64::new(0);
/// Sampling rate in bytes.
static RATE: AtomicU64 = AtomicU64::new(0);
/// R / s of each class, as bits of an f64. Written only while the epoch is even.
static RATE_BY_SIZE: [AtomicU64; CLASSES] = [const { AtomicU64::new(0) }; CLASSES];
/// Start and stop exclude each other.
static SWITCH: Lock = Lock::new();

/// The present epoch; odd while sampling is on. Raised by each start and each stop.
#[inline(always)]
pub(crate) fn epoch() -> u32 {
    watch::epoch_of(watch::word())
}

pub(crate) fn is_on(epoch: u32) -> bool {
    epoch & 1 == 1
}

/// The sampling rate of the present or last run, in bytes.
pub(crate) fn rate() -> u64 {
    RATE.load(Relaxed)
}

/// Sample one in about `rate` bytes from now on. Every allocation that begins after this returns is subject to it.
///
/// The same seed gives the same samples to the same sequence of allocations. `prepare` hears of the new epoch before anybody can be
/// sampled in it.
pub(crate) fn start(rate: u64, seed: u64, prepare: impl FnOnce(u32)) {
    let rate = rate.max(1);
    SWITCH.lock();
    if is_on(epoch()) {
        WORDS.epoch.fetch_add(1, SeqCst);
    }
    RATE.store(rate, Relaxed);
    SEED.store(seed, Relaxed);
    for (class, rate_by_size) in RATE_BY_SIZE.iter().enumerate().skip(1) {
        rate_by_size.store((rate as f64 / class_size(class) as f64).to_bits(), Relaxed);
    }
    prepare(epoch().wrapping_add(1));
    // The epoch first, then the poison under each lock: an owner that read the old epoch under its lock is poisoned
    // afterwards, so none misses the start.
    WORDS.epoch.fetch_add(1, SeqCst);
    for heap in all() {
        // SAFETY: H3, and `bottom` is written under the lock.
        unsafe {
            (*heap).lock.lock();
            poison(heap);
            (*heap).lock.unlock();
        }
    }
    SWITCH.unlock();
}

/// Have the owner look at the epoch at its next pop of each class.
unsafe fn poison(heap: *mut Heap) {
    for class in 1..CLASSES {
        // SAFETY: H3; the caller holds the lock.
        unsafe { (*heap).magazines[class].bottom.store(POISON, Relaxed) };
    }
}

/// Sample no more. Each class forgets its pending sample at its next slow path.
pub(crate) fn stop() {
    SWITCH.lock();
    if is_on(epoch()) {
        WORDS.epoch.fetch_add(1, SeqCst);
    }
    SWITCH.unlock();
}

/// A forked child must not sample in step with its parent.
pub(crate) fn repair(child: u64) {
    if SWITCH.held_by_vanished() {
        SWITCH.reset();
        // It may have been a start that had not come to every heap.
        for heap in all() {
            // SAFETY: one thread.
            unsafe { poison(heap) };
        }
    }
    SEED.store(mix(SEED.load(Relaxed) ^ mix(child)), Relaxed);
    for heap in all() {
        // SAFETY: one thread.
        unsafe { (*heap).random = Random::UNSEEDED };
    }
}

/// What an allocation was drawn for.
#[derive(Clone, Copy, Default)]
pub(super) struct Drawn {
    /// The epoch under which it is the sampled one.
    pub(super) sample: Option<u32>,
    /// It is to be guarded.
    pub(super) guard: bool,
}

/// Look at the epoch and at the pending events: is the allocation at hand, of `size` bytes, one of them?
///
/// Owner, lock held, before the pop.
#[cold]
#[inline(never)]
pub(super) unsafe fn event(heap: *mut Heap, class: usize, size: usize, epoch: u32) -> Drawn {
    // SAFETY: the lock is held, and only the owner draws.
    let ((magazine, state), random) = unsafe { (Heap::class(heap, class), &mut (*heap).random) };
    // SAFETY: as above.
    random.seed_for(unsafe { (*heap).sequence }, epoch);
    // SAFETY: as above.
    let guards = unsafe { &mut (*heap).guards };
    let on = is_on(epoch);
    let mut draw_sample = || if on { draw(random, class) } else { LONG };
    let Waits { mut sample, mut guard } = state.waits(magazine);
    if state.epoch != epoch {
        state.epoch = epoch;
        // SAFETY: as above.
        unsafe { (*heap).drawn.add(class) };
        sample = draw_sample();
    }
    if core::mem::take(&mut state.guard_changed) {
        guard = guards.draw(class);
    }
    let due = Drawn { sample: (sample == 0 && on).then_some(epoch), guard: guard == 0 && guards.holds(size) };
    // The pop that follows is this allocation's own.
    if sample == 0 {
        sample = 1 + draw_sample();
    }
    if guard == 0 {
        guard = 1 + if due.guard { guards.draw(class) } else { 0 };
    }
    state.wait(magazine, Waits { sample, guard });
    due
}

/// Whether an allocation above the slabs is sampled: each of them asks.
pub(super) unsafe fn takes_span(heap: *mut Heap, bytes: usize, epoch: u32) -> bool {
    // SAFETY: only the owner draws, and the heap belongs to this thread.
    let (random, sequence) = unsafe { (&mut (*heap).random, (*heap).sequence) };
    random.seed_for(sequence, epoch);
    is_on(epoch) && exponential(random.next()) * rate() as f64 <= bytes as f64
}

/// Allocations before the next sampled one: P(d) = (1 - p)^d p.
fn draw(random: &mut Random, class: usize) -> i64 {
    let rate_by_size = f64::from_bits(RATE_BY_SIZE[class].load(Relaxed));
    ((exponential(random.next()) * rate_by_size) as i64).min(LONG)
}

/// A generator (splitmix64) and the epoch it was seeded for.
pub(crate) struct Random {
    epoch: u32,
    state: u64,
}

pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// No epoch with sampling on has number 0.
    pub(crate) const UNSEEDED: Random = Random { epoch: 0, state: 0 };

    /// Seed for a new epoch: each heap has a sequence of its own.
    fn seed_for(&mut self, heap: u64, epoch: u32) {
        if self.epoch != epoch {
            let seed = SEED.load(Relaxed).wrapping_add(heap.wrapping_mul(GOLDEN));
            *self = Random { epoch, state: mix(seed) };
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }
}

/// The output function of splitmix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// An exponential variate of mean 1 from 64 random bits: -ln(u / 2^64).
///
/// ln of the mantissa f in [1, 2) by the series of 2 artanh((f - 1) / (f + 1)); nine terms leave an error below 1e-10.
fn exponential(u: u64) -> f64 {
    let u = u | 1;
    let zeros = u.leading_zeros();
    let f = ((u << zeros) >> 11) as f64 / (1u64 << 52) as f64;
    let z = (f - 1.0) / (f + 1.0);
    let mut series = 0.0;
    for term in (0..9).rev() {
        series = series * z * z + 1.0 / (2 * term + 1) as f64;
    }
    (zeros + 1) as f64 * core::f64::consts::LN_2 - 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_the_logarithm() {
        let mut random = Random { epoch: 1, state: 7 };
        for _ in 0..10_000 {
            let u = random.next() | 1;
            let exact = -((u as f64).ln() - 64.0 * 2f64.ln());
            assert!((exponential(u) - exact).abs() < 1e-9, "{u}");
        }
        assert!(exponential(u64::MAX) < 1e-9);
        assert!((exponential(1) - 64.0 * 2f64.ln()).abs() < 1e-9);
    }
}
