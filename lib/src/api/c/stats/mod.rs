//! `mi_stats_…`: what the allocator counts, in the layout that mimalloc's interface gives it.
//!
//! Counts of blocks and their bytes are exact at the moment they are read. Nothing is kept per call, so no peak is
//! known except those that the kernel keeps for the process; a field that has no meaning in this design is 0.

mod gather;
mod json;
mod layout;
mod report;
mod scopes;

pub use json::{as_json, get_json};
pub use layout::{BINS, CHUNK_BINS, Count, Counter, STAT_VERSION, Stats};
pub use report::{malloc_stats, print, print_out};
pub use scopes::*;

use crate::heap::zone::Scope;

/// `mi_stats_get`: false, and nothing is written, unless size and version are those of [`Stats`].
///
/// # Safety
/// `stats` is null or points to an `mi_stats_t` whose first two fields are set.
pub unsafe fn get(stats: *mut Stats) -> bool {
    // SAFETY: the caller's promise.
    unsafe { get_scope(Scope::Process, stats) }
}

unsafe fn get_scope(scope: Scope, stats: *mut Stats) -> bool {
    // SAFETY: the caller's promise.
    let known = !stats.is_null() && unsafe { (*stats).size == size_of::<Stats>() && (*stats).version == STAT_VERSION };
    if known {
        // SAFETY: the size is that of the whole structure.
        unsafe { stats.write(gather::gather(scope)) };
    }
    known
}

/// `mi_stats_get_bin_size`: the largest block of a bin in bytes; 0 for the bin of all larger blocks, and where there is
/// no bin.
pub fn bin_size(bin: usize) -> usize {
    gather::bin_size(bin)
}
