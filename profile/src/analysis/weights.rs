//! Estimates as whole numbers that add up.

use std::ops::AddAssign;

use crate::model::{Metric, Profile, Sample, Unit};

/// Estimated bytes and blocks as whole numbers, with their variances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Estimated bytes.
    pub bytes: u64,
    /// Estimated blocks.
    pub blocks: u64,
    /// Variance of `bytes`, in bytes².
    pub bytes_variance: f64,
    /// Variance of `blocks`.
    pub blocks_variance: f64,
}

impl Sum {
    /// The number in this unit.
    pub fn value(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Bytes => self.bytes,
            Unit::Blocks => self.blocks,
        }
    }

    /// The standard error of [`Sum::value`]: 0 when every block was recorded.
    pub fn standard_error(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Bytes => self.bytes_variance,
            Unit::Blocks => self.blocks_variance,
        }
        .sqrt()
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes_variance += other.bytes_variance;
        self.blocks_variance += other.blocks_variance;
    }
}

/// The whole-number estimate of every sample of a profile for one metric.
///
/// The numbers are rounded once, by largest remainder, so that they add up to the rounded total. Every view adds up these
/// numbers and nothing else; hence the rows of any table and the lines of any flame graph have the same sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    samples: Vec<Sum>,
    total: Sum,
}

impl Weights {
    /// Estimates every sample of the profile.
    pub fn of(profile: &Profile, metric: Metric) -> Self {
        let estimates: Vec<_> =
            profile.samples.iter().map(|sample: &Sample| profile.estimate_of(sample, metric)).collect();
        let bytes = apportion(estimates.iter().map(|estimate| estimate.bytes));
        let blocks = apportion(estimates.iter().map(|estimate| estimate.blocks));
        let samples: Vec<Sum> = estimates
            .iter()
            .zip(bytes)
            .zip(blocks)
            .map(|((estimate, bytes), blocks)| Sum {
                bytes,
                blocks,
                bytes_variance: estimate.bytes_variance,
                blocks_variance: estimate.blocks_variance,
            })
            .collect();
        let mut total = Sum::default();
        samples.iter().for_each(|&sum| total += sum);
        Self { samples, total }
    }

    /// The same numbers, with other variances: those of all that has made `metric` what it is, allocating and freeing. They grow while
    /// a program runs, and what they have grown by from one moment of a run to another is the variance of what changed in between.
    /// `None` where the profile does not tell it.
    pub(super) fn with_turnover(&self, profile: &Profile, metric: Metric) -> Option<Self> {
        let parts: &[Metric] = match metric {
            Metric::Live => &[Metric::Allocated, Metric::Freed],
            Metric::Allocated => &[Metric::Allocated],
            Metric::Freed => &[Metric::Freed],
            Metric::Peak | Metric::Temporary => return None,
        };
        if !profile.has_allocated() {
            return None;
        }
        let mut turnover = Self { samples: self.samples.clone(), total: Sum::default() };
        for (sample, sum) in profile.samples.iter().zip(&mut turnover.samples) {
            (sum.bytes_variance, sum.blocks_variance) = (0.0, 0.0);
            for &part in parts {
                let estimate = profile.estimate_of(sample, part);
                sum.bytes_variance += estimate.bytes_variance;
                sum.blocks_variance += estimate.blocks_variance;
            }
            turnover.total += *sum;
        }
        Some(turnover)
    }

    /// One number for each of [`Profile::samples`], in their order.
    pub fn samples(&self) -> &[Sum] {
        &self.samples
    }

    /// The sum of them all.
    pub fn total(&self) -> Sum {
        self.total
    }
}

/// Whole numbers for `shares`, each its floor or one more, that add up to the rounded sum of the shares.
///
/// Those with the largest fractions get one more; of equal fractions the first. Above 2^53 there are no fractions and the
/// sum of the floors is taken. Sums beyond 64 bits stay at the largest number.
fn apportion(shares: impl Iterator<Item = f64> + Clone) -> Vec<u64> {
    let mut whole: Vec<u64> = shares.clone().map(|share| share as u64).collect();
    let mut by_fraction: Vec<(f64, usize)> = shares
        .map(|share| if share > 0.0 && share.is_finite() { share.fract() } else { 0.0 })
        .enumerate()
        .map(|(index, fraction)| (fraction, index))
        .collect();
    let missing: f64 = by_fraction.iter().map(|(fraction, _)| fraction).sum();
    let missing = (missing.round() as usize).min(by_fraction.len());
    if missing > 0 && missing < by_fraction.len() {
        // Which they are is all that counts, not their order.
        by_fraction.select_nth_unstable_by(missing, |(a, i), (b, j)| b.total_cmp(a).then(i.cmp(j)));
    }
    for &(_, index) in &by_fraction[..missing] {
        whole[index] = whole[index].saturating_add(1);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_fractions_are_rounded_up() {
        assert_eq!(apportion([0.4, 0.7, 0.9].into_iter()), [0, 1, 1]);
        assert_eq!(apportion([1.5, 1.5].into_iter()), [2, 1]);
        assert_eq!(apportion([].into_iter()), [0; 0]);
        assert_eq!(apportion([f64::INFINITY, f64::NAN, -3.5].into_iter())[1..], [0, 0]);
    }

    proptest! {
        #[test]
        fn the_sum_is_the_rounded_sum(shares in prop::collection::vec(0.0..1e9f64, 0..200)) {
            let whole = apportion(shares.iter().copied());
            let sum: u64 = whole.iter().sum();
            let exact: f64 = shares.iter().sum();
            prop_assert!((sum as f64 - exact).abs() <= 0.5 + 1e-4);
            for (&whole, &share) in whole.iter().zip(&shares) {
                prop_assert!((whole as f64 - share).abs() <= 1.0);
            }
        }
    }
}
