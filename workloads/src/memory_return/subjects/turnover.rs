//! Drain to zero, over and over: an allocator that gives back too eagerly asks the system for the same memory each time.

use super::Setting;
use crate::driver::clock;
use crate::driver::mapped::Mapped;
use crate::measured::block::{Block, stamp_of};
use crate::memory_return::link::Kind;

/// Times that the work is repeated when it is measured; the figure is the least.
const REPEATS: u32 = 5;

/// What is turned over.
#[derive(Clone, Copy, Debug)]
pub struct Turnover {
    /// Block size in bytes.
    pub size: usize,
    /// Blocks that are allocated before they are all freed.
    pub batch: usize,
    /// How often that happens; 0 for an empty run to compare with.
    pub rounds: u64,
}

/// Runs it in the first thread. Returns the damaged blocks.
pub fn run(turnover: &Turnover, setting: &Setting) -> u64 {
    let mut blocks: Mapped<Option<Block>> = Mapped::new(turnover.batch);
    setting.start();
    let mut damaged = 0;
    let mut least = f64::INFINITY;
    for _ in 0..if setting.trace { 1 } else { REPEATS } {
        let cpu = clock::thread_cpu();
        damaged += if turnover.batch == 1 { pairs(turnover) } else { batches(turnover, &mut blocks) };
        let pairs = (turnover.rounds * turnover.batch as u64).max(1);
        least = least.min((clock::thread_cpu() - cpu) as f64 / pairs as f64);
    }
    setting.link.ask(Kind::Peak, 0);
    setting.link.say(Kind::Drained, 0);
    setting.link.wait();
    setting.link.figure("pair_ns", least);
    damaged
}

fn pairs(turnover: &Turnover) -> u64 {
    let mut damaged = 0;
    for round in 0..turnover.rounds {
        let mut block = Block::new(turnover.size);
        block.mark(round);
        damaged += u64::from(block.read() != round);
        block.free();
    }
    damaged
}

fn batches(turnover: &Turnover, blocks: &mut [Option<Block>]) -> u64 {
    let mut damaged = 0;
    for _ in 0..turnover.rounds {
        for (number, place) in blocks.iter_mut().enumerate() {
            let mut block = Block::new(turnover.size);
            block.mark(stamp_of(number as u64));
            *place = Some(block);
        }
        for (number, place) in blocks.iter_mut().enumerate() {
            let Some(block) = place.take() else { continue };
            damaged += u64::from(block.read() != stamp_of(number as u64));
            block.free();
        }
    }
    damaged
}
