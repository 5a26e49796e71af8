//! A block that grows by `realloc`, as a buffer does.

use std::hint::black_box;

use super::block::{Block, Tally};
use super::timing::Body;
use crate::driver::stamp;

/// Where every buffer starts, in bytes.
const START: usize = 16;

/// A buffer that grows step by step up to a limit.
#[derive(Debug)]
pub struct Growth {
    seed: u64,
    limit: usize,
    /// A step adds the size divided by this: 1 doubles, 2 makes it half as large again.
    divisor: usize,
    steps: u64,
}

impl Growth {
    /// Grows up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize, divisor: usize, seed: u64) -> Self {
        let mut growth = Self { seed, limit, divisor, steps: 0 };
        growth.steps = std::iter::successors(Some(START), |&size| growth.next(size)).count() as u64;
        black_box(growth)
    }

    #[inline(always)]
    fn next(&self, size: usize) -> Option<usize> {
        let larger = size + size / self.divisor;
        (larger <= self.limit).then_some(larger)
    }
}

impl Body for Growth {
    fn operations(&self) -> u64 {
        self.steps
    }

    fn bytes(&self) -> u64 {
        4 * self.limit as u64
    }

    fn run<const CHECKED: bool>(&mut self, turns: u64, tally: &mut Tally) {
        for turn in 0..turns {
            let mut size = START;
            let mut block = Block::new(size);
            block.touch_at(size - 1);
            if CHECKED {
                stamp::write(block.words(size), stamp::stamp(self.seed, 0, turn));
            }
            while let Some(larger) = self.next(size) {
                block = block.resized(larger);
                if CHECKED {
                    check_and_extend(&mut block, size, larger, stamp::stamp(self.seed, 0, turn), tally);
                } else {
                    block.touch_at(larger - 1);
                }
                size = larger;
            }
            block.free();
        }
    }
}

/// What was there is there still; then the rest is filled.
fn check_and_extend(block: &mut Block, size: usize, larger: usize, stamp: u64, tally: &mut Tally) {
    tally.add(block.read(), stamp);
    tally.damaged += u64::from(stamp::check(block.words(size), stamp).is_err());
    stamp::write(block.words(larger), stamp);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_contents_survive() {
        assert_eq!(Growth::new(1 << 20, 1, 1).operations(), 17);
        assert_eq!(Growth::new(36, 2, 1).operations(), 3);
        let mut tally = Tally::default();
        Growth::new(1 << 20, 1, 1).run::<true>(3, &mut tally);
        Growth::new(1 << 16, 2, 1).run::<true>(3, &mut tally);
        Growth::new(1 << 16, 2, 1).run::<false>(3, &mut tally);
        assert_eq!(tally.damaged, 0);
    }
}
