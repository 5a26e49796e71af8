//! The names of the C library. All of them: one left out would hand a block of the C library to our `free`.
//!
//! `__libc_malloc`, `__libc_free` and the like are left to the C library, all of them: `free` hands blocks that are not
//! ours to `__libc_free`, which therefore has to be the real one.

use allocator::api::c::{self, Mallinfo};
use core::ffi::c_int;

macro_rules! export {
    ($(safe $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $function:path;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            $function($($arg),*)
        }
    )*};
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $function:path;)*) => {$(
        /// # Safety
        /// As the function of this name in the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: the caller's promise is that of the function.
            unsafe { $function($($arg),*) }
        }
    )*};
}
pub(crate) use export;

export! {
    malloc(size: usize) -> *mut u8 = c::malloc;
    free(block: *mut u8) = c::free;
    calloc(count: usize, size: usize) -> *mut u8 = c::calloc;
    realloc(block: *mut u8, size: usize) -> *mut u8 = c::realloc;
    reallocarray(block: *mut u8, count: usize, size: usize) -> *mut u8 = c::reallocarray;
    memalign(alignment: usize, size: usize) -> *mut u8 = c::memalign;
    aligned_alloc(alignment: usize, size: usize) -> *mut u8 = c::aligned_alloc;
    posix_memalign(result: *mut *mut u8, alignment: usize, size: usize) -> i32 = c::posix_memalign;
    valloc(size: usize) -> *mut u8 = c::valloc;
    pvalloc(size: usize) -> *mut u8 = c::pvalloc;
    malloc_usable_size(block: *const u8) -> usize = c::usable_size;
    cfree(block: *mut u8) = c::free;
    free_sized(block: *mut u8, size: usize) = c::free_told;
    free_aligned_sized(block: *mut u8, alignment: usize, size: usize) = c::free_told_both;
    __posix_memalign(result: *mut *mut u8, alignment: usize, size: usize) -> i32 = c::posix_memalign;
    malloc_info(options: c_int, stream: *mut u8) -> c_int = c::malloc_info;
}

export! {
    safe mallinfo() -> Mallinfo<c_int> = c::mallinfo;
    safe mallinfo2() -> Mallinfo<usize> = c::mallinfo2;
    safe mallopt(parameter: c_int, value: c_int) -> c_int = c::mallopt;
    safe malloc_trim(kept: usize) -> c_int = c::malloc_trim;
    safe malloc_stats() = c::stats::malloc_stats;
}

/// Names that only other C libraries have. Programs and their libraries use them for functions of their own, which must
/// win: they are weak in the static library, and the shared one, which comes before everything else, does without.
macro_rules! weak {
    ($($name:literal = $target:path;)*) => {$(
        core::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            concat!(".weak ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            "jmp {target}",
            concat!(".size ", $name, ",.-", $name),
            ".popsection",
            target = sym $target,
        );
    )*};
}

weak! {
    "vfree" = crate::mi::mi_free;
    "reallocf" = crate::mi::mi_reallocf;
    "reallocarr" = crate::mi_posix::mi_reallocarr;
    "malloc_size" = crate::mi_posix::mi_malloc_size;
    "malloc_good_size" = crate::mi_posix::mi_malloc_good_size;
}
