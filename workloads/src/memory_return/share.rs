//! A thread's share of blocks, of which most are freed and a scattered part survives.

use crate::driver::mapped::{Mapped, Zeroed};
use crate::driver::seed::{SplitMix64, derive};
use crate::driver::stamp;
use crate::measured::block::{Block, Tally};

/// In which order blocks are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// As they were allocated.
    Sequential,
    /// Drawn beforehand, over all sizes.
    Random,
}

/// A block that stays, and its number.
#[derive(Debug)]
struct Kept {
    block: Option<Block>,
    number: u64,
}

// SAFETY: zeros are no block and a number; nothing happens on drop.
unsafe impl Zeroed for Kept {}

/// How large the blocks are, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sizes {
    /// Groups of blocks of one size (size in bytes, count), in the order in which they are allocated.
    Groups([(u32, u64); 3]),
    /// So many blocks of random sizes of 16 bytes up to this one.
    UpTo(u32, u64),
}

impl Sizes {
    /// Blocks of one size.
    pub(super) const fn one(size: u32, count: u64) -> Self {
        Self::Groups([(size, count), (0, 0), (0, 0)])
    }

    fn count(&self) -> u64 {
        match self {
            Self::Groups(groups) => groups.iter().map(|&(_, count)| count).sum(),
            Self::UpTo(_, count) => *count,
        }
    }

    /// The size of block `number` in a share of this seed.
    #[inline]
    fn of(&self, number: u64, seed: u64) -> usize {
        match self {
            Self::UpTo(largest, _) => 16 + derive(seed, &[3, number]) as usize % (*largest as usize - 15),
            Self::Groups(groups) => {
                let mut number = number;
                for &(size, count) in groups {
                    if number < count {
                        return size as usize;
                    }
                    number -= count;
                }
                0
            }
        }
    }
}

/// How much of a block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// All of it.
    Whole,
    /// Its first two words: what is measured is the allocator, not the writing. Such blocks do not survive.
    Head,
}

/// Blocks of one thread.
#[derive(Debug)]
pub(super) struct Share {
    seed: u64,
    sizes: Sizes,
    fill: Fill,
    blocks: Mapped<Option<Block>>,
    kept: Mapped<Kept>,
    survivors: usize,
    /// Sum over the stamps of all blocks, as it should be in the end.
    predicted: u64,
    tally: Tally,
}

impl Share {
    /// Room for blocks of `sizes`, of which one in `survival` survives; none if that is 0.
    pub(super) fn new(sizes: Sizes, survival: usize, seed: u64, worker: u64) -> Self {
        let blocks = sizes.count() as usize;
        Self {
            seed: derive(seed, &[worker]),
            sizes,
            fill: Fill::Whole,
            blocks: Mapped::new(blocks),
            kept: Mapped::new(blocks.checked_div(survival).map_or(0, |runs| runs + 1)),
            survivors: 0,
            predicted: 0,
            tally: Tally::default(),
        }
    }

    /// The same with blocks of which only the head is written.
    pub(super) fn with_heads(self) -> Self {
        Self { fill: Fill::Head, ..self }
    }

    /// Allocates and fills all blocks.
    pub(super) fn allocate(&mut self) {
        for (number, place) in self.blocks.iter_mut().enumerate() {
            let number = number as u64;
            let size = self.sizes.of(number, self.seed);
            let mut block = Block::new(size);
            let stamp = stamp::stamp(self.seed, 0, number);
            stamp::write(block.words(if self.fill == Fill::Whole { size } else { 16 }), stamp);
            self.predicted = self.predicted.wrapping_add(stamp);
            *place = Some(block);
        }
    }

    /// Sets aside one random block of each run of `survival`, and brings the others into the order in which they are freed.
    pub(super) fn choose(&mut self, survival: usize, order: Order) {
        let mut random = SplitMix64::new(derive(self.seed, &[1]));
        for (run, blocks) in self.blocks.chunks_mut(survival).enumerate() {
            let place = random.below(blocks.len() as u64) as usize;
            self.kept[run] = Kept { block: blocks[place].take(), number: (run * survival + place) as u64 };
            self.survivors = run + 1;
        }
        self.order(order);
    }

