//! Every event, once: held against what the tests did themselves.

use super::Extent;
use crate::api::c;
use crate::heap::allocate::{allocate, allocate_aligned, allocate_zeroed, reallocate};
use crate::heap::release::{release, usable_size};
use crate::heap::tests::{Random, alone};
use crate::heap::watch::{self, Watcher};
use crate::heap::{notes, statistics, zone};
use crate::observe::sampler;
use std::collections::HashMap;
use std::string::String;
use std::sync::Mutex;
use std::vec::Vec;

/// What the hooks have heard.
#[derive(Default)]
struct Heard {
    live: HashMap<usize, (usize, usize)>,
    allocated: usize,
    freed: usize,
    reallocated: usize,
    /// Frees of blocks whose allocation nobody has told.
    unknown: usize,
    mistakes: Vec<String>,
}

static HEARD: Mutex<Option<Heard>> = Mutex::new(None);

fn hear(act: impl FnOnce(&mut Heard)) {
    if let Some(heard) = HEARD.lock().unwrap().as_mut() {
        act(heard);
    }
}

pub(super) fn allocated(block: *mut u8, usable: usize, requested: usize) {
    hear(|heard| {
        heard.allocated += 1;
        if let Some(before) = heard.live.insert(block as usize, (usable, requested)) {
            heard.mistakes.push(std::format!("{block:?} ({usable}) allocated twice, before {before:?}"));
        }
    });
}

pub(super) fn freed(block: *mut u8, usable: usize) {
    hear(|heard| {
        heard.freed += 1;
        match heard.live.remove(&(block as usize)) {
            None => heard.unknown += 1,
            Some((known, _)) if known == usable => {}
            Some(other) => heard.mistakes.push(std::format!("{block:?} freed with {usable}, not {other:?}")),
        }
    });
}

pub(super) fn reallocated(old: Extent, new: Extent, requested: usize) {
    hear(|heard| {
        heard.reallocated += 1;
        match heard.live.remove(&(old.block as usize)) {
            None => heard.unknown += 1,
            Some((known, _)) if known == old.usable => {}
            Some(other) => heard.mistakes.push(std::format!("{old:?} reallocated, not {other:?}")),
        }
        if heard.live.insert(new.block as usize, (new.usable, requested)).is_some() {
            heard.mistakes.push(std::format!("{new:?} twice"));
        }
    });
}

/// Listen to what `act` does, and return what was heard.
fn listen(act: impl FnOnce()) -> Heard {
    *HEARD.lock().unwrap() = Some(Heard::default());
    watch::begin(Watcher::Exact);
    act();
    watch::end(Watcher::Exact);
    let heard = HEARD.lock().unwrap().take().unwrap();
    assert_eq!(heard.mistakes, Vec::<String>::new());
    heard
}

/// What a thread has done.
#[derive(Default)]
struct Done {
    live: HashMap<usize, usize>,
    allocated: usize,
    freed: usize,
    reallocated: usize,
}

impl Done {
    fn got(&mut self, block: *mut u8, size: usize) {
        assert!(!block.is_null());
        self.allocated += 1;
        assert!(self.live.insert(block as usize, size).is_none());
    }

    fn any(&self, random: &mut Random) -> Option<usize> {
        let nth = random.below(self.live.len().max(1));
        self.live.keys().nth(nth).copied()
    }

    /// One random call.
    unsafe fn step(&mut self, random: &mut Random) {
        let bits = if random.below(30) == 0 { 21 } else { 13 };
        let size = random.size(bits);
        // SAFETY: blocks are this thread's, used and freed once.
        unsafe {
            match random.below(12) {
                0..=2 => self.got(allocate(size), size),
                3 => self.got(allocate_zeroed(size), size),
                4 => {
                    let alignment = 1 << random.below(17);
                    self.got(allocate_aligned(size, alignment), size);
                }
                5 => self.got(c::malloc_aligned_at(size, 64, 24), size),
                6..=8 => {
                    if let Some(block) = self.any(random) {
                        self.live.remove(&block);
                        self.freed += 1;
                        release(block as *mut u8);
                    }
                }
                _ => {
                    if let Some(block) = self.any(random) {
                        self.live.remove(&block);
                        self.reallocated += 1;
                        let size = if random.below(2) == 0 { size } else { usable_size(block as *mut u8) * 3 / 4 + 1 };
                        let new = match random.below(3) {
                            0 => c::rezalloc(block as *mut u8, size),
                            1 => c::realloc_aligned_at(block as *mut u8, size, 64, 24),
                            _ => reallocate(block as *mut u8, size),
                        };
                        assert!(self.live.insert(new as usize, size).is_none());
                    }
                }
            }
        }
    }
}

