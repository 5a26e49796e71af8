//! Time as it is told of each event: in *ticks*, which cost a few nanoseconds to read and become microseconds only in the file.
//!
//! A tick is 1,024 counts of the processor's counter where that runs at one rate whatever the processor does (every machine of the last
//! fifteen years says so of itself), else 256 ns of the kernel's clock. How long a tick is follows from how many there were since the
//! beginning and how long that was by the kernel's clock: the longer a recording, the better that is known.

use crate::os;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SHIFT_OF_CYCLES: u32 = 10;
const SHIFT_OF_NANOSECONDS: u32 = 8;

/// Whether the counter can be used: 0 = not asked yet, 1 = yes, 2 = no.
static COUNTER: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn raw() -> u64 {
    if COUNTER.load(Relaxed) == 1 { os::cycles() >> SHIFT_OF_CYCLES } else { os::now() >> SHIFT_OF_NANOSECONDS }
}

/// When a recording began.
#[derive(Clone, Copy)]
pub(super) struct Start {
    raw: u64,
    nanoseconds: u64,
}

impl Start {
    pub(super) const NEVER: Start = Start { raw: 0, nanoseconds: 0 };

    pub(super) fn now() -> Start {
        if COUNTER.load(Relaxed) == 0 {
            COUNTER.store(if os::cycles_are_steady() { 1 } else { 2 }, Relaxed);
        }
        Start { raw: raw(), nanoseconds: os::now() }
    }

    /// Ticks since then. Another processor's counter may be a little behind: never below 0.
    #[inline(always)]
    pub(super) fn ticks(self) -> u64 {
        let passed = raw().wrapping_sub(self.raw);
        if passed as i64 >= 0 { passed } else { 0 }
    }

    /// How to make microseconds of ticks, and the present in both.
    pub(super) fn scale(self) -> Scale {
        Scale { ticks: self.ticks(), microseconds: os::now().saturating_sub(self.nanoseconds) / 1000 }
    }
}

/// A number of ticks, and as many microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) ticks: u64,
    pub(super) microseconds: u64,
}

impl Scale {
    pub(super) fn microseconds_of(self, ticks: u64) -> u64 {
        let microseconds = u128::from(ticks) * u128::from(self.microseconds) / u128::from(self.ticks.max(1));
        u64::try_from(microseconds).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_microseconds() {
        let start = Start::now();
        let before = start.ticks();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let slept = start.ticks() - before;
        let scale = start.scale();
        let microseconds = scale.microseconds_of(slept);
        assert!((29_000..=scale.microseconds).contains(&microseconds), "{microseconds} of {scale:?}");
        assert_eq!(scale.microseconds_of(scale.ticks), scale.microseconds);
        assert_eq!(Scale { ticks: 0, microseconds: 5 }.microseconds_of(0), 0);
    }

    #[test]
    fn a_counter_that_is_behind_gives_no_time_below_zero() {
        let start = Start::now();
        assert_eq!(Start { raw: start.raw + 1_000_000_000, ..start }.ticks(), 0);
    }
}
