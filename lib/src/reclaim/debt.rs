//! What giving memory back too early has cost: while there is debt, nothing is given back without being asked.
//!
//! The first drain of a loop cannot be told from a drain that is followed by silence. So memory is given back, and each page of it that
//! is handed out again is charged with what it has cost. The debt falls with the time that the process computes, of which a small
//! part may be spent on this, and is forgiven as time goes by: a process that has grown once after a quiet night is not to
//! be punished for it. Memory that is given back and stays away costs nothing, and is never limited.

use crate::arena;
use crate::os;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// To give a page back, to fault it in again and to zero it, in nanoseconds (measured: 2.3 to 4.2 µs).
const PAGE_COST: u64 = 4_000;
/// The share of the process's time that may go into this: a hundredth. (Measured: a loop that grows to 100 MB and drains every 5 ms
/// is 5 to 6 % slower in ten seconds with a fiftieth and ten seconds below, as the first drain and each one that is not paid for costs 0.1 s.)
const SHARE: u64 = 100;
/// The debt falls to 1/e in this time, in nanoseconds.
const FORGIVEN_IN: u64 = 20_000_000_000;
/// Less than this is none, in nanoseconds.
const NONE: u64 = 2_000_000;

/// In nanoseconds; and when and at what counts it was computed. Written by who sweeps.
static DEBT: AtomicU64 = AtomicU64::new(0);
static PAGES: AtomicU64 = AtomicU64::new(0);
static TIME: AtomicU64 = AtomicU64::new(0);
static CPU_TIME: AtomicU64 = AtomicU64::new(0);

/// The debt now, in nanoseconds of computing. The caller is the only one who sweeps.
pub(super) fn settle() -> u64 {
    let (pages, time, cpu_time) = (arena::reused_pages(), os::now(), os::process_cpu_time());
    let debt = after(
        DEBT.load(Relaxed),
        pages.saturating_sub(PAGES.swap(pages, Relaxed)),
        time.saturating_sub(TIME.swap(time, Relaxed)),
        cpu_time.saturating_sub(CPU_TIME.swap(cpu_time, Relaxed)),
    );
    DEBT.store(debt, Relaxed);
    debt
}

/// A debt after so many pages were charged, and so much time and computing time went by.
fn after(debt: u64, pages: u64, time: u64, cpu_time: u64) -> u64 {
    let mut debt = debt;
    // e to the minus is close to 1 / (1 + x) for short times, and long ones come in pieces.
    let mut left = time.min(20 * FORGIVEN_IN);
    while left != 0 {
        let piece = left.min(FORGIVEN_IN / 16);
        debt -= (debt as u128 * piece as u128 / (FORGIVEN_IN + piece) as u128) as u64;
        left -= piece;
    }
    let debt = debt.saturating_add(pages.saturating_mul(PAGE_COST)).saturating_sub(cpu_time / SHARE);
    if debt < NONE { 0 } else { debt }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    #[test]
    fn pages_are_charged_and_paid_for_by_computing() {
        assert_eq!(after(0, 25_000, 0, 0), 100 * MS);
        assert_eq!(after(100 * MS, 0, 0, SECOND), 90 * MS);
        assert_eq!(after(100 * MS, 0, 0, 10 * SECOND), 0);
        assert_eq!(after(0, 400, 0, 0), 0);
    }

    #[test]
    fn time_forgives() {
        let left = after(SECOND, 0, 20 * SECOND, 0) as f64 / SECOND as f64;
        assert!((left - (-1f64).exp()).abs() < 0.02, "{left}");
        // Many short looks come to the same.
        let looks = (0..200).fold(SECOND, |debt, _| after(debt, 0, 100 * MS, 0)) as f64 / SECOND as f64;
        assert!((looks - left).abs() < 0.02, "{looks} {left}");
        assert_eq!(after(SECOND, 0, u64::MAX, 0), 0);
    }
}
