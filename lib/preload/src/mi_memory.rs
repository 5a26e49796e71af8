//! mimalloc's C API: memory events, and memory that they do not see.

use crate::malloc::export;
use allocator::api::c::{self, MemorySnapshot, MemoryVisitor};
use core::ffi::c_void;

export! {
    safe mi_memory_tracking_set_enabled(enabled: bool) -> bool = c::memory_tracking_set_enabled;
    safe mi_memory_tracking_is_enabled() -> bool = c::memory_tracking_is_enabled;
    safe mi_unwrapped_malloc(size: usize, alignment: usize) -> *mut u8 = c::unwrapped_malloc;
}

export! {
    mi_memory_set_callbacks(callbacks: *const u8) -> bool = c::memory_set_callbacks;
    mi_memory_snapshot(snapshot: *mut MemorySnapshot) -> bool = c::memory_snapshot;
    mi_memory_visit_live_allocations(visitor: Option<MemoryVisitor>, arg: *mut c_void) -> bool
        = c::memory_visit_live_allocations;
    mi_unwrapped_free(block: *mut u8) = c::unwrapped_free;
    mi_unwrapped_realloc(block: *mut u8, size: usize, alignment: usize) -> *mut u8 = c::unwrapped_realloc;
}
