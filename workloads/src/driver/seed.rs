//! Seeded choices: the splitmix64 generator (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
//! OOPSLA 2014).
//!
//! The same seed gives the same operations under every allocator, so two allocators are compared on one stream.

/// The increment of splitmix64: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads the bits of `value` over the whole word. A bijection, so different values stay different.
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed of its own for each combination of `parts` (thread, block, worker ...) under one run seed.
///
/// The allocator that is measured is never one of the parts.
#[must_use]
pub fn derive(run_seed: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(mix(run_seed.wrapping_add(STEP)), |seed, &part| mix(seed.wrapping_add(STEP) ^ mix(part)))
}

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator that starts at `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number in `0..bound`, or 0 if `bound` is 0.
    ///
    /// Takes the high half of the product instead of a remainder; the bias is below `bound / 2^64`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Puts `items` into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_splitmix64() {
        let mut random = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(std::array::from_fn::<u64, 3, _>(|_| random.next_u64()), expected);
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn shuffle_keeps_the_items_and_depends_on_the_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
    }

    #[test]
    fn derived_seeds_differ_by_part_and_by_position() {
        let seeds = [
            derive(1, &[]),
            derive(1, &[0]),
            derive(1, &[0, 0]),
            derive(1, &[0, 1]),
            derive(1, &[1, 0]),
            derive(2, &[0]),
        ];
        for (i, a) in seeds.iter().enumerate() {
            assert!(seeds[i + 1..].iter().all(|b| a != b), "{seeds:?}");
        }
    }
}
