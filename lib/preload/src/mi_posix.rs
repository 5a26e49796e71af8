//! mimalloc's C API: the functions of POSIX and of other C libraries, with `mi_` before their names.

use crate::malloc::export;
use allocator::api::c;
use core::ffi::c_char;

export! {
    mi_cfree(block: *mut u8) = c::free_own;
    mi__expand(block: *mut u8, size: usize) -> *mut u8 = c::expand_or_errno;
    mi_malloc_size(block: *const u8) -> usize = c::size_of_own;
    mi_malloc_usable_size(block: *const u8) -> usize = c::size_of_own;
    mi_posix_memalign(result: *mut *mut u8, alignment: usize, size: usize) -> i32 = c::posix_memalign;
    mi_memalign(alignment: usize, size: usize) -> *mut u8 = c::memalign;
    mi_valloc(size: usize) -> *mut u8 = c::valloc;
    mi_pvalloc(size: usize) -> *mut u8 = c::pvalloc;
    mi_aligned_alloc(alignment: usize, size: usize) -> *mut u8 = c::aligned_alloc;
    mi_reallocarray(block: *mut u8, count: usize, size: usize) -> *mut u8 = c::reallocn;
    mi_reallocarr(place: *mut u8, count: usize, size: usize) -> i32 = c::reallocarr;
    mi_aligned_recalloc(block: *mut u8, count: usize, size: usize, alignment: usize) -> *mut u8 = c::recalloc_aligned;
    mi_aligned_offset_recalloc(block: *mut u8, count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::recalloc_aligned_at;
    mi_dupenv_s(copy: *mut *mut c_char, size: *mut usize, name: *const c_char) -> i32 = c::dupenv_s;
    mi_wdupenv_s(copy: *mut *mut u32, size: *mut usize, name: *const u32) -> i32 = c::wdupenv_s;
    mi_wcsdup(text: *const u32) -> *mut u32 = c::wcsdup;
    mi_mbsdup(text: *const c_char) -> *mut c_char = c::strdup;
}

export! {
    safe mi_good_size(size: usize) -> usize = c::good_size;
    safe mi_malloc_good_size(size: usize) -> usize = c::good_size;
}
