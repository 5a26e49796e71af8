//! Generations of threads: each fills memory of its own, and all of it is freed by the thread after it. Memory that an
//! allocator cannot take over from an ended thread piles up as peak memory.

use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally};
use crate::measured::crew;
use crate::measured::sizes::Sizes;
use crate::measured::timing::Settings;

/// Threads in a row.
const GENERATIONS: u64 = 16;
const SIZES: Sizes = Sizes::doublings(16, 32 << 10);

/// Each thread of each of `settings.threads` rows makes `blocks` blocks. An operation is an allocation or a free.
#[must_use]
pub fn pass(blocks: u64, settings: &Settings) -> (u64, Tally) {
    let ended = crew::on_threads(settings, |row| {
        let mut tally = Tally::default();
        let mut left: Vec<(Block, u64)> = Vec::new();
        for generation in 0..GENERATIONS {
            let seed = derive(settings.seed, &[u64::from(row), generation]);
            let next = std::thread::spawn(move || {
                let mut random = SplitMix64::new(seed);
                let mine: Vec<_> = (0..blocks).map(|_| fresh(&mut random)).collect();
                let mut tally = Tally::default();
                left.into_iter().for_each(|block| free(block, &mut tally));
                (mine, tally)
            });
            let (mine, more) = next.join().expect("a worker does not panic");
            left = mine;
            tally.merge(more);
        }
        left.into_iter().for_each(|block| free(block, &mut tally));
        (2 * blocks * GENERATIONS, tally)
    });
    crew::sum(ended)
}

fn fresh(random: &mut SplitMix64) -> (Block, u64) {
    let size = SIZES.draw(random);
    let stamp = random.next_u64();
    let mut block = Block::new(size);
    block.touch_pages(size);
    block.mark(stamp);
    (block, stamp)
}

fn free((block, stamp): (Block, u64), tally: &mut Tally) {
    tally.add(block.read(), stamp);
    block.free();
}
