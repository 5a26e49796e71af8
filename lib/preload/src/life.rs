//! Constructor and destructor of the library, and the other ways in which a process ends. None of this is needed for allocation; the
//! profiler reads its settings in the first and writes its dump in the second, which runs after the program's own destructors.

use crate::loader;
use allocator::api::life;
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
    // Not when it is called: that may be in a signal handler, or in a child that shares our memory.
    loader::next(c"_exit", &EXIT);
    // SAFETY: the function is there as long as the library is. What was registered first is called last.
    unsafe { at_quick_exit(end_quickly) };
    if life::is_set(b"MIMALLOC_DEEPBIND") {
        loader::keep_deepbind();
    }
}

unsafe extern "C" fn end() {
    life::end();
}

unsafe extern "C" {
    fn at_quick_exit(function: extern "C" fn()) -> c_int;
}

extern "C" fn end_quickly() {
    life::end_at_once();
}

static EXIT: AtomicUsize = AtomicUsize::new(0);

/// The process ends without exit handlers: shells end like that.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    life::end_at_once();
    let real = EXIT.load(Relaxed);
    if real != 0 {
        // SAFETY: the next library's function of this name and signature, which does not return.
        unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(real)(status) }
    }
    life::exit_process(status)
}

#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}
