//! What becomes of sampled blocks, by way of the heap.

use super::sites::{Counts, Site};
use super::{Options, hold, lifetimes::LIFETIMES, pause, restart, sampled_of_size, sites, stop, threads};
use crate::heap::allocate::{allocate, reallocate};
use crate::heap::release::release;
use crate::heap::tests::alone;
use std::vec::Vec;

/// Every allocation is sampled, for all practical purposes.
const ALL: Options = Options { rate: 1, seed: 3, depth: 64, memory: 16 << 20 };

/// Block sizes that nothing else uses here.
const SIZE: usize = 11_264;
const LARGER: usize = 14_336;
const SPAN: usize = 3 << 20;

/// The sums over the sites of a block size.
fn of_size(size: usize) -> Counts {
    let run = hold().map_or(0, |held| held.number());
    let mut sum = Counts::default();
    for counts in sites::all(run).filter(|site| site.block_size() == size as u64).map(Site::counts) {
        sum.live += counts.live;
        sum.live_requested += counts.live_requested;
        sum.allocated += counts.allocated;
        sum.allocated_requested += counts.allocated_requested;
        sum.peak += counts.peak;
        sum.peak_requested += counts.peak_requested;
        sum.freed += counts.freed;
        sum.temporary += counts.temporary;
        sum.moved += counts.moved;
        (0..LIFETIMES).for_each(|i| sum.lifetimes[i] += counts.lifetimes[i]);
    }
    sum
}

fn block(size: usize) -> *mut u8 {
    // SAFETY: freed by the tests, or kept.
    unsafe { allocate(size) }
}

fn free(block: *mut u8) {
    // SAFETY: the tests' own, once.
    unsafe { release(block) }
}

fn sampling(test: impl FnOnce()) {
    let _alone = alone();
    assert!(restart(&ALL));
    test();
    stop();
}

#[test]
fn requested_and_usable_bytes() {
    sampling(|| {
        let blocks: Vec<_> = (0..100).map(|_| block(SIZE - 100)).collect();
        let counts = of_size(SIZE);
        assert_eq!((counts.live, counts.live_requested), (100, 100 * (SIZE as u64 - 100)));
        blocks.into_iter().for_each(free);
        let counts = of_size(SIZE);
        assert_eq!((counts.live, counts.live_requested, counts.allocated, counts.freed), (0, 0, 100, 100));
        assert_eq!(counts.allocated_requested, 100 * (SIZE as u64 - 100));
        assert_eq!(counts.lifetimes.iter().sum::<u32>(), 100);
    });
}

#[test]
fn temporary_is_what_goes_before_anything_else_comes() {
    for (size, usable) in [(SIZE, SIZE), (SPAN, SPAN)] {
        sampling(|| {
            let kept: Vec<_> = (0..50).map(|_| block(LARGER)).collect();
            for _ in 0..10 {
                free(block(size));
            }
            assert_eq!(of_size(usable).temporary, 10);
            // Frees in between change nothing.
            let temporary = block(size);
            kept.into_iter().for_each(free);
            free(temporary);
            assert_eq!((of_size(usable).temporary, of_size(usable).freed), (11, 11));
            let first = block(size);
            let second = block(48);
            free(first);
            free(second);
            assert_eq!((of_size(usable).temporary, of_size(usable).freed), (11, 12));
            // Another thread is no end of the kind.
            let address = block(size) as usize;
            std::thread::spawn(move || free(address as *mut u8)).join().unwrap();
            assert_eq!((of_size(usable).temporary, of_size(usable).freed), (11, 13));
        });
    }
}

#[test]
fn a_realloc_that_moves_is_no_end() {
    sampling(|| {
        // SAFETY: used and freed once.
        unsafe {
            let first = block(SIZE);
            let second = reallocate(first, SIZE - 50);
            assert_eq!(first, second);
            let counts = of_size(SIZE);
            assert_eq!((counts.live, counts.live_requested, counts.moved), (1, SIZE as u64 - 50, 0));
            let third = reallocate(second, LARGER);
            let (old, new) = (of_size(SIZE), of_size(LARGER));
            assert_eq!((old.live, old.moved, old.freed, old.lifetimes), (0, 1, 0, [0; LIFETIMES]));
            assert_eq!((new.live, new.moved, new.freed), (1, 0, 0));
            // The histogram tells how old the contents were, not the block.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let fourth = reallocate(third, 5 << 20);
            let extended = reallocate(fourth, 6 << 20);
            free(extended);
        }
        let (old, new) = (of_size(5 << 20), of_size(6 << 20));
        assert_eq!(old.allocated + new.allocated, old.moved + new.freed);
        assert_eq!(new.freed, 1, "{new:?}");
        let long: u32 = new.lifetimes[7..].iter().sum();
        assert_eq!(long, 1, "{:?}", new.lifetimes);
    });
}

#[test]
fn the_peak_is_that_of_all_sites_together() {
    sampling(|| {
        let first: Vec<_> = (0..100).map(|_| block(SIZE)).collect();
        let second: Vec<_> = (0..20).map(|_| block(LARGER)).collect();
        first.into_iter().for_each(free);
        // Less in all, but more of these.
        let third: Vec<_> = (0..40).map(|_| block(LARGER)).collect();
        assert_eq!((of_size(SIZE).peak, of_size(LARGER).peak, of_size(LARGER).live), (100, 20, 60));
        assert_eq!(of_size(LARGER).peak_requested, 20 * LARGER as u64);
        let fourth: Vec<_> = (0..100).map(|_| block(LARGER)).collect();
        assert_eq!((of_size(SIZE).peak, of_size(LARGER).peak), (0, 160));
        second.into_iter().chain(third).chain(fourth).for_each(free);
        assert_eq!((of_size(SIZE).peak, of_size(LARGER).peak), (0, 160));
    });
}

