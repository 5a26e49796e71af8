//! A call for every allocation, free and change of size in the process, and exact totals. Costs nothing while it is off.
//!
//! ```
//! # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
//! use mimalloc_pprof::memory_events;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! static ALLOCATED: AtomicU64 = AtomicU64::new(0);
//! static CALLBACKS: memory_events::Callbacks = memory_events::Callbacks {
//!     allocate: Some(|change| { ALLOCATED.fetch_add(change.total_bytes, Relaxed); }),
//!     free: None,
//!     resize: None,
//! };
//! assert!(memory_events::set_callbacks(&CALLBACKS));
//! memory_events::set_enabled(true);
//! let before = memory_events::snapshot().unwrap();
//! let kept = vec![0u8; 10_000];
//! let after = memory_events::snapshot().unwrap();
//! memory_events::set_enabled(false);
//! memory_events::clear_callbacks();
//! assert!(after.live_bytes - before.live_bytes >= 10_000 && ALLOCATED.load(Relaxed) >= 10_000);
//! # drop(kept);
//! ```

use super::sys;
use crate::api::c;
use core::ffi::c_void;

/// What has happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was allocated.
    Allocate,
    /// It was freed.
    Free,
    /// It has another size, and maybe another place.
    Resize,
}

/// Something that has happened. Bytes are usable bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What.
    pub kind: ChangeKind,
    /// Bytes of the block.
    pub total_bytes: u64,
    /// What is more or less live than before.
    pub delta_bytes: i64,
    /// Bytes that were asked for; 0 of a free.
    pub request_size: u64,
}

/// What is live, and what was ever allocated while events were on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Live bytes.
    pub live_bytes: u64,
    /// Bytes allocated.
    pub accum_bytes: u64,
    /// Live blocks.
    pub live_count: u64,
    /// Blocks allocated.
    pub accum_count: u64,
}

/// Functions that are called, in the thread where it happens and with no lock held. What they allocate themselves is not told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Callbacks {
    /// For each allocation.
    pub allocate: Option<fn(&Change)>,
    /// For each free.
    pub free: Option<fn(&Change)>,
    /// For each change of size.
    pub resize: Option<fn(&Change)>,
}

/// Switch events on or off. Always true.
pub fn set_enabled(enabled: bool) -> bool {
    c::memory_tracking_set_enabled(enabled)
}

/// Whether they are on.
pub fn is_enabled() -> bool {
    c::memory_tracking_is_enabled()
}

/// The totals now. `None` does not happen in this version.
pub fn snapshot() -> Option<Snapshot> {
    let mut raw = sys::mi_memory_snapshot_t {
        size: size_of::<sys::mi_memory_snapshot_t>(),
        version: sys::MI_MEMORY_SNAPSHOT_VERSION,
        ..Default::default()
    };
    // SAFETY: size and version are set.
    let done = unsafe { sys::mi_memory_snapshot(&raw mut raw) };
    let sys::mi_memory_snapshot_t { live_bytes, accum_bytes, live_count, accum_count, .. } = raw;
    done.then_some(Snapshot { live_bytes, accum_bytes, live_count, accum_count })
}

/// Have these called from now on, instead of any others. The process ends if one of them panics. False only in a signal handler that has
/// interrupted such a call.
pub fn set_callbacks(callbacks: &'static Callbacks) -> bool {
    let arg = core::ptr::from_ref(callbacks).cast_mut().cast::<c_void>();
    let handler = |wanted: bool| wanted.then_some(dispatch as sys::mi_memory_change_fun);
    let raw = sys::mi_memory_callbacks_t {
        handlers: [
            handler(callbacks.allocate.is_some()),
            handler(callbacks.free.is_some()),
            handler(callbacks.resize.is_some()),
        ],
        args: [arg; sys::MI_MEMORY_CHANGE_COUNT],
    };
    // SAFETY: the callbacks live for ever.
    unsafe { sys::mi_memory_set_callbacks(&raw const raw) }
}

/// Call nobody any more. False as above.
pub fn clear_callbacks() -> bool {
    // SAFETY: null is allowed.
    unsafe { sys::mi_memory_set_callbacks(core::ptr::null()) }
}

unsafe extern "C" fn dispatch(change: *const sys::mi_memory_change_t, callbacks: *mut c_void) {
    // SAFETY: what `set_callbacks` has given, and a change.
    let (raw, callbacks) = unsafe { (&*change, &*callbacks.cast_const().cast::<Callbacks>()) };
    let (kind, function) = match raw.kind {
        sys::MI_MEMORY_ALLOCATE => (ChangeKind::Allocate, callbacks.allocate),
        sys::MI_MEMORY_FREE => (ChangeKind::Free, callbacks.free),
        _ => (ChangeKind::Resize, callbacks.resize),
    };
    let &sys::mi_memory_change_t { total_bytes, delta_bytes, request_size, .. } = raw;
    if let Some(function) = function {
        function(&Change { kind, total_bytes, delta_bytes, request_size });
    }
}

/// Call a function with every live block of all threads, and its usable bytes, until it returns false. The process ends if it panics.
///
/// # Safety
/// Blocks that are freed meanwhile may be among them: they must not be looked into, unless the caller knows that they are live. The function neither
/// allocates nor frees.
pub unsafe fn visit_live_allocations<F>(mut visitor: F) -> bool
where
    F: FnMut(*mut u8, usize) -> bool,
{
    unsafe extern "C" fn call<F: FnMut(*mut u8, usize) -> bool>(
        block: *mut c_void,
        usable: usize,
        visitor: *mut c_void,
    ) -> bool {
        // SAFETY: the function below.
        unsafe { (*visitor.cast::<F>())(block.cast(), usable) }
    }
    // SAFETY: the function is used no longer than the call takes.
    unsafe { sys::mi_memory_visit_live_allocations(call::<F>, (&raw mut visitor).cast()) }
}
