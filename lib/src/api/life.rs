//! Begin and end of the process and of modules, as the preload library sees them.

use super::c::stats;
use crate::heap::{guarded, secure};
use crate::observe::{control, events, life, observer, watch};
use crate::options::{self, Name};
use crate::os;
use crate::reclaim;
use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use crate::observe::life::{module_loading, module_unloaded, module_unloading};

/// The library was loaded, with this environment. Its own code is then a module apart.
pub fn begin(environment: *const *const c_char) {
    os::set_environment(environment);
    os::remember_standard_error();
    secure::begin();
    guarded::allow_precise();
    start();
}

/// The first thread of the process has its heap, or the environment is known now: do what the environment asks for.
pub(crate) fn start() {
    guarded::options_changed();
    events::start(options::get(Name::MemoryEvents) != 0);
    life::start();
    threads_changed();
}

/// A thread has got its heap, or has left it; or the options are known. With no lock held.
pub(crate) fn threads_changed() {
    reclaim::threads_changed();
    observer::threads_changed();
    control::threads_changed();
}

static ENDED: AtomicBool = AtomicBool::new(false);

fn nothing_is_done() -> bool {
    cfg!(feature = "no-process-detach")
        || is_set(b"MIMALLOC_NO_PROCESS_DETACH")
        || options::get(Name::DestroyOnExit) >= 2
}

/// The process ends: write the dump and the statistics that were asked for, unless nothing is to be done any more. Later calls do nothing.
pub fn end() {
    if nothing_is_done() || ENDED.swap(true, Relaxed) {
        return;
    }
    reclaim::end();
    life::end();
    if options::get(Name::ShowStats) != 0 || options::get(Name::Verbose) != 0 {
        stats::malloc_stats();
    }
}

/// The process ends by `_exit` or the like, without exit handlers and maybe in a signal handler: write the dump that was asked for, if that
/// can be done here. Does nothing in a child that shares our memory until it executes something. Later calls do nothing.
pub fn end_at_once() {
    if !life::leaves_something() || nothing_is_done() || reclaim::must_not_wait() {
        return;
    }
    if !ENDED.swap(true, Relaxed) {
        life::end_at_once();
    }
}

/// End the process, and do nothing else.
pub fn exit_process(status: i32) -> ! {
    os::exit_process(status)
}

/// In a forked child with one thread.
pub(crate) fn forked() {
    reclaim::forked();
    life::forked();
    watch::repair();
    super::c::repair();
}

/// Whether a switch is on in the environment.
pub fn is_set(name: &[u8]) -> bool {
    !os::is_privileged() && os::variable(name).is_some_and(os::is_true)
}
