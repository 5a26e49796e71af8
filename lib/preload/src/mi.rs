//! mimalloc's C API, as `lib/include/mimalloc.h` declares it.

use crate::malloc::export;
use allocator::api::c;

export! {
    mi_malloc(size: usize) -> *mut u8 = c::malloc;
    mi_free(block: *mut u8) = c::free;
    mi_zalloc(size: usize) -> *mut u8 = c::zalloc;
    mi_calloc(count: usize, size: usize) -> *mut u8 = c::calloc;
    mi_realloc(block: *mut u8, size: usize) -> *mut u8 = c::mi_realloc;
    mi_usable_size(block: *const u8) -> usize = c::usable_size;
}

/// # Safety
/// As `mi_malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mi_malloc_aligned(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    unsafe { c::aligned_alloc(alignment, size) }
}

/// Version of the API: the mimalloc release whose interface this is, as major * 10000 + minor * 100 + patch.
#[unsafe(no_mangle)]
pub extern "C" fn mi_version() -> i32 {
    30500
}
