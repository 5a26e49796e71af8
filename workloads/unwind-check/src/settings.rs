//! The environment, read once.

use std::env;
use std::ffi::OsString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Until the environment is known, in the first calls of a process, look often: the loader's own stacks are rare.
static EVERY: AtomicU64 = AtomicU64::new(4);
static ALONE: AtomicBool = AtomicBool::new(false);
static TIMER: AtomicU64 = AtomicU64::new(0);
static REPORT: OnceLock<Option<OsString>> = OnceLock::new();

/// To be called once, by the constructor.
pub(crate) fn read() {
    let number = |name| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    EVERY.store(number("UNWIND_CHECK_EVERY").unwrap_or(64).max(1), Relaxed);
    TIMER.store(number("UNWIND_CHECK_TIMER_US").unwrap_or(0), Relaxed);
    ALONE.store(env::var_os("UNWIND_CHECK_ALONE").is_some(), Relaxed);
    REPORT.get_or_init(|| env::var_os("UNWIND_CHECK_REPORT"));
}

/// Calls of `malloc` from one comparison to the next.
pub(crate) fn every() -> u64 {
    EVERY.load(Relaxed)
}

/// Only walk with our unwinder.
pub(crate) fn alone() -> bool {
    ALONE.load(Relaxed)
}

/// Period of the timer in microseconds.
pub(crate) fn timer_period() -> Option<u64> {
    Some(TIMER.load(Relaxed)).filter(|period| *period != 0)
}

/// The file to append the counts to.
pub(crate) fn report() -> Option<&'static OsString> {
    REPORT.get()?.as_ref()
}
