//! The heap as its users see it: contents, alignment, zeroes, counts, samples. The test program itself uses the C library's
//! allocator, so that nothing but the tests allocates from the heap.

use super::allocate::{allocate, allocate_aligned, allocate_zeroed, reallocate};
use super::classes::{CLASSES, SLAB_MAX, SMALL_MAX, class_size, medium_class, small_class};
use super::release::{release, usable_size};
use super::{interval, statistics, thread};
use crate::observe::sampler;
use std::sync::{Mutex, MutexGuard, mpsc};
use std::vec::Vec;

/// Sampling and the exact counts concern the whole process, and a thread takes the heap that the last one left: one test at a time,
/// in whatever module, allocates from the heap.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// splitmix64, so that each test repeats.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Log-uniform between 1 and 2^bits.
    pub(crate) fn size(&mut self, bits: u32) -> usize {
        let bits = self.below(bits as usize) as u32 + 1;
        self.below(1 << bits).max(1)
    }
}

/// A block with a stamp in its first, last and every 4096th byte.
struct Block {
    at: *mut u8,
    size: usize,
    stamp: u8,
}
// SAFETY: a block may be used and freed by any thread.
unsafe impl Send for Block {}

impl Block {
    fn new(random: &mut Random) -> Block {
        let stamp = random.next() as u8;
        let bits = if random.below(50) == 0 { 21 } else { 13 };
        let size = random.size(bits);
        let shifts = if random.below(10) == 0 { 17 } else { 4 };
        let alignment = 1 << random.below(shifts);
        // SAFETY: the block is at least `size` long; that is what is tested.
        unsafe {
            let at = match random.below(3) {
                0 => allocate_aligned(size, alignment),
                1 => {
                    let at = allocate_zeroed(size);
                    assert!((0..size).all(|i| *at.add(i) == 0), "not zero");
                    at
                }
                _ => allocate(size),
            };
            assert!(!at.is_null() && (at as usize).is_multiple_of(16) && usable_size(at) >= size);
            let block = Block { at, size, stamp };
            block.stamp();
            block
        }
    }

    fn places(&self) -> impl Iterator<Item = *mut u8> + '_ {
        (0..self.size).step_by(4096).chain([self.size - 1]).map(|i| self.at.wrapping_add(i))
    }

    fn stamp(&self) {
        // SAFETY: inside the block.
        self.places().for_each(|place| unsafe { *place = self.stamp });
    }

    fn check(&self) {
        // SAFETY: inside the block.
        assert!(self.places().all(|place| unsafe { *place } == self.stamp), "a block was overwritten");
    }

    fn resize(&mut self, random: &mut Random) {
        self.check();
        let size = random.size(16);
        // SAFETY: the block is live.
        unsafe {
            self.at = reallocate(self.at, size);
            assert!(
                (0..self.size.min(size)).step_by(4096).all(|i| *self.at.add(i) == self.stamp),
                "realloc lost bytes"
            );
        }
        self.size = size;
        self.stamp();
    }

    fn free(self) {
        self.check();
        // SAFETY: the block is live and not used again.
        unsafe { release(self.at) };
    }
}

/// Allocate, resize, free, and exchange blocks with another thread, for `steps` steps; free everything at the end.
fn churn(seed: u64, steps: usize, give: &mpsc::Sender<Block>, take: &mpsc::Receiver<Block>) {
    let mut random = Random(seed);
    let mut live: Vec<Block> = Vec::new();
    for _ in 0..steps {
        match random.below(10) {
            0..5 => live.push(Block::new(&mut random)),
            5..8 if !live.is_empty() => live.swap_remove(random.below(live.len())).free(),
            8 if !live.is_empty() => {
                let i = random.below(live.len());
                live[i].resize(&mut random);
            }
            9 if !live.is_empty() => give.send(live.swap_remove(random.below(live.len()))).unwrap(),
            _ => {}
        }
        live.extend(take.try_iter());
        if live.len() > 2000 {
            live.drain(..1500).for_each(Block::free);
        }
    }
    live.into_iter().for_each(Block::free);
}

