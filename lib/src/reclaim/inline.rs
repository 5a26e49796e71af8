//! Giving memory back from the slow paths of `malloc` and `free`, where there is no thread for it.
//!
//! A process with one thread never gets a second one by surprise: a sandbox may kill it for that, and `unshare` and `setns` refuse processes
//! with threads. There it sweeps itself, on three conditions:
//!
//! * **By space**, at once and without ageing, when what the program holds has fallen by a quarter from its highest since the last such sweep,
//!   and by no less than 32 MiB: as often as not, a process that drains does not call us again for a long time. That makes a few sweeps for a
//!   drain, and leaves a process that falls silent with 32 MiB and a third of what it holds, at most.
//! * **By time**, with ageing, every [`purge_delay`](crate::options::Name::PurgeDelay) as long as there is something to be had.
//! * **Never** while there is [debt](super::debt).

use super::{Effort, Swept, debt, sweep_if_alone};
use crate::heap::{self, due, statistics, steal};
use crate::options::{self, Name};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// The least fall that is worth a sweep without ageing, in bytes. (Measured: with 8 MiB, a batch of 27 MB that comes and goes in random
/// order costs 30 % more; with 32 MiB, nothing.)
const LEAST_FALL: usize = 32 << 20;
/// The least fall that makes time count, in bytes.
const LEAST_TO_AGE: usize = 1 << 20;
/// The same of spans: more than a thread keeps at hand, which would not be at hand while something is due.
const LEAST_OF_SPANS: usize = 2 * LEAST_TO_AGE;
/// Processor cycles between two looks at the clock: some milliseconds.
const CYCLES: u64 = 20_000_000;

/// Bytes that the program held at most since the last sweep without ageing; 0: not more than since the last sweep of any kind. A sweep with
/// ageing in the midst of a drain leaves what is young, and must not make it look as if there had been no drain.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
/// Bytes in spans that the program held at most since the last sweep.
static MOST_IN_SPANS: AtomicUsize = AtomicUsize::new(0);
/// When the clock was looked at last, in cycles.
static LOOKED: AtomicU64 = AtomicU64::new(0);
/// When the last sweep was, in nanoseconds.
static SWEPT: AtomicU64 = AtomicU64::new(0);

/// Bytes by which the slabs have to fall for the next look.
static NEXT_FALL: AtomicUsize = AtomicUsize::new(LEAST_TO_AGE);
/// While there is debt, looks that were not worth looking at the clock for.
static TURN: AtomicU32 = AtomicU32::new(0);
/// One look in so many is, then: what drains and fills all the time, and so is in debt, would look at the clock every 64 blocks.
const TURNS: u32 = 16;
/// The last sweep was not made, as there was debt.
static IN_DEBT: AtomicBool = AtomicBool::new(false);

/// Memory came back, or something is due. With no lock held.
#[inline(always)]
pub(super) fn look() {
    if heap::has_fallen(NEXT_FALL.load(Relaxed)) || (due::is_due() && is_its_turn() && is_some_time_later()) {
        look_closely();
    }
}

fn is_its_turn() -> bool {
    !IN_DEBT.load(Relaxed) || {
        let turn = TURN.load(Relaxed).wrapping_add(1);
        TURN.store(turn, Relaxed);
        turn.is_multiple_of(TURNS)
    }
}

/// A span of so many bytes came back. With no lock held.
pub(super) fn look_after_span(bytes: usize) {
    let now = statistics::bytes_in_spans();
    // Nobody looks when a span is taken: that there was one more is known only now.
    let fallen = most_in_spans(now + bytes) - now;
    // Where large blocks come and go all the time, a look at everything would take as long as they do.
    if fallen >= LEAST_FALL || (fallen >= LEAST_OF_SPANS && is_some_time_later()) {
        look_closely();
    }
}

/// The most that was in spans since the last sweep, and is now.
fn most_in_spans(now: usize) -> usize {
    let most = MOST_IN_SPANS.load(Relaxed).max(now);
    MOST_IN_SPANS.store(most, Relaxed);
    most
}

/// Whether it is some milliseconds since the last look at the clock.
fn is_some_time_later() -> bool {
    os::cycles().wrapping_sub(LOOKED.load(Relaxed)) >= CYCLES
}

#[cold]
#[inline(never)]
fn look_closely() {
    let (slabs, spans) = (heap::out(), statistics::bytes_in_spans());
    NEXT_FALL.store(slabs.most.saturating_sub(slabs.now) + LEAST_TO_AGE, Relaxed);
    let most = slabs.most + most_in_spans(spans);
    let fallen = most - (slabs.now + spans).min(most);
    if fallen < LEAST_TO_AGE && !due::is_due() {
        return;
    }
    let highest = HIGHEST.load(Relaxed).max(most);
    let by_space = highest - (slabs.now + spans).min(highest) >= LEAST_FALL.max(highest / 4);
    if !by_space {
        due::set(true);
        if !is_some_time_later() {
            return;
        }
        LOOKED.store(os::cycles(), Relaxed);
    }
    let Ok(delay) = u64::try_from(options::get(Name::PurgeDelay)) else { return due::set(false) };
    let now = os::now();
    let by_time = now.saturating_sub(SWEPT.load(Relaxed)) >= delay * 1_000_000;
    if !by_space && !by_time {
        return;
    }
    sweep_if_alone(|sweep| {
        heap::forget_most_out();
        NEXT_FALL.store(LEAST_TO_AGE, Relaxed);
        MOST_IN_SPANS.store(spans, Relaxed);
        let is_in_debt = debt::settle() != 0;
        IN_DEBT.store(is_in_debt, Relaxed);
        HIGHEST.store(if by_space || is_in_debt { 0 } else { highest }, Relaxed);
        if is_in_debt {
            if by_time {
                SWEPT.store(now, Relaxed);
            }
            // Looked at again as time goes by.
            return;
        }
        if !by_space {
            steal::steal_idle();
        }
        // A sandbox around a program with one thread may kill it for any other call than these.
        os::permit_vectors(heap::threads(2) > 1);
        let Swept { waits, arena_bytes, hole_bytes } =
            sweep(if by_space || delay == 0 { Effort::Forced } else { Effort::Aged });
        SWEPT.store(os::now(), Relaxed);
        due::set(waits || arena_bytes + hole_bytes != 0);
    });
}
