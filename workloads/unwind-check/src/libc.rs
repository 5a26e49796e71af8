//! What is needed of the C library and of libgcc.

use core::ffi::{c_char, c_int, c_long, c_void};

/// `struct itimerspec` (`<time.h>`): period and first time, each as seconds and nanoseconds.
#[repr(C)]
pub(crate) struct TimerTimes {
    pub(crate) period: [c_long; 2],
    pub(crate) first: [c_long; 2],
}

/// The part of `struct sigevent` (`<signal.h>`) that says which signal to send.
#[repr(C)]
pub(crate) struct TimerEvent {
    pub(crate) value: usize,
    pub(crate) signal: c_int,
    pub(crate) kind: c_int,
    pub(crate) rest: [u64; 6],
}

/// `struct sigaction` as the C library has it on x86-64 Linux.
#[repr(C)]
pub(crate) struct Action {
    pub(crate) handler: extern "C" fn(c_int),
    pub(crate) mask: [u64; 16],
    pub(crate) flags: c_int,
    pub(crate) restorer: usize,
}

/// What `dladdr` says of an address.
#[repr(C)]
pub(crate) struct Place {
    pub(crate) file: *const c_char,
    pub(crate) base: usize,
    pub(crate) symbol: *const c_char,
    pub(crate) symbol_at: usize,
}

pub(crate) const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
pub(crate) const CLOCK_MONOTONIC: c_int = 1;
/// Interrupted system calls go on, and the handler runs on the program's stack for signals if it has one.
pub(crate) const SA_RESTART_ON_STACK: c_int = 0x1000_0000 | 0x0800_0000;

pub(crate) type Visitor = extern "C" fn(*mut c_void, *mut c_void) -> c_int;

unsafe extern "C" {
    pub(crate) fn __libc_malloc(size: usize) -> *mut c_void;
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn dladdr(address: usize, place: *mut Place) -> c_int;
    pub(crate) fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    pub(crate) fn sigaction(signal: c_int, action: *const Action, old: *mut Action) -> c_int;
    pub(crate) fn timer_create(clock: c_int, event: *mut TimerEvent, timer: *mut usize) -> c_int;
    pub(crate) fn timer_settime(timer: usize, flags: c_int, times: *const TimerTimes, old: *mut TimerTimes) -> c_int;
    pub(crate) fn _Unwind_Backtrace(visit: Visitor, argument: *mut c_void) -> c_int;
    pub(crate) fn _Unwind_GetIPInfo(context: *mut c_void, before_instruction: *mut c_int) -> usize;
}
