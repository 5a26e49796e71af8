//! When a dump is written besides that at the end: on a signal, every so often, every so many bytes, on new peaks; and the snapshots,
//! which leave something of a process that is killed.
//!
//! Who samples only notes what has come to pass ([`sampled`]); the work is done by [`due`], which the [observer](super::observer) calls.

use super::files;
use super::settings::{Named, is_named};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// The first snapshot, in nanoseconds after the start; the next ones take twice as long each time, up to what the user has said.
const FIRST_SNAPSHOT: u64 = 1_000_000_000;
/// Fewer nanoseconds between two dumps of a kind would do nothing else.
const LEAST: u64 = 10_000_000;
/// Hundredths of the last peak from which on live bytes are a new one.
const PEAK: u64 = 105;
/// How many times as long as the dump of a peak has taken the next one waits: a heap that grows fast has one new peak after the other.
const PEAK_REST: u64 = 20;
pub(super) const NEVER: u64 = u64::MAX;

/// What the environment says. Times in nanoseconds; `None` and 0: not wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Triggers {
    /// A signal's number.
    pub(crate) signal: Option<u32>,
    pub(crate) interval: Option<u64>,
    /// Bytes allocated.
    pub(crate) every: Option<u64>,
    /// Peaks that are kept.
    pub(crate) peaks: Option<u64>,
    pub(crate) snapshot: Option<u64>,
}

/// The wishes; 0 = none.
static SIGNAL: AtomicU32 = AtomicU32::new(0);
static INTERVAL: AtomicU64 = AtomicU64::new(0);
static EVERY: AtomicU64 = AtomicU64::new(0);
static PEAKS: AtomicU64 = AtomicU64::new(0);
static SNAPSHOT: AtomicU64 = AtomicU64::new(0);

/// A dump was asked for by the signal or otherwise, and not begun.
static ASKED: AtomicBool = AtomicBool::new(false);
/// When the next dump and the next snapshot are due.
static NEXT_DUMP: AtomicU64 = AtomicU64::new(NEVER);
static NEXT_SNAPSHOT: AtomicU64 = AtomicU64::new(NEVER);
/// Between the last snapshot and the next.
static PAUSE: AtomicU64 = AtomicU64::new(0);
/// Bytes allocated, and live, at which the next dump is due. Estimates.
static NEXT_BYTES: AtomicU64 = AtomicU64::new(NEVER);
static NEXT_PEAK: AtomicU64 = AtomicU64::new(NEVER);
/// While a peak is not worth another dump yet: when it is again, and from how many live bytes on. Else [`NEVER`].
static PEAK_AGAIN: AtomicU64 = AtomicU64::new(NEVER);
static PEAK_THEN: AtomicU64 = AtomicU64::new(0);
/// The estimates at the last sample.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAKS_WRITTEN: AtomicU32 = AtomicU32::new(0);
/// Raised by each sample and each free of one; what it was at the last snapshot.
static CHANGES: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// There is nothing new for a snapshot: the next change is to tell.
static QUIET: AtomicBool = AtomicBool::new(false);

/// What the wishes take.
pub(super) struct Takes {
    /// That somebody looks what is due.
    pub(super) anything: bool,
    /// A thread of ours even in a program that has none of its own.
    pub(super) thread: bool,
}

/// From now on.
pub(super) fn start(wanted: Triggers) -> Takes {
    let now = os::now();
    let numbered = is_named(Named::Dump);
    let only_if = |is: bool, value: Option<u64>| if is { value.unwrap_or(0) } else { 0 };
    let interval = only_if(numbered, wanted.interval);
    let every = only_if(numbered, wanted.every);
    let peaks = only_if(is_named(Named::Peak), wanted.peaks);
    let snapshot = only_if(is_named(Named::Exit), wanted.snapshot);
    let at_least = |time: u64| if time == 0 { 0 } else { time.max(LEAST) };
    INTERVAL.store(at_least(interval), Relaxed);
    EVERY.store(every, Relaxed);
    PEAKS.store(peaks, Relaxed);
    SNAPSHOT.store(at_least(snapshot), Relaxed);
    begin(now);
    let signal = wanted.signal.filter(|_| numbered);
    if let Some(signal) = signal {
        if os::handle_signal(signal, asked_by_signal) {
            SIGNAL.store(signal, Relaxed);
        } else {
            os::complain(b"the signal for dumps is ignored or has a handler; it will not cause any");
        }
    }
    let thread = SIGNAL.load(Relaxed) != 0 || INTERVAL.load(Relaxed) != 0;
    Takes { anything: thread || every | peaks | snapshot != 0, thread }
}

fn begin(now: u64) {
    let after = |time: u64| if time == 0 { NEVER } else { now + time };
    NEXT_DUMP.store(after(INTERVAL.load(Relaxed)), Relaxed);
    let snapshot = SNAPSHOT.load(Relaxed);
    PAUSE.store(snapshot.min(FIRST_SNAPSHOT), Relaxed);
    NEXT_SNAPSHOT.store(after(PAUSE.load(Relaxed)), Relaxed);
    let every = EVERY.load(Relaxed);
    NEXT_BYTES.store(if every == 0 { NEVER } else { ALLOCATED.load(Relaxed) + every }, Relaxed);
    NEXT_PEAK.store(if PEAKS.load(Relaxed) == 0 { NEVER } else { 1 }, Relaxed);
    PEAK_AGAIN.store(NEVER, Relaxed);
}

