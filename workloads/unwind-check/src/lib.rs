//! A preload library that compares the allocator's unwinder with libgcc's inside any program.
//!
//! It takes `malloc`'s place, hands every call on to the C library, and at every so many calls unwinds the stack twice: with
//! the unwinder of `mimalloc-pprof` (its source is compiled in here) and with `_Unwind_Backtrace`. At exit it appends one
//! line of JSON with the counts to a file. `scripts/check-unwind` runs many programs with it and judges the lines.
//!
//! | variable | meaning |
//! |---|---|
//! | `UNWIND_CHECK_REPORT` | the file to append to; nothing is written without it |
//! | `UNWIND_CHECK_EVERY` | compare at every so many calls of `malloc` (64) |
//! | `UNWIND_CHECK_TIMER_US` | compare also in the handler of a timer with this period, at whatever instruction the program is |
//! | `UNWIND_CHECK_ALONE` | when set, do not run libgcc's unwinder, which does not survive broken stacks |
//!
//! Nothing here allocates while it compares: the lists are static, and one thread at a time uses them.

#[allow(dead_code, reason = "the allocator uses all of it")]
#[path = "../../../lib/src/observe/unwind/mod.rs"]
mod unwind;

mod compare;
mod counts;
mod libc;
mod settings;

use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// The C library's `malloc`, with a look at the stack before some calls.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    if CALLS.fetch_add(1, Relaxed).is_multiple_of(settings::every()) {
        compare::stacks();
    }
    // SAFETY: the function that this one takes the place of.
    unsafe { libc::__libc_malloc(size) }
}

/// The C library's `dlclose`; afterwards addresses may mean something else.
///
/// # Safety
/// As for `dlclose`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: the next `dlclose` after this library's is the C library's, and has this type.
    let result = unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr());
        core::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void) -> c_int>(next)(handle)
    };
    unwind::invalidate();
    result
}

extern "C" fn start() {
    settings::read();
    // SAFETY: the handler only resets counters.
    unsafe { libc::pthread_atfork(None, None, Some(counts::forget)) };
    if let Some(period) = settings::timer_period() {
        compare::start_timer(period);
    }
}

extern "C" fn end() {
    counts::report();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
