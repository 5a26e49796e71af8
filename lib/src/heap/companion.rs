//! The life of a thread of our own: made when it is wanted, gone before it is in anybody's way.
//!
//! It is a guest in the program: it handles no signal, goes when no thread is left that has a heap (or it would be the last one, which
//! keeps a process alive), is ended when the process ends, and a forked child has none until it is made again. It allocates nothing
//! from the heap, so it never counts as a thread that has one.

use crate::os;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, fence};

/// How long the end of the process waits for it, in nanoseconds: it may be kept by a lock whose holder was stopped.
const PATIENCE: u64 = 1_000_000_000;
/// Attempts to make it that fail before it is given up.
const ATTEMPTS: u32 = 3;
/// How long it waits at once for who makes it to know that it is there, in nanoseconds.
const MOMENT: u64 = 10_000_000;

/// `state`: there is none.
const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
/// Not to be made again in this process.
const STOPPED: u32 = 3;
/// The last thread with a heap waits for it.
const ENDING: u32 = 4;

/// `call`: what it is woken for.
const WAIT: u32 = 0;
const NOTICED: u32 = 1;
const END: u32 = 2;

/// A thread and what is known of it. All methods but those for the thread itself may be called by any thread.
pub(crate) struct Companion {
    name: &'static CStr,
    run: extern "C" fn(*mut u8) -> *mut u8,
    /// Looks whether it is wanted: called when one has gone and somebody may have come meanwhile.
    changed: fn(),
    /// Wakes it where it waits for something else than us.
    called: Option<fn()>,
    state: AtomicU32,
    call: AtomicU32,
    /// It sleeps longer than who notices something would have it wait.
    sleeps: AtomicBool,
    /// 1 = it has ended, and is to be joined.
    ended: AtomicU32,
    thread: AtomicUsize,
    /// Its thread id as locks know it.
    id: AtomicU64,
    failures: AtomicU32,
}

impl Companion {
    pub(crate) const fn new(name: &'static CStr, run: extern "C" fn(*mut u8) -> *mut u8, changed: fn()) -> Companion {
        Companion {
            name,
            run,
            changed,
            called: None,
            state: AtomicU32::new(NONE),
            call: AtomicU32::new(WAIT),
            sleeps: AtomicBool::new(false),
            ended: AtomicU32::new(0),
            thread: AtomicUsize::new(0),
            id: AtomicU64::new(0),
            failures: AtomicU32::new(0),
        }
    }

    /// It may wait for other things than being noticed: `called` has it look whether it [is to end](Self::is_to_end).
    pub(crate) const fn called_by(mut self, called: fn()) -> Companion {
        self.called = Some(called);
        self
    }

