//! The table of hidden blocks, and what callbacks are told while they are changed.

use super::callbacks::{self, Callbacks, Change};
use super::{Sum, hidden};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::collections::HashMap;
use std::sync::Mutex;

/// Both are of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn hidden_blocks_are_found_again() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    hidden::forget_all();
    let mut known = HashMap::<usize, usize>::new();
    let (mut state, mut allocated) = (7u64, Sum::default());
    let mut next = |below: u64| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) % below
    };
    for step in 0..200_000 {
        // Neighbours, so that many hash to places that are taken.
        let block = next(1500) as usize * 16 + 0x10000;
        let usable = next(1000) as usize;
        let add = if step % 50_000 < 25_000 { 6 } else { 3 };
        match (next(10) < add, known.contains_key(&block)) {
            (true, false) => {
                hidden::add(block, usable, hidden::run());
                allocated = allocated.plus(Sum { blocks: 1, bytes: usable as u64 });
                known.insert(block, usable);
            }
            (true, true) => {
                let before = known[&block];
                assert!(hidden::replace(block, block, usable));
                if before != usable {
                    allocated = allocated.plus(Sum { blocks: 1, bytes: usable as u64 });
                }
                known.insert(block, usable);
            }
            (false, there) => {
                assert_eq!(hidden::remove(block), there, "{block:x}");
                known.remove(&block);
            }
        }
        if step % 1000 == 0 {
            let sums = hidden::sums();
            let bytes = known.values().sum::<usize>() as u64;
            assert_eq!(sums.live, Sum { blocks: known.len() as u64, bytes });
            assert_eq!(sums.allocated, allocated);
        }
    }
    hidden::forget_all();
    assert!(known.keys().all(|&block| !hidden::remove(block)));
}

/// A callback's argument: it may not be used after it was given up.
#[derive(Default)]
struct Argument {
    given_up: AtomicBool,
    calls: AtomicU64,
}
static MISTAKES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_: *const Change, arg: *mut c_void) {
    // SAFETY: arguments are leaked.
    let argument = unsafe { &*arg.cast::<Argument>() };
    for _ in 0..20 {
        if argument.given_up.load(SeqCst) {
            MISTAKES.fetch_add(1, SeqCst);
        }
        core::hint::spin_loop();
    }
    argument.calls.fetch_add(1, Relaxed);
}

#[test]
fn nobody_runs_a_callback_that_was_replaced() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    static DONE: AtomicBool = AtomicBool::new(false);
    let tell = || {
        while !DONE.load(Relaxed) {
            callbacks::tell(0, Sum::default(), || Change { kind: 0, total_bytes: 0, delta_bytes: 0, request_size: 0 });
        }
    };
    let tellers: std::vec::Vec<_> = (0..3).map(|_| std::thread::spawn(tell)).collect();
    let changers: std::vec::Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(|| {
                let mut calls = 0;
                for _ in 0..2000 {
                    let argument: &'static Argument = std::boxed::Box::leak(std::boxed::Box::default());
                    let mut callbacks = Callbacks::NONE;
                    callbacks.handlers[0] = Some(count);
                    callbacks.args[0] = (&raw const *argument).cast_mut().cast();
                    assert!(callbacks::set(&callbacks));
                    std::thread::yield_now();
                    assert!(callbacks::set(&Callbacks::NONE));
                    argument.given_up.store(true, SeqCst);
                    calls += argument.calls.load(Relaxed);
                }
                calls
            })
        })
        .collect();
    let calls: u64 = changers.into_iter().map(|changer| changer.join().unwrap()).sum();
    DONE.store(true, Relaxed);
    tellers.into_iter().for_each(|teller| teller.join().unwrap());
    assert!(calls > 0);
    assert_eq!(MISTAKES.load(SeqCst), 0);
}
