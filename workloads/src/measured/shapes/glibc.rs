//! The two benchmarks of the C library: lists of one size that are freed in order, and threads with random sizes of which
//! small ones are far more frequent.

use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::crew;
use crate::measured::timing::Settings;

/// How many blocks the lists of `simple` have.
const LISTS: [usize; 4] = [25, 100, 400, 1600];
/// The sizes of `simple`, in bytes.
const SIZE: usize = 128;
/// Live blocks of a thread of `threads`.
const PLACES: usize = 1_024;

/// Lists of 25 to 1600 blocks are allocated and freed in order, each length `rounds` times. An operation is an allocation or a
/// free.
#[must_use]
pub fn simple(rounds: u64, seed: u64) -> (u64, Tally) {
    let mut tally = Tally::default();
    let mut list: Vec<Block> = Vec::with_capacity(1600);
    for length in LISTS {
        // As many blocks for each length.
        for _ in 0..rounds * (1600 / length) as u64 {
            for _ in 0..length {
                let mut block = Block::new(SIZE);
                block.mark(seed);
                list.push(block);
            }
            for block in list.drain(..) {
                tally.add(block.read(), seed);
                block.free();
            }
        }
    }
    (2 * rounds * 1600 * LISTS.len() as u64, tally)
}

/// A size from 4 bytes (here 8) to 32 KiB whose frequency falls with its square root.
fn size(random: &mut SplitMix64) -> usize {
    const LEAST: f64 = 2.0; // the square root of 4
    const MOST: f64 = 181.0; // that of 32768
    let even = random.next_u64() as f64 / u64::MAX as f64;
    // The inverse of a distribution with density 1/x between the two, squared: few large ones.
    let root = LEAST * (MOST / LEAST).powf(even);
    ((root * root) as usize).max(8)
}

/// Each thread visits `rounds` random places: a block there is freed, an empty place gets one. An operation is an allocation
/// or a free.
#[must_use]
pub fn threads(rounds: u64, settings: &Settings) -> (u64, Tally) {
    let ended = crew::on_threads(settings, |number| {
        let mut random = SplitMix64::new(derive(settings.seed, &[u64::from(number)]));
        let sizes: Vec<u32> = (0..8192).map(|_| size(&mut random) as u32).collect();
        let mut blocks: Vec<Option<Block>> = (0..PLACES).map(|_| None).collect();
        let (mut made, mut tally) = (0u64, Tally::default());
        let mut free = |place: usize, block: Block| {
            tally.add(block.read(), stamp_of(place as u64));
            block.free();
        };
        for _ in 0..rounds {
            let drawn = random.next_u64();
            let place = drawn as usize % PLACES;
            if let Some(block) = blocks[place].take() {
                free(place, block);
            } else {
                let mut block = Block::new(sizes[(drawn >> 32) as usize % sizes.len()] as usize);
                block.mark(stamp_of(place as u64));
                blocks[place] = Some(block);
                made += 1;
            }
        }
        for (place, block) in blocks.iter_mut().enumerate() {
            if let Some(block) = block.take() {
                free(place, block);
            }
        }
        (2 * made, tally)
    });
    crew::sum(ended)
}
