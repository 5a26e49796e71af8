//! The thread that gives memory back, in processes that have threads anyway.
//!
//! It sweeps every [`purge_delay`](crate::options::Name::PurgeDelay) while there is something to be had, and sleeps without time-out when
//! there is not and no thread has moved: an idle process stays asleep. What a thread has cached and not used between two sweeps goes
//! back with the rest. The time it takes is [bounded](Allowance): a twentieth of one processor, and a fifth of a second at once.
//!
//! It is a guest in the program: it handles no signal, it has descriptors of its own (or opens no files), it goes when no thread is left
//! that has a heap (or it would be the last one, which keeps a process alive), it is ended when the process ends, and a forked child
//! has none until it has a second thread.

use super::allowance::Allowance;
use super::{Effort, Swept, debt, sweep_if_alone};
use crate::arena::regions::{self, TOUCHED, WAITING};
use crate::heap::{self, steal};
use crate::options::{self, Name};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, fence};

/// The longest rest while threads are at work but nothing is to be had, in nanoseconds.
const LONGEST_REST: u64 = 3_200_000_000;
/// Milliseconds between sweeps, at least and at most, and between two looks at the option while it says never.
const LEAST_DELAY: i64 = 10;
const MOST_DELAY: i64 = 3_600_000;
const SWITCHED_OFF: i64 = 1000;
/// Debt is no reason to keep memory once nothing has moved for as many times as long.
const SILENCE: u64 = 20;
/// Rounds in which nothing has moved, before it sleeps until something does.
const QUIET_ROUNDS: u32 = 2;
/// How long the end of the process waits for it, in nanoseconds: it may be kept by a lock whose holder was stopped.
const PATIENCE: u64 = 1_000_000_000;
/// Attempts to make it that fail before it is given up.
const ATTEMPTS: u32 = 3;

/// Where it stands.
static STATE: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
/// Not to be made again in this process.
const STOPPED: u32 = 3;
/// The last thread with a heap waits for it.
const ENDING: u32 = 4;

/// What it is woken for.
static CALL: AtomicU32 = AtomicU32::new(WAIT);
const WAIT: u32 = 0;
const NOTICED: u32 = 1;
const END: u32 = 2;

/// It sleeps longer than a sweep would have to wait: who gives memory back wakes it.
static SLEEPS: AtomicBool = AtomicBool::new(false);
/// 1 = it has ended, and is to be joined.
static ENDED: AtomicU32 = AtomicU32::new(0);
static THREAD: AtomicUsize = AtomicUsize::new(0);
/// Its thread id as locks know it.
static ID: AtomicU64 = AtomicU64::new(0);
static FAILURES: AtomicU32 = AtomicU32::new(0);

/// True while it gives memory back, so that slow paths need not.
#[inline(always)]
pub(super) fn is_running() -> bool {
    STATE.load(Relaxed) == RUNNING
}

/// Memory came back.
#[inline(always)]
pub(super) fn notice() {
    if SLEEPS.load(Relaxed) {
        wake();
    }
}

#[cold]
#[inline(never)]
fn wake() {
    if SLEEPS.swap(false, Relaxed) {
        let _ = CALL.compare_exchange(WAIT, NOTICED, Release, Relaxed);
        os::wake_all(&CALL);
    }
}

/// A thread has got its heap, or has left it, or the options are known: make the scavenger, or let it go. With no lock held.
pub(super) fn threads_changed() {
    notice(); // a thread that ends gives back what it has cached
    // Either the scavenger sees that this thread has left, or this thread that no heap is borrowed any more.
    fence(SeqCst);
    match STATE.load(Acquire) {
        NONE => {
            let wanted = match options::get(Name::Scavenger) {
                ..=0 => return,
                1 => 2,
                _ => 1,
            };
            if heap::threads(wanted) >= wanted {
                start();
            }
        }
        RUNNING if heap::threads(1) == 0 => retire(),
        _ => {}
    }
}

/// The last thread with a heap ends, and waits for it. The last thread of all runs the program's exit handlers: it has not the stack for
/// that.
#[cold]
fn retire() {
    if STATE.compare_exchange(RUNNING, ENDING, AcqRel, Relaxed).is_ok() && end() {
        let _ = STATE.compare_exchange(ENDING, NONE, AcqRel, Relaxed);
        threads_changed(); // somebody has come meanwhile, perhaps
    }
}

/// Make it, unless it was stopped or cannot be made. True: it is there.
pub(super) fn start() -> bool {
    if FAILURES.load(Relaxed) >= ATTEMPTS || !os::environment_is_known() {
        return is_running();
    }
    if STATE.compare_exchange(NONE, STARTING, AcqRel, Relaxed).is_err() {
        return is_running();
    }
    CALL.store(WAIT, Relaxed);
    ENDED.store(0, Relaxed);
    match os::start_thread(c"mpp-scavenger", run) {
        Some(thread) => {
            THREAD.store(thread, Relaxed);
            if STATE.compare_exchange(STARTING, RUNNING, AcqRel, Relaxed).is_err() {
                end(); // it was stopped before it was there
            }
        }
        None => {
            FAILURES.fetch_add(1, Relaxed);
            let _ = STATE.compare_exchange(STARTING, NONE, AcqRel, Relaxed);
        }
    }
    heap::due::set(!is_running());
    is_running()
}

/// Have it end, and wait for that, for a while. False: it has not yet.
fn end() -> bool {
    CALL.store(END, Release);
    os::wake_all(&CALL);
    let until = os::now() + PATIENCE;
    while ENDED.load(Acquire) == 0 {
        let now = os::now();
        if now >= until {
            return false;
        }
        os::wait_on(&ENDED, 0, Some(until - now));
    }
    os::join_thread(THREAD.load(Relaxed));
    true
}

