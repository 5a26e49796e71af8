//! Allocate, touch, free: one block at a time.

use std::hint::black_box;

use super::block::{Block, Tally};
use super::sizes::Sizes;
use super::timing::Body;
use crate::driver::mapped::Mapped;
use crate::driver::seed::SplitMix64;
use crate::driver::stamp;

/// Sizes in a table; a power of two.
const TABLE: usize = 4096;

/// Where the next block comes from, and how large it is.
pub trait Source {
    /// The largest block, in bytes.
    fn largest(&self) -> usize;
    /// The block of turn `turn`, and its size.
    fn take(&self, turn: u64) -> (Block, usize);
}

/// `malloc` of one size.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub usize);

/// `malloc` of drawn sizes.
#[derive(Debug)]
pub struct Mixed(Mapped<u32>);

/// `calloc` of one size.
#[derive(Clone, Copy, Debug)]
pub struct Cleared(pub usize);

/// `posix_memalign` of one alignment and size.
#[derive(Clone, Copy, Debug)]
pub struct Aligned(pub usize, pub usize);

impl Mixed {
    /// Draws the sizes.
    #[must_use]
    pub fn new(sizes: Sizes, seed: u64) -> Self {
        Self(sizes.table(TABLE, &mut SplitMix64::new(seed)))
    }
}

impl Source for Fixed {
    fn largest(&self) -> usize {
        self.0
    }
    #[inline(always)]
    fn take(&self, _: u64) -> (Block, usize) {
        (Block::new(self.0), self.0)
    }
}

impl Source for Mixed {
    fn largest(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0) as usize
    }
    #[inline(always)]
    fn take(&self, turn: u64) -> (Block, usize) {
        let size = self.0[turn as usize % TABLE] as usize;
        (Block::new(size), size)
    }
}

impl Source for Cleared {
    fn largest(&self) -> usize {
        self.0
    }
    #[inline(always)]
    fn take(&self, _: u64) -> (Block, usize) {
        (Block::zeroed(self.0), self.0)
    }
}

impl Source for Aligned {
    fn largest(&self) -> usize {
        self.1
    }
    #[inline(always)]
    fn take(&self, _: u64) -> (Block, usize) {
        (Block::aligned(self.0, self.1), self.1)
    }
}

/// Pairs of allocation and free. With `PAGES` every page of the block is written.
#[derive(Debug)]
pub struct Pair<S, const PAGES: bool> {
    source: S,
    seed: u64,
}

/// Blocks from `source` of which the first byte is written.
pub fn pair<S: Source>(source: S, seed: u64) -> Pair<S, false> {
    Pair { source: black_box(source), seed }
}

/// Blocks from `source` of which every page is written.
pub fn paged<S: Source>(source: S, seed: u64) -> Pair<S, true> {
    Pair { source: black_box(source), seed }
}

impl<S: Source, const PAGES: bool> Body for Pair<S, PAGES> {
    fn bytes(&self) -> u64 {
        self.source.largest() as u64
    }

    fn run<const CHECKED: bool>(&mut self, turns: u64, tally: &mut Tally) {
        for turn in 0..turns {
            let (mut block, size) = self.source.take(turn);
            if CHECKED {
                fill_and_check(&mut block, size, stamp::stamp(self.seed, 0, turn), tally);
            } else if PAGES {
                block.touch_pages(size);
            } else {
                block.touch();
            }
            block.free();
        }
    }
}

/// Writes every word of `block` and reads them back.
fn fill_and_check(block: &mut Block, size: usize, stamp: u64, tally: &mut Tally) {
    let words = block.words(size);
    stamp::write(words, stamp);
    tally.add(black_box(&*words)[0], stamp);
    tally.damaged += u64::from(stamp::check(words, stamp).is_err());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_gives_what_it_says() {
        fn checksum(mut body: impl Body) -> u64 {
            let mut tally = Tally::default();
            body.run::<true>(100, &mut tally);
            body.run::<false>(100, &mut tally);
            assert_eq!(tally.damaged, 0);
            tally.checksum
        }
        let plain = checksum(pair(Fixed(64), 1));
        assert_eq!(plain, checksum(pair(Mixed::new(Sizes::even(16, 1024), 5), 1)));
        assert_eq!(plain, checksum(pair(Cleared(64), 1)));
        assert_eq!(plain, checksum(pair(Aligned(4096, 4096), 1)));
        assert_eq!(plain, checksum(paged(Fixed(100_000), 1)));
        assert_ne!(plain, checksum(pair(Fixed(64), 2)));
    }
}
