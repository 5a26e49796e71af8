//! What is kept, for whom, and that no run is in two hands.

use super::*;
use crate::heap::release::{release, usable_size};
use crate::heap::tests::{alone, options};
use crate::heap::{span, statistics, steal};
use crate::observe::sampler;

const SIZE: usize = 700_000;

fn allocate(size: usize) -> *mut u8 {
    // SAFETY: this thread's heap.
    unsafe { crate::heap::allocate::allocate(size) }
}

/// The run on this thread's shelf.
fn kept() -> Option<usize> {
    // SAFETY: H3.
    let word = unsafe { (*thread::own()).shelf.run.load(Relaxed) };
    (word != 0).then(|| run_of(word))
}

fn run_with(block: *mut u8) -> usize {
    arena::index_of(block as usize)
}

/// A thread without a shelf of its own making: what is on it is what the test puts there.
fn with_empty_shelf(test: impl FnOnce()) {
    let _alone = alone();
    // SAFETY: freed once.
    unsafe { release(allocate(100)) };
    clear_all();
    test();
    clear_all();
}

#[test]
fn the_next_of_its_length_gets_it() {
    with_empty_shelf(|| {
        let first = allocate(SIZE);
        for size in [SIZE, SIZE - 1, SIZE + 1000, SIZE].repeat(3) {
            // SAFETY: freed once each time, and written to before.
            unsafe {
                first.add(usable_size(first) - 1).write(1);
                release(first);
                assert_eq!(kept(), Some(run_with(first)));
                assert_eq!(allocate(size), first);
                assert_eq!((kept(), asked(run_with(first)).read()), (None, size));
            }
        }
        // SAFETY: as above.
        unsafe {
            release(first);
            clear_all();
            let first = allocate(SIZE);
            // As if it had been fresh from the kernel.
            (*slice(run_with(first))).clean = true;
            first.write(1);
            release(first);
            let zeroed = crate::heap::allocate::allocate_zeroed(SIZE);
            assert_eq!(zeroed, first);
            assert!((0..usable_size(first)).all(|at| first.add(at).read() == 0));
            release(first);
            // Another length: what was kept is free memory again.
            let other = allocate(2 * SIZE);
            assert_eq!(kept(), None);
            let first = allocate(SIZE);
            release(other);
            assert_eq!(kept(), None, "too long");
            let second = allocate(SIZE);
            release(first);
            release(second);
            assert_eq!(kept(), Some(run_with(second)), "the last one");
        }
    });
}

#[test]
fn everything_is_counted() {
    with_empty_shelf(|| {
        let before = statistics::spans();
        for _ in 0..100 {
            // SAFETY: freed once.
            unsafe { release(allocate(SIZE)) };
        }
        let after = statistics::spans();
        assert_eq!(after.allocated_blocks - before.allocated_blocks, 100);
        assert_eq!(after.freed_blocks - before.freed_blocks, 100);
        let bytes = (100 * SIZE.next_multiple_of(SLICE)) as u64;
        assert_eq!(after.allocated_bytes - before.allocated_bytes, bytes);
        assert_eq!(after.freed_bytes - before.freed_bytes, bytes);
    });
}

#[test]
fn what_is_special_is_not_kept() {
    with_empty_shelf(|| {
        // SAFETY: freed once each.
        unsafe {
            let small = allocate(40_000);
            let grown = crate::heap::allocate::reallocate(small, SIZE);
            let index = run_with(grown);
            assert_eq!((*slice(index)).kind(), Kind::Span);
            release(grown);
            assert_eq!(kept(), None, "it was made larger");
            let later = span::allocate_after(SLICE / 2, SIZE, SLICE);
            release(later);
            assert_eq!(kept(), None, "it does not begin with its run");
        }
    });
}

/// A span that was taken from the shelf, went through other hands and is another one by now, is not put back as it was.
#[test]
fn samples_come_and_go_with_their_spans() {
    with_empty_shelf(|| {
        let bytes = SIZE.next_multiple_of(SLICE) as u64;
        let live = || sampler::sampled_of_size(bytes).0;
        // SAFETY: freed once each.
        unsafe {
            release(allocate(SIZE));
            let block = allocate(SIZE);
            assert!(sampler::restart(&options(1, 1)));
            release(block);
            for _ in 0..3 {
                let sampled = allocate(SIZE);
                assert_eq!((sampled, live()), (block, 1));
                release(sampled);
                assert_eq!(live(), 0);
            }
            sampler::stop();
            assert_eq!(kept(), Some(run_with(block)));
        }
    });
}

#[test]
fn others_can_take_it() {
    with_empty_shelf(|| {
        // SAFETY: freed once each; the block is not used afterwards.
        unsafe {
            let block = allocate(SIZE);
            release(block);
            std::thread::spawn(steal::steal_all).join().unwrap();
            assert_eq!(kept(), None);
            assert_ne!((*slice(run_with(block))).kind(), Kind::Transit);
            // Freed by a thread that did not take it: it is kept there, and given up at its end.
            let block = allocate(SIZE) as usize;
            std::thread::spawn(move || {
                release(allocate(100)); // so that the thread has a heap
                release(block as *mut u8);
                assert_eq!(kept(), Some(arena::index_of(block)));
            })
            .join()
            .unwrap();
            assert_eq!(kept(), None);
            assert_ne!((*slice(arena::index_of(block))).kind(), Kind::Transit);
        }
    });
}

/// Threads that take and give back, and thieves: no run is in two hands.
#[test]
fn one_at_a_time_has_a_run() {
    let _alone = alone();
    const ROUNDS: usize = 20_000;
    std::thread::scope(|scope| {
        for worker in 0..3usize {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let stamp = worker + 3 * round;
                    let size = SIZE + (round / 50 % 3) * SLICE;
                    // SAFETY: freed once.
                    unsafe {
                        let block = allocate(size).cast::<usize>();
                        block.write_volatile(stamp);
                        std::hint::spin_loop();
                        assert_eq!(block.read_volatile(), stamp, "a run was handed out twice");
                        release(block.cast());
                    }
                }
            });
        }
        scope.spawn(|| (0..ROUNDS).for_each(|_| clear_all()));
    });
}