/// Threads in a ring, several generations of them, so that heaps are inherited.
fn churn_threads(seed: u64) {
    for generation in 0..4 {
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<Block>()).unzip();
        senders.rotate_left(1);
        let left: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|i| {
                    let (give, take) = (senders.remove(0), receivers.remove(0));
                    scope.spawn(move || {
                        churn(seed + generation * 10 + i, 20_000, &give, &take);
                        take
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        left.iter().flat_map(|take| take.try_iter()).for_each(Block::free);
    }
}

fn counts() -> Vec<(u64, u64)> {
    (1..CLASSES).map(statistics::of_class).collect()
}

#[test]
fn blocks_keep_their_contents_and_everything_is_counted() {
    let _alone = alone();
    for sampling in [false, true] {
        if sampling {
            assert!(sampler::restart(&options(4096, 1)));
        }
        let before = (statistics::totals(), counts());
        churn_threads(7);
        let after = (statistics::totals(), counts());
        sampler::stop();
        assert_eq!(
            after.0.allocated_bytes - before.0.allocated_bytes,
            after.0.freed_bytes - before.0.freed_bytes,
            "what was allocated was freed"
        );
        for (class, (after, before)) in after.1.iter().zip(&before.1).enumerate() {
            assert_eq!(after.0 - before.0, after.1 - before.1, "class {}", class + 1);
        }
        assert!(after.0.allocated_blocks - before.0.allocated_blocks > 100_000);
    }
}

/// Blocks are stolen from running threads all the time: contents stay, counts stay exact.
#[test]
fn stealing_from_running_threads() {
    let _alone = alone();
    for sampling in [false, true] {
        if sampling {
            assert!(sampler::restart(&options(4096, 1)));
        }
        let before = counts();
        let stop = core::sync::atomic::AtomicBool::new(false);
        let stolen = std::thread::scope(|scope| {
            let thief = scope.spawn(|| {
                let mut stolen = 0;
                while !stop.load(core::sync::atomic::Ordering::Relaxed) {
                    stolen += super::steal::steal_all().blocks;
                    if sampling && stolen % 7 == 0 {
                        assert!(sampler::restart(&options(4096, stolen as u64)));
                    }
                }
                stolen
            });
            churn_threads(70);
            stop.store(true, core::sync::atomic::Ordering::Relaxed);
            thief.join().unwrap()
        });
        sampler::stop();
        assert!(stolen > 100, "only {stolen} blocks were stolen");
        for (class, (after, before)) in counts().iter().zip(&before).enumerate() {
            assert_eq!(after.0 - before.0, after.1 - before.1, "class {}", class + 1);
        }
    }
}

/// Threads that do nothing but allocate and free, so that thefts hit them in the middle of a pop.
#[test]
fn stealing_from_tight_loops() {
    let _alone = alone();
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    const ENOUGH: usize = 50_000;
    let (stop, stolen) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for worker in 0..3usize {
            let (stop, stolen) = (&stop, &stolen);
            scope.spawn(move || {
                let mut round = worker;
                while !stop.load(Relaxed) || stolen.load(Relaxed) == 0 {
                    round = round.wrapping_add(3);
                    let mut blocks = [core::ptr::null_mut::<usize>(); 24];
                    for block in &mut blocks {
                        // SAFETY: freed once each, below.
                        unsafe {
                            *block = allocate(48).cast();
                            **block = round;
                        }
                    }
                    for block in blocks {
                        // SAFETY: as above.
                        unsafe {
                            assert_eq!(*block, round, "a block was handed out twice");
                            release(block.cast());
                        }
                    }
                }
            });
        }
        // However the machine schedules them.
        for _ in 0..10_000_000 {
            if stolen.fetch_add(super::steal::steal_all().blocks, Relaxed) > ENOUGH {
                break;
            }
        }
        stop.store(true, Relaxed);
    });
    assert!(stolen.load(Relaxed) > ENOUGH, "only {} blocks were stolen", stolen.load(Relaxed));
}

