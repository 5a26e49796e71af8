//! `churn`: a burst of small blocks, of which a scattered 1 in 20 survives, then idle. What comes back?
//!
//! The idle-return family of the benchmarks: 150,000 blocks of 512 B, 100,000 of 1 KiB and 50,000 of 2 KiB. Every block
//! is stamped, read back before it is freed or at the end, and folded into a checksum that [`predict`] knows beforehand.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::driver::args::scaled;
use crate::driver::memory::Memory;
use crate::driver::report::Schema;
use crate::driver::seed::{SplitMix64, derive};
use crate::driver::stamp::{self, Checksum};

/// The schema of the lines that the program prints: `kind` is `phase` for a [`PhaseEnd`], then `result` for the [`Result`].
pub const SCHEMA: Schema = Schema { name: "churn", version: 1 };

/// Block sizes in bytes, and how many blocks of each there are at scale 1.
pub const MIX: [(u32, u64); 3] = [(512, 150_000), (1024, 100_000), (2048, 50_000)];
/// One block survives of each run of this many.
pub const SURVIVAL: usize = 20;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Multiplies all counts.
    pub scale: f64,
    /// Decides which blocks survive, what is written into them, and the order if `mixed`.
    pub seed: u64,
    /// Threads that share the work; the first is the calling one.
    pub threads: u32,
    /// Allocates and frees in random order instead of size by size.
    pub mixed: bool,
    /// How long to idle.
    pub idle: Duration,
}

/// The parts of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Tables are made, nothing is allocated yet.
    Start,
    /// All blocks are allocated and stamped.
    Burst,
    /// All but the survivors are read back and freed.
    Free,
    /// Nothing happens.
    Idle,
    /// The survivors are read back.
    Verify,
}

/// What was measured at the end of a phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseEnd {
    /// The phase that has ended.
    pub phase: Phase,
    /// Milliseconds since the start of the run.
    pub t_ms: u64,
    /// Resident memory in bytes; `None` where the system does not tell.
    pub rss: Option<u64>,
    /// The highest resident memory so far, in bytes.
    pub peak_rss: Option<u64>,
    /// Bytes of blocks that are live now.
    pub live_bytes: u64,
    /// Blocks that are live now.
    pub live_blocks: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Result {
    /// Folded from what was read back.
    pub checksum: u64,
    /// What the checksum must be.
    pub predicted: u64,
    /// Blocks that did not hold their stamp when they were read back.
    pub damaged: u64,
}

impl Result {
    /// Whether every block held what was written into it.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.damaged == 0 && self.checksum == self.predicted
    }
}

/// A block to be, and then a block. There are many, so it is small.
#[derive(Clone, Copy, Debug)]
struct Slot {
    memory: *mut u64,
    /// In bytes, a multiple of 8.
    size: u32,
    survives: bool,
}

/// The part of one thread, in the order in which it allocates and frees.
#[derive(Clone, Debug)]
struct Share {
    seed: u64,
    worker: u64,
    slots: Vec<Slot>,
    checksum: Checksum,
    damaged: u64,
}

// SAFETY: the slots of a share are used by one thread at a time, and own plain memory.
unsafe impl Send for Share {}

impl Share {
    fn plan(options: &Options, worker: u32) -> Self {
        let (worker, threads) = (u64::from(worker), u64::from(options.threads));
        let mut random = SplitMix64::new(derive(options.seed, &[worker]));
        let mine = MIX.map(|(size, blocks)| {
            let blocks = scaled(blocks, options.scale);
            (size, (blocks / threads + u64::from(worker < blocks % threads)) as usize)
        });
        let mut slots = Vec::with_capacity(mine.iter().map(|&(_, blocks)| blocks).sum());
        for (size, blocks) in mine {
            let slot = Slot { memory: std::ptr::null_mut(), size, survives: false };
            slots.extend(std::iter::repeat_n(slot, blocks));
        }
        if options.mixed {
            random.shuffle(&mut slots);
        }
        for run in slots.chunks_mut(SURVIVAL) {
            run[random.below(run.len() as u64) as usize].survives = true;
        }
        Self { seed: options.seed, worker, slots, checksum: Checksum::default(), damaged: 0 }
    }

    fn allocate(&mut self) {
        for (number, slot) in self.slots.iter_mut().enumerate() {
            slot.memory = allocate(slot.size);
            stamp::write(slot.words(), stamp::stamp(self.seed, self.worker, number as u64));
        }
    }

    fn free_all_but_survivors(&mut self) {
        for number in 0..self.slots.len() {
            if !self.slots[number].survives {
                self.read_back(number);
                let slot = &self.slots[number];
                // SAFETY: `allocate` gave this block for this layout, and only survivors are looked at again.
                unsafe { dealloc(slot.memory.cast(), layout(slot.size)) };
            }
        }
    }

    fn verify_survivors(&mut self) {
        (0..self.slots.len()).for_each(|number| {
            if self.slots[number].survives {
                self.read_back(number);
            }
        });
    }

    fn read_back(&mut self, number: usize) {
        let stamp = stamp::stamp(self.seed, self.worker, number as u64);
        let words = self.slots[number].words();
        self.damaged += u64::from(stamp::check(words, stamp).is_err());
        self.checksum.add(words[0], words.len());
    }

    /// The checksum if every block holds its stamp.
    fn predict(&self) -> Checksum {
        let mut sum = Checksum::default();
        for (number, slot) in self.slots.iter().enumerate() {
            sum.add(stamp::stamp(self.seed, self.worker, number as u64), slot.size as usize / size_of::<u64>());
        }
        sum
    }

