//! How long blocks live: a histogram by powers of 4 of microseconds, and the clock for it.
//!
//! Blocks are born and die by the processor's counter, which costs nothing to read. How fast that counts is found out along the way, by
//! the kernel's clock: at first whenever twice as much has passed as the time before, then about ten times a second.

use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Numbers of a histogram: number `i` counts blocks that lived less than 4^i microseconds, and no less than a fourth of that; the last
/// one all that lived longer.
pub(crate) const LIFETIMES: usize = 16;

/// Counts between two looks at the kernel's clock, once the rate is known well.
const LONGEST: u64 = 1 << 28;
/// Of the first look after the start.
const SHORTEST: u64 = 1 << 14;

/// Nanoseconds in 2^32 counts. Until it is known, as of a counter of 2.5 GHz.
static RATE: AtomicU64 = AtomicU64::new(((1u64 << 32) as f64 / 2.5) as u64);
/// The count at which to look again.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// The count and the nanosecond of the last look. `LOCK`.
static LAST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static LOCK: Lock = Lock::new();

/// The present, in counts of the processor.
#[inline(always)]
pub(crate) fn now() -> u64 {
    let now = os::cycles();
    if now >= NEXT.load(Relaxed) {
        calibrate(now);
    }
    now
}

/// Nanoseconds between two moments, 0 if the second was not after the first.
pub(crate) fn nanoseconds(from: u64, to: u64) -> u64 {
    ((to.saturating_sub(from) as u128 * RATE.load(Relaxed) as u128) >> 32) as u64
}

/// Which number of the histogram counts a life of so many nanoseconds.
pub(crate) fn bucket(nanoseconds: u64) -> usize {
    let microseconds = nanoseconds / 1000;
    let bits = u64::BITS - microseconds.leading_zeros();
    (bits.div_ceil(2) as usize).min(LIFETIMES - 1)
}

/// Compare the counter with the kernel's clock.
#[cold]
#[inline(never)]
fn calibrate(now: u64) {
    if !LOCK.try_lock() {
        return; // another thread is at it, or this one, interrupted
    }
    let (count, time) = (LAST[0].load(Relaxed), LAST[1].load(Relaxed));
    let (counts, clock) = (now.wrapping_sub(count), os::now());
    if count == 0 || count > now {
        NEXT.store(now.saturating_add(SHORTEST), Relaxed);
    } else {
        let rate = ((clock.saturating_sub(time) as u128) << 32) / counts.max(1) as u128;
        // A counter that stood still or jumped tells nothing.
        if (1 << 28..1 << 36).contains(&rate) {
            RATE.store(rate as u64, Relaxed);
        }
        NEXT.store(now.saturating_add((counts * 2).clamp(SHORTEST, LONGEST)), Relaxed);
    }
    LAST[0].store(now, Relaxed);
    LAST[1].store(clock, Relaxed);
    LOCK.unlock();
}

/// In a forked child.
pub(super) fn repair() {
    if LOCK.held_by_vanished() {
        LAST[0].store(0, Relaxed);
        LOCK.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_four() {
        let of_microseconds = |us: u64| bucket(us * 1000);
        assert_eq!((bucket(0), bucket(999), of_microseconds(1), of_microseconds(3)), (0, 0, 1, 1));
        assert_eq!((of_microseconds(4), of_microseconds(15), of_microseconds(16)), (2, 2, 3));
        assert_eq!((of_microseconds(1 << 26), of_microseconds(1 << 28), bucket(u64::MAX)), (14, 15, 15));
    }

    #[test]
    fn counts_become_nanoseconds() {
        let deadline = os::now() + 40_000_000;
        while os::now() < deadline {
            now();
        }
        let (from, start) = (now(), os::now());
        while os::now() < start + 20_000_000 {}
        let (to, end) = (now(), os::now());
        // As near as a machine that does other things allows.
        let ratio = nanoseconds(from, to) as f64 / (end - start) as f64;
        assert!((0.8..1.25).contains(&ratio), "{ratio}");
        assert_eq!(nanoseconds(to, from), 0);
    }
}