    /// Sets those blocks aside for which `stays` says so, with the numbers they have in the order of their addresses.
    pub(super) fn choose_by_address(&mut self, mut stays: impl FnMut(usize) -> bool) {
        let address = |block: &Option<Block>| block.as_ref().map_or(0, Block::address);
        let mut numbered: Mapped<Kept> = Mapped::new(self.blocks.len());
        for (number, (place, block)) in numbered.iter_mut().zip(self.blocks.iter_mut()).enumerate() {
            *place = Kept { block: block.take(), number: number as u64 };
        }
        numbered.sort_unstable_by_key(|kept| address(&kept.block));
        for (place, from) in self.blocks.iter_mut().zip(numbered.iter_mut()) {
            if self.survivors < self.kept.len() && stays(address(&from.block)) {
                self.kept[self.survivors] = Kept { block: from.block.take(), number: from.number };
                self.survivors += 1;
            } else {
                *place = from.block.take();
            }
        }
    }

    /// Brings the blocks into the order in which they are freed.
    pub(super) fn order(&mut self, order: Order) {
        if order == Order::Random {
            SplitMix64::new(derive(self.seed, &[2])).shuffle(&mut self.blocks);
        }
    }

    /// Frees all but the survivors, after a look at their first two words.
    pub(super) fn free(&mut self) {
        for place in self.blocks.iter_mut() {
            let Some(mut block) = place.take() else { continue };
            let words = block.words(16);
            let (first, second) = (words[0], words[1]);
            self.tally.add(second, first.wrapping_add(1));
            self.tally.checksum = self.tally.checksum.wrapping_add(first).wrapping_sub(second);
            block.free();
        }
    }

    /// Reads back all words of all survivors. Returns the blocks that were damaged; a wrong sum over all blocks counts as one.
    pub(super) fn verify(&mut self) -> u64 {
        for at in 0..self.survivors {
            let number = self.kept[at].number;
            let (size, stamp) = (self.sizes.of(number, self.seed), stamp::stamp(self.seed, 0, number));
            let Some(block) = &mut self.kept[at].block else { continue };
            let words = block.words(size);
            self.tally.damaged += u64::from(stamp::check(words, stamp).is_err());
            self.tally.checksum = self.tally.checksum.wrapping_add(words[0]);
        }
        self.tally.damaged + u64::from(self.tally.checksum != self.predicted)
    }

    /// Lets go of the table of freed blocks, as most programs would.
    pub(super) fn forget_table(&mut self) {
        self.blocks = Mapped::new(0);
    }

    /// Blocks in all, and those that survive.
    #[cfg(test)]
    fn counts(&self) -> (u64, u64) {
        (self.blocks.len() as u64, self.survivors as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(order: Order) -> Share {
        let mut share = Share::new(Sizes::Groups([(512, 300), (1024, 200), (0, 0)]), 20, 7, 1);
        share.allocate();
        share.choose(20, order);
        share
    }

    #[test]
    fn one_in_twenty_survives_in_any_order() {
        for order in [Order::Sequential, Order::Random] {
            let mut share = share(order);
            assert_eq!(share.counts(), (500, 25));
            assert_eq!(share.blocks.iter().flatten().count(), 475);
            share.free();
            assert_eq!(share.verify(), 0);
        }
    }

    #[test]
    fn a_byte_that_changes_is_found() {
        let mut survivor = share(Order::Sequential);
        survivor.free();
        let size = survivor.sizes.of(survivor.kept[24].number, survivor.seed);
        survivor.kept[24].block.as_mut().unwrap().words(size)[100] ^= 1;
        assert_eq!(survivor.verify(), 1);
        let mut freed = share(Order::Random);
        freed.blocks.iter_mut().flatten().next().unwrap().words(512)[1] ^= 1;
        freed.free();
        assert_eq!(freed.verify(), 1);
        // Two blocks in one place: both hold what was written last.
        let mut doubled = share(Order::Sequential);
        doubled.free();
        doubled.tally.checksum ^= 1;
        assert_eq!(doubled.verify(), 1);
    }

    #[test]
    fn survivors_can_be_chosen_by_address() {
        let mut share = Share::new(Sizes::one(512, 1000), 2, 1, 0);
        share.allocate();
        let mut last = 0;
        share.choose_by_address(|address| {
            let is_new = address >> 13 != last;
            last = address >> 13;
            is_new
        });
        let (blocks, survivors) = share.counts();
        // Where blocks lie is up to the allocator, and to the other tests in this process.
        assert!(blocks == 1000 && (500 * 1000 / 8192..=500).contains(&survivors), "{survivors}");
        share.free();
        assert_eq!(share.verify(), 0);
    }
}
