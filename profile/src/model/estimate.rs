//! From sampled sums to estimates of the whole, with their standard error.
//!
//! Bytes are sampled by a Poisson process of one event in `R` bytes on average, so a block of `s` bytes is recorded with
//! probability `p = 1 - exp(-s / R)`. A recorded block therefore stands for `1 / p` blocks (Horvitz and Thompson's
//! estimator, which has no bias), and each adds `(1 - p) / p²` to the variance of the count.

use super::sample::{Amount, Unit};

/// An estimate of blocks and bytes, and the variance of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Estimated blocks.
    pub blocks: f64,
    /// Estimated bytes.
    pub bytes: f64,
    /// Variance of `blocks`.
    pub blocks_variance: f64,
    /// Variance of `bytes`, in bytes². Where one line mixes block sizes this is too low: the file does not tell them.
    pub bytes_variance: f64,
}

impl Estimate {
    /// What `amount` recorded blocks, all of the average size, stand for at one sample in `sample_rate` bytes.
    ///
    /// A rate of 0 or 1 means that every block was recorded. So does an amount without bytes: blocks of no size cannot
    /// have been sampled by bytes.
    pub fn of(amount: Amount, sample_rate: u64) -> Self {
        let (objects, bytes) = (amount.objects as f64, amount.bytes as f64);
        if sample_rate <= 1 || amount.objects == 0 || amount.bytes == 0 {
            return Self { blocks: objects, bytes, blocks_variance: 0.0, bytes_variance: 0.0 };
        }
        let size = bytes / objects;
        let ratio = size / sample_rate as f64;
        // exp_m1 keeps the digits that 1 - exp(-x) loses for small blocks.
        let probability = -(-ratio).exp_m1();
        let missed = (-ratio).exp();
        let blocks_variance = objects * missed / (probability * probability);
        Self {
            blocks: objects / probability,
            bytes: bytes / probability,
            blocks_variance,
            bytes_variance: blocks_variance * size * size,
        }
    }

    /// An estimate that was made by others, at one sample in `sample_rate` bytes: how good it can be.
    ///
    /// What was recorded is the estimate times the probability that a block of the average size was; see [`Estimate::of`].
    pub fn given(amount: Amount, sample_rate: u64) -> Self {
        let (objects, bytes) = (amount.objects as f64, amount.bytes as f64);
        let probability = amount.probability(sample_rate);
        let size = if amount.objects == 0 { 0.0 } else { bytes / objects };
        let blocks_variance = objects * (1.0 - probability) / probability;
        Self { blocks: objects, bytes, blocks_variance, bytes_variance: blocks_variance * size * size }
    }

    /// The sum of two independent estimates.
    pub fn plus(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
            blocks_variance: self.blocks_variance + other.blocks_variance,
            bytes_variance: self.bytes_variance + other.bytes_variance,
        }
    }

    /// The estimated number.
    pub fn value(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Bytes => self.bytes,
            Unit::Blocks => self.blocks,
        }
    }

    /// The variance of [`Estimate::value`].
    pub fn variance(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Bytes => self.bytes_variance,
            Unit::Blocks => self.blocks_variance,
        }
    }

    /// The standard error of [`Estimate::value`].
    pub fn standard_error(&self, unit: Unit) -> f64 {
        self.variance(unit).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(size: u64, rate: u64) -> Estimate {
        Estimate::of(Amount { objects: 1, bytes: size }, rate)
    }

    #[test]
    fn everything_recorded_is_exact() {
        let amount = Amount { objects: 3, bytes: 100 };
        for rate in [0, 1] {
            let expected = Estimate { blocks: 3.0, bytes: 100.0, blocks_variance: 0.0, bytes_variance: 0.0 };
            assert_eq!(Estimate::of(amount, rate), expected);
        }
        assert_eq!(Estimate::of(Amount::default(), 524288), Estimate::default());
        assert_eq!(Estimate::of(Amount { objects: 7, bytes: 0 }, 524288).blocks, 7.0);
    }

    #[test]
    fn a_block_of_the_size_of_the_rate_has_the_probability_1_less_1_over_e() {
        let estimate = one(1 << 19, 1 << 19);
        assert!((estimate.blocks - 1.581_976_706_869_326_3).abs() < 1e-12, "{}", estimate.blocks);
        // (1 - p) / p² at p = 1 - 1/e.
        assert!((estimate.blocks_variance - 0.920_673_594_207_792).abs() < 1e-12, "{}", estimate.blocks_variance);
    }

    #[test]
    fn tiny_blocks_do_not_lose_their_digits() {
        let estimate = one(8, 1 << 40);
        // 1 / (1 - exp(-x)) = 1/x + 1/2 + x/12 - ...
        let ratio = 8.0 / (1u64 << 40) as f64;
        assert!((estimate.blocks / (1.0 / ratio + 0.5) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn given_estimates_keep_their_numbers_and_get_the_same_error() {
        let amount = Amount { objects: 40, bytes: 40 * 4096 };
        let estimate = Estimate::of(amount, 65_536);
        let rounded = Amount { objects: estimate.blocks.round() as u64, bytes: estimate.bytes.round() as u64 };
        let given = Estimate::given(rounded, 65_536);
        assert_eq!((given.blocks, given.bytes), (rounded.objects as f64, rounded.bytes as f64));
        assert!((given.blocks_variance / estimate.blocks_variance - 1.0).abs() < 1e-2);
        assert!((given.bytes_variance / estimate.bytes_variance - 1.0).abs() < 1e-2);
        assert_eq!(rounded.recorded_blocks(65_536), 40);
        for rate in [0, 1] {
            assert_eq!(Estimate::given(amount, rate), Estimate::of(amount, rate));
            assert_eq!(amount.recorded_blocks(rate), 40);
        }
        assert_eq!(Estimate::given(Amount::default(), 1 << 19), Estimate::default());
        assert_eq!(Estimate::given(Amount { objects: 0, bytes: 7 }, 1 << 19).bytes, 7.0);
    }

    proptest! {
        /// The mean over recorded (probability p) and not recorded (estimate 0) is the truth, and so is the variance.
        #[test]
        fn the_estimator_has_no_bias(size in 1u64..1 << 30, rate in 2u64..1 << 30) {
            let estimate = one(size, rate);
            let p = 1.0 / estimate.blocks;
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!((p * estimate.bytes / size as f64 - 1.0).abs() < 1e-9);
            let variance = p * estimate.blocks * estimate.blocks - 1.0;
            // What is recorded adds its variance with probability p.
            prop_assert!((p * estimate.blocks_variance - variance).abs() <= 1e-9 * (1.0 + variance));
            let bytes_error = size as f64 * estimate.standard_error(Unit::Blocks);
            prop_assert!((estimate.standard_error(Unit::Bytes) - bytes_error).abs() <= 1e-9 * bytes_error);
        }

        /// A simulated run: the error of the total is what its standard error says.
        #[test]
        fn a_simulated_total_is_within_its_error(seed in any::<u64>()) {
            let (size, rate, blocks) = (4096u64, 32_768u64, 4000u64);
            let p = 1.0 / one(size, rate).blocks;
            let mut state = seed;
            let mut recorded = 0;
            for _ in 0..blocks {
                // splitmix64
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^= mixed >> 31;
                recorded += u64::from(((mixed >> 11) as f64 / (1u64 << 53) as f64) < p);
            }
            let estimate = Estimate::of(Amount { objects: recorded, bytes: recorded * size }, rate);
            let error = estimate.blocks - blocks as f64;
            prop_assert!(error.abs() < 6.0 * estimate.standard_error(Unit::Blocks), "{error}");
        }
    }
}
