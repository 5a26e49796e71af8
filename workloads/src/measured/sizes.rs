//! Tables of block sizes, drawn beforehand.

use crate::driver::mapped::Mapped;
use crate::driver::seed::SplitMix64;

/// How sizes between two bounds are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Each size as likely as any other.
    Even,
    /// Each doubling as likely as any other, so that small sizes are frequent.
    Doublings,
}

/// The range of sizes, in bytes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest.
    pub low: usize,
    /// The largest.
    pub high: usize,
    /// How the ones between are drawn.
    pub spread: Spread,
}

impl Sizes {
    /// Even sizes from `low` to `high`.
    #[must_use]
    pub const fn even(low: usize, high: usize) -> Self {
        Self { low, high, spread: Spread::Even }
    }

    /// Sizes from `low` to `high` by doublings.
    #[must_use]
    pub const fn doublings(low: usize, high: usize) -> Self {
        Self { low, high, spread: Spread::Doublings }
    }

    /// Draws one size.
    #[must_use]
    pub fn draw(&self, random: &mut SplitMix64) -> usize {
        match self.spread {
            Spread::Even => self.low + random.below((self.high - self.low + 1) as u64) as usize,
            Spread::Doublings => {
                let (first, last) = (self.low.ilog2(), self.high.ilog2());
                let power = 1usize << (u64::from(first) + random.below(u64::from(last - first + 1)));
                (power + random.below(power as u64) as usize).clamp(self.low, self.high)
            }
        }
    }

    /// Draws `count` sizes.
    #[must_use]
    pub fn table(&self, count: usize, random: &mut SplitMix64) -> Mapped<u32> {
        Mapped::collect((0..count).map(|_| self.draw(random) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_within_bounds_and_reach_them() {
        for sizes in [Sizes::even(16, 20), Sizes::doublings(16, 4096), Sizes::doublings(24, 100)] {
            let table = sizes.table(5_000, &mut SplitMix64::new(1));
            assert!(table.iter().all(|&size| (sizes.low..=sizes.high).contains(&(size as usize))), "{sizes:?}");
            assert!(table.contains(&(sizes.low as u32)), "{sizes:?}");
        }
        // By doublings half of the sizes are below the middle power.
        let table = Sizes::doublings(16, 4095).table(8_000, &mut SplitMix64::new(1));
        let small = table.iter().filter(|&&size| size < 256).count();
        assert!((3_700..4_300).contains(&small), "{small}");
    }
}
