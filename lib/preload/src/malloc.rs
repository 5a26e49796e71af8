//! The names of the C library. All of them: one left out would hand a block of the C library to our `free`.

use allocator::api::c;

macro_rules! export {
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
}

/// # Safety
/// As `free_sized` in C23. The size is a hint that is not trusted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut u8, _: usize) {
    // SAFETY: as `free`.
    unsafe { c::free(block) }
}

/// # Safety
/// As `free_aligned_sized` in C23.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut u8, _: usize, _: usize) {
    // SAFETY: as `free`.
    unsafe { c::free(block) }
}
