//! Half of the threads allocate, the other half free. Blocks travel in batches through one queue behind a lock.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::crew;
use crate::measured::timing::Settings;

/// Blocks of a batch.
const BATCH: usize = 256;
/// Batches that may wait before an allocating thread has to.
const WAITING: usize = 64;
/// Sizes in bytes, each as likely as any other.
const SIZES: [usize; 8] = [16, 24, 32, 48, 64, 96, 128, 192];

#[derive(Default)]
struct Queue {
    batches: VecDeque<Vec<Block>>,
    senders: u32,
}

/// Each allocating thread makes `batches` batches. With an odd number of threads one more frees; a single thread does both in
/// turn. An operation is an allocation or a free.
#[must_use]
pub fn pass(batches: u64, settings: &Settings) -> (u64, Tally) {
    let senders = (settings.threads / 2).max(1);
    let queue = Mutex::new(Queue { senders, ..Queue::default() });
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let limit = if settings.threads == 1 { usize::MAX } else { WAITING };
    let send = |number: u32| {
        let mut random = SplitMix64::new(derive(settings.seed, &[u64::from(number)]));
        for _ in 0..batches {
            let batch = (0..BATCH).map(|at| fresh(at, &mut random)).collect();
            let mut queue = emptied
                .wait_while(queue.lock().expect("nobody panics"), |queue| queue.batches.len() >= limit)
                .expect("nobody panics");
            queue.batches.push_back(batch);
            filled.notify_one();
        }
        queue.lock().expect("nobody panics").senders -= 1;
        filled.notify_all();
    };
    let receive = || {
        let mut tally = Tally::default();
        loop {
            let mut queue = filled
                .wait_while(queue.lock().expect("nobody panics"), |queue| queue.batches.is_empty() && queue.senders > 0)
                .expect("nobody panics");
            let Some(batch) = queue.batches.pop_front() else { return tally };
            drop(queue);
            emptied.notify_one();
            for (at, block) in batch.into_iter().enumerate() {
                tally.add(block.read(), stamp_of(at as u64));
                block.free();
            }
        }
    };
    let ended = crew::on_threads(settings, |number| {
        let made = if number < senders { 2 * batches * BATCH as u64 } else { 0 };
        if number < senders {
            send(number);
        }
        let receives = number >= senders || settings.threads == 1;
        (made, if receives { receive() } else { Tally::default() })
    });
    crew::sum(ended)
}

fn fresh(at: usize, random: &mut SplitMix64) -> Block {
    let mut block = Block::new(SIZES[random.below(SIZES.len() as u64) as usize]);
    block.mark(stamp_of(at as u64));
    block
}
