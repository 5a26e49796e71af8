//! Walks that are remembered.

use super::super::{Recalled, StackBounds, Trails, Walk, capture, invalidate, recall};
use super::Random;
use super::std::boxed::Box;
use super::std::collections::HashMap;
use super::std::thread;
use super::std::vec::Vec;
use core::hint::black_box;

/// Recalls stacks and compares each with a walk.
struct Checker {
    bounds: StackBounds,
    trails: Box<Trails>,
    numbers: HashMap<Vec<usize>, u32>,
    known: usize,
    walked: usize,
    random: Random,
}

impl Checker {
    fn new(seed: u64) -> Checker {
        // SAFETY: all-zero trails are valid.
        let trails = unsafe { Box::<Trails>::new_zeroed().assume_init() };
        let (bounds, numbers) = (StackBounds::default(), HashMap::new());
        Checker { bounds, trails, numbers, known: 0, walked: 0, random: Random(seed) }
    }

    /// Two walks from two functions with the same caller: all but what is below that is the same.
    #[inline(never)]
    fn check(&mut self) {
        let mut out = [0; 256];
        let walk = walked(&mut out, &mut self.bounds);
        let expected = out[1..walk.frames].to_vec();
        let mut out = [0; 256];
        let number = match recalled(&mut out, self) {
            Recalled::Known(number) => {
                self.known += 1;
                number
            }
            Recalled::Walked(again, place) => {
                self.walked += 1;
                assert_eq!(again, walk);
                assert_eq!(out[1..again.frames], expected);
                let next = self.numbers.len() as u32;
                let number = *self.numbers.entry(expected.clone()).or_insert(next);
                place.into_iter().for_each(|place| self.trails.remember(place, number));
                number
            }
        };
        assert_eq!(self.numbers.get(&expected), Some(&number));
    }
}

#[inline(never)]
fn walked(out: &mut [usize], bounds: &mut StackBounds) -> Walk {
    // SAFETY: this function has unwind tables.
    unsafe { capture(out, bounds) }
}

#[inline(never)]
fn recalled(out: &mut [usize], checker: &mut Checker) -> Recalled {
    // SAFETY: this function has unwind tables.
    unsafe { recall(out, &mut checker.bounds, &mut checker.trails) }
}

/// Frames of different sizes, so that stacks of different functions begin at the same place.
#[inline(never)]
fn small(checker: &mut Checker, depth: u32) -> usize {
    let room = black_box([1u8; 16]);
    usize::from(room[2]) + descend(checker, depth)
}

#[inline(never)]
fn other(checker: &mut Checker, depth: u32) -> usize {
    let room = black_box([2u8; 16]);
    usize::from(room[2]) + descend(checker, depth)
}

#[inline(never)]
fn large(checker: &mut Checker, depth: u32) -> usize {
    let room = black_box([1u64; 40]);
    room[2] as usize + descend(checker, depth)
}

#[inline(never)]
fn descend(checker: &mut Checker, depth: u32) -> usize {
    if depth == 0 {
        checker.check();
        return 0;
    }
    match checker.random.below(4) {
        0 => small(checker, depth - 1),
        1 => other(checker, depth - 1),
        2 => large(checker, depth - 1),
        // Two calls in one function: only the return address tells them apart.
        _ => black_box(small(checker, depth - 1)) + large(checker, depth - 1),
    }
}

#[test]
fn what_is_remembered_is_what_a_walk_finds() {
    let run = |seed| {
        let mut checker = Checker::new(seed);
        for round in 0..3_000 {
            let depth = 1 + (checker.random.below(3) as u32);
            black_box(descend(&mut checker, depth));
            if round % 500 == 499 {
                invalidate();
            }
        }
        assert!(checker.known > 2_000, "{} known, {} walked", checker.known, checker.walked);
        assert!(checker.walked >= checker.numbers.len());
    };
    run(3);
    thread::spawn(move || run(7)).join().unwrap();
}

#[test]
fn what_was_forgotten_is_walked() {
    let mut checker = Checker::new(1);
    for (known, walked) in [(0, 1), (1, 1), (2, 1)] {
        checker.check();
        // The first of a loop may be another call than the rest.
        assert!(checker.known <= known && checker.walked >= walked);
    }
    let before = (checker.known, checker.walked);
    checker.trails.forget();
    checker.check();
    assert_eq!((checker.known, checker.walked), (before.0, before.1 + 1));
    invalidate();
    checker.check();
    assert_eq!((checker.known, checker.walked), (before.0, before.1 + 2));
}