/// The same seed gives the same samples whether blocks are stolen meanwhile or not.
#[test]
fn stealing_does_not_change_samples() {
    let _alone = alone();
    let (go, wait) = mpsc::channel::<()>();
    let (done, ready) = mpsc::channel::<()>();
    // One thread, and so one heap, for all runs: they draw from the same sequence.
    let worker = std::thread::spawn(move || {
        while wait.recv().is_ok() {
            let mut random = Random(4);
            for _ in 0..60 {
                wait.recv().unwrap();
                for _ in 0..10 {
                    // SAFETY: freed once each.
                    let blocks: Vec<_> = (0..random.below(300)).map(|_| unsafe { allocate(random.size(12)) }).collect();
                    // SAFETY: as above.
                    blocks.into_iter().for_each(|block| unsafe { release(block) });
                }
                done.send(()).unwrap();
            }
        }
    });
    let sample = |steal: bool| {
        assert!(sampler::restart(&options(8192, 11)));
        go.send(()).unwrap();
        let mut stolen = 0;
        for _ in 0..60 {
            go.send(()).unwrap();
            ready.recv().unwrap();
            if steal {
                stolen += super::steal::steal_all().blocks;
            }
        }
        let sampled = (1..CLASSES).map(|class| sampler::sampled_of_size(class_size(class) as u64)).collect::<Vec<_>>();
        sampler::stop();
        assert_eq!(stolen > 0, steal);
        sampled
    };
    let plain = sample(false);
    assert!(plain.iter().map(|counts| counts.1).sum::<u64>() > 500);
    assert_eq!(sample(true), plain);
    assert_eq!(sample(false), plain);
    drop(go);
    worker.join().unwrap();
}

#[test]
fn alignments() {
    let _alone = alone();
    for shift in 0..=30 {
        for size in [0usize, 1, 24, 4000, 70_000] {
            // SAFETY: freed once.
            unsafe {
                let block = allocate_aligned(size, 1 << shift);
                assert!(!block.is_null() && (block as usize).is_multiple_of(1 << shift), "{size} at 2^{shift}");
                assert!(usable_size(block) >= size);
                block.write_bytes(1, size.max(1));
                release(block);
            }
        }
    }
}

#[test]
fn impossible_sizes() {
    let _alone = alone();
    for size in [isize::MAX as usize, isize::MAX as usize + 1, usize::MAX - 12, usize::MAX, 1 << 60, 1 << 45] {
        // SAFETY: they all fail.
        unsafe {
            assert!(allocate(size).is_null() && allocate_zeroed(size).is_null());
            for alignment in [32, 4096, 1 << 30, 1 << 62] {
                assert!(allocate_aligned(size, alignment).is_null());
            }
            let block = allocate(100);
            *block = 9;
            assert!(reallocate(block, size).is_null());
            assert_eq!(*block, 9, "the block is kept");
            release(block);
        }
    }
}

pub(super) fn options(rate: u64, seed: u64) -> sampler::Options {
    sampler::Options { rate, seed, depth: 32, memory: 64 << 20 }
}

/// Estimates of a run per block size: (live blocks, allocated blocks).
fn estimate(size: usize, rate: u64) -> (f64, f64) {
    let (live, allocated) = sampler::sampled_of_size(size as u64);
    let p = 1.0 - (-(size as f64) / rate as f64).exp();
    (live as f64 / p, allocated as f64 / p)
}

fn block_size(size: usize) -> usize {
    if size <= SMALL_MAX {
        class_size(small_class(size))
    } else if size <= SLAB_MAX {
        class_size(medium_class(size))
    } else {
        size.next_multiple_of(64 * 1024)
    }
}

