//! From sampled blocks to estimates, as whole numbers that add up.

/// A column of estimates: each is rounded so that at every moment the sum of what was given is the rounded sum of the estimates. So no
/// number is off by one or more, and the sum of a column is as good as if nothing had been rounded.
#[derive(Clone, Copy, Default)]
pub(super) struct Column {
    sum: f64,
    given: u64,
}

impl Column {
    /// The whole number for the next estimate.
    pub(super) fn next(&mut self, estimate: f64) -> u64 {
        self.sum += estimate;
        let given = (self.sum + 0.5) as u64;
        let next = given.saturating_sub(self.given);
        self.given = given;
        next
    }

    /// The sum of all that were given.
    pub(super) fn total(&self) -> u64 {
        self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_add_up() {
        let mut column = Column::default();
        let estimates = [0.4, 0.4, 0.4, 0.0, 7.25, 1e12 + 0.3, 1.0, 0.0];
        let whole: std::vec::Vec<u64> = estimates.iter().map(|&estimate| column.next(estimate)).collect();
        assert_eq!(whole, [0, 1, 0, 0, 7, 1_000_000_000_001, 1, 0]);
        assert_eq!(whole.iter().sum::<u64>(), column.total());
        assert!(whole.iter().zip(estimates).all(|(&whole, estimate)| (whole as f64 - estimate).abs() < 1.0));
    }
}
