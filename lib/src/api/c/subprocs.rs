//! `mi_subproc_…`: heaps that are ended together, and threads that allocate from one of them by default.

use super::HeapHandle;
use crate::heap::zone::subprocess::{self, Subprocess};
use core::ffi::c_void;

/// `mi_subproc_id_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct SubprocId {
    id: *mut Subprocess,
}

impl SubprocId {
    pub(super) fn process(self) -> *mut Subprocess {
        if self.id.is_null() { subprocess::first() } else { self.id }
    }
}

/// Gets a heap; false ends the visit.
pub type HeapVisitor = unsafe extern "C" fn(heap: HeapHandle, arg: *mut c_void) -> bool;

/// `mi_subproc_main`: the one that threads are in that were added to none.
pub fn subproc_main() -> SubprocId {
    SubprocId { id: subprocess::first() }
}

/// `mi_subproc_current`: that of the calling thread.
pub fn subproc_current() -> SubprocId {
    SubprocId { id: subprocess::current() }
}

/// `mi_subproc_new`: with a main heap of its own. Null: no memory.
pub fn subproc_new() -> SubprocId {
    SubprocId { id: subprocess::create() }
}

/// `mi_subproc_destroy`: destroys all its heaps. The main one and null are left alone.
///
/// # Safety
/// As `mi_heap_destroy` for all its heaps.
pub unsafe fn subproc_destroy(process: SubprocId) {
    // SAFETY: the caller's promise.
    unsafe { subprocess::destroy(process.id) }
}

/// `mi_subproc_add_current_thread`: from now on the thread allocates from the main heap of the sub-process by default, and the heaps
/// it makes are the sub-process's.
///
/// # Safety
/// It is in use.
pub unsafe fn subproc_add_current_thread(process: SubprocId) {
    // SAFETY: the caller's promise.
    unsafe { subprocess::join(process.process()) };
}

/// `mi_subproc_visit_heaps`: call the visitor with each heap, the main one first. False: it was ended by the visitor.
///
/// # Safety
/// The visitor may be called with the argument. It may make heaps, and end those that it is called with.
pub unsafe fn subproc_visit_heaps(process: SubprocId, visitor: Option<HeapVisitor>, arg: *mut c_void) -> bool {
    let Some(visitor) = visitor else { return false };
    // SAFETY: the caller's promise.
    subprocess::each_zone(process.process(), |zone| unsafe { visitor(HeapHandle::of(zone), arg) })
}
