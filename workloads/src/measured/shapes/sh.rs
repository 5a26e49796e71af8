//! Rows of small blocks of one size, freed part in order and part backwards, while every few rows some blocks stay.

use std::sync::Mutex;

use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::crew;
use crate::measured::timing::Settings;

/// The largest block, in bytes. Small ones are far more frequent.
const LARGEST: u64 = 1_000;
/// Rows whose last blocks are kept, as a ring: what comes in pushes out the oldest.
const KEPT_ROWS: usize = 32;

/// Which of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// sh6bench: a thread frees its own blocks only.
    Own,
    /// sh8bench: what leaves the ring of kept rows is left to the next thread that comes by.
    Swapped,
}

/// Each thread makes `rows` rows. An operation is an allocation or a free.
#[must_use]
pub fn pass(kind: Kind, rows: u64, settings: &Settings) -> (u64, Tally) {
    let exchange: Vec<Mutex<Vec<Block>>> = (0..settings.threads).map(|_| Mutex::new(Vec::new())).collect();
    let ended = crew::on_threads(settings, |number| {
        let next = &exchange[(number as usize + 1) % exchange.len()];
        let mut worker = Rows {
            random: SplitMix64::new(derive(settings.seed, &[u64::from(number)])),
            kept: std::array::from_fn(|_| Vec::new()),
            made: 0,
            tally: Tally::default(),
        };
        for row in 0..rows {
            let out = worker.row(row as usize % KEPT_ROWS);
            let mut out = match kind {
                Kind::Own => out,
                Kind::Swapped => std::mem::replace(&mut *next.lock().expect("nobody panics"), out),
            };
            worker.free_all(&mut out);
        }
        let mut kept = std::mem::take(&mut worker.kept);
        kept.iter_mut().for_each(|row| worker.free_all(row));
        (worker.made, worker.tally)
    });
    let (mut made, mut tally) = (0, Tally::default());
    for (more, sum) in ended {
        made += more;
        tally.merge(sum);
    }
    for left in exchange {
        for block in left.into_inner().expect("nobody panics") {
            tally.add(block.read(), stamp_of(0));
            block.free();
        }
    }
    (2 * made, tally)
}

struct Rows {
    random: SplitMix64,
    kept: [Vec<Block>; KEPT_ROWS],
    made: u64,
    tally: Tally,
}

impl Rows {
    /// Makes a row, keeps every eighth block in `place`, and frees the others: the first half in order, the rest backwards.
    /// Returns what was kept in `place` before.
    fn row(&mut self, place: usize) -> Vec<Block> {
        // The square of an even number in 0..1 makes small sizes frequent.
        let drawn = self.random.below(1 << 20);
        let size = 8 + ((((drawn * drawn) >> 20) * LARGEST) >> 20) as usize;
        let count = (64 + self.random.below(128)) as usize / if size > 256 { 4 } else { 1 };
        self.made += count as u64;
        let mut kept = Vec::with_capacity(count / 8 + 1);
        let mut row: Vec<Block> = Vec::with_capacity(count);
        for at in 0..count {
            let mut block = Block::new(size);
            block.mark(stamp_of(0));
            if at % 8 == 0 { kept.push(block) } else { row.push(block) }
        }
        let mut rest = row.split_off(row.len() / 2);
        self.free_all(&mut row);
        rest.reverse();
        self.free_all(&mut rest);
        std::mem::replace(&mut self.kept[place], kept)
    }

    fn free_all(&mut self, blocks: &mut Vec<Block>) {
        for block in blocks.drain(..) {
            self.tally.add(block.read(), stamp_of(0));
            block.free();
        }
    }
}
