//! mimalloc's C API, as `lib/include/mimalloc.h` declares it: allocation.

use crate::malloc::export;
use allocator::api::c;
use core::ffi::c_char;

export! {
    mi_malloc(size: usize) -> *mut u8 = c::malloc;
    mi_free(block: *mut u8) = c::free;
    mi_zalloc(size: usize) -> *mut u8 = c::zalloc;
    mi_calloc(count: usize, size: usize) -> *mut u8 = c::mi_calloc;
    mi_mallocn(count: usize, size: usize) -> *mut u8 = c::mallocn;
    mi_realloc(block: *mut u8, size: usize) -> *mut u8 = c::mi_realloc;
    mi_reallocn(block: *mut u8, count: usize, size: usize) -> *mut u8 = c::reallocn;
    mi_reallocf(block: *mut u8, size: usize) -> *mut u8 = c::reallocf;
    mi_rezalloc(block: *mut u8, size: usize) -> *mut u8 = c::rezalloc;
    mi_recalloc(block: *mut u8, count: usize, size: usize) -> *mut u8 = c::recalloc;
    mi_expand(block: *mut u8, size: usize) -> *mut u8 = c::expand;
    mi_usable_size(block: *const u8) -> usize = c::usable_size;
    mi_malloc_small(size: usize) -> *mut u8 = c::malloc;
    mi_zalloc_small(size: usize) -> *mut u8 = c::zalloc;
    mi_free_small(block: *mut u8) = c::free;
    mi_free_size(block: *mut u8, size: usize) = c::free_told;
    mi_free_aligned(block: *mut u8, alignment: usize) = c::free_told;
    mi_free_size_aligned(block: *mut u8, size: usize, alignment: usize) = c::free_told_both;
    mi_strdup(text: *const c_char) -> *mut c_char = c::strdup;
    mi_strndup(text: *const c_char, most: usize) -> *mut c_char = c::strndup;
    mi_realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char = c::realpath;

    mi_malloc_aligned(size: usize, alignment: usize) -> *mut u8 = c::malloc_aligned;
    mi_zalloc_aligned(size: usize, alignment: usize) -> *mut u8 = c::zalloc_aligned;
    mi_calloc_aligned(count: usize, size: usize, alignment: usize) -> *mut u8 = c::calloc_aligned;
    mi_realloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 = c::realloc_aligned;
    mi_rezalloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 = c::rezalloc_aligned;
    mi_recalloc_aligned(block: *mut u8, count: usize, size: usize, alignment: usize) -> *mut u8 = c::recalloc_aligned;
    mi_malloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut u8 = c::malloc_aligned_at;
    mi_zalloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut u8 = c::zalloc_aligned_at;
    mi_calloc_aligned_at(count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8 = c::calloc_aligned_at;
    mi_realloc_aligned_at(block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::realloc_aligned_at;
    mi_rezalloc_aligned_at(block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::rezalloc_aligned_at;
    mi_recalloc_aligned_at(block: *mut u8, count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::recalloc_aligned_at;

    mi_umalloc(size: usize, usable: *mut usize) -> *mut u8 = c::umalloc;
    mi_ucalloc(count: usize, size: usize, usable: *mut usize) -> *mut u8 = c::ucalloc;
    mi_urealloc(block: *mut u8, size: usize, before: *mut usize, after: *mut usize) -> *mut u8 = c::urealloc;
    mi_ufree(block: *mut u8, usable: *mut usize) = c::ufree;
    mi_umalloc_aligned(size: usize, alignment: usize, usable: *mut usize) -> *mut u8 = c::umalloc_aligned;
    mi_uzalloc_aligned(size: usize, alignment: usize, usable: *mut usize) -> *mut u8 = c::uzalloc_aligned;
    mi_umalloc_small(size: usize, usable: *mut usize) -> *mut u8 = c::umalloc;
    mi_uzalloc_small(size: usize, usable: *mut usize) -> *mut u8 = c::uzalloc;
}
