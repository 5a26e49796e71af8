//! What was sampled, stack by stack.

use crate::observe::sampler::{Snapshot, Visitor};
use core::ffi::c_void;

/// `mi_prof_sample_info_t`: what is known of a stack: numbers of sampled blocks and their usable bytes, not estimates.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SampleInfo {
    /// Return addresses, innermost first.
    pub stack: *const *const c_void,
    /// How many there are.
    pub depth: usize,
    /// Blocks that are live.
    pub live_objects: usize,
    /// Their bytes.
    pub live_bytes: usize,
    /// Blocks that were ever allocated, since the start or the last reset.
    pub accum_objects: usize,
    /// Their bytes.
    pub accum_bytes: usize,
}

/// Gets one stack after another; false ends the visit.
pub type SampleVisitor = unsafe extern "C" fn(info: *const SampleInfo, arg: *mut c_void) -> bool;

/// `mi_prof_snapshot_t`, which only we look into.
pub type ProfSnapshot = c_void;

/// `mi_prof_visit`: every stack, as it is now. False: the visitor has ended it, or there is none, or no memory.
///
/// # Safety
/// The visitor may be called with the argument.
pub unsafe fn prof_visit(visitor: Option<SampleVisitor>, arg: *mut c_void) -> bool {
    let snapshot = prof_snapshot_new();
    // SAFETY: the caller's promise; the snapshot is ours.
    unsafe {
        let complete = prof_snapshot_visit(snapshot, visitor, arg);
        prof_snapshot_free(snapshot);
        complete
    }
}

/// `mi_prof_snapshot_new`: every stack, as it is now, to be looked at later. Null: no memory.
pub fn prof_snapshot_new() -> *mut ProfSnapshot {
    Snapshot::take().map_or(core::ptr::null_mut(), |snapshot| (&raw mut *snapshot).cast())
}

/// `mi_prof_snapshot_visit`: as `mi_prof_visit`.
///
/// # Safety
/// `snapshot` is null or a snapshot, and the visitor may be called with the argument.
pub unsafe fn prof_snapshot_visit(
    snapshot: *const ProfSnapshot,
    visitor: Option<SampleVisitor>,
    arg: *mut c_void,
) -> bool {
    let (Some(visitor), false) = (visitor, snapshot.is_null()) else { return false };
    let Some(_visitor) = Visitor::enter() else { return false };
    // SAFETY: the caller's promise.
    let stacks = unsafe { (*snapshot.cast::<Snapshot>()).stacks() };
    stacks.iter().all(|stack| {
        let info = SampleInfo {
            stack: stack.frames.cast(),
            depth: stack.depth,
            live_objects: stack.live,
            live_bytes: stack.live_bytes,
            accum_objects: stack.allocated,
            accum_bytes: stack.allocated_bytes,
        };
        // SAFETY: the caller's promise.
        unsafe { visitor(&raw const info, arg) }
    })
}

/// `mi_prof_snapshot_free`. Null is allowed.
///
/// # Safety
/// `snapshot` is null or a snapshot that is used no more.
pub unsafe fn prof_snapshot_free(snapshot: *mut ProfSnapshot) {
    if !snapshot.is_null() {
        // SAFETY: the caller's promise.
        unsafe { Snapshot::free(snapshot.cast()) };
    }
}
