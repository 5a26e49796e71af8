//! False sharing: do small blocks of different threads land on one cache line?

use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::crew;
use crate::measured::timing::Settings;

/// Bytes of a block.
const SIZE: usize = 8;
/// How often a thread writes its block before it frees it.
const WRITES: u64 = 1_000;

/// Whether threads start with blocks that another thread allocated side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Every thread allocates its own: cache-thrash.
    Own,
    /// One thread allocates a block for each, which they free first: cache-scratch.
    Given,
}

/// Each thread allocates, writes and frees a small block `rounds` times. An operation is one block.
#[must_use]
pub fn pass(start: Start, rounds: u64, settings: &Settings) -> (u64, Tally) {
    let given: Vec<_> = (0..settings.threads)
        .map(|_| {
            std::sync::Mutex::new((start == Start::Given).then(|| {
                let mut block = Block::new(SIZE);
                block.mark(stamp_of(0));
                block
            }))
        })
        .collect();
    let ended = crew::on_threads(settings, |number| {
        let mut tally = Tally::default();
        if let Some(block) = given[number as usize].lock().expect("nobody panics").take() {
            tally.add(block.read(), stamp_of(0));
            block.free();
        }
        for round in 0..rounds {
            let mut block = Block::new(SIZE);
            for write in 0..WRITES {
                block.mark(round + write);
            }
            tally.add(block.read(), round + WRITES - 1);
            block.free();
        }
        (rounds, tally)
    });
    crew::sum(ended)
}
