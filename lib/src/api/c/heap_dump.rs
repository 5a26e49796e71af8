//! What the heap holds: `mi_heap_dump_json`, `mi_heap_snapshot` and their kind.
//!
//! Safe beside threads that allocate and free. Each slab is told as it was at one moment; blocks that threads have cached are not live.

use super::heaps::HeapHandle;
use crate::heap::{allocate, zone};
use crate::observe::heapdump::{self, Options};
use crate::os::libc::{self, EINVAL};
use core::ffi::{CStr, c_char, c_int, c_uint};

/// `MI_SNAPSHOT_BLOCKS`: with a bitmap of the blocks of each page.
pub const SNAPSHOT_BLOCKS: c_uint = heapdump::BLOCKS;
/// `MI_SNAPSHOT_V2`: version 2 of the format, which tells more.
pub const SNAPSHOT_V2: c_uint = heapdump::VERSION2;

/// `mi_heap_dump_json`, and `mi_heap_dump_json_ex`, which names a time to wait: nobody is waited for. A C string in a block of this allocator that the
/// caller frees; null with `ENOMEM` when there is no memory.
pub fn heap_dump_json(blocks: bool, hash_addresses: bool) -> *mut c_char {
    heapdump::dump(Options { blocks, hashed: hash_addresses }, |size| {
        // SAFETY: no preconditions.
        unsafe { allocate::allocate(size) }
    })
}

/// `mi_heap_dump_json_ex`.
pub fn heap_dump_json_ex(blocks: bool, hash_addresses: bool, _wait_ms: usize) -> *mut c_char {
    heap_dump_json(blocks, hash_addresses)
}

/// `mi_heap_get_seq`: how many heaps were made before this one; 0 is the main heap.
///
/// # Safety
/// The heap is in use.
pub unsafe fn heap_get_seq(heap: HeapHandle) -> usize {
    zone::number_of(heap.zone()) as usize
}

/// `mi_heap_snapshot`: 0, or -1 with `errno` when it cannot be written; a part may be written then.
pub fn heap_snapshot(descriptor: c_int, flags: c_uint) -> c_int {
    told(heapdump::to_descriptor(descriptor, flags))
}

/// `mi_heap_snapshot_to_file`: as [`heap_snapshot`]. What was there before stays if it cannot be written.
///
/// # Safety
/// The path is a C string or null.
pub unsafe fn heap_snapshot_to_file(path: *const c_char, flags: c_uint) -> c_int {
    if path.is_null() {
        return told(Err(EINVAL));
    }
    // SAFETY: the caller's promise.
    told(heapdump::to_file(unsafe { CStr::from_ptr(path) }, flags))
}

fn told(result: Result<(), i32>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(cause) => {
            libc::set_errno(cause);
            -1
        }
    }
}
