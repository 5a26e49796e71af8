//! A large set of live blocks, of which a random one is replaced at a time.

use super::block::{Block, Tally};
use super::sizes::Sizes;
use super::timing::Body;
use crate::driver::mapped::Mapped;
use crate::driver::seed::SplitMix64;
use crate::driver::stamp;

/// Sizes in the table; a power of two.
const TABLE: usize = 4096;

/// The live blocks.
#[derive(Debug)]
pub struct Window {
    seed: u64,
    random: SplitMix64,
    sizes: Mapped<u32>,
    blocks: Mapped<Option<Block>>,
    /// What the checked part put where: a size.
    filled: Mapped<u32>,
}

impl Window {
    /// A window of `count` blocks.
    #[must_use]
    pub fn new(count: usize, sizes: Sizes, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let sizes = sizes.table(TABLE, &mut random);
        Self { seed, random, sizes, blocks: Mapped::new(count), filled: Mapped::new(count) }
    }

    fn check(&mut self, place: usize, tally: &mut Tally) {
        if let Some(block) = &mut self.blocks[place] {
            let stamp = stamp::stamp(self.seed, 0, place as u64);
            tally.add(block.read(), stamp);
            tally.damaged += u64::from(stamp::check(block.words(self.filled[place] as usize), stamp).is_err());
        }
    }
}

impl Body for Window {
    fn prepare(&mut self) {
        for (number, place) in self.blocks.iter_mut().enumerate() {
            if place.is_none() {
                let mut block = Block::new(self.sizes[number % TABLE] as usize);
                block.touch();
                *place = Some(block);
            }
        }
        // Two rounds of replacement: what is measured is the state after long use, not fresh memory.
        self.run::<false>(2 * self.blocks.len() as u64, &mut Tally::default());
    }

    fn run<const CHECKED: bool>(&mut self, turns: u64, tally: &mut Tally) {
        let count = self.blocks.len() as u64;
        for _ in 0..turns {
            let drawn = self.random.next_u64();
            let place = (((drawn >> 32) * count) >> 32) as usize;
            let size = self.sizes[drawn as usize % TABLE] as usize;
            if CHECKED {
                self.check(place, tally);
            }
            if let Some(block) = self.blocks[place].take() {
                block.free();
            }
            let mut block = Block::new(size);
            if CHECKED {
                stamp::write(block.words(size), stamp::stamp(self.seed, 0, place as u64));
                self.filled[place] = size as u32;
            } else {
                block.touch();
            }
            self.blocks[place] = Some(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_in_a_live_block_is_found() {
        let mut window = Window::new(10, Sizes::doublings(16, 4096), 1);
        let mut tally = Tally::default();
        window.run::<true>(500, &mut tally);
        assert_eq!(tally.damaged, 0);
        window.blocks.iter_mut().flatten().next().unwrap().words(8)[0] ^= 1;
        window.run::<true>(500, &mut tally);
        assert!(tally.damaged > 0);
        window.prepare();
        assert!(window.blocks.iter().all(Option::is_some));
        window.run::<false>(500, &mut tally);
    }
}
