//! mimalloc's C API: the exact profiler.

use crate::malloc::export;
use allocator::api::c::{self, DhatStats};
use core::ffi::c_char;

export! {
    safe mi_dhat_start() -> bool = c::dhat_start;
    safe mi_dhat_stop() = c::dhat_stop;
    safe mi_dhat_is_enabled() -> bool = c::dhat_is_enabled;
}

export! {
    mi_dhat_stats_get(stats: *mut DhatStats) -> bool = c::dhat_stats_get;
    mi_dhat_dump(path: *const c_char) -> bool = c::dhat_dump;
}
