//! Returning memory to the operating system at a moment that the program knows to be a good one.

use super::stats;
use crate::api::c;
use core::fmt::{self, Write};
use core::marker::PhantomData;

pub use crate::api::c::{HolesStats as PurgeHolesStats, PurgeReport as PurgeAllReport};

/// How long [`purge_all`] waits for another purge, in milliseconds.
pub const PURGE_ALL_DEFAULT_WAIT_MS: usize = c::PURGE_WAIT;

/// How thorough a purge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeFlags {
    /// All that is free goes, whatever its next use costs.
    pub force: bool,
    /// The metadata of free ranges goes, too.
    pub reclaim: bool,
}

impl PurgeFlags {
    /// As the allocator does it by itself: what is free now and was so when somebody last looked.
    pub const NONE: PurgeFlags = PurgeFlags { force: false, reclaim: false };
    /// All that is free.
    pub const FORCE: PurgeFlags = PurgeFlags { force: true, ..PurgeFlags::NONE };
    /// And the metadata of free ranges.
    pub const RECLAIM: PurgeFlags = PurgeFlags { reclaim: true, ..PurgeFlags::NONE };
    /// Both.
    pub const FORCE_RECLAIM: PurgeFlags = PurgeFlags { force: true, reclaim: true };
}

/// How a purge has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeStatus {
    /// Everything was looked at.
    Ok,
    /// The cached blocks of some threads could not be had: where the kernel refuses `membarrier`.
    Partial,
    /// Another purge was on its way all the time; this one has done nothing.
    Busy,
}

/// Return to the operating system what no live block needs, from all threads, running ones too, and tell how much that was.
///
/// `force`: at once. Otherwise only what has been free for a while, as the allocator does it by itself. Memory comes back without any
/// such call, a little later. Any thread may call it; it need not have allocated anything. Another purge is waited for, for
/// [`PURGE_ALL_DEFAULT_WAIT_MS`]; then the report is all 0 and not `complete`. A call less than 5 ms after another purge leaves alone what threads have used in between.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let mut blocks: Vec<_> = (0..20_000).map(|_| vec![1u8; 1000]).collect();
/// blocks.retain(|block| block.as_ptr() as usize % 4096 < 100); // leaves holes
/// let report = mimalloc_pprof::purge_all(true);
/// assert!(report.complete);
/// ```
pub fn purge_all(force: bool) -> PurgeAllReport {
    purge_all_ex(if force { PurgeFlags::FORCE } else { PurgeFlags::NONE }, PURGE_ALL_DEFAULT_WAIT_MS).1
}

/// [`purge_all`] that says how to do it, how many milliseconds to wait for another purge, and how it has ended.
///
/// ```
/// use mimalloc_pprof::{PurgeFlags, PurgeStatus, purge_all_ex};
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
///
/// let (status, report) = purge_all_ex(PurgeFlags::FORCE_RECLAIM, 1000);
/// assert_eq!(status, PurgeStatus::Ok);
/// assert!(report.reclaimed && report.theaps_pending == 0);
/// ```
pub fn purge_all_ex(flags: PurgeFlags, wait_ms: usize) -> (PurgeStatus, PurgeAllReport) {
    let mut report = PurgeAllReport::NOTHING;
    let PurgeFlags { force, reclaim } = flags;
    let bits = if force { c::PURGE_FORCE } else { 0 } | if reclaim { c::PURGE_RECLAIM } else { 0 };
    // SAFETY: the report can be written.
    let status = unsafe { c::purge_all_ex(bits, wait_ms, &raw mut report) };
    let status = match status {
        c::PURGE_OK => PurgeStatus::Ok,
        c::PURGE_PARTIAL => PurgeStatus::Partial,
        _ => PurgeStatus::Busy,
    };
    (status, report)
}

/// This thread has nothing to do at present: return memory now, without ageing.
///
/// Its cached blocks go back to where any thread can use them, and memory is returned to the operating system, at most once per
/// [`PURGE_HOLES_MIN_INTERVAL`](crate::options::Opt::PURGE_HOLES_MIN_INTERVAL). It is not needed, and lets memory come back
/// sooner.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// drop(vec![1u8; 1 << 20]);
/// mimalloc_pprof::on_thread_idle(); // before waiting for work, say
/// ```
pub fn on_thread_idle() {
    c::thread_idle();
}

/// [`on_thread_idle`] that leaves the work to the scavenger. `None`: there is none, and this thread has done it.
///
/// The thread may allocate and free while it is parked; nobody waits for it, and it waits for nobody when it goes on.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let parked = mimalloc_pprof::park_while_idle();
/// std::thread::sleep(std::time::Duration::from_millis(1)); // for the next message
/// drop(parked);
/// ```
#[must_use = "the thread is idle as long as the result lives"]
pub fn park_while_idle() -> Option<IdlePark> {
    c::thread_idle_start().then_some(IdlePark(PhantomData))
}

/// A thread that is idle, until this is dropped; in that thread.
#[derive(Debug)]
pub struct IdlePark(PhantomData<*mut ()>);

impl Drop for IdlePark {
    fn drop(&mut self) {
        c::thread_idle_end();
    }
}

/// End the thread that returns memory in the background, for good in this process and those that it forks. Waits for it. Threads that allocate go on to return memory.
pub fn scavenger_stop() {
    c::scavenger_stop();
}

/// What was returned from inside slabs that also have live blocks, and what of it is still away. Looks at the whole heap, as
/// [`purge_holes_report`] does.
///
/// ```
/// let holes = mimalloc_pprof::purge_holes_stats();
/// assert!(holes.purged_bytes <= holes.purged_bytes_total);
/// ```
pub fn purge_holes_stats() -> PurgeHolesStats {
    let mut stats = PurgeHolesStats::default();
    // SAFETY: the statistics can be written.
    unsafe { c::purge_holes_stats_get(&raw mut stats) };
    stats
}

/// Write why free memory is not returned to where [`stats::print`](crate::stats::print) writes: what keeps how much of it, and which sizes
/// of blocks have how many survivors on how many pages. Looks at the whole heap, which takes some milliseconds for each 100 MB, and
/// changes nothing.
pub fn purge_holes_report() {
    c::purge_holes_report();
}

/// What [`purge_holes_report`] writes. The process ends if `out` panics.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let mut text = String::new();
/// mimalloc_pprof::purge_holes_report_to(&mut text).unwrap();
/// assert!(text.contains("free and in memory"));
/// ```
///
/// # Errors
/// Those of `out`.
pub fn purge_holes_report_to(out: &mut dyn Write) -> fmt::Result {
    // SAFETY: whatever is told gets a function and its argument, and no longer than the call takes.
    stats::told(out, |function, sink| unsafe { c::purge_holes_report_out(function, sink) })
}
