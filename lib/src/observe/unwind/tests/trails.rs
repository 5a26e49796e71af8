//! Walks that are remembered.

use super::super::{Recalled, StackBounds, Trails, Walk, capture, invalidate, recall};
use super::Random;
use super::std::boxed::Box;
use super::std::collections::HashMap;
use super::std::thread;
use super::std::vec::Vec;
use core::ffi::c_void;
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
    let mut walked = Vec::new();
    // One call, so that it is the same stack each time.
    for step in 0..black_box(4) {
        match black_box(step) {
            2 => checker.trails.forget(),
            3 => invalidate(),
            _ => {}
        }
        checker.check();
        walked.push(checker.walked);
    }
    assert_eq!(walked, [1, 1, 2, 3]);
}

core::arch::global_asm!(
    // framed(size, function, argument): call the function from a frame of that size, which only the frame pointer tells.
    "mpp_test_framed:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, rdi",
    "mov rdi, rdx",
    "call rsi",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
);

unsafe extern "C" {
    #[link_name = "mpp_test_framed"]
    fn framed(size: usize, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void);
}

struct Framed {
    checker: Checker,
    /// Of the inner frame.
    size: usize,
}

unsafe extern "C" fn innermost(argument: *mut c_void) {
    // SAFETY: the test's own.
    unsafe { (*argument.cast::<Framed>()).checker.check() };
}

unsafe extern "C" fn one_way(argument: *mut c_void) {
    // SAFETY: the test's own.
    unsafe { framed((*argument.cast::<Framed>()).size, innermost, argument) };
    black_box(1);
}

unsafe extern "C" fn other_way(argument: *mut c_void) {
    // SAFETY: the test's own.
    unsafe { framed((*argument.cast::<Framed>()).size, innermost, argument) };
    black_box(2);
}

/// Two frames of sizes that add up to the same: the innermost one is at the same place, and the words of earlier walks are still in memory
/// where the outer frame is larger now. Only the frame pointer tells that they are no return addresses any more.
#[test]
fn what_is_left_on_the_stack_of_earlier_calls_is_not_taken_for_the_present() {
    const SUM: usize = 0x800;
    let mut argument = Framed { checker: Checker::new(1), size: 0 };
    for round in 0..200 {
        let outer = argument.checker.random.below(SUM as u64 / 16) as usize * 16;
        argument.size = SUM - outer;
        let ways: [unsafe extern "C" fn(*mut c_void); 2] = [one_way, other_way];
        // SAFETY: the functions get what they expect.
        unsafe { framed(outer, ways[round % 2], (&raw mut argument).cast()) };
    }
    assert!(argument.checker.numbers.len() >= 2);
}