/// Threads that call at random; what they did, together.
fn storm(threads: u64, steps: usize) -> Done {
    let workers: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::spawn(move || {
                let (mut random, mut done) = (Random::new(thread), Done::default());
                for _ in 0..steps {
                    // SAFETY: as the function says.
                    unsafe { done.step(&mut random) };
                }
                done
            })
        })
        .collect();
    let mut all = Done::default();
    for worker in workers {
        let done = worker.join().unwrap();
        all.live.extend(done.live);
        all.allocated += done.allocated;
        all.freed += done.freed;
        all.reallocated += done.reallocated;
    }
    all
}

fn agree(heard: &Heard, done: &Done) {
    let counts = (heard.allocated, heard.freed, heard.reallocated, heard.unknown);
    assert_eq!(counts, (done.allocated, done.freed, done.reallocated, 0));
    assert_eq!(heard.live.len(), done.live.len());
    for (block, size) in &done.live {
        // SAFETY: the block is live.
        let usable = unsafe { usable_size(*block as *mut u8) };
        assert!(heard.live[block].0 == usable && usable >= *size, "{block:x} of {size}");
    }
}

/// The blocks of threads that have ended.
fn free_all(done: &Done) {
    for &block in done.live.keys() {
        // SAFETY: they are nobody else's, and freed once.
        unsafe { release(block as *mut u8) };
    }
}

#[test]
fn every_call_is_told_once() {
    let _alone = alone();
    for sampled in [false, true] {
        if sampled {
            assert!(sampler::start(&sampler::Options { rate: 2000, seed: 7, depth: 4, memory: 1 << 20 }));
        }
        let mut done = Done::default();
        let heard = listen(|| done = storm(4, 4000));
        sampler::stop();
        agree(&heard, &done);
        let heard = listen(|| free_all(&done));
        assert_eq!((heard.freed, heard.unknown, heard.allocated), (done.live.len(), done.live.len(), 0));
    }
}

#[test]
fn nobody_hears_when_nobody_watches() {
    let _alone = alone();
    drop(listen(|| {}));
    *HEARD.lock().unwrap() = Some(Heard::default());
    let done = storm(2, 2000);
    free_all(&done);
    let heard = HEARD.lock().unwrap().take().unwrap();
    assert_eq!((heard.allocated, heard.freed, heard.reallocated), (0, 0, 0));
}

#[test]
fn counts_go_on_by_position() {
    let _alone = alone();
    let before = statistics::totals();
    let mut done = Done::default();
    let heard = listen(|| done = storm(3, 3000));
    let blocks = |totals: statistics::Totals| totals.allocated_blocks - totals.freed_blocks;
    let bytes = |totals: statistics::Totals| totals.allocated_bytes - totals.freed_bytes;
    let after = statistics::totals();
    assert_eq!(blocks(after) - blocks(before), done.live.len() as u64);
    let usable: usize = heard.live.values().map(|live| live.0).sum();
    assert!(bytes(after) - bytes(before) >= usable as u64);
    free_all(&done);
    assert_eq!(blocks(statistics::totals()), blocks(before));
    assert_eq!(bytes(statistics::totals()), bytes(before));
}