/// In a forked child: it begins anew, or (`follows` is false) does nothing of all this.
pub(super) fn forked(follows: bool) {
    ASKED.store(false, Relaxed);
    PEAKS_WRITTEN.store(0, Relaxed);
    QUIET.store(false, Relaxed);
    WRITTEN.store(0, Relaxed);
    if !follows {
        for wish in [&INTERVAL, &EVERY, &PEAKS, &SNAPSHOT] {
            wish.store(0, Relaxed);
        }
        let signal = SIGNAL.swap(0, Relaxed);
        if signal != 0 {
            os::unhandle_signal(signal, asked_by_signal);
        }
    }
    begin(os::now());
}

/// In the handler of the signal: anything may be interrupted. What is due is noted, and somebody woken for it.
extern "C" fn asked_by_signal(_: i32) {
    ask();
}

/// Have a numbered dump written soon.
pub(super) fn ask() {
    ASKED.store(true, SeqCst);
    super::observer::call();
}

/// An allocation was sampled that stands for `weight` bytes; the process has so many live bytes now. Estimates. True: something is due.
#[inline]
pub(super) fn sampled(live: u64, weight: u64) -> bool {
    LIVE.store(live, Relaxed);
    let allocated = ALLOCATED.fetch_add(weight, Relaxed) + weight;
    let is_due = live >= NEXT_PEAK.load(Relaxed) || allocated >= NEXT_BYTES.load(Relaxed);
    changed() || is_due
}

/// A sampled block was allocated or freed. True: that is what was waited for.
#[inline]
pub(super) fn changed() -> bool {
    CHANGES.fetch_add(1, SeqCst);
    QUIET.load(Relaxed) && QUIET.swap(false, Relaxed)
}

/// Do what is due at this time; when to come again.
pub(super) fn due(now: u64) -> u64 {
    if ASKED.swap(false, SeqCst) {
        files::write_next();
    }
    interval(now);
    bytes();
    let next = peak(now).min(snapshot(now));
    next.min(NEXT_DUMP.load(Relaxed))
}

fn interval(now: u64) {
    let next = NEXT_DUMP.load(Relaxed);
    if now >= next {
        files::write_next();
        // At equal distances, without those that were missed.
        let interval = INTERVAL.load(Relaxed);
        let missed = (os::now() - next) / interval;
        NEXT_DUMP.store(next + (missed + 1) * interval, Relaxed);
    }
}

fn bytes() {
    let next = NEXT_BYTES.load(Relaxed);
    let allocated = ALLOCATED.load(Relaxed);
    if allocated >= next {
        let every = EVERY.load(Relaxed);
        NEXT_BYTES.store(next + ((allocated - next) / every + 1) * every, Relaxed);
        files::write_next();
    }
}

fn peak(now: u64) -> u64 {
    if now >= PEAK_AGAIN.load(Relaxed) {
        PEAK_AGAIN.store(NEVER, Relaxed);
        NEXT_PEAK.store(PEAK_THEN.load(Relaxed), Relaxed);
    }
    let live = LIVE.load(Relaxed);
    if live >= NEXT_PEAK.load(Relaxed) {
        let start = os::now();
        let number = PEAKS_WRITTEN.fetch_add(1, Relaxed) + 1;
        // The best are the last: each is higher than those before.
        let kept = PEAKS.load(Relaxed);
        if files::write(Named::Peak, number)
            && let Some(old) = u64::from(number).checked_sub(kept).filter(|&old| old > 0)
        {
            files::remove(Named::Peak, old as u32);
        }
        NEXT_PEAK.store(NEVER, Relaxed);
        PEAK_THEN.store((live as u128 * PEAK as u128 / 100) as u64 + 1, Relaxed);
        let end = os::now();
        PEAK_AGAIN.store(end + (end - start) * PEAK_REST, Relaxed);
    }
    PEAK_AGAIN.load(Relaxed)
}

fn snapshot(now: u64) -> u64 {
    let period = SNAPSHOT.load(Relaxed);
    if period == 0 {
        return NEVER;
    }
    if CHANGES.load(SeqCst) == WRITTEN.load(Relaxed) {
        QUIET.store(true, SeqCst);
        // What changes from here on tells.
        if CHANGES.load(SeqCst) == WRITTEN.load(Relaxed) || !QUIET.swap(false, Relaxed) {
            return NEVER;
        }
    }
    let next = NEXT_SNAPSHOT.load(Relaxed);
    if now < next {
        return next;
    }
    let changes = CHANGES.load(Relaxed);
    files::write_last();
    WRITTEN.store(changes, Relaxed);
    let pause = (PAUSE.load(Relaxed) * 2).min(period);
    PAUSE.store(pause, Relaxed);
    let next = os::now() + pause;
    NEXT_SNAPSHOT.store(next, Relaxed);
    next
}
