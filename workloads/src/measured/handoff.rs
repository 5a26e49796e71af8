//! Blocks that are freed by another thread than the one that allocated them: each pair of threads has a small ring.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

use super::block::{Block, Tally, stamp_of};
use super::crew::Worker;
use super::sizes::Sizes;
use crate::driver::clock;
use crate::driver::mapped::{Mapped, Zeroed};
use crate::driver::seed::{SplitMix64, derive};

/// Blocks in a ring; a power of two.
const RING: u32 = 256;
/// How many blocks a thread takes from its rings at a time.
const TAKEN: u32 = 8;
/// Choices per thread and pass at scale 1. Nine of sixteen send a block, the others receive up to eight.
pub const CHOICES: u64 = 400_000;
const SIZES: Sizes = Sizes::even(16, 512);

/// A counter on a cache line of its own, so that the two ends of a ring do not disturb each other more than they must.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counter(AtomicU32);

/// One sender, one receiver.
#[derive(Debug)]
struct Ring {
    sent: Counter,
    received: Counter,
    blocks: UnsafeCell<Mapped<Option<Block>>>,
}

// SAFETY: a place is used by the sender while `sent - received < RING` includes it as free, and by the receiver after
// `sent` was raised past it; release and acquire on the two counters order the two.
unsafe impl Sync for Ring {}

impl Ring {
    fn new() -> Self {
        Self {
            sent: Counter::default(),
            received: Counter::default(),
            blocks: UnsafeCell::new(Mapped::new(RING as usize)),
        }
    }

    /// The place of number `number`.
    fn place(&self, number: u32) -> *mut Option<Block> {
        // SAFETY: the table itself never changes, so a shared view of it is enough to find a place.
        let blocks = unsafe { &*self.blocks.get() };
        std::ptr::from_ref(&blocks[(number % RING) as usize]).cast_mut()
    }

    /// Puts a block in. Hands it back if the ring is full.
    #[inline(always)]
    fn send(&self, block: Block) -> Option<Block> {
        let sent = self.sent.0.load(Ordering::Relaxed);
        if sent.wrapping_sub(self.received.0.load(Ordering::Acquire)) >= RING {
            return Some(block);
        }
        // SAFETY: there is room, so the receiver is done with this place, and there is one sender.
        unsafe { self.place(sent).write(Some(block)) };
        self.sent.0.store(sent.wrapping_add(1), Ordering::Release);
        None
    }

    /// Takes up to `most` blocks out.
    #[inline(always)]
    fn receive(&self, most: u32, mut each: impl FnMut(Block)) -> u32 {
        let received = self.received.0.load(Ordering::Relaxed);
        let count = self.sent.0.load(Ordering::Acquire).wrapping_sub(received).min(most);
        for number in 0..count {
            // SAFETY: these were sent, and there is one receiver.
            if let Some(block) = unsafe { (*self.place(received.wrapping_add(number))).take() } {
                each(block);
            }
        }
        if count > 0 {
            self.received.0.store(received.wrapping_add(count), Ordering::Release);
        }
        count
    }
}

/// The rings of all pairs of threads.
#[derive(Debug)]
pub struct Rings {
    threads: u32,
    rings: Vec<Ring>,
}

impl Rings {
    /// Rings between `threads` threads.
    #[must_use]
    pub fn new(threads: u32) -> Self {
        Self { threads, rings: (0..threads * threads).map(|_| Ring::new()).collect() }
    }

    fn between(&self, from: u32, to: u32) -> &Ring {
        &self.rings[(from * self.threads + to) as usize]
    }
}

/// What a thread does: send a block of a size to a thread, or, with size 0, receive.
#[derive(Clone, Copy, Debug)]
struct Step {
    size: u32,
    to: u32,
}

// SAFETY: plain numbers.
unsafe impl Zeroed for Step {}

/// A thread that sends and receives.
#[derive(Debug)]
pub struct Sender<'a> {
    rings: &'a Rings,
    number: u32,
    steps: Mapped<Step>,
    tally: Tally,
    waited: u64,
}

impl<'a> Sender<'a> {
    /// Draws what thread `number` does in a pass. With one thread it sends to itself.
    #[must_use]
    pub fn new(rings: &'a Rings, choices: u64, seed: u64, number: u32) -> Self {
        let mut random = SplitMix64::new(derive(seed, &[u64::from(number)]));
        let others = rings.threads.saturating_sub(1);
        let steps = Mapped::collect((0..choices as usize).map(|_| {
            let (send, size) = (random.below(16) < 9, SIZES.draw(&mut random) as u32);
            let other = random.below(u64::from(others)) as u32;
            let to = if others == 0 { number } else { other + u32::from(other >= number) };
            Step { size: if send { size } else { 0 }, to }
        }));
        Self { rings, number, steps, tally: Tally::default(), waited: 0 }
    }

    fn receive(&mut self, most: u32) -> u32 {
        let mut count = 0;
        for from in 0..self.rings.threads {
            let expected = stamp_of(u64::from(self.number));
            count += self.rings.between(from, self.number).receive(most - count, |block| {
                self.tally.add(block.read(), expected);
                block.free();
            });
            if count == most {
                break;
            }
        }
        count
    }

    /// A full ring is no reason to free here: every block must go to the other thread. Makes room in the own rings meanwhile,
    /// and if there is nothing to do either, lets others run.
    #[cold]
    fn wait_for_room(&mut self, mut block: Block, to: u32) {
        while let Some(back) = self.rings.between(self.number, to).send(block) {
            block = back;
            if self.receive(TAKEN) == 0 {
                let start = clock::thread_cpu();
                std::thread::yield_now();
                self.waited += clock::thread_cpu() - start;
            }
        }
    }
}

impl Worker for Sender<'_> {
    fn pass(&mut self) -> u64 {
        self.waited = 0;
        let mut sent = 0;
        for at in 0..self.steps.len() {
            let Step { size, to } = self.steps[at];
            if size == 0 {
                self.receive(TAKEN);
                continue;
            }
            let mut block = Block::new(size as usize);
            block.touch_at(size as usize - 1);
            block.mark(stamp_of(u64::from(to)));
            sent += 1;
            if let Some(block) = self.rings.between(self.number, to).send(block) {
                self.wait_for_room(block, to);
            }
        }
        // Every block that is sent is also freed somewhere.
        2 * sent
    }

    fn meanwhile(&mut self) -> bool {
        self.receive(64) > 0
    }

    fn waited(&self) -> u64 {
        self.waited
    }

    fn settle(&mut self) -> Tally {
        while self.receive(u32::MAX) > 0 {}
        std::mem::take(&mut self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::crew::with_workers;
    use crate::measured::timing::{Pin, Settings};

    #[test]
    fn every_block_arrives_once_whatever_the_threads() {
        for threads in [1, 2, 4] {
            let settings = Settings {
                seed: 1,
                threads,
                scale: 1.0,
                repeats: 2,
                repeat_ms: 1.0,
                budget_ms: 60_000,
                turns: None,
                pin: Pin::No,
            };
            let run = || {
                let rings = Rings::new(threads);
                let figures = with_workers(&settings, |number| Sender::new(&rings, 2_000, 1, number));
                for ring in &rings.rings {
                    assert_eq!(ring.sent.0.load(Ordering::Relaxed), ring.received.0.load(Ordering::Relaxed));
                }
                figures
            };
            let (one, other) = (run(), run());
            assert_eq!((one.damaged, one.checksum), (0, other.checksum), "{threads} threads");
            assert_eq!(one.operations, other.operations);
        }
    }
}
