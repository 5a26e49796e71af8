//! What a program may have called: a function for text, one for errors, one that frees what it has put off.

use super::text::OutputFn;
use crate::os;
use core::ffi::{c_int, c_ulonglong, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*, fence};

/// Gets the number of an error. Returns normally.
pub type ErrorFn = unsafe extern "C" fn(code: c_int, arg: *mut c_void);
/// Frees what the program has put off. `force`: all of it; `heartbeat` counts the calls.
pub type DeferredFreeFn = unsafe extern "C" fn(force: bool, heartbeat: c_ulonglong, arg: *mut c_void);

/// Registrations that are kept; see [`Registered`].
const KEPT: usize = 8;

/// A function and its argument, always read as the pair that was registered, without a lock.
///
/// Each registration takes the next place of a ring, fills it, and then makes it the current one. A reader that was
/// slow enough for its place to be taken again sees that in `taken`, and looks again.
struct Registered {
    taken: AtomicUsize,
    current: AtomicUsize,
    ring: [[AtomicUsize; 2]; KEPT],
}

impl Registered {
    const fn new() -> Self {
        Registered {
            taken: AtomicUsize::new(0),
            current: AtomicUsize::new(0),
            ring: [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; KEPT],
        }
    }

    fn set(&self, function: usize, arg: *mut c_void) {
        let number = self.taken.fetch_add(1, AcqRel) + 1;
        fence(Release);
        let [place, its_arg] = &self.ring[number % KEPT];
        place.store(function, Relaxed);
        its_arg.store(arg as usize, Relaxed);
        self.current.fetch_max(number, AcqRel);
    }

    fn get(&self) -> (usize, *mut c_void) {
        loop {
            let number = self.current.load(Acquire);
            let [place, its_arg] = &self.ring[number % KEPT];
            let pair = (place.load(Relaxed), its_arg.load(Relaxed) as *mut c_void);
            fence(Acquire);
            if self.taken.load(Relaxed) < number + KEPT {
                return pair;
            }
        }
    }
}

static OUTPUT: Registered = Registered::new();
static ERROR: Registered = Registered::new();
static DEFERRED_FREE: Registered = Registered::new();

/// Threads that are in the program's function for errors, which may run into an error itself; 0 = none. Should there be more at
/// the same time, they are not kept from calling it again.
static TELLING: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

/// The thread that is in the program's deferred free; 0 = none.
static FREEING: AtomicU64 = AtomicU64::new(0);
static HEARTBEAT: AtomicU64 = AtomicU64::new(0);

/// `mi_register_output`: where text goes that no function is given for; null for standard error.
///
/// # Safety
/// The function may be called with the argument at any time from any thread, also after another one was registered.
pub unsafe fn register_output(function: Option<OutputFn>, arg: *mut c_void) {
    OUTPUT.set(function.map_or(0, |function| function as usize), arg);
}

/// `mi_register_error`: what to call when an allocation fails or a free is wrong. Such a free is then ignored; without a function
/// the process is aborted.
///
/// # Safety
/// As [`register_output`].
pub unsafe fn register_error(function: Option<ErrorFn>, arg: *mut c_void) {
    ERROR.set(function.map_or(0, |function| function as usize), arg);
}

/// `mi_register_deferred_free`: what to call at each `mi_collect`, and after so many slow allocations of a heap.
///
/// # Safety
/// As [`register_output`].
pub unsafe fn register_deferred_free(function: Option<DeferredFreeFn>, arg: *mut c_void) {
    DEFERRED_FREE.set(function.map_or(0, |function| function as usize), arg);
}

/// The registered function for text.
pub(super) fn output() -> Option<(OutputFn, *mut c_void)> {
    let (function, arg) = OUTPUT.get();
    // SAFETY: only `register_output` stores here.
    (function != 0).then(|| (unsafe { transmute::<usize, OutputFn>(function) }, arg))
}

/// Whether a function for errors is registered.
pub(super) fn handles_errors() -> bool {
    ERROR.get().0 != 0
}

/// Call the registered function for errors, unless this call comes from there. No lock may be held.
pub(super) fn error(code: i32) {
    let ((function, arg), me) = (ERROR.get(), os::thread_id());
    if function == 0 || TELLING.iter().any(|place| place.load(Relaxed) == me) {
        return;
    }
    let place = TELLING.iter().find(|place| place.compare_exchange(0, me, Acquire, Relaxed).is_ok());
    // SAFETY: only `register_error` stores here, and its caller allows the call.
    unsafe { transmute::<usize, ErrorFn>(function)(code, arg) };
    if let Some(place) = place {
        place.store(0, Release);
    }
}

/// Allocations of a heap have been slow often enough.
pub(crate) fn slowed() {
    deferred_free(false);
}

/// Call the registered deferred free, unless that is going on already (here or on another thread).
pub(super) fn deferred_free(force: bool) {
    let (function, arg) = DEFERRED_FREE.get();
    if function == 0 || FREEING.compare_exchange(0, os::thread_id(), Acquire, Relaxed).is_err() {
        return;
    }
    let heartbeat = HEARTBEAT.fetch_add(1, Relaxed) + 1;
    // SAFETY: only `register_deferred_free` stores here, and its caller allows the call.
    unsafe { transmute::<usize, DeferredFreeFn>(function)(force, heartbeat, arg) };
    FREEING.store(0, Release);
}

/// In a forked child: a thread that is not here is not in the deferred free either.
pub(super) fn repair() {
    for word in TELLING.iter().chain([&FREEING]) {
        if word.load(Relaxed) != os::thread_id() {
            word.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_never_mixed() {
        static PAIR: Registered = Registered::new();
        assert_eq!(PAIR.get().0, 0);
        std::thread::scope(|scope| {
            for writer in 1..4usize {
                scope.spawn(move || {
                    (0..100_000).for_each(|i| PAIR.set(writer * 1_000_000 + i, (writer * 1_000_000 + i) as *mut c_void))
                });
            }
            for _ in 0..200_000 {
                let (function, arg) = PAIR.get();
                assert_eq!(function, arg as usize);
            }
        });
        PAIR.set(5, 6 as *mut c_void);
        assert_eq!(PAIR.get(), (5, 6 as *mut c_void));
    }
}