    /// True from when it was made until it is to go.
    #[inline(always)]
    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Relaxed) == RUNNING
    }

    /// There is something for it: wake it, if it sleeps for longer than that can wait.
    #[inline(always)]
    pub(crate) fn notice(&self) {
        if self.sleeps.load(Relaxed) {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        if self.sleeps.swap(false, Relaxed) {
            self.call_for_something();
        }
    }

    /// The same, however short its sleep is. In a signal handler, too.
    pub(crate) fn call_for_something(&self) {
        let _ = self.call.compare_exchange(WAIT, NOTICED, Release, Relaxed);
        os::wake_all(&self.call);
    }

    /// A thread has got its heap, or has left it: make it if there is none and it is wanted, or let it go. With no lock held.
    pub(crate) fn threads_changed(&self, is_wanted: impl FnOnce() -> bool, start: impl FnOnce()) {
        // Either it sees that this thread has left, or this thread that no heap is borrowed any more.
        fence(SeqCst);
        match self.state.load(Acquire) {
            NONE if is_wanted() => start(),
            RUNNING if super::threads(1) == 0 => self.retire(),
            _ => {}
        }
    }

    /// The last thread with a heap ends, and waits for it. The last thread of all runs the program's exit handlers: it has not the stack
    /// for that.
    #[cold]
    fn retire(&self) {
        if self.state.compare_exchange(RUNNING, ENDING, AcqRel, Relaxed).is_ok() && self.end() {
            let _ = self.state.compare_exchange(ENDING, NONE, AcqRel, Relaxed);
            (self.changed)(); // somebody has come meanwhile, perhaps
        }
    }

    /// False: there is one, it was stopped, or that has failed too often.
    pub(crate) fn can_start(&self) -> bool {
        self.failures.load(Relaxed) < ATTEMPTS && self.state.load(Relaxed) == NONE && os::environment_is_known()
    }

    /// Make it, unless there is one, it was stopped, or that has failed too often. True: it was tried. The C library allocates for it: with
    /// no lock held.
    pub(crate) fn start(&self) -> bool {
        if !self.can_start() || self.state.compare_exchange(NONE, STARTING, AcqRel, Relaxed).is_err() {
            return false;
        }
        self.call.store(WAIT, Relaxed);
        self.ended.store(0, Relaxed);
        match os::start_thread(self.name, self.run) {
            Some(thread) => {
                self.thread.store(thread, Relaxed);
                if self.state.compare_exchange(STARTING, RUNNING, AcqRel, Relaxed).is_err() {
                    self.end(); // it was stopped before it was there
                }
            }
            None => {
                self.failures.fetch_add(1, Relaxed);
                let _ = self.state.compare_exchange(STARTING, NONE, AcqRel, Relaxed);
            }
        }
        true
    }

    /// Have it end, and wait for that, for a while. False: it has not yet.
    fn end(&self) -> bool {
        self.call.store(END, Release);
        os::wake_all(&self.call);
        if let Some(called) = self.called {
            called();
        }
        let until = os::now() + PATIENCE;
        while self.ended.load(Acquire) == 0 {
            let now = os::now();
            if now >= until {
                return false;
            }
            os::wait_on(&self.ended, 0, Some(until - now));
        }
        os::join_thread(self.thread.load(Relaxed));
        true
    }

    /// End it and wait for that, for a while. For good: it is not made again in this process.
    pub(crate) fn stop(&self) {
        let before = self.state.swap(STOPPED, AcqRel);
        if before == RUNNING && !self.is_this_thread() {
            self.end();
        }
    }

    /// In a forked child: there is none, and there may be one again.
    pub(crate) fn forked(&self) {
        self.state.store(NONE, Relaxed);
        self.call.store(WAIT, Relaxed);
        self.sleeps.store(false, Relaxed);
        self.failures.store(0, Relaxed);
        self.id.store(0, Relaxed); // a new thread may have the place of that one
    }

    pub(crate) fn is_this_thread(&self) -> bool {
        self.id.load(Relaxed) == os::thread_id()
    }
}

/// For the thread itself.
impl Companion {
    /// The first thing it does.
    pub(crate) fn begin(&self) {
        self.id.store(os::thread_id(), Relaxed);
    }

    /// It is to go.
    pub(crate) fn is_to_end(&self) -> bool {
        self.call.load(Acquire) == END
    }

    /// Sleep until somebody notices something or the time is over, unless there is something that was noticed by nobody.
    pub(crate) fn sleep(&self, time: Option<u64>, is_wanted: impl FnOnce() -> bool) {
        let _ = self.call.compare_exchange(NOTICED, WAIT, AcqRel, Relaxed);
        self.sleeps.store(true, SeqCst);
        // What came before that has told nobody.
        if !is_wanted() {
            os::wait_on(&self.call, WAIT, time);
        }
        self.sleeps.store(false, SeqCst);
        let _ = self.call.compare_exchange(NOTICED, WAIT, AcqRel, Relaxed);
    }

    /// Sleep for a time, or until it is to go.
    pub(crate) fn nap(&self, time: u64) {
        let until = os::now() + time;
        while !self.is_to_end() {
            // Who was to wake it from a longer sleep may come late.
            let _ = self.call.compare_exchange(NOTICED, WAIT, AcqRel, Relaxed);
            let now = os::now();
            if now >= until {
                return;
            }
            os::wait_on(&self.call, WAIT, Some(until - now));
        }
    }

    /// The last thing it does, whether it goes by itself or somebody waits for that.
    pub(crate) fn leave(&self) {
        self.id.store(0, Relaxed);
        // Who makes it does not know yet that it is there: it would be taken to run for ever.
        while self.state.load(Acquire) == STARTING {
            os::wait_on(&self.state, STARTING, Some(MOMENT));
        }
        if self.state.compare_exchange(RUNNING, NONE, AcqRel, Relaxed).is_ok() {
            os::detach_this_thread();
            (self.changed)(); // a thread may have come meanwhile
            return;
        }
        self.ended.store(1, Release);
        os::wake_all(&self.ended);
    }
}
