//! The process as a whole, and the calling thread.

use super::text::{OutputFn, Text};
use super::{hooks, purging};
use crate::arena::{self, index_of, is_ours};
use crate::heap::{allocate, release};
use crate::os;
use crate::reclaim;
use core::ffi::c_void;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The mimalloc release whose interface this is, as major * 10000 + minor * 100 + patch.
pub const VERSION: i32 = 30500;

/// `mi_version`.
pub fn version() -> i32 {
    VERSION
}

/// `mi_process_init`, `mi_thread_init`: make the calling thread ready, as its first allocation would.
pub fn attach() {
    // SAFETY: a block is allocated and freed.
    unsafe { release::release(allocate::allocate(1)) }
}

/// What needs no doing: `mi_process_done`, `mi_thread_set_in_threadpool`, `mi_stats_reset`,
/// `mi_stats_merge`. Blocks outlive all of these, a thread gives its cache back when it ends, and no count is kept
/// apart.
pub fn nothing() {}

/// `mi_collect`: the program's deferred free; with `force` all memory that no live block needs goes back to the operating system, what
/// running threads have cached, too.
pub fn collect(force: bool) {
    hooks::deferred_free(force);
    if force {
        purging::return_all();
    }
}

/// `mi_collect_reduce`: the program's deferred free; then, if the heap has more than `target` bytes of memory, as [`collect`].
pub fn collect_reduce(target: usize) {
    hooks::deferred_free(false);
    let away = reclaim::holes_stats().purged_bytes as u64;
    if arena::counts().committed.saturating_sub(away) > target as u64 {
        purging::return_all();
    }
}

/// `mi_is_in_heap_region`, `mi_check_owned`: whether an address lies in memory that blocks are made from.
pub fn is_in_heap_region(address: *const u8) -> bool {
    is_ours(index_of(address as usize))
}

/// Bytes that the process has committed, at the most that any call saw.
fn peak_committed(now: u64) -> u64 {
    static PEAK: AtomicU64 = AtomicU64::new(0);
    PEAK.fetch_max(now, Relaxed).max(now)
}

/// What `mi_process_info` tells, in its order: times in milliseconds, memory in bytes, and page faults.
pub(super) fn info() -> [(&'static str, u64); 8] {
    let usage = os::usage();
    [
        ("elapsed_msecs", usage.elapsed),
        ("user_msecs", usage.user),
        ("system_msecs", usage.system),
        ("rss_current", usage.resident),
        ("rss_peak", usage.peak_resident),
        ("commit_current", usage.committed),
        ("commit_peak", peak_committed(usage.committed)),
        ("page_faults", usage.major_faults),
    ]
}

/// `mi_process_info`.
///
/// # Safety
/// Each pointer can be written or is null.
#[allow(clippy::too_many_arguments, reason = "the C function has as many")]
pub unsafe fn process_info(
    elapsed: *mut usize,
    user: *mut usize,
    system: *mut usize,
    resident: *mut usize,
    peak_resident: *mut usize,
    committed: *mut usize,
    peak_committed: *mut usize,
    faults: *mut usize,
) {
    let places = [elapsed, user, system, resident, peak_resident, committed, peak_committed, faults];
    for (place, (_, value)) in places.into_iter().zip(info()) {
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(value as usize) };
        }
    }
}

/// `mi_process_info_print_out`.
///
/// # Safety
/// The function may be called with the argument.
pub unsafe fn process_info_print_out(function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    write_info(&mut unsafe { Text::to(function, arg) });
}

/// `mi_process_info_print`.
pub fn process_info_print() {
    // SAFETY: there is no function.
    unsafe { process_info_print_out(None, core::ptr::null_mut()) }
}

/// Two lines about the process.
pub(super) fn write_info(text: &mut Text) {
    let [elapsed, user, system, resident, peak_resident, committed, peak_committed, faults] =
        info().map(|(_, value)| value);
    let seconds = |milliseconds: u64| (milliseconds / 1000, milliseconds % 1000);
    let ((e, em), (u, um), (s, sm)) = (seconds(elapsed), seconds(user), seconds(system));
    let _ = writeln!(
        text,
        "process: {e}.{em:03} s elapsed, {u}.{um:03} s user, {s}.{sm:03} s system, {faults} major faults"
    );
    let kib = |bytes: u64| bytes / 1024;
    let _ = writeln!(
        text,
        "memory: {} KiB resident (peak {}), {} KiB committed (peak seen {})",
        kib(resident),
        kib(peak_resident),
        kib(committed),
        kib(peak_committed)
    );
}
