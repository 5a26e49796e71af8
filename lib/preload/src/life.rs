//! Constructor and destructor of the library. Neither is needed for allocation; the profiler reads its settings in the
//! first and writes its dump in the second, which runs after the program's own destructors.

use crate::loader;
use allocator::api::life;
use core::ffi::{c_char, c_int};

type Constructor = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: Constructor = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: unsafe extern "C" fn() = end;

/// The loader passes what it passes to `main`.
unsafe extern "C" fn begin(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    life::begin(environment);
    if life::is_set(b"MIMALLOC_DEEPBIND") {
        loader::keep_deepbind();
    }
}

unsafe extern "C" fn end() {
    life::end();
}
