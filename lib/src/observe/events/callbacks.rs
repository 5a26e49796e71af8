//! The program's callbacks: read by every thread at every call, without a lock, and changed now and then.
//!
//! There are two tables; the number of the present one is raised when the other has been written. Who reads looks at the number again
//! afterwards: only if two changes came in between may the table have been written to meanwhile.
//!
//! Who changes them waits until no other thread runs a callback that it has read before, so that the program may do away with what the callbacks
//! use. For that, each thread counts itself in, in one of two rows, while it is at it. A change sends those that come later to the other
//! row, and waits for the first to be empty; who has chosen a row that is not the present one any more chooses again.

use super::Sum;
use crate::os::{self, libc, lock::Lock};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*, fence};

/// Allocated, freed, other size.
pub(crate) const KINDS: usize = 3;

/// `mi_memory_change_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) kind: i32,
    /// Live bytes after this.
    pub(crate) total_bytes: u64,
    pub(crate) delta_bytes: i64,
    /// What was asked for; 0 for a free.
    pub(crate) request_size: u64,
}
const _: () = assert!(size_of::<Change>() == 32);

/// `mi_memory_change_fun`.
pub(crate) type Handler = unsafe extern "C" fn(*const Change, *mut c_void);

/// `mi_memory_callbacks_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Callbacks {
    pub(crate) handlers: [Option<Handler>; KINDS],
    pub(crate) args: [*mut c_void; KINDS],
}
const _: () = assert!(size_of::<Callbacks>() == 48);

impl Callbacks {
    pub(crate) const NONE: Callbacks = Callbacks { handlers: [None; KINDS], args: [core::ptr::null_mut(); KINDS] };
}

struct Table {
    handlers: [AtomicUsize; KINDS],
    args: [AtomicPtr<c_void>; KINDS],
}

static TABLES: [Table; 2] = [const {
    Table {
        handlers: [const { AtomicUsize::new(0) }; KINDS],
        args: [const { AtomicPtr::new(core::ptr::null_mut()) }; KINDS],
    }
}; 2];
/// The present table is the one with the last bit of this.
static NUMBER: AtomicUsize = AtomicUsize::new(0);
/// How many callbacks there are.
static ANY: AtomicU32 = AtomicU32::new(0);
/// One change at a time.
static CHANGE: Lock = Lock::new();
/// One that waits at a time: when it has, the row that was not the present one is empty.
static WAIT: Lock = Lock::new();

/// Threads that run callbacks, by row.
#[repr(C, align(128))]
struct Running([AtomicU32; 2]);
const PLACES: usize = 16;
static RUNNING: [Running; PLACES] = [const { Running([const { AtomicU32::new(0) }; 2]) }; PLACES];
/// The present row is the last bit of this.
static ROW: AtomicUsize = AtomicUsize::new(0);

/// A callback that this thread runs.
struct Here {
    /// Where it counts.
    counter: &'static AtomicU32,
    /// What is about to be freed, and is still counted as live.
    pending: Sum,
}

thread_word!(
    /// Address of what is known of the callback that this thread runs; 0 = none.
    here_word, set_here_word, "mimalloc_pprof_callback", const 0
);

fn here() -> Option<&'static Here> {
    // SAFETY: set while the place on this thread's stack is there.
    unsafe { (here_word() as *const Here).as_ref() }
}

/// This thread runs a callback.
#[inline]
pub(super) fn is_here() -> bool {
    here_word() != 0
}

/// What is about to be freed, of which this thread's callback is told.
pub(super) fn pending_here() -> Sum {
    here().map_or(Sum::default(), |here| here.pending)
}

/// There is a callback.
#[inline]
pub(super) fn any() -> bool {
    ANY.load(Relaxed) != 0
}

/// Use these callbacks from now on. Returns when no other thread runs one of those before, unless this is called in a callback, which would have
/// to wait for itself. False: a signal handler has interrupted this thread in here.
pub(crate) fn set(callbacks: &Callbacks) -> bool {
    if CHANGE.held_by_me() || WAIT.held_by_me() {
        return false;
    }
    // Not held by who waits: a callback that changes the callbacks may be what is waited for.
    let waits = !is_here();
    if waits {
        WAIT.lock();
    }
    CHANGE.lock();
    write(callbacks);
    CHANGE.unlock();
    if waits {
        let row = ROW.fetch_add(1, SeqCst) % 2;
        while RUNNING.iter().any(|place| place.0[row].load(SeqCst) != 0) {
            pause();
        }
        WAIT.unlock();
    }
    super::calibrate();
    true
}

/// Write the table that is not the present one, and make it that.
fn write(callbacks: &Callbacks) {
    let number = NUMBER.load(Relaxed) + 1;
    let table = &TABLES[number % 2];
    fence(SeqCst);
    for kind in 0..KINDS {
        table.handlers[kind].store(callbacks.handlers[kind].map_or(0, |handler| handler as usize), Relaxed);
        table.args[kind].store(callbacks.args[kind], Relaxed);
    }
    NUMBER.store(number, SeqCst);
    ANY.store(callbacks.handlers.iter().flatten().count() as u32, SeqCst);
}

/// For a moment.
fn pause() {
    static NEVER: AtomicU32 = AtomicU32::new(0);
    os::futex_wait(NEVER.as_ptr(), 0);
}

/// Tell the callback for this kind, if there is one.
pub(super) fn tell(kind: usize, pending: Sum, change: impl FnOnce() -> Change) {
    let counter = count_in();
    let (handler, arg) = read(kind);
    if handler != 0 {
        let change = change();
        let here = Here { counter, pending };
        let errno = libc::errno();
        set_here_word(&raw const here as usize);
        // SAFETY: the program's function, as it was given to us.
        unsafe { core::mem::transmute::<usize, Handler>(handler)(&change, arg) };
        set_here_word(0);
        libc::set_errno(errno);
    }
    counter.fetch_sub(1, Release);
}

fn count_in() -> &'static AtomicU32 {
    let place = &RUNNING[(os::thread_id() >> 12) as usize % PLACES];
    loop {
        let row = ROW.load(SeqCst);
        let counter = &place.0[row % 2];
        counter.fetch_add(1, SeqCst);
        if ROW.load(SeqCst) == row {
            return counter;
        }
        counter.fetch_sub(1, Release);
    }
}

fn read(kind: usize) -> (usize, *mut c_void) {
    loop {
        let number = NUMBER.load(SeqCst);
        let table = &TABLES[number % 2];
        let pair = (table.handlers[kind].load(Relaxed), table.args[kind].load(Relaxed));
        fence(Acquire);
        if NUMBER.load(Relaxed) == number {
            return pair;
        }
    }
}

/// In a forked child: who ran callbacks is not here, but for this thread.
pub(super) fn repair() {
    for place in &RUNNING {
        place.0.iter().for_each(|row| row.store(0, Relaxed));
    }
    if let Some(here) = here() {
        here.counter.store(1, Relaxed);
    }
    if CHANGE.held_by_vanished() {
        let there = TABLES[NUMBER.load(Relaxed) % 2].handlers.iter().filter(|handler| handler.load(Relaxed) != 0);
        ANY.store(there.count() as u32, Relaxed);
        CHANGE.reset();
    }
    if WAIT.held_by_vanished() {
        WAIT.reset();
    }
}
