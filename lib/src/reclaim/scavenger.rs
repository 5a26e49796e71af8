//! The thread that gives memory back, in processes that have threads anyway.
//!
//! It sweeps every [`purge_delay`](crate::options::Name::PurgeDelay) while there is something to be had, and sleeps without time-out when
//! there is not and no thread has moved: an idle process stays asleep. What a thread has cached and not used between two sweeps goes
//! back with the rest. The time it takes is [bounded](Allowance): a twentieth of one processor, and a fifth of a second at once.
//!
//! It is a guest in the program, as every [`Companion`] is: it has descriptors of its own (or opens no files), and a forked child has none
//! until it has a second thread.

use super::allowance::Allowance;
use super::{Effort, Swept, debt, sweep_if_alone};
use crate::arena::regions::{self, TOUCHED, WAITING};
use crate::heap::{self, companion::Companion, steal};
use crate::options::{self, Name};
use crate::os;

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

static COMPANION: Companion = Companion::new(c"mpp-scavenger", run, threads_changed);

/// True while it gives memory back, so that slow paths need not.
#[inline(always)]
pub(super) fn is_running() -> bool {
    COMPANION.is_running()
}

/// Memory came back.
#[inline(always)]
pub(super) fn notice() {
    COMPANION.notice();
}

/// A thread has got its heap, or has left it, or the options are known: make the scavenger, or let it go. With no lock held.
pub(super) fn threads_changed() {
    notice(); // a thread that ends gives back what it has cached
    let is_wanted = || {
        let wanted = match options::get(Name::Scavenger) {
            ..=0 => return false,
            1 => 2,
            _ => 1,
        };
        heap::threads(wanted) >= wanted
    };
    COMPANION.threads_changed(is_wanted, || {
        start();
    });
}

/// Make it, unless it was stopped or cannot be made. True: it is there.
pub(super) fn start() -> bool {
    if COMPANION.start() {
        heap::due::set(!is_running());
    }
    is_running()
}

/// End it and wait for that, for a while. For good: it is not made again in this process.
pub(super) fn stop() {
    COMPANION.stop();
}

/// In a forked child: there is none, and there may be one again.
pub(super) fn forked() {
    COMPANION.forked();
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
    COMPANION.begin();
    os::permit_vectors(true);
    let may_open = os::leave_descriptors();
    let (mut rest, mut quiet, mut moved) = (0, 0, os::now());
    let mut allowance = Allowance::new(moved);
    while !COMPANION.is_to_end() {
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
            // What came back before it says that it sleeps has told nobody.
            COMPANION
                .sleep(None, || options::get(Name::PurgeDelay) >= 0 && regions::next(0, TOUCHED | WAITING).is_some());
            rest = delay();
        } else if rest > least {
            COMPANION.sleep(Some(rest), || false);
            rest = rest.max(least);
        }
        if tells {
            heap::due::set(!is_running());
        }
        // Who has woken it has just given memory back: that is to become old first.
        COMPANION.nap(least);
    }
    COMPANION.leave();
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
