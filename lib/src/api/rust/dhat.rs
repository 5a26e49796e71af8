//! The exact profiler: every allocation and every free by its stack, as Valgrind's DHAT tells it. Slower than the sampled one, and misses nothing.
//!
//! ```
//! # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
//! use mimalloc_pprof::dhat;
//!
//! assert!(dhat::start());
//! let kept = vec![1u8; 12_345];
//! assert!(dhat::stats().live_bytes >= 12_345);
//! dhat::stop();
//! # drop(kept);
//! ```

use super::heap::{c_path, told};
use super::sys;
use crate::api::c;
use core::mem::MaybeUninit;
use std::io;
use std::path::Path;

/// What is counted of the present or last recording, in requested bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// A recording goes on.
    pub enabled: bool,
    /// Something was dropped.
    pub incomplete: bool,
    /// Bytes allocated.
    pub total_bytes: u64,
    /// Blocks allocated.
    pub total_blocks: u64,
    /// Bytes not freed yet.
    pub live_bytes: u64,
    /// Blocks not freed yet.
    pub live_blocks: u64,
    /// Live bytes when there were most.
    pub peak_bytes: u64,
    /// Live blocks at that moment.
    pub peak_blocks: u64,
    /// Allocations that are counted without their stack, and events in no count.
    pub dropped: u64,
    /// Memory of the profiler, in bytes.
    pub internal_bytes: u64,
}

/// Begin a recording, and forget the last one. False: one goes on, or there is no memory.
pub fn start() -> bool {
    c::dhat_start()
}

/// End the recording. What was recorded can still be dumped.
pub fn stop() {
    c::dhat_stop();
}

/// Whether a recording goes on.
pub fn is_enabled() -> bool {
    c::dhat_is_enabled()
}

/// What is counted.
pub fn stats() -> Stats {
    // SAFETY: zero is a value of all of its fields; size and version are set.
    let raw = unsafe {
        let mut raw: sys::mi_dhat_stats_t = MaybeUninit::zeroed().assume_init();
        (raw.size, raw.version) = (size_of::<sys::mi_dhat_stats_t>(), sys::MI_DHAT_STATS_VERSION);
        c::dhat_stats_get(&raw mut raw);
        raw
    };
    Stats {
        enabled: raw.enabled,
        incomplete: raw.incomplete,
        total_bytes: raw.total_bytes,
        total_blocks: raw.total_blocks,
        live_bytes: raw.live_bytes,
        live_blocks: raw.live_blocks,
        peak_bytes: raw.peak_bytes,
        peak_blocks: raw.peak_blocks,
        dropped: raw.dropped,
        internal_bytes: raw.internal_bytes,
    }
}

/// Write the recording as `dhat.json`, which Valgrind's `dh_view.html` opens.
///
/// # Errors
/// What the operating system says, that the path has a NUL, or that there is no recording.
pub fn dump_file(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a C string.
    told(unsafe { c::dhat_dump(path.as_ptr()) })
}
