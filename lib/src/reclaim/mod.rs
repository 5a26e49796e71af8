//! What returns memory to the operating system: who does it, when, and what is told about it.
//!
//! The layer above calls what is here; none of it needs the calling thread to have a heap, and all of it may be called at any time by
//! any thread, also in a signal handler and in a forked child (then some of it does nothing).

mod report;

pub(crate) use report::{HolesStats, PurgeReport};

use crate::heap::steal;
use crate::os::lock::Lock;

/// One purge at a time.
static PURGING: Lock = Lock::new();

/// Give back all that can be had, from whatever thread has it. `force`: without ageing, and without regard to what the next use of it
/// costs. `metadata`: also that of free ranges. `None`: another purge is on its way, maybe one that this signal handler has
/// interrupted. With no lock held.
pub(crate) fn purge_all(force: bool, metadata: bool) -> Option<PurgeReport> {
    if !PURGING.try_lock() {
        return None;
    }
    let report = purge(force, metadata);
    PURGING.unlock();
    Some(report)
}

/// BODY TO REPLACE: only the caches are emptied.
fn purge(_force: bool, metadata: bool) -> PurgeReport {
    steal::steal_all();
    PurgeReport { complete: true, reclaimed: metadata, ..PurgeReport::NOTHING }
}

/// Whether this thread is in [`purge_all`] already: it must not wait for it.
pub(crate) fn purges_here() -> bool {
    PURGING.held_by_me()
}

/// The calling thread will not allocate for a while: give its cached blocks back and sweep, unless that was done a moment ago.
/// BODY TO REPLACE.
pub(crate) fn thread_idle() {}

/// The same, done by the scavenger if there is one (which this may start): true. BODY TO REPLACE.
pub(crate) fn thread_idle_start() -> bool {
    thread_idle();
    false
}

/// The thread goes on. BODY TO REPLACE.
pub(crate) fn thread_idle_end() {}

/// End the scavenger's thread, for good in this process. Slow paths go on to return memory. Waits for it. BODY TO REPLACE.
pub(crate) fn stop_scavenger() {}

/// What was returned from inside slabs, and what of that is still away. BODY TO REPLACE.
pub(crate) fn holes_stats() -> HolesStats {
    HolesStats::default()
}

/// In a forked child: a purge of a thread that is not here is over.
pub(crate) fn forked() {
    if PURGING.held_by_vanished() {
        PURGING.reset();
    }
}
