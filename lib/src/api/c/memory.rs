//! `mi_memory_…`: callbacks for every allocation, free and change of size, and totals. `lib/include/mimalloc/memory-events.h` says what they
//! promise.

use crate::observe::events::{self, Callbacks};
use core::ffi::{c_int, c_void};

/// `mi_memory_snapshot_t`: size and version are the caller's. Bytes, and blocks.
#[repr(C)]
#[derive(Debug)]
pub struct MemorySnapshot {
    pub size: usize,
    pub version: c_int,
    pub live_bytes: u64,
    pub accum_bytes: u64,
    pub live_count: u64,
    pub accum_count: u64,
}
const _: () = assert!(size_of::<MemorySnapshot>() == 48);

const VERSION: c_int = 1;

/// `mi_memory_allocation_visit_fun`.
pub type MemoryVisitor = unsafe extern "C" fn(block: *mut u8, usable: usize, arg: *mut c_void) -> bool;

/// `mi_memory_tracking_set_enabled`: always true.
pub fn memory_tracking_set_enabled(enabled: bool) -> bool {
    events::set_enabled(enabled);
    true
}

/// `mi_memory_tracking_is_enabled`.
pub fn memory_tracking_is_enabled() -> bool {
    events::is_enabled()
}

/// `mi_memory_set_callbacks`; null: none. False in a signal handler that has interrupted this thread in here.
///
/// # Safety
/// Points to callbacks that may be called with their arguments until others take their place, or is null.
pub unsafe fn memory_set_callbacks(callbacks: *const u8) -> bool {
    // SAFETY: the caller's promise.
    let callbacks = unsafe { callbacks.cast::<Callbacks>().as_ref() };
    events::set_callbacks(callbacks.unwrap_or(&Callbacks::NONE))
}

/// `mi_memory_snapshot`: false, and nothing is written, if size or version are not those of this version.
///
/// # Safety
/// Points to a structure of the size that it names, or is null.
pub unsafe fn memory_snapshot(to: *mut MemorySnapshot) -> bool {
    // SAFETY: the caller's promise.
    let Some(to) = (unsafe { to.as_mut() }) else { return false };
    if to.size != size_of::<MemorySnapshot>() || to.version != VERSION {
        return false;
    }
    let events::Snapshot { live, allocated } = events::snapshot();
    (to.live_bytes, to.live_count) = (live.bytes, live.blocks);
    (to.accum_bytes, to.accum_count) = (allocated.bytes, allocated.blocks);
    true
}

/// `mi_memory_visit_live_allocations`: the blocks of all threads and heaps. False for a null visitor.
///
/// # Safety
/// The visitor may be called with `arg`.
pub unsafe fn memory_visit_live_allocations(visitor: Option<MemoryVisitor>, arg: *mut c_void) -> bool {
    let Some(visitor) = visitor else { return false };
    // SAFETY: the caller's promise.
    events::visit_live(|block, usable| unsafe { visitor(block, usable, arg) });
    true
}
