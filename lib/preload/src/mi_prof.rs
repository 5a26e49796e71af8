//! mimalloc's C API: the sampled profiler.

use crate::malloc::export;
use allocator::api::c::{self, ProfConfig, ProfSnapshot, ProfStats, SampleVisitor};
use core::ffi::c_void;

export! {
    safe mi_prof_start(rate: usize) -> bool = c::prof_start;
    safe mi_prof_start_seeded(rate: usize, seed: u64) -> bool = c::prof_start_seeded;
    safe mi_prof_stop() = c::prof_stop;
    safe mi_prof_is_enabled() -> bool = c::prof_is_enabled;
    safe mi_prof_reset() = c::prof_reset;
    safe mi_prof_snapshot_new() -> *mut ProfSnapshot = c::prof_snapshot_new;
}

export! {
    mi_prof_start_ex(config: *const ProfConfig) -> bool = c::prof_start_ex;
    mi_prof_debug_stats(records: *mut usize, bytes: *mut usize, unique_stacks: *mut usize) = c::prof_debug_stats;
    mi_prof_stats_get(stats: *mut ProfStats) -> bool = c::prof_stats_get;
    mi_prof_visit(visitor: Option<SampleVisitor>, arg: *mut c_void) -> bool = c::prof_visit;
    mi_prof_snapshot_visit(snapshot: *const ProfSnapshot, visitor: Option<SampleVisitor>, arg: *mut c_void) -> bool
        = c::prof_snapshot_visit;
    mi_prof_snapshot_free(snapshot: *mut ProfSnapshot) = c::prof_snapshot_free;
}
