//! How much time the scavenger may take.
//!
//! A share of one processor, and a store of unused time, so that a large drain comes back at once rather than in pieces a second apart.

/// One part in so many of a processor's time.
const SHARE: u64 = 20;
/// The most that is kept for later, in nanoseconds: enough for 1 GB in small pieces.
const STORE: i64 = 200_000_000;

/// Times in nanoseconds.
pub(super) struct Allowance {
    left: i64,
    /// When that was computed.
    at: u64,
}

impl Allowance {
    pub(super) fn new(now: u64) -> Allowance {
        Allowance { left: STORE, at: now }
    }

    /// So much was computed. How long to rest before more.
    pub(super) fn rest_after(&mut self, computed: u64, now: u64) -> u64 {
        let earned = now.saturating_sub(core::mem::replace(&mut self.at, now)) / SHARE;
        self.left = self.left.saturating_add_unsigned(earned).min(STORE).saturating_sub_unsigned(computed);
        self.left.min(0).unsigned_abs() * SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_kept_can_be_taken_at_once() {
        let mut allowance = Allowance::new(0);
        assert_eq!(allowance.rest_after(200 * MS, 0), 0);
        assert_eq!(allowance.rest_after(10 * MS, 0), 200 * MS);
        assert_eq!(allowance.rest_after(0, 200 * MS), 0);
        assert_eq!(allowance.rest_after(MS, 200 * MS), 20 * MS);
        // No more is kept after a long time than after four seconds.
        assert_eq!(allowance.rest_after(201 * MS, u64::MAX / 2), 20 * MS);
    }

    #[test]
    fn a_twentieth_in_the_long_run() {
        let (mut allowance, mut now, mut computed) = (Allowance::new(0), 0, 0);
        while now < 60_000 * MS {
            computed += 30 * MS;
            now += 30 * MS;
            now += allowance.rest_after(30 * MS, now).max(10 * MS);
        }
        let share = (computed - STORE as u64) as f64 / now as f64;
        assert!((0.045..=0.05).contains(&share), "{share}");
    }
}