#[test]
fn the_end_of_a_zone_frees_its_blocks() {
    let _alone = alone();
    for sampled in [false, true] {
        if sampled {
            assert!(sampler::start(&sampler::Options { rate: 500, seed: 7, depth: 4, memory: 1 << 20 }));
        }
        let (mut left, mut given_back) = (0, 0);
        let heard = listen(|| {
            let zone = zone::create();
            let mut random = Random::new(3);
            for number in 0..4000 {
                let bits = if number % 50 == 0 { 21 } else { 12 };
                // SAFETY: the zone is in use, and the blocks are freed once.
                unsafe {
                    let block = zone::allocate(zone, random.size(bits));
                    if random.below(3) == 0 {
                        release(block);
                        given_back += 1;
                    } else {
                        left += 1;
                    }
                }
            }
            // SAFETY: nobody uses the zone any more.
            unsafe { zone::destroy(zone) };
        });
        sampler::stop();
        assert_eq!((heard.allocated, heard.freed, heard.unknown), (4000, left + given_back, 0));
        assert!(heard.live.is_empty());
    }
}

#[test]
fn blocks_of_a_deleted_zone_live_on() {
    let _alone = alone();
    let heard = listen(|| {
        let zone = zone::create();
        // SAFETY: the zone is in use; its blocks are the main zone's after its end.
        unsafe {
            let blocks: Vec<_> = (1..2000).map(|size| zone::allocate(zone, size)).collect();
            zone::delete(zone);
            blocks.into_iter().for_each(|block| release(block));
        }
    });
    assert_eq!((heard.allocated, heard.freed, heard.unknown), (1999, 1999, 0));
}

#[test]
fn blocks_at_hand_are_told_too() {
    let _alone = alone();
    const SIZE: usize = 700_000;
    let again = || {
        for _ in 0..10 {
            // SAFETY: the block is freed once.
            unsafe { release(allocate(SIZE)) };
        }
    };
    again();
    let heard = listen(again);
    assert_eq!((heard.allocated, heard.freed, heard.unknown), (10, 10, 0));
}

#[test]
fn heaps_that_are_made_meanwhile() {
    let _alone = alone();
    const THREADS: usize = 50;
    let all_there = std::sync::Barrier::new(THREADS);
    let heard = listen(|| {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    // SAFETY: the block is freed once, by a thread that may have a new heap.
                    unsafe {
                        let block = allocate(40);
                        all_there.wait();
                        release(block);
                        release(allocate(40));
                    }
                });
            }
        });
    });
    assert_eq!((heard.allocated, heard.freed, heard.unknown), (2 * THREADS, 2 * THREADS, 0));
}

#[test]
fn begun_and_ended_while_others_allocate() {
    let _alone = alone();
    *HEARD.lock().unwrap() = Some(Heard::default());
    let done = std::thread::scope(|scope| {
        let storm = scope.spawn(|| storm(4, 6000));
        while !storm.is_finished() {
            watch::begin(Watcher::Events);
            std::thread::yield_now();
            watch::end(Watcher::Events);
            // What was heard of blocks that were freed since is not true any more.
            hear(|heard| heard.live.clear());
        }
        storm.join().unwrap()
    });
    *HEARD.lock().unwrap() = None;
    let heard = listen(|| free_all(&done));
    assert_eq!(heard.freed, done.live.len());
}

#[test]
fn each_block_has_a_note_of_its_own() {
    let _alone = alone();
    let mut done = Done::default();
    let heard = listen(|| done = storm(2, 5000));
    agree(&heard, &done);
    use core::sync::atomic::Ordering::Relaxed;
    // SAFETY: the blocks are live and nobody else's.
    unsafe {
        for &block in done.live.keys() {
            let note = notes::place_for(block as *mut u8).unwrap();
            assert_eq!((note.0.load(Relaxed), note.1.load(Relaxed)), (0, 0), "{block:x}");
            note.0.store(block as u64, Relaxed);
            note.1.store(!block as u64, Relaxed);
        }
        for &block in done.live.keys() {
            let note = notes::note_of(block as *mut u8).unwrap();
            assert_eq!((note.0.load(Relaxed), note.1.load(Relaxed)), (block as u64, !block as u64));
        }
        free_all(&done);
    }
}
