//! Zones beside the sampler, and what of them is used again.

use super::super::tests::{alone, options};
use super::{Heap, Scope, Zone, allocate, create, delete, destroy, visit, within, zone_of};
use crate::heap::classes::{CLASSES, class_size, small_class};
use crate::heap::{self, release::release, span};
use crate::observe::sampler;
use core::sync::atomic::Ordering::*;
use std::sync::mpsc;
use std::vec::Vec;

/// Blocks of all ways to get memory: slabs of one slice and of several, spans.
const SIZES: [usize; 4] = [48, 6000, 100_000, 1 << 20];

fn fill(zone: *mut Zone, rounds: usize) -> Vec<*mut u8> {
    // SAFETY: the zone is in use.
    let block =
        |size| unsafe { if size > 500_000 { within(zone, || span::allocate(size, 1)) } else { allocate(zone, size) } };
    let blocks: Vec<_> = (0..rounds).flat_map(|_| SIZES.map(block)).collect();
    assert!(blocks.iter().all(|&block| !block.is_null() && zone_of(block) == zone));
    blocks
}

fn live(size: u64) -> u64 {
    sampler::sampled_of_size(size).0
}

fn block_sizes() -> [u64; 4] {
    SIZES.map(|size| match (1..CLASSES).map(class_size).find(|&block| block >= size) {
        Some(block) => block as u64,
        None => size.next_multiple_of(1 << 16) as u64,
    })
}

/// A sampled block that goes with its zone is forgotten; one that outlives it is not, until it is freed.
#[test]
fn samples_end_with_their_blocks() {
    let _alone = alone();
    assert!(sampler::restart(&options(1, 3)));
    let (gone, kept) = (create(), create());
    fill(gone, 50);
    let blocks = fill(kept, 50);
    assert_eq!(block_sizes().map(live), [100; 4]);
    // SAFETY: the blocks of the first are not used again, those of the second are freed once.
    unsafe {
        destroy(gone);
        assert_eq!(block_sizes().map(live), [50; 4]);
        delete(kept);
        assert_eq!(block_sizes().map(live), [50; 4]);
        assert!(blocks.iter().all(|&block| zone_of(block) == super::main()));
        blocks.into_iter().for_each(|block| release(block));
    }
    assert_eq!(block_sizes().map(live), [0; 4]);
    sampler::stop();
}

/// Counts are exact whatever way a block took.
#[test]
fn counts_move_with_blocks() {
    let _alone = alone();
    let count = |scope: Scope| {
        let of_classes = (1..CLASSES).map(|class| scope.of_class(class)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let spans = scope.spans();
        (of_classes.0 + spans.allocated_blocks, of_classes.1 + spans.freed_blocks)
    };
    let before = (count(Scope::Process), count(Scope::Zone(super::main())));
    let (gone, kept) = (create(), create());
    fill(gone, 30);
    let blocks = fill(kept, 30);
    let half = blocks.len() / 2;
    // SAFETY: each is freed once, half of them by a thread that has no guest.
    unsafe {
        blocks[..10].iter().for_each(|&block| release(block));
        let rest: Vec<usize> = blocks[10..half].iter().map(|&block| block as usize).collect();
        std::thread::spawn(move || rest.into_iter().for_each(|block| release(block as *mut u8))).join().unwrap();
        assert_eq!(count(Scope::Zone(gone)), (120, 0));
        assert_eq!(count(Scope::Zone(kept)), (120, half as u64));
        assert_eq!(count(Scope::Zone(super::main())), before.1);
        destroy(gone);
        delete(kept);
        blocks[half..].iter().for_each(|&block| release(block));
    }
    let grown = |now: (u64, u64), before: (u64, u64)| (now.0 - before.0, now.1 - before.1);
    assert_eq!(grown(count(Scope::Process), before.0), (240, 240));
    assert_eq!(grown(count(Scope::Zone(super::main())), before.1), (240, 240));
}

/// Zones, guests and memory of those that have ended serve the next.
#[test]
fn nothing_is_left_of_thousands() {
    let _alone = alone();
    let burst = |n: usize| {
        let zones: Vec<_> = (0..n).map(|_| create()).collect();
        zones.iter().for_each(|&zone| drop(fill(zone, 3)));
        // SAFETY: their blocks are not used again.
        zones.into_iter().for_each(|zone| unsafe { destroy(zone) });
        (heap::all().count(), super::all().count(), crate::arena::used_slices())
    };
    burst(100);
    let before = burst(100);
    for _ in 0..30 {
        burst(100);
    }
    assert_eq!(burst(100), before);
}

/// Every live block is seen once, and nothing else.
#[test]
fn visits_see_what_is_live() {
    let _alone = alone();
    for rate in [None, Some(4000)] {
        if let Some(rate) = rate {
            assert!(sampler::restart(&options(rate, 5)));
        }
        let zone = create();
        let mut blocks = fill(zone, 100);
        // SAFETY: freed once each.
        blocks.drain(..150).for_each(|block| unsafe { release(block) });
        let mut seen = Vec::new();
        // SAFETY: the zone is in use.
        let all = unsafe {
            visit(zone, true, |_, block| {
                (!block.is_null()).then(|| seen.push(block));
                true
            })
        };
        assert!(all);
        blocks.sort();
        seen.sort();
        assert_eq!(seen, blocks);
        // SAFETY: its blocks are not used again.
        unsafe { destroy(zone) };
        if rate.is_some() {
            sampler::stop();
        }
    }
}

/// Z1: a free that waits for its guest while that loses its zone goes to the slab, not to the guest's stack.
#[test]
fn a_free_that_meets_the_end_keeps_out_of_the_guest() {
    let _alone = alone();
    let zone = create();
    let (tell, told) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let of_thread = zone as usize;
    let worker = std::thread::spawn(move || {
        let zone = of_thread as *mut Zone;
        // SAFETY: the zone is in use, and the block is freed once.
        unsafe {
            let block = allocate(zone, 48);
            tell.send(super::theap_of(zone) as usize).unwrap();
            wait.recv().unwrap();
            release(block);
            tell.send(0).unwrap();
            wait.recv().unwrap();
        }
    });
    let guest = told.recv().unwrap() as *mut Heap;
    // SAFETY: what the end of a zone does to a guest, under the guest's lock.
    unsafe {
        (*guest).lock.lock();
        go.send(()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30)); // it waits for the lock by now, most likely
        let home = (*guest).home.swap(core::ptr::null_mut(), Relaxed);
        (*guest).zone.store(core::ptr::null_mut(), Release);
        (*guest).lock.unlock();
        told.recv().unwrap();
        (*guest).lock.lock();
        let (magazine, state) = Heap::class(guest, small_class(48));
        let has_frees = state.has_frees(magazine);
        (*guest).home.store(home, Relaxed);
        (*guest).zone.store(zone, Release);
        (*guest).lock.unlock();
        go.send(()).unwrap();
        worker.join().unwrap();
        assert!(!has_frees);
        assert_eq!(Scope::Zone(zone).of_class(small_class(48)), (1, 1));
        destroy(zone);
    }
}
