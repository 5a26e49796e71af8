//! Who does what is due: a thread, `mpp-observer`, where the program has threads or the user has asked for what takes one; else the thread
//! that samples, in passing.
//!
//! The thread sleeps until the next thing is due, or somebody [calls](call). It opens its files in a table of descriptors of its own.

use super::{control, inherited, life, timeline, triggers};
use crate::heap::{self, companion::Companion};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// What comes due: each does what is due at this time (see [`os::now`]) and tells when to come again; [`NEVER`]: not before somebody calls.
/// Nothing here may allocate. Not two at once, nor one of them twice.
static TASKS: [fn(now: u64) -> u64; 2] = [timeline::due, triggers::due];

const NEVER: u64 = triggers::NEVER;
/// A forked child has no thread for so many nanoseconds: most have executed another program by then.
const AFTER_FORK: u64 = 100_000_000;

static COMPANION: Companion = Companion::new(c"mpp-observer", run, threads_changed);
/// Something may come due.
static ON: AtomicBool = AtomicBool::new(false);
/// Threads of the program from which on there is one of ours; 0 = there is none.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Somebody has called.
static CALLED: AtomicU32 = AtomicU32::new(0);
/// Not to be made before.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// Without the thread: who is at it, and at which count of the processor to look next.
static AT_WORK: Lock = Lock::new();
static LOOK: AtomicU64 = AtomicU64::new(NEVER);

/// Something may come due from now on. There is to be a thread as soon as the program has so many of its own; 0: never.
pub(super) fn start(threads: usize) {
    THREADS.store(threads, Relaxed);
    LOOK.store(0, Relaxed);
    ON.store(true, Release);
}

/// A thread of the program has got its heap, or has left it. With no lock held.
pub(crate) fn threads_changed() {
    COMPANION.threads_changed(is_wanted, || {
        if os::now() >= NOT_BEFORE.load(Relaxed) {
            COMPANION.start();
        } else {
            LOOK.store(0, Relaxed);
        }
    });
}

fn is_wanted() -> bool {
    let wanted = THREADS.load(Relaxed);
    wanted > 0 && heap::threads(wanted) >= wanted
}

/// Something is due. Anywhere, in a signal handler, too.
pub(super) fn call() {
    CALLED.store(1, SeqCst);
    LOOK.store(0, Relaxed);
    COMPANION.call_for_something();
}

/// An allocation was sampled, which stands for `weight` bytes; the process has so many live bytes now. Estimates.
///
/// In the thread that allocates, with no lock held and the block in hand.
#[inline]
pub(super) fn sampled(live: u64, weight: u64) {
    inherited::allocated();
    if ON.load(Acquire) {
        changed(triggers::sampled(live, weight));
    }
}

/// A sampled block has come to its end, which was born at this count of the processor.
#[inline]
pub(super) fn released(birth: u64) {
    inherited::ended(birth);
    if ON.load(Acquire) && triggers::changed() {
        notice();
    }
}

fn notice() {
    CALLED.store(1, SeqCst);
    LOOK.store(0, Relaxed);
    COMPANION.notice();
}

#[inline]
fn changed(is_due: bool) {
    if is_due {
        notice();
    }
    if !COMPANION.is_running() && os::cycles() >= LOOK.load(Relaxed) {
        without_thread();
    }
}

/// There is no thread, and something is due or may be.
#[cold]
#[inline(never)]
fn without_thread() {
    // A child that shares our memory until it executes something may allocate, too.
    if !life::is_ours() || AT_WORK.held_by_me() || !AT_WORK.try_lock() {
        return;
    }
    let (mine, control) = (COMPANION.can_start() && is_wanted(), control::is_missing());
    let begins = if mine || control { NOT_BEFORE.load(Relaxed) } else { NEVER };
    let undisturbed = os::Undisturbed::begin();
    let now = os::now();
    if now < begins || !mine {
        let next = work(now).min(begins);
        // The processor counts nanoseconds or faster: this is early, and then looked at again.
        let wait = next.saturating_sub(os::now());
        LOOK.store(if next == NEVER { NEVER } else { os::cycles() + wait }, Relaxed);
    }
    AT_WORK.unlock();
    drop(undisturbed);
    if now >= begins {
        control::threads_changed();
        if mine {
            COMPANION.start(); // if that fails, what is due is done here next time
        }
    }
}

/// Everything that is due; when to come again.
fn work(now: u64) -> u64 {
    CALLED.store(0, SeqCst);
    TASKS.iter().map(|task| task(now)).fold(NEVER, u64::min)
}

extern "C" fn run(_: *mut u8) -> *mut u8 {
    COMPANION.begin();
    os::leave_descriptors();
    while !COMPANION.is_to_end() {
        AT_WORK.lock();
        let now = os::now();
        let next = work(now);
        AT_WORK.unlock();
        if heap::threads(1) == 0 {
            break;
        }
        let rest = (next != NEVER).then(|| next.saturating_sub(os::now()));
        // Who has called before it sleeps has woken nobody.
        COMPANION.sleep(rest, || CALLED.load(SeqCst) != 0);
    }
    COMPANION.leave();
    core::ptr::null_mut()
}

/// The process ends: nothing comes due any more.
pub(super) fn stop() {
    ON.store(false, Relaxed);
    COMPANION.stop();
}

/// The same, without waiting for anybody.
pub(super) fn stop_soon() {
    ON.store(false, Relaxed);
}

/// In a forked child with one thread. `follows`: it is looked at like its parent.
pub(super) fn forked(follows: bool) {
    COMPANION.forked();
    CALLED.store(0, Relaxed);
    if AT_WORK.held_by_vanished() {
        AT_WORK.reset();
    }
    if !follows {
        ON.store(false, Relaxed);
        THREADS.store(0, Relaxed);
    }
    if ON.load(Relaxed) {
        NOT_BEFORE.store(os::now() + AFTER_FORK, Relaxed);
        LOOK.store(0, Relaxed);
    }
    triggers::forked(follows);
}
