//! Pass, fail, or cannot tell.

use crate::BenchError;
use crate::stats::Effect;

/// The fewest blocks that can decide.
///
/// The interval of a median cannot reach beyond the least and the greatest ratio, and those miss the true median with
/// probability 2 / 2^n: 6.3 % for five blocks, 3.1 % for six.
pub const DECIDING_BLOCKS: usize = 6;

/// Which direction is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// More is worse: time, memory.
    Higher,
    /// Less is worse: operations per second, share of memory returned.
    Lower,
}

/// The ratio contender / reference from which a difference counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    ratio: f64,
    worse: Worse,
}

impl Threshold {
    /// A limit at `ratio`: 1.05 with [`Worse::Higher`] tolerates 5 % more.
    ///
    /// # Errors
    /// [`BenchError::Threshold`] when `ratio` is not above 0 and finite.
    pub fn new(ratio: f64, worse: Worse) -> Result<Self, BenchError> {
        if ratio > 0.0 && ratio.is_finite() { Ok(Self { ratio, worse }) } else { Err(BenchError::Threshold(ratio)) }
    }

    /// Judges `effect`: [`Verdict::Fail`] when the interval lies wholly beyond the threshold, [`Verdict::Pass`] when it lies
    /// wholly inside (its end may touch the threshold), [`Verdict::Inconclusive`] when it straddles it or there are fewer
    /// than [`DECIDING_BLOCKS`] blocks.
    #[must_use]
    pub fn judge(&self, effect: &Effect) -> Verdict {
        let (beyond, inside) = match self.worse {
            Worse::Higher => (effect.low > self.ratio, effect.high <= self.ratio),
            Worse::Lower => (effect.high < self.ratio, effect.low >= self.ratio),
        };
        match (beyond, inside) {
            _ if effect.blocks < DECIDING_BLOCKS => Verdict::Inconclusive,
            (true, false) => Verdict::Fail,
            (false, true) => Verdict::Pass,
            _ => Verdict::Inconclusive,
        }
    }
}

/// What a comparison says. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No worse than the threshold allows.
    Pass,
    /// The measurements do not tell.
    Inconclusive,
    /// Worse than the threshold allows.
    Fail,
}

impl Verdict {
    /// The exit code of `mpp bench compare`.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 10,
            Self::Inconclusive => 11,
        }
    }

    /// The verdict over several cells: the worst of them. One cell that fails decides, whatever the others cannot tell.
    /// [`Verdict::Inconclusive`] if there are none.
    #[must_use]
    pub fn of_all(cells: impl IntoIterator<Item = Self>) -> Self {
        cells.into_iter().max().unwrap_or(Self::Inconclusive)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn effect(low: f64, high: f64) -> Effect {
        Effect { ratio: (low * high).sqrt(), low, high, blocks: 15 }
    }

    #[test]
    fn the_whole_interval_decides() {
        let slower = Threshold::new(1.05, Worse::Higher).unwrap();
        assert_eq!(slower.judge(&effect(1.06, 1.10)), Verdict::Fail);
        assert_eq!(slower.judge(&effect(1.04, 1.10)), Verdict::Inconclusive);
        assert_eq!(slower.judge(&effect(0.90, 1.05)), Verdict::Pass);
        assert_eq!(slower.judge(&effect(1.05, 1.10)), Verdict::Inconclusive);

        let returned = Threshold::new(0.90, Worse::Lower).unwrap();
        assert_eq!(returned.judge(&effect(0.50, 0.80)), Verdict::Fail);
        assert_eq!(returned.judge(&effect(0.80, 0.95)), Verdict::Inconclusive);
        assert_eq!(returned.judge(&effect(0.90, 1.20)), Verdict::Pass);
    }

    #[test]
    fn few_blocks_decide_nothing() {
        let slower = Threshold::new(1.05, Worse::Higher).unwrap();
        for (blocks, verdict) in [(3, Verdict::Inconclusive), (5, Verdict::Inconclusive), (6, Verdict::Fail)] {
            assert_eq!(slower.judge(&Effect { blocks, ..effect(2.0, 2.0) }), verdict, "{blocks} blocks");
        }
    }

    #[test]
    fn exit_codes_and_sums() {
        let codes = [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive].map(Verdict::exit_code);
        assert_eq!(codes, [0, 10, 11]);
        assert_eq!(Verdict::of_all([Verdict::Pass, Verdict::Fail, Verdict::Inconclusive]), Verdict::Fail);
        assert_eq!(Verdict::of_all([Verdict::Pass, Verdict::Inconclusive]), Verdict::Inconclusive);
        assert_eq!(Verdict::of_all([Verdict::Pass]), Verdict::Pass);
        assert_eq!(Verdict::of_all([]), Verdict::Inconclusive);
    }

    #[test]
    fn a_threshold_is_a_ratio() {
        for wrong in [0.0, -0.05, f64::NAN, f64::INFINITY] {
            assert!(Threshold::new(wrong, Worse::Higher).is_err());
        }
    }

    proptest! {
        #[test]
        fn judging_the_reciprocal_the_other_way_round_is_the_same(low in 0.5f64..2.0, width in 1.0f64..1.5, ratio in 0.5f64..2.0) {
            let high = low * width;
            prop_assume!([low, high].iter().all(|end| (end / ratio - 1.0).abs() > 1e-12));
            let one = Threshold::new(ratio, Worse::Higher).unwrap().judge(&effect(low, high));
            let other = Threshold::new(1.0 / ratio, Worse::Lower).unwrap().judge(&effect(1.0 / high, 1.0 / low));
            prop_assert_eq!(one, other);
        }
    }
}
