//! `mi_dhat_…`: the exact profiler. `lib/include/mimalloc/dhat.h` says what is promised.

use crate::observe::exact;
use crate::observe::life;
use crate::observe::output::Path;
use crate::os;
use core::ffi::{CStr, c_char, c_int};

/// `MI_DHAT_STATS_VERSION`.
pub const DHAT_STATS_VERSION: c_int = 1;

/// `mi_dhat_stats_t`: what is counted of the present or last recording, in requested bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DhatStats {
    /// `sizeof(mi_dhat_stats_t)`, set by the caller.
    pub size: usize,
    /// [`DHAT_STATS_VERSION`], set by the caller.
    pub version: c_int,
    /// A recording goes on.
    pub enabled: bool,
    /// Something was dropped.
    pub incomplete: bool,
    /// Allocated in all.
    pub total_bytes: u64,
    /// Allocated in all.
    pub total_blocks: u64,
    /// Not freed yet.
    pub live_bytes: u64,
    /// Not freed yet.
    pub live_blocks: u64,
    /// Live when there was most.
    pub peak_bytes: u64,
    /// Live when there were most bytes.
    pub peak_blocks: u64,
    /// Allocations that are counted without their stack, and events in no count.
    pub dropped: u64,
    /// Memory of the profiler, less 16 bytes for each block.
    pub internal_bytes: u64,
}

const _: () = assert!(size_of::<DhatStats>() == 80);

/// `mi_dhat_start`: begin a recording, and forget the last one. False: one goes on, or there is no memory.
pub fn dhat_start() -> bool {
    life::know_own_code();
    exact::start(exact::memory())
}

/// `mi_dhat_stop`: what was found stays.
pub fn dhat_stop() {
    exact::stop();
}

/// `mi_dhat_is_enabled`.
pub fn dhat_is_enabled() -> bool {
    exact::is_on()
}

/// `mi_dhat_stats_get`. False, and nothing is written: size or version are not those of [`DhatStats`].
///
/// # Safety
/// Null, or a size and a version, and as many bytes as the size says.
pub unsafe fn dhat_stats_get(stats: *mut DhatStats) -> bool {
    // SAFETY: the caller's promise; no more is read than the two numbers.
    unsafe {
        if stats.is_null() || (*stats).size != size_of::<DhatStats>() || (*stats).version != DHAT_STATS_VERSION {
            return false;
        }
        let totals = exact::totals();
        *stats = DhatStats {
            enabled: exact::is_on(),
            incomplete: totals.dropped() != 0,
            total_bytes: totals.total_bytes,
            total_blocks: totals.total_blocks,
            live_bytes: totals.live_bytes,
            live_blocks: totals.live_blocks,
            peak_bytes: totals.peak_bytes,
            peak_blocks: totals.peak_blocks,
            dropped: totals.dropped(),
            internal_bytes: totals.internal_bytes,
            ..*stats
        };
    }
    true
}

/// `mi_dhat_dump`: write what was found. False: null, or the file cannot be written.
///
/// # Safety
/// Null or a C string.
pub unsafe fn dhat_dump(path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(path) };
    os::on_large_stack(|| {
        let mut path = Path::EMPTY;
        path.push(name.to_bytes()) && exact::write(&path).is_ok()
    })
}
