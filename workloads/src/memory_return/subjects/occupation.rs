//! What workers do while memory comes back.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::driver::clock;
use crate::measured::block::{Block, stamp_of};

/// What workers do after the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum During {
    /// They allocate and free small blocks all the time.
    Busy,
    /// The same in the size classes of what was drained.
    Same,
    /// Nothing.
    Asleep,
}

/// Sizes of [`During::Busy`], and of [`During::Same`].
const SIZES: [[usize; 4]; 2] = [[64, 32, 128, 96], [512, 1024, 2048, 512]];
/// Live blocks of a worker.
const RING: usize = 16;
/// Operations between two looks at the time.
const STRIDE: u64 = 256;
/// Nanoseconds of wall time that count as "while memory comes back".
const FIRST: u64 = 1_000_000_000;

/// What a worker did: operations (a free and a malloc) and nanoseconds of processor time, in the first second and after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    first: (u64, u64),
    later: (u64, u64),
    pub(super) damaged: u64,
}

impl Done {
    pub(super) fn and(self, other: Self) -> Self {
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        Self {
            first: sum(self.first, other.first),
            later: sum(self.later, other.later),
            damaged: self.damaged + other.damaged,
        }
    }

    /// Nanoseconds per operation in the first second, and after it.
    pub(super) fn ns(&self) -> [Option<f64>; 2] {
        [self.first, self.later].map(|(operations, ns)| (operations > 0).then(|| ns as f64 / operations as f64))
    }
}

/// Replaces blocks in a small ring until `stop`. Every block is read back: memory that is given back while somebody has it
/// would be found here.
pub(super) fn occupy(during: During, stop: &AtomicBool) -> Done {
    let mut done = Done::default();
    let sizes = match during {
        During::Busy => SIZES[0],
        During::Same => SIZES[1],
        During::Asleep => return done,
    };
    let mut ring: [Option<Block>; RING] = [const { None }; RING];
    let (start, mut number) = (clock::wall(), 0u64);
    let (mut cpu, mut is_first) = (clock::thread_cpu(), true);
    let mut counted = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..STRIDE {
            let place = number as usize % RING;
            let size = sizes[place % 4];
            if let Some(mut block) = ring[place].take() {
                let expected = stamp_of(number - RING as u64);
                done.damaged += u64::from(block.words(size)[size / 8 - 1] != expected || block.read() != expected);
                block.free();
            }
            let mut block = Block::new(size);
            block.mark(stamp_of(number));
            block.words(size)[size / 8 - 1] = stamp_of(number);
            ring[place] = Some(block);
            number += 1;
        }
        if is_first && clock::wall() - start >= FIRST {
            let now = clock::thread_cpu();
            done.first = (number, now - cpu);
            (cpu, counted, is_first) = (now, number, false);
        }
    }
    let last = (number - counted, clock::thread_cpu() - cpu);
    *(if is_first { &mut done.first } else { &mut done.later }) = last;
    ring.into_iter().flatten().for_each(Block::free);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_replaced_until_told() {
        for during in [During::Busy, During::Same] {
            let stop = AtomicBool::new(false);
            let done = std::thread::scope(|scope| {
                let worker = scope.spawn(|| occupy(during, &stop));
                std::thread::sleep(std::time::Duration::from_millis(20));
                stop.store(true, Ordering::Relaxed);
                worker.join().unwrap()
            });
            assert!(done.damaged == 0 && done.first.0 >= STRIDE && done.ns()[1].is_none(), "{done:?}");
        }
    }
}