    /// Bytes and blocks that are live at the end of `phase`.
    fn live(&self, phase: Phase) -> (u64, u64) {
        let live = |slot: &&Slot| match phase {
            Phase::Start => false,
            Phase::Burst => true,
            _ => slot.survives,
        };
        self.slots.iter().filter(live).fold((0, 0), |(bytes, blocks), slot| (bytes + u64::from(slot.size), blocks + 1))
    }
}

impl Slot {
    fn words(&mut self) -> &mut [u64] {
        // SAFETY: the block is live and has this size. Blocks overlap with none of our own objects, which is what the
        // stamps check of the allocator.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.size as usize / size_of::<u64>()) }
    }
}

fn layout(size: u32) -> Layout {
    Layout::from_size_align(size as usize, align_of::<u64>()).expect("a small size and the alignment of a word")
}

fn allocate(size: u32) -> *mut u64 {
    // SAFETY: no size in MIX is 0.
    let memory = unsafe { alloc(layout(size)) };
    if memory.is_null() {
        handle_alloc_error(layout(size));
    }
    memory.cast()
}

/// The checksum of a run, found without allocating a single block of it.
#[must_use]
pub fn predict(options: &Options) -> u64 {
    let mut sum = Checksum::default();
    (0..options.threads).for_each(|worker| sum.merge(Share::plan(options, worker).predict()));
    sum.value()
}

/// Runs all phases and reports the end of each through `report`, on one of the threads while the others wait.
///
/// # Panics
/// When a thread cannot be started.
pub fn run(options: &Options, report: impl Fn(PhaseEnd) + Sync) -> Result {
    let mut shares: Vec<Share> = (0..options.threads).map(|worker| Share::plan(options, worker)).collect();
    let live: Vec<_> = [Phase::Start, Phase::Burst, Phase::Free].map(|phase| sum_live(&shares, phase)).into();
    let (start, barrier) = (Instant::now(), Barrier::new(shares.len()));
    // All threads come here at the end of a phase; one of them measures and reports before any goes on.
    let end = |phase: Phase| {
        if barrier.wait().is_leader() {
            if phase == Phase::Idle {
                std::thread::sleep(options.idle);
            }
            let memory = Memory::of_self().ok();
            let (live_bytes, live_blocks) = live[(phase as usize).min(live.len() - 1)];
            let t_ms = start.elapsed().as_millis() as u64;
            let (rss, peak_rss) = (memory.map(|memory| memory.rss), memory.map(|memory| memory.peak_rss));
            report(PhaseEnd { phase, t_ms, rss, peak_rss, live_bytes, live_blocks });
        }
        barrier.wait();
    };
    let work = |share: &mut Share| {
        end(Phase::Start);
        share.allocate();
        end(Phase::Burst);
        share.free_all_but_survivors();
        end(Phase::Free);
        end(Phase::Idle);
        share.verify_survivors();
        end(Phase::Verify);
    };
    std::thread::scope(|scope| {
        let (mine, others) = shares.split_first_mut().expect("at least one thread");
        let work = &work;
        others.iter_mut().for_each(|share| drop(scope.spawn(move || work(share))));
        work(mine);
    });
    let (mut checksum, mut predicted) = (Checksum::default(), Checksum::default());
    for share in &shares {
        checksum.merge(share.checksum);
        predicted.merge(share.predict());
    }
    let damaged = shares.iter().map(|share| share.damaged).sum();
    Result { checksum: checksum.value(), predicted: predicted.value(), damaged }
}

fn sum_live(shares: &[Share], phase: Phase) -> (u64, u64) {
    shares.iter().map(|share| share.live(phase)).fold((0, 0), |sum, live| (sum.0 + live.0, sum.1 + live.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(threads: u32, mixed: bool) -> Options {
        Options { scale: 0.01, seed: 3, threads, mixed, idle: Duration::ZERO }
    }

    #[test]
    fn one_in_twenty_survives_whatever_the_threads() {
        for threads in [1, 3] {
            let shares: Vec<_> = (0..threads).map(|worker| Share::plan(&options(threads, true), worker)).collect();
            assert_eq!(sum_live(&shares, Phase::Burst).1, 3000);
            assert_eq!(sum_live(&shares, Phase::Burst).0, 1500 * 512 + 1000 * 1024 + 500 * 2048);
            // A thread whose blocks are no multiple of 20 rounds up.
            let survivors = sum_live(&shares, Phase::Free).1;
            assert!((150..150 + u64::from(threads)).contains(&survivors), "{survivors}");
        }
    }

    #[test]
    fn a_damaged_block_is_counted() {
        let mut share = Share::plan(&options(1, false), 0);
        share.allocate();
        let survivor = share.slots.iter_mut().find(|slot| slot.survives).unwrap();
        survivor.words()[5] ^= 1;
        let (at, freed) = share.slots.iter_mut().enumerate().find(|(_, slot)| !slot.survives).unwrap();
        freed.words()[0] ^= 1;
        let predicted = predict(&options(1, false));
        share.free_all_but_survivors();
        assert_eq!(share.damaged, 1, "slot {at}");
        share.verify_survivors();
        assert_eq!(share.damaged, 2);
        assert_ne!(share.checksum.value(), predicted);
    }

    #[test]
    fn the_checksum_depends_on_the_seed() {
        let other = Options { seed: 4, ..options(1, false) };
        assert_ne!(predict(&options(1, false)), predict(&other));
        assert_eq!(predict(&other), predict(&other));
    }
}
