//! A random working set of which the parts are used: the more often a block is looked at, the sooner it is replaced.

use crate::driver::mapped::Mapped;
use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::crew;
use crate::measured::timing::Settings;

/// Places for blocks of a thread.
const PLACES: u64 = 1 << 16;

/// A size of 2^5 to 2^11 bytes, the smaller ones far more often.
fn size(random: &mut SplitMix64) -> usize {
    let doublings = (random.next_u64() | 1 << 6).trailing_zeros();
    let power = 32usize << doublings;
    power / 2 + random.below(power as u64 / 2) as usize
}

/// A place. Half of the choices fall on the first 1/16 of them, as programs have favourites.
fn place(random: &mut SplitMix64) -> usize {
    let drawn = random.next_u64();
    let range = if drawn & 1 == 0 { PLACES / 16 } else { PLACES };
    ((drawn >> 1) % range) as usize
}

/// Each thread makes `rounds` choices: an empty place gets a block, a full one is freed. An operation is an allocation or a
/// free.
#[must_use]
pub fn pass(rounds: u64, settings: &Settings) -> (u64, Tally) {
    let ended = crew::on_threads(settings, |number| {
        let mut random = SplitMix64::new(derive(settings.seed, &[u64::from(number)]));
        let mut blocks: Mapped<Option<Block>> = Mapped::new(PLACES as usize);
        let (mut made, mut tally) = (0, Tally::default());
        for _ in 0..rounds {
            let place = place(&mut random);
            if let Some(block) = blocks[place].take() {
                tally.add(block.read(), stamp_of(place as u64));
                block.free();
            } else {
                let size = size(&mut random);
                let mut block = Block::new(size);
                // The first and the last cache line are used.
                block.touch_at(size - 1);
                block.mark(stamp_of(place as u64));
                blocks[place] = Some(block);
                made += 1;
            }
        }
        for (place, block) in blocks.iter_mut().enumerate() {
            if let Some(block) = block.take() {
                tally.add(block.read(), stamp_of(place as u64));
                block.free();
            }
        }
        (2 * made, tally)
    });
    crew::sum(ended)
}