/// Sizes with quite different probabilities, in bursts, pairs and with some kept: the estimates of 40 seeds must scatter
/// around the truth as theory says, and their mean must be right.
#[test]
fn samples_are_unbiased() {
    let _alone = alone();
    const RATE: u64 = 16 * 1024;
    const SEEDS: u64 = 40;
    let sizes = [16usize, 64, 200, 1024, 9000, 40_000, 1 << 20];
    let rounds = [40_000usize, 20_000, 8000, 3000, 1000, 400, 60];
    let mut errors = [0.0; 7];
    let mut beyond = 0;
    for seed in 1..=SEEDS {
        assert!(sampler::restart(&options(RATE, seed)));
        let mut random = Random(seed);
        let mut kept = Vec::new();
        let mut live = [0u64; 7];
        for ((&size, &rounds), live) in sizes.iter().zip(&rounds).zip(&mut live) {
            let mut burst = Vec::new();
            for _ in 0..rounds {
                // SAFETY: freed once each.
                unsafe {
                    burst.push(allocate(size));
                    if burst.len() > random.below(300) {
                        burst.drain(..).for_each(|block| match random.below(5) {
                            0 => {
                                kept.push(block);
                                *live += 1;
                            }
                            _ => release(block),
                        });
                    }
                }
            }
            // SAFETY: as above.
            burst.drain(..).for_each(|block| unsafe { release(block) });
        }
        for i in 0..sizes.len() {
            let size = block_size(sizes[i]);
            let p = 1.0 - (-(size as f64) / RATE as f64).exp();
            let (live_estimate, allocated) = estimate(size, RATE);
            let deviation = |n: f64| (n * (1.0 - p) / (p * p)).sqrt() + 1e-9;
            let z = (allocated - rounds[i] as f64) / deviation(rounds[i] as f64);
            let z_live = (live_estimate - live[i] as f64) / deviation(live[i] as f64);
            assert!(z.abs() < 5.5 && z_live.abs() < 5.5, "size {size} seed {seed}: {z} {z_live}");
            beyond += (z.abs() > 2.0) as u32;
            errors[i] += z;
        }
        sampler::stop();
        // SAFETY: as above.
        kept.into_iter().for_each(|block| unsafe { release(block) });
    }
    // The sum of 40 standard scores has a deviation of sqrt(40) = 6.3.
    assert!(errors.iter().all(|sum| sum.abs() < 4.5 * (SEEDS as f64).sqrt()), "{errors:?}");
    // Of 280 scores about 13 lie beyond 2: none at all, or very many, would show that theory and practice differ.
    assert!((1..40).contains(&beyond), "{beyond}");
}

/// Nothing allocated after a stop is sampled, everything is with a rate of one byte, also in threads that live on.
#[test]
fn start_and_stop_are_seen_at_once() {
    let _alone = alone();
    let (go, wait) = mpsc::channel::<usize>();
    let (done, ready) = mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        for count in wait {
            // SAFETY: freed once each.
            (0..count)
                .map(|_| unsafe { allocate(48) })
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|b| unsafe { release(b) });
            done.send(()).unwrap();
        }
    });
    let run = |count| {
        go.send(count).unwrap();
        ready.recv().unwrap();
    };
    for round in 0..50 {
        run(77);
        assert!(sampler::restart(&options(1, round + 1)));
        run(100 + round as usize);
        assert_eq!(sampler::sampled_of_size(48), (0, 100 + round));
        sampler::pause();
        run(50);
        assert_eq!(sampler::sampled_of_size(48), (0, 100 + round));
        sampler::stop();
        assert_eq!(sampler::sampled_of_size(48), (0, 0));
    }
    drop(go);
    worker.join().unwrap();
}