/// End it and wait for that, for a while. For good: it is not made again in this process.
pub(super) fn stop() {
    let before = STATE.swap(STOPPED, AcqRel);
    if before == RUNNING && ID.load(Relaxed) != os::thread_id() {
        end();
    }
}

/// In a forked child: there is none, and there may be one again.
pub(super) fn forked() {
    STATE.store(NONE, Relaxed);
    CALL.store(WAIT, Relaxed);
    SLEEPS.store(false, Relaxed);
    FAILURES.store(0, Relaxed);
    ID.store(0, Relaxed); // a new thread may have the place of that one
}

/// What a round has found.
enum Round {
    /// Something was to be had, or will be at the next round.
    Busy,
    /// Nothing, but threads are at work.
    Active,
    Quiet,
}

extern "C" fn run(_: *mut u8) -> *mut u8 {
    ID.store(os::thread_id(), Relaxed);
    os::permit_vectors(true);
    let may_open = os::leave_descriptors();
    let (mut rest, mut quiet, mut moved) = (0, 0, os::now());
    let mut allowance = Allowance::new(moved);
    while CALL.load(Acquire) != END {
        let start = os::thread_cpu_time();
        let tells = quiet >= QUIET_ROUNDS;
        if tells {
            // What goes to a shelf from here on, this round may have missed: who frees a span tells before it sleeps for long.
            heap::due::set(true);
        }
        let found = round(quiet == QUIET_ROUNDS, may_open, &mut moved);
        if heap::threads(1) == 0 {
            break; // the last one has left while a heap was borrowed
        }
        let computed = os::thread_cpu_time() - start;
        let least = delay().max(allowance.rest_after(computed, os::now()));
        quiet = if matches!(found, Round::Quiet) { quiet + 1 } else { 0 };
        rest = match found {
            Round::Busy => least,
            Round::Active | Round::Quiet => (rest * 2).clamp(least, LONGEST_REST.max(least)),
        };
        if quiet > QUIET_ROUNDS {
            sleep(None);
            rest = delay();
        } else if rest > least {
            sleep(Some(rest));
            rest = rest.max(least);
        }
        if tells {
            heap::due::set(!is_running());
        }
        // Who has woken it has just given memory back: that is to become old first.
        nap(least);
    }
    leave();
    core::ptr::null_mut()
}

/// The least rest, in nanoseconds.
fn delay() -> u64 {
    let milliseconds = match options::get(Name::PurgeDelay) {
        ..0 => SWITCHED_OFF,
        delay => delay.clamp(LEAST_DELAY, MOST_DELAY),
    };
    milliseconds as u64 * 1_000_000
}

/// Sleep until somebody gives memory back.
fn sleep(time: Option<u64>) {
    let _ = CALL.compare_exchange(NOTICED, WAIT, AcqRel, Relaxed);
    SLEEPS.store(true, SeqCst);
    // What came back before that has told nobody.
    let is_wanted = || options::get(Name::PurgeDelay) >= 0 && regions::next(0, TOUCHED | WAITING).is_some();
    if time.is_some() || !is_wanted() {
        os::wait_on(&CALL, WAIT, time);
    }
    SLEEPS.store(false, SeqCst);
    let _ = CALL.compare_exchange(NOTICED, WAIT, AcqRel, Relaxed);
}

/// Sleep for a time, or until the end.
fn nap(time: u64) {
    let until = os::now() + time;
    while CALL.load(Acquire) != END {
        // Who was to wake it from a longer sleep may come late.
        let _ = CALL.compare_exchange(NOTICED, WAIT, AcqRel, Relaxed);
        let now = os::now();
        if now >= until {
            return;
        }
        os::wait_on(&CALL, WAIT, Some(until - now));
    }
}

/// `last`: it is going to sleep if this finds nothing. `may_open`: files. `moved`: when a thread of the program was seen at work last.
fn round(last: bool, may_open: bool, moved: &mut u64) -> Round {
    let wanted = options::get(Name::PurgeDelay);
    if wanted < 0 {
        return Round::Quiet;
    }
    let short = may_open && os::memory_is_short();
    let mut found = Round::Busy; // another sweep is on its way
    sweep_if_alone(|sweep| {
        let stolen = steal::steal_idle();
        if stolen.active != 0 {
            *moved = os::now();
        }
        // After a long silence what is there will not be wanted soon; if it is, that has cost a small part of the time since.
        let in_debt = os::now() - *moved < debt::settle().saturating_mul(SILENCE);
        let swept = match in_debt {
            _ if short || wanted == 0 => sweep(Effort::Forced),
            true => Swept::default(),
            false if last => sweep(Effort::Thorough),
            false => sweep(Effort::Aged),
        };
        found = if stolen.blocks != 0 || swept.bytes() != 0 || swept.waits {
            Round::Busy
        } else if stolen.active != 0 || in_debt {
            Round::Active
        } else {
            Round::Quiet
        };
    });
    found
}

/// It goes by itself, if nobody waits for it.
fn leave() {
    ID.store(0, Relaxed);
    // Who makes it does not know yet that it is there: it would be taken to run for ever.
    while STATE.load(Acquire) == STARTING {
        os::wait_on(&STATE, STARTING, Some(LEAST_DELAY as u64 * 1_000_000));
    }
    if STATE.compare_exchange(RUNNING, NONE, AcqRel, Relaxed).is_ok() {
        os::detach_this_thread();
        threads_changed(); // a thread may have come meanwhile
        return;
    }
    ENDED.store(1, Release);
    os::wake_all(&ENDED);
}
