//! Random buffers of 5 to 25 MiB, of which the ends are written.

use crate::driver::seed::SplitMix64;
use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::sizes::Sizes;

/// Live buffers.
const PLACES: u64 = 20;
const SIZES: Sizes = Sizes::even(5 << 20, 25 << 20);

/// Replaces a random buffer `rounds` times. An operation is an allocation or a free.
#[must_use]
pub fn pass(rounds: u64, seed: u64) -> (u64, Tally) {
    let mut random = SplitMix64::new(seed);
    let mut blocks: [Option<Block>; PLACES as usize] = [const { None }; PLACES as usize];
    let mut tally = Tally::default();
    let mut free = |place: usize, block: Option<Block>| {
        if let Some(block) = block {
            tally.add(block.read(), stamp_of(place as u64));
            block.free();
        }
    };
    for _ in 0..rounds {
        let place = random.below(PLACES) as usize;
        let size = SIZES.draw(&mut random);
        let mut block = Block::new(size);
        block.touch_at(size - 1);
        block.mark(stamp_of(place as u64));
        free(place, blocks[place].replace(block));
    }
    blocks.iter_mut().enumerate().for_each(|(place, block)| free(place, block.take()));
    (2 * rounds, tally)
}
