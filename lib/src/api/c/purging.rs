//! Returning memory to the operating system when the program says so. It happens without being asked for, too.

use super::hooks;
use crate::heap::steal;
use crate::os;
use crate::reclaim;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

pub use crate::reclaim::{HolesStats, PurgeReport};

/// `MI_PURGE_FORCE`: at once, without ageing, and whatever the next use of the memory costs; but less than 5 ms after another purge, what
/// threads have used in between stays.
pub const PURGE_FORCE: c_int = 1;
/// `MI_PURGE_RECLAIM`: the metadata of free ranges, too.
pub const PURGE_RECLAIM: c_int = 2;

/// `MI_PURGE_ALL_OK`: everything was looked at.
pub const PURGE_OK: c_int = 0;
/// `MI_PURGE_ALL_PARTIAL`: something could not be had.
pub const PURGE_PARTIAL: c_int = 1;
/// `MI_PURGE_ALL_BUSY`: nothing was done, as another purge is on its way.
pub const PURGE_BUSY: c_int = 2;

/// How long `mi_purge_all` waits for another purge, in milliseconds.
pub const PURGE_WAIT: usize = 100;

/// How long a sweep of the allocator's own is waited for at least, in milliseconds: it takes some ten.
const LEAST_PATIENCE: usize = 1000;

/// The thread that is in [`purge_all_ex`]; 0 = none. The program's deferred free is called there.
static ADMITTED: AtomicU64 = AtomicU64::new(0);

/// `mi_purge_all_ex`: return to the operating system what no live block needs, from all threads, running ones too. `report` may be
/// null. Unknown flags are ignored. Calls the deferred free.
///
/// # Safety
/// `report` is null or can be written.
pub unsafe fn purge_all_ex(flags: c_int, wait_ms: usize, report: *mut PurgeReport) -> c_int {
    let told = admitted(flags, wait_ms);
    if !report.is_null() {
        // SAFETY: the caller's promise.
        unsafe { report.write(told.unwrap_or(PurgeReport::NOTHING)) };
    }
    match told {
        None => PURGE_BUSY,
        Some(told) if told.theaps_pending != 0 || told.subprocs_pending != 0 => PURGE_PARTIAL,
        Some(_) => PURGE_OK,
    }
}

/// `mi_purge_all`.
pub fn purge_all(force: bool) {
    let _ = admitted(if force { PURGE_FORCE } else { 0 }, PURGE_WAIT);
}

fn admitted(flags: c_int, wait_ms: usize) -> Option<PurgeReport> {
    let (force, metadata) = (flags & PURGE_FORCE != 0, flags & PURGE_RECLAIM != 0);
    let (me, patience) = (os::thread_id(), Patience::of(wait_ms));
    // Whoever is in the deferred free of a purge, or in a signal handler, must not wait for itself.
    while ADMITTED.compare_exchange(0, me, Acquire, Relaxed).is_err() {
        if ADMITTED.load(Relaxed) == me || !patience.wait() {
            return None;
        }
    }
    hooks::deferred_free(force);
    let report = purge(force, metadata, wait_ms);
    ADMITTED.store(0, Release);
    report
}

/// Purge as soon as no sweep is on its way: those of the allocator's own are waited for whatever the program says. `None`: that takes
/// too long, or this is a signal handler that must not wait.
fn purge(force: bool, metadata: bool, wait_ms: usize) -> Option<PurgeReport> {
    let patience = Patience::of(wait_ms.max(LEAST_PATIENCE));
    loop {
        let report = reclaim::purge_all(force, metadata);
        if report.is_some() || reclaim::must_not_wait() || !patience.wait() {
            return report;
        }
    }
}

/// For functions that collect: return everything that can be had at once. Returns the bytes.
pub(super) fn return_all() -> usize {
    steal::steal_all(); // also where one purge follows another too soon to do that
    purge(true, false, PURGE_WAIT).map_or(0, |report| report.bytes())
}

/// How long somebody waits.
struct Patience {
    /// In nanoseconds of the clock.
    until: u64,
}

impl Patience {
    fn of(milliseconds: usize) -> Patience {
        Patience { until: os::now().saturating_add((milliseconds as u64).saturating_mul(1_000_000)) }
    }

    /// Sleep a moment, if there is time left. Nobody wakes us: a purge takes longer than that.
    fn wait(&self) -> bool {
        const MOMENT: u64 = 250_000;
        static NOBODY_WAKES: AtomicU32 = AtomicU32::new(0);
        let left = self.until.saturating_sub(os::now());
        if left != 0 {
            os::wait_on(&NOBODY_WAKES, 0, Some(left.min(MOMENT)));
        }
        left != 0
    }
}

/// `mi_on_thread_idle`: the calling thread has nothing to do at present. Its cached blocks go back to where any thread can use them, and
/// memory is returned without ageing, at most once per `purge_holes_min_interval`. Calls the deferred free.
pub fn thread_idle() {
    hooks::deferred_free(false);
    reclaim::thread_idle();
}

/// `mi_on_thread_idle_start`: the same, and true, if there is a scavenger (which this may start) to do the rest; if there is none,
/// this thread does it, and false.
pub fn thread_idle_start() -> bool {
    hooks::deferred_free(false);
    reclaim::thread_idle_start()
}

/// `mi_on_thread_idle_end`: the calling thread goes on. Never waits: the scavenger needs no thread to hold still.
pub fn thread_idle_end() {
    reclaim::thread_idle_end();
}

/// `mi_scavenger_stop`: end the scavenger's thread, for good in this process. Memory is still returned, by threads that allocate.
pub fn scavenger_stop() {
    reclaim::stop_scavenger();
}

/// `mi_purge_holes_stats_get`: null is allowed. Looks at the whole heap, as `mi_purge_holes_report` does.
///
/// # Safety
/// `stats` is null or can be written.
pub unsafe fn purge_holes_stats_get(stats: *mut HolesStats) {
    if !stats.is_null() {
        // SAFETY: the caller's promise.
        unsafe { stats.write(holes_stats()) };
    }
}

/// All of them.
pub(super) fn holes_stats() -> HolesStats {
    let mut stats = reclaim::holes_stats();
    reclaim::survey::complete(&mut stats);
    stats
}

/// In a forked child: a thread that is not here does not purge either.
pub(super) fn repair() {
    if ADMITTED.load(Relaxed) != os::thread_id() {
        ADMITTED.store(0, Relaxed);
    }
}
