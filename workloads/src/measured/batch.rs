//! Allocate many blocks, then free them all: in order, backwards, or at random.

use super::block::{Block, Tally};
use super::crew::Worker;
use super::sizes::Sizes;
use super::timing::Body;
use crate::driver::mapped::Mapped;
use crate::driver::seed::{SplitMix64, derive};
use crate::driver::stamp;

/// In which order a batch is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// As it was allocated.
    Fifo,
    /// The last one first.
    Lifo,
    /// Drawn beforehand.
    Random,
}

/// A batch of blocks.
#[derive(Debug)]
pub struct Batch {
    seed: u64,
    sizes: Mapped<u32>,
    order: Mapped<u32>,
    blocks: Mapped<Option<Block>>,
    /// Batches in a pass of [`Worker`].
    rounds: u64,
}

impl Batch {
    /// `count` blocks of `sizes`.
    #[must_use]
    pub fn new(order: Order, count: usize, sizes: Sizes, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let sizes = sizes.table(count, &mut random);
        let mut places = Mapped::collect(0..count as u32);
        match order {
            Order::Fifo => {}
            Order::Lifo => places.reverse(),
            Order::Random => random.shuffle(&mut places),
        }
        Self { seed, sizes, order: places, blocks: Mapped::new(count), rounds: 0 }
    }

    /// As [`Batch::new`], for thread `number`, with so many batches that a pass has about `operations`.
    #[must_use]
    pub fn for_thread(count: usize, sizes: Sizes, seed: u64, number: u32, operations: u64) -> Self {
        let batch = Self::new(Order::Random, count, sizes, derive(seed, &[u64::from(number)]));
        Self { rounds: (operations / count as u64).max(1), ..batch }
    }
}

impl Body for Batch {
    fn operations(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn run<const CHECKED: bool>(&mut self, turns: u64, tally: &mut Tally) {
        let Self { seed, sizes, order, blocks, .. } = self;
        for _ in 0..turns {
            for (number, (place, &size)) in blocks.iter_mut().zip(sizes.iter()).enumerate() {
                let mut block = Block::new(size as usize);
                if CHECKED {
                    stamp::write(block.words(size as usize), stamp::stamp(*seed, 0, number as u64));
                } else {
                    block.touch();
                }
                *place = Some(block);
            }
            for &number in order.iter() {
                let Some(mut block) = blocks[number as usize].take() else { continue };
                if CHECKED {
                    let stamp = stamp::stamp(*seed, 0, u64::from(number));
                    tally.add(block.read(), stamp);
                    let words = block.words(sizes[number as usize] as usize);
                    tally.damaged += u64::from(stamp::check(words, stamp).is_err());
                }
                block.free();
            }
        }
    }
}

impl Worker for Batch {
    fn pass(&mut self) -> u64 {
        self.run::<false>(self.rounds, &mut Tally::default());
        // Blocks allocated and blocks freed, as in the other rows with threads.
        2 * self.rounds * self.operations()
    }

    fn settle(&mut self) -> Tally {
        let mut tally = Tally::default();
        self.run::<true>(1, &mut tally);
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_frees_every_block_once() {
        let sums = [Order::Fifo, Order::Lifo, Order::Random].map(|order| {
            let mut batch = Batch::new(order, 300, Sizes::even(16, 256), 3);
            let mut tally = Tally::default();
            batch.run::<true>(2, &mut tally);
            assert!(tally.damaged == 0 && batch.blocks.iter().all(Option::is_none));
            tally.checksum
        });
        assert!(sums[0] == sums[1] && sums[1] == sums[2]);
        assert_eq!(&Batch::new(Order::Lifo, 3, Sizes::even(16, 16), 3).order[..], [2, 1, 0]);
    }
}
