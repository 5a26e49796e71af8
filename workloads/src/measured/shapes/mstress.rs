//! Bursts of blocks of very different sizes; some survive the burst, and some are swapped with other threads' blocks.

use std::sync::Mutex;

use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally};
use crate::measured::crew;
use crate::measured::timing::Settings;

/// Places through which blocks wander between threads.
const SHARED: usize = 1_000;
/// Times that all threads end and new ones start.
const GENERATIONS: u64 = 4;

type Stamped = (Block, u64);

/// A size: mostly some words, now and then up to 64 times as many, rarely 1024 times.
fn size(random: &mut SplitMix64) -> usize {
    let words = 1 + random.below(48) as usize;
    match random.below(1_000) {
        0 => words * 8 * 1024,
        1..=10 => words * 8 * 64,
        _ => words * 8,
    }
}

fn fresh(random: &mut SplitMix64) -> Stamped {
    let (size, stamp) = (size(random), random.next_u64());
    let mut block = Block::new(size);
    block.touch_pages(size);
    block.mark(stamp);
    (block, stamp)
}

fn free((block, stamp): Stamped, tally: &mut Tally) {
    tally.add(block.read(), stamp);
    block.free();
}

/// Each thread of each generation makes `burst` blocks. An operation is an allocation or a free.
#[must_use]
pub fn pass(burst: u64, settings: &Settings) -> (u64, Tally) {
    let shared: Vec<Mutex<Option<Stamped>>> = (0..SHARED).map(|_| Mutex::new(None)).collect();
    let mut tally = Tally::default();
    let mut kept: Vec<Vec<Stamped>> = (0..settings.threads).map(|_| Vec::new()).collect();
    for generation in 0..GENERATIONS {
        let inherited: Vec<_> = std::mem::take(&mut kept).into_iter().map(|blocks| Mutex::new(Some(blocks))).collect();
        let ended = crew::on_threads(settings, |number| {
            let kept = inherited[number as usize].lock().expect("nobody panics").take().unwrap_or_default();
            let seed = derive(settings.seed, &[u64::from(number), generation]);
            storm(burst, kept, &shared, seed)
        });
        for (more, blocks) in ended {
            tally.merge(more);
            kept.push(blocks);
        }
    }
    let left = shared.into_iter().filter_map(|place| place.into_inner().expect("nobody panics"));
    left.chain(kept.into_iter().flatten()).for_each(|block| free(block, &mut tally));
    (2 * burst * u64::from(settings.threads) * GENERATIONS, tally)
}

/// What becomes of a block has random numbers of its own: how many are drawn depends on which blocks other threads left, and
/// sizes and stamps may not.
fn storm(burst: u64, mut kept: Vec<Stamped>, shared: &[Mutex<Option<Stamped>>], seed: u64) -> (Tally, Vec<Stamped>) {
    let (mut blocks, mut random) = (SplitMix64::new(derive(seed, &[0])), SplitMix64::new(derive(seed, &[1])));
    let mut tally = Tally::default();
    let mut mine: Vec<Stamped> = Vec::new();
    for _ in 0..burst {
        let block = fresh(&mut blocks);
        match random.below(16) {
            // Some live on into the next generation, a few are given to whoever comes by.
            0 => kept.push(block),
            1 => {
                let place = &shared[random.below(SHARED as u64) as usize];
                let other = place.lock().expect("nobody panics").replace(block);
                mine.extend(other);
            }
            _ => mine.push(block),
        }
        while random.below(2) == 0 && !mine.is_empty() {
            let at = random.below(mine.len() as u64) as usize;
            free(mine.swap_remove(at), &mut tally);
        }
    }
    mine.into_iter().for_each(|block| free(block, &mut tally));
    let half = kept.len() / 2;
    kept.drain(..half).for_each(|block| free(block, &mut tally));
    (tally, kept)
}
