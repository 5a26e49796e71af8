//! A thread that allocates nothing and asks for memory to be given back.
//!
//! It is made by `pthread_create` itself, because a Rust thread allocates when it begins.

use std::ffi::c_void;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::driver::clock;
use crate::memory_return::calls;
use crate::memory_return::link::Link;
use crate::memory_return::purge::Purge;

/// When the caller calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Call {
    /// Never: there is no such thread.
    None,
    /// Every so often after the drain.
    Purge,
    /// Once, right after the drain.
    Once,
    /// There is no such thread: each thread that has freed asks for itself, once, right after it.
    Own,
}

/// What the caller does and did.
#[derive(Debug)]
pub(super) struct Caller {
    purge: Purge,
    link: Link,
    /// Time between two calls; one call only if `None`.
    every: Option<Duration>,
    /// Opens when it is time for the first call.
    gate: Barrier,
    stop: AtomicBool,
    calls: AtomicU64,
    /// Nanoseconds of processor and wall time of the first call, and of all.
    first: [AtomicU64; 2],
    all: [AtomicU64; 2],
}

impl Caller {
    /// A caller that is going to call `every` so often. `None` when the allocator has nothing to call.
    pub(super) fn new(every: Option<Duration>, link: Link) -> Option<Self> {
        Some(Self {
            purge: Purge::find()?,
            link,
            every,
            gate: Barrier::new(2),
            stop: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            first: [const { AtomicU64::new(0) }; 2],
            all: [const { AtomicU64::new(0) }; 2],
        })
    }

    /// Runs `work` beside the caller's thread. `work` opens the gate by [`Caller::begin`]; when it returns the caller stops.
    ///
    /// # Panics
    /// When there can be no further thread.
    pub(super) fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut thread = 0;
        let argument = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: `self` outlives the thread, which is joined below; everything in it may be shared.
        let error = unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), main, argument) };
        assert_eq!(error, 0, "pthread_create");
        let result = work();
        self.stop.store(true, Ordering::Relaxed);
        // SAFETY: the thread was made above and is joined once.
        unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
        result
    }

    /// Lets the calls begin.
    pub(super) fn begin(&self) {
        self.gate.wait();
    }

    /// Waits until the first call has returned.
    pub(super) fn wait_for_first(&self) {
        while self.calls.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn run(&self) {
        self.link.thread();
        self.gate.wait();
        while !self.stop.load(Ordering::Relaxed) {
            self.call_once();
            match self.every {
                Some(every) => std::thread::sleep(every),
                None => break,
            }
        }
    }

    fn call_once(&self) {
        let (cpu, wall) = (clock::thread_cpu(), clock::wall());
        calls::marked(|| self.purge.call());
        let took = [clock::thread_cpu() - cpu, clock::wall() - wall];
        for (at, took) in took.into_iter().enumerate() {
            if self.calls.load(Ordering::Relaxed) == 0 {
                self.first[at].store(took, Ordering::Relaxed);
            }
            self.all[at].fetch_add(took, Ordering::Relaxed);
        }
        self.calls.fetch_add(1, Ordering::Release);
    }

    /// Tells what it did.
    pub(super) fn tell(&self) {
        let calls = self.calls.load(Ordering::Acquire);
        let [first, all] = [&self.first, &self.all].map(|times| times.each_ref().map(|ns| ns.load(Ordering::Relaxed)));
        self.link.figure("purge_calls", calls as f64);
        self.link.figure("purge_first_cpu_ms", first[0] as f64 / 1e6);
        self.link.figure("purge_first_wall_ms", first[1] as f64 / 1e6);
        self.link.figure("purge_all_cpu_ms", all[0] as f64 / 1e6);
    }
}

extern "C" fn main(caller: *mut c_void) -> *mut c_void {
    // SAFETY: `beside` passes a caller that lives until this thread has been joined.
    unsafe { &*caller.cast::<Caller>() }.run();
    std::ptr::null_mut()
}
