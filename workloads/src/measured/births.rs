//! Threads that come, allocate a little, and go; and threads that stay but have nothing to do.

use std::sync::Barrier;

use super::block::{Block, Tally, stamp_of};
use super::sizes::Sizes;
use crate::driver::seed::{SplitMix64, derive};

/// Places of a thread's blocks.
const PLACES: usize = 64;

/// Creates `count` threads one after the other; each replaces `each` blocks and frees all before it ends. An operation is a
/// thread.
#[must_use]
pub fn births(count: u64, each: u64, seed: u64) -> (u64, Tally) {
    let mut tally = Tally::default();
    for number in 0..count {
        let thread = std::thread::spawn(move || short_life(each, derive(seed, &[number])));
        tally.merge(thread.join().expect("a worker does not panic"));
    }
    (count, tally)
}

fn short_life(each: u64, seed: u64) -> Tally {
    let mut tally = Tally::default();
    let mut random = SplitMix64::new(seed);
    let mut blocks: [Option<Block>; PLACES] = [const { None }; PLACES];
    for _ in 0..each {
        let place = random.below(PLACES as u64) as usize;
        free(&mut blocks[place], place, &mut tally);
        let mut block = Block::new(Sizes::even(16, 1039).draw(&mut random));
        block.mark(stamp_of(place as u64));
        blocks[place] = Some(block);
    }
    blocks.iter_mut().enumerate().for_each(|(place, block)| free(block, place, &mut tally));
    tally
}

fn free(block: &mut Option<Block>, place: usize, tally: &mut Tally) {
    if let Some(block) = block.take() {
        tally.add(block.read(), stamp_of(place as u64));
        block.free();
    }
}

/// `threads` threads are all alive; one after the other fills and frees `blocks` blocks of 1 KiB, then idles until the last
/// is done. Peak memory shows what an allocator keeps for threads that do nothing. An operation is an allocation or a free.
#[must_use]
pub fn idle(threads: u32, blocks: u64, seed: u64) -> (u64, Tally) {
    const SIZE: usize = 1024;
    let barrier = Barrier::new(threads as usize);
    let mut tally = Tally::default();
    let work = |number: u32| {
        let mut tally = Tally::default();
        for turn in 0..threads {
            if turn == number {
                let mut mine: Vec<Block> = Vec::with_capacity(blocks as usize);
                for at in 0..blocks {
                    let mut block = Block::new(SIZE);
                    block.mark(derive(seed, &[at]));
                    mine.push(block);
                }
                for (at, block) in mine.into_iter().enumerate() {
                    tally.add(block.read(), derive(seed, &[at as u64]));
                    block.free();
                }
            }
            barrier.wait();
        }
        tally
    };
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        handles.into_iter().for_each(|handle| tally.merge(handle.join().expect("a worker does not panic")));
    });
    (2 * blocks * u64::from(threads), tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lives_and_idle_ones_leave_nothing() {
        let (threads, tally) = births(5, 200, 1);
        assert_eq!((threads, tally.damaged), (5, 0));
        assert_eq!(tally, births(5, 200, 1).1);
        let (operations, tally) = idle(3, 50, 1);
        assert_eq!((operations, tally.damaged), (300, 0));
    }
}