/// The sum over the sites at the peak is the highest estimate, with several threads at it up to what is in flight.
#[test]
fn the_peak_adds_up() {
    sampling(|| {
        let rounds = |seed: usize| {
            let mut kept = Vec::new();
            for i in 0..20_000usize {
                kept.push(block(16 * (1 + i * seed % 50)) as usize);
                if (i * seed).is_multiple_of(997) {
                    kept.drain(..kept.len() / 2).for_each(|block| free(block as *mut u8));
                }
            }
            kept.into_iter().for_each(|block| free(block as *mut u8));
        };
        std::thread::scope(|scope| (1..4).for_each(|seed| drop(scope.spawn(move || rounds(seed)))));
        let held = hold().unwrap();
        let at_peak: u64 = held.sites().map(|site| site.counts().peak * site.block_size()).sum();
        let highest = held.highest_bytes();
        assert!(highest > 100_000 && at_peak.abs_diff(highest) < highest / 50, "{at_peak} of {highest}");
        let live: u64 = held.sites().map(|site| site.counts().live * site.block_size()).sum();
        assert_eq!(live, held.live_bytes());
    });
}

#[test]
fn threads_have_numbers_and_names() {
    sampling(|| {
        let blocks: Vec<usize> = ["first", "second"]
            .map(|name| {
                let work = || block(SIZE) as usize;
                std::thread::Builder::new().name(name.into()).spawn(work).unwrap().join().unwrap()
            })
            .into();
        let held = hold().unwrap();
        let mut names: Vec<_> = held
            .sites()
            .filter(|site| site.block_size() == SIZE as u64)
            .map(|site| threads::thread(site.thread()).unwrap())
            .map(|thread| (std::string::String::from_utf8(thread.name().into()).unwrap(), thread.tid != 0))
            .collect();
        names.sort();
        assert_eq!(names, [("first".into(), true), ("second".into(), true)]);
        blocks.into_iter().for_each(|block| free(block as *mut u8));
        assert_eq!(threads::thread(0), None);
    });
}

/// Blocks of a run that has ended are free to go; the next run does not hear of them.
#[test]
fn stopped_means_stopped() {
    let _alone = alone();
    assert!(restart(&ALL));
    let old: Vec<_> = (0..100).map(|_| block(SIZE)).collect();
    assert_eq!(sampled_of_size(SIZE as u64), (100, 100));
    stop();
    assert!(hold().is_none());
    let between: Vec<_> = (0..100).map(|_| block(SIZE)).collect();
    assert!(restart(&ALL));
    assert_eq!(sampled_of_size(SIZE as u64), (0, 0));
    let new: Vec<_> = (0..10).map(|_| block(SIZE)).collect();
    // SAFETY: each is used and freed once.
    let old = old.into_iter().map(|block| unsafe { reallocate(block, SIZE - 1) });
    old.chain(between).for_each(free);
    assert_eq!(sampled_of_size(SIZE as u64), (10, 10));
    let counts = of_size(SIZE);
    assert_eq!((counts.freed, counts.moved, counts.live_requested), (0, 0, 10 * SIZE as u64));
    pause();
    new.into_iter().for_each(free);
    assert_eq!(of_size(SIZE).freed, 10);
    stop();
}

/// Runs come and go while threads sample and free.
#[test]
fn starts_and_stops_in_a_storm() {
    let _alone = alone();
    let done = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(core::sync::atomic::Ordering::Relaxed) {
                    let blocks: Vec<_> = (0..100).map(|i| block(16 + i * 16)).collect();
                    blocks.into_iter().for_each(free);
                }
            });
        }
        for round in 0..300u32 {
            assert!(restart(&Options { memory: 1 << 20, seed: round as u64, ..ALL }));
            if let Some(held) = hold() {
                let seen: Vec<_> = held.sites().map(|site| (site.frames().len(), site.counts())).collect();
                assert!(seen.iter().all(|(depth, counts)| *depth < 64 && counts.allocated < 1 << 40));
            }
            if round % 3 == 0 {
                stop();
            }
        }
        done.store(true, core::sync::atomic::Ordering::Relaxed);
    });
    stop();
}

/// Without memory samples are dropped and counted, and the program goes on.
#[test]
fn memory_for_sites_is_bounded() {
    let _alone = alone();
    assert!(restart(&Options { memory: 0, depth: 300, ..ALL }));
    fn deeper(depth: usize, blocks: &mut Vec<*mut u8>) {
        blocks.push(block(SIZE));
        if depth != 0 {
            deeper(depth - 1, blocks);
        }
        blocks.push(block(SIZE));
    }
    let mut blocks = Vec::new();
    deeper(200, &mut blocks);
    let held = hold().unwrap();
    assert!(held.overflows() > 100, "{}", held.overflows());
    assert!(held.dropped() >= held.overflows() && held.memory() <= 64 * 1024);
    drop(held);
    blocks.into_iter().for_each(free);
    assert_eq!(of_size(SIZE).live, 0);
    stop();
}

#[test]
fn a_reset_forgets_all_but_what_is_live() {
    sampling(|| {
        let kept: Vec<_> = (0..10).map(|_| block(SIZE)).collect();
        (0..10).for_each(|_| free(block(SIZE)));
        super::reset();
        let counts = of_size(SIZE);
        assert_eq!((counts.live, counts.peak, counts.allocated, counts.freed), (10, 10, 0, 0));
        assert_eq!((counts.temporary, counts.lifetimes), (0, [0; LIFETIMES]));
        free(block(SIZE));
        assert_eq!((of_size(SIZE).allocated, of_size(SIZE).temporary, of_size(SIZE).peak), (1, 1, 11));
        kept.into_iter().for_each(free);
    });
}