/// Slabs of sampled blocks go back when those are freed, but for one of a class; all of them when sampling stops.
#[test]
fn sampled_slabs_go_back() {
    use super::sampled::{bytes_of_records, count_slabs};
    let _alone = alone();
    // SAFETY: no preconditions.
    let fill = || -> Vec<_> { (0..3000).map(|i| unsafe { allocate([700, 3000, 20_000][i % 3]) }).collect() };
    // SAFETY: freed once each.
    let drain = |blocks: Vec<*mut u8>| blocks.into_iter().for_each(|block| unsafe { release(block) });
    sampler::stop();
    let before = count_slabs();
    for _ in 0..3 {
        assert!(sampler::restart(&options(1, 5)));
        let first = fill();
        let (slabs, bytes) = (count_slabs(), bytes_of_records());
        assert!(slabs > 300 + before && bytes >= 3000 * 40, "{slabs} {bytes}");
        // What is left keeps its slab.
        let (kept, gone): (Vec<_>, Vec<_>) = first.into_iter().enumerate().partition(|(i, _)| i % 300 == 0);
        drain(gone.into_iter().map(|(_, block)| block).collect());
        assert!((10..100 + before).contains(&count_slabs()), "{}", count_slabs());
        drain(fill());
        drain(kept.into_iter().map(|(_, block)| block).collect());
        // Other tests have left blocks of their own.
        assert!(
            count_slabs() < 60 + before && bytes_of_records() < bytes / 2,
            "{} {}",
            count_slabs(),
            bytes_of_records()
        );
        sampler::stop();
        assert_eq!(count_slabs(), before);
    }
}

/// Somebody looks at all sampled blocks while slabs of them come and go.
#[test]
fn sampled_slabs_are_looked_at_while_they_go() {
    use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let _alone = alone();
    assert!(sampler::restart(&options(1, 5)));
    let done = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let look = scope.spawn(|| {
            let mut looks = 0u64;
            while !done.load(Relaxed) {
                let (blocks, bytes) = super::look::parked();
                assert!(bytes >= blocks * 16);
                looks += 1;
            }
            looks
        });
        let work = |size: usize| {
            for _ in 0..100 {
                // SAFETY: freed once each.
                unsafe {
                    let blocks: Vec<_> = (0..200).map(|_| allocate(size)).collect();
                    blocks.into_iter().for_each(|block| release(block));
                }
            }
        };
        let workers: Vec<_> = [3000, 3000, 20_000].map(|size| scope.spawn(move || work(size))).into();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Relaxed);
        look.join().unwrap()
    });
    assert!(looks > 10);
    sampler::stop();
}

#[test]
fn a_seed_repeats() {
    let _alone = alone();
    let sample = |seed| {
        assert!(sampler::restart(&options(8192, seed)));
        // SAFETY: freed once each.
        let blocks: Vec<_> = (0..5000).map(|i| unsafe { allocate(16 * (1 + i % 60)) }).collect();
        let result: Vec<_> = (1..=60).map(|class| sampler::sampled_of_size(class * 16)).collect();
        sampler::stop();
        // SAFETY: as above.
        blocks.into_iter().for_each(|block| unsafe { release(block) });
        result
    };
    assert_eq!(sample(5), sample(5));
    assert_ne!(sample(5), sample(6));
    assert!(!interval::is_on(interval::epoch()));
}

/// The heaps of threads that are gone are used again.
#[test]
fn threads_come_and_go_in_flat_memory() {
    let _alone = alone();
    let storm = |n| {
        for _ in 0..n {
            std::thread::spawn(|| {
                // SAFETY: freed once each.
                (0..100)
                    .map(|i| unsafe { allocate(i * 7) })
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|b| unsafe { release(b) })
            })
            .join()
            .unwrap();
        }
        super::all().count()
    };
    let before = storm(20);
    assert_eq!(storm(300), before);
    assert!(!super::Heap::is_empty_heap(thread::current()) || before > 0);
}

/// Spans that are freed merge again: the window does not grow.
#[test]
fn spans_are_reused() {
    let _alone = alone();
    let mut random = Random(3);
    let mut churn = || {
        let mut live: Vec<*mut u8> = Vec::new();
        for _ in 0..3000 {
            // SAFETY: freed once each.
            unsafe {
                live.push(allocate(random.below(4 << 20) + 20_000));
                if live.len() > 20 {
                    release(live.swap_remove(random.below(live.len())));
                }
            }
        }
        // SAFETY: as above.
        live.drain(..).for_each(|block| unsafe { release(block) });
        crate::arena::used_slices()
    };
    let first = churn();
    assert!(churn() <= first + first / 4, "the window grows without need");
}
