//! What returns memory to the operating system: who does it, when, and what is told about it.
//!
//! The layer above calls what is here; none of it needs the calling thread to have a heap, and all of it may be called at any time by
//! any thread, also in a signal handler and in a forked child (then some of it does nothing).

mod allowance;
mod debt;
mod inline;
mod report;
mod scavenger;
pub(crate) mod survey;
mod sweep;

#[cfg(test)]
mod tests;

pub use report::{HolesStats, PurgeReport};

use crate::arena;
use crate::heap::{self, holes, steal, thread};
use crate::options::{self, Name};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicU64, Ordering::*};
use sweep::{Effort, Swept};

/// One sweep at a time.
static SWEEPING: Lock = Lock::new();

/// Memory came back to slabs: whoever gives it back is told. With no lock held.
#[inline(always)]
pub(crate) fn drained() {
    if scavenger::is_running() {
        scavenger::notice();
    } else {
        inline::look();
    }
}

/// The same of a span.
pub(crate) fn span_freed(bytes: usize) {
    if scavenger::is_running() {
        scavenger::notice();
    } else {
        inline::look_after_span(bytes);
    }
}

/// A thread has got its heap, or has left it; or the options are known. With no lock held.
pub(crate) fn threads_changed() {
    scavenger::threads_changed();
}

/// Run with the right to sweep, unless somebody has it. With no lock held.
fn sweep_if_alone(run: impl FnOnce(&dyn Fn(Effort) -> Swept)) {
    // A signal handler must not wait for what it has interrupted, nor for those who wait for that, nor take what is being repaired.
    if must_not_wait() || !SWEEPING.try_lock() {
        return;
    }
    // SAFETY: the lock is held, and no other.
    run(&|effort| unsafe { sweep::sweep(effort) });
    SWEEPING.unlock();
}

/// Calls of [`purge_all`] that follow each other as closely as this, in nanoseconds, leave to threads what they have cached and used in
/// between, and to classes the pages that they have just taken blocks from: they would have to get them again at once.
const IN_A_HURRY: u64 = 5_000_000;

/// Give back all that can be had, from whatever thread has it. `force`: without ageing, and also what is cached of threads that use it.
/// `metadata`: also that of free ranges. `None`: another purge is on its way, maybe one that this signal handler has
/// interrupted. With no lock held.
pub(crate) fn purge_all(force: bool, metadata: bool) -> Option<PurgeReport> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut report = None;
    sweep_if_alone(|sweep| {
        os::permit_vectors(true);
        let all = force && os::now() - LAST.load(Relaxed) >= IN_A_HURRY;
        let stolen = if all { steal::steal_all() } else { steal::steal_idle() };
        let swept = sweep(match force {
            true if all => Effort::Forced,
            true => Effort::Hurried,
            false => Effort::Thorough,
        });
        LAST.store(os::now(), Relaxed);
        if swept.waits {
            // Whoever does the next one may be asleep.
            heap::due::set(!scavenger::is_running());
            scavenger::notice();
        }
        let (ranges, metadata_bytes) = if metadata { give_back_metadata() } else { (0, 0) };
        report = Some(PurgeReport {
            arena_bytes: swept.arena_bytes,
            hole_bytes: swept.hole_bytes,
            theaps_swept: stolen.heaps - stolen.refused,
            theaps_pending: stolen.refused,
            complete: stolen.refused == 0,
            reclaimed: metadata,
            arenas_reclaimed: ranges,
            arena_reclaim_bytes: metadata_bytes,
            ..PurgeReport::NOTHING
        });
    });
    report
}

/// That of free ranges. Nobody else takes them away meanwhile.
fn give_back_metadata() -> (usize, usize) {
    holes::sweeper().map_or((0, 0), |_sweeper| arena::purge_metadata())
}

/// In a signal handler: it has interrupted this thread in a sweep, or where a sweep may wait for it.
pub(crate) fn must_not_wait() -> bool {
    SWEEPING.held_by_me() || !os::child::is_in_order() || heap::holds_locks()
}

/// The calling thread will not allocate for a while: give its cached blocks back and sweep, unless that was done a moment ago.
pub(crate) fn thread_idle() {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread::flush_here();
    let least = options::get(Name::PurgeHolesMinInterval).clamp(0, 3_600_000) as u64 * 1_000_000;
    let now = os::now();
    if now.saturating_sub(LAST.load(Relaxed)) >= least {
        LAST.store(now, Relaxed);
        sweep_if_alone(|sweep| {
            sweep(Effort::Forced);
        });
    }
}

/// The same, done by the scavenger if there is one (which this may start): true.
pub(crate) fn thread_idle_start() -> bool {
    if options::get(Name::Scavenger) > 0 && scavenger::start() {
        thread::flush_here();
        scavenger::notice();
        return true;
    }
    thread_idle();
    false
}

/// The thread goes on. Nothing is to be done: whoever sweeps needs no thread to hold still.
pub(crate) fn thread_idle_end() {}

/// End the scavenger's thread, for good in this process. Slow paths go on to return memory. Waits for it.
pub(crate) fn stop_scavenger() {
    scavenger::stop();
}

/// The process ends.
pub(crate) fn end() {
    scavenger::stop();
}

/// What was returned from inside slabs, and what of that is still away.
pub(crate) fn holes_stats() -> HolesStats {
    let counts = holes::counts();
    let bytes = |pages: u64| pages as usize * os::PAGE;
    HolesStats {
        purged_bytes: bytes(counts.purged_now),
        purged_bytes_total: bytes(counts.purged),
        discard_calls: os::discard_calls() as usize,
        reuse_calls: counts.reuses as usize,
        pages_freed: counts.given_up as usize,
        blocks_visited: counts.visited as usize,
        full_sweeps: sweep::SWEEPS.load(Relaxed) as usize,
        ..HolesStats::default()
    }
}

/// In a forked child: a sweep of a thread that is not here is over.
pub(crate) fn forked() {
    if SWEEPING.held_by_vanished() {
        SWEEPING.reset();
    }
    scavenger::forked();
}
