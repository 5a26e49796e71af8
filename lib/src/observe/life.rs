//! Begin, fork and end of the process.

use super::dump::Format;
use super::heapdump::at_exit;
use super::settings::{self, Follow, Named};
use super::{control, dump, exact, files, inherited, marks, modules, observer, sampler, timeline, triggers, unwind};
use crate::{arena, os};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// The environment has been read.
static READ: AtomicBool = AtomicBool::new(false);
/// The process that is looked at; 0 = none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static FOLLOW_FORKS: AtomicBool = AtomicBool::new(false);

/// When that began: see [`os::now`].
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds since this process began to be looked at.
pub(super) fn age() -> u64 {
    age_at(os::now())
}

/// The same at another time.
pub(super) fn age_at(time: u64) -> u64 {
    time.saturating_sub(BEGAN.load(Relaxed))
}

/// Something is to be written when the process ends, and it is no child that shares our memory. Asks the kernel, and touches nothing.
pub(crate) fn leaves_something() -> bool {
    is_ours() || at_exit::is_due()
}

/// This process is looked at: it is no child that shares our memory until it executes something, nor one that is not followed. Asks the
/// kernel, and touches nothing.
pub(crate) fn is_ours() -> bool {
    PROCESS.load(Acquire) == os::process_id()
}

/// The process ends: write the dump that was asked for.
pub(crate) fn end() {
    at_exit::write();
    if is_ours() {
        control::stop();
        observer::stop();
        write_last();
    }
}

/// The process ends here and now, in the middle of whatever it does: no exit handlers, no destructors, and maybe a signal handler. The
/// dump is written if nothing stands in the way; else the last snapshot has to do.
pub(crate) fn end_at_once() {
    at_exit::write();
    if is_ours() && !is_busy_here() {
        control::stop_soon();
        observer::stop_soon();
        write_last();
        files::close();
    }
}

fn write_last() {
    timeline::finish();
    files::write_last();
    // Nothing is told where a signal handler ends the process in the middle of an event: see `docs/environment.md`.
    if exact::was_on() && !exact::is_busy_here() {
        files::write(Named::Exact, 0);
    }
    files::tell();
}

/// A signal handler has interrupted this thread in here.
fn is_busy_here() -> bool {
    files::is_busy_here()
}

/// A module is about to be loaded.
pub fn module_loading() {
    modules::loading();
}

/// A module is about to be unloaded, if nobody else uses it: while it is there its name can be found out.
pub fn module_unloading() {
    if sampler::hold().is_some() {
        modules::unloading();
    }
}

/// A module was unloaded: what is known about code at its addresses is no longer true.
pub fn module_unloaded() {
    unwind::invalidate();
    if sampler::hold().is_some() {
        modules::unloaded();
    }
}

/// Do what the environment asks for, as soon as it is known. Later calls do nothing.
pub(crate) fn start() {
    arena::reserve_at_start();
    if !os::environment_is_known() || READ.swap(true, AcqRel) {
        return;
    }
    at_exit::start();
    let Some(settings) = settings::read() else { return };
    know_own_code();
    let timeline = settings.timeline.is_some_and(timeline::start);
    if settings.profiles && !sampler::start(&settings.profile) {
        os::complain(b"no memory for the profiler; the program goes on without");
        return;
    }
    if settings.exact && !exact::start(exact::memory()) {
        os::complain(b"no memory for the exact profiler; the program goes on without");
    }
    FOLLOW_FORKS.store(settings.follow == Follow::All, Relaxed);
    BEGAN.store(os::now(), Relaxed);
    PROCESS.store(os::process_id(), Release);
    let takes = triggers::start(settings.triggers);
    let timeline = settings.timeline.filter(|_| timeline);
    if takes.anything || timeline.is_some() || settings.control {
        let takes_thread = takes.thread || timeline.is_some_and(|options| options.takes_thread);
        let threads = if takes_thread { 1 } else { 2 };
        observer::start(if takes.anything || timeline.is_some() { threads } else { 0 });
    }
    if settings.control {
        control::start();
    }
}

/// In a forked child with one thread.
pub(crate) fn forked() {
    at_exit::forked();
    dump::repair();
    modules::repair();
    exact::repair();
    sampler::forked();
    files::forked();
    inherited::forked();
    if PROCESS.load(Relaxed) == 0 {
        return;
    }
    let follows = FOLLOW_FORKS.load(Relaxed);
    timeline::forked(follows);
    observer::forked(follows);
    control::forked(follows);
    marks::forked();
    BEGAN.store(os::now(), Relaxed);
    if follows {
        PROCESS.store(os::process_id(), Release);
    } else {
        sampler::stop_in_child();
        exact::stop_in_child();
    }
}

/// The program wants a dump at exit. The environment counts more, unless this `overrides` it. False: the name is too long.
pub(crate) fn dump_at_exit(name: &[u8], overrides: bool) -> bool {
    if !overrides && settings::is_named(Named::Exit) {
        return true;
    }
    let is_set = settings::set_exit(name);
    if is_set {
        PROCESS.store(os::process_id(), Release);
    }
    is_set
}

/// The program wants dumps in this form. The environment counts more, unless this `overrides` it.
pub(crate) fn dump_format(format: Format, overrides: bool) {
    if overrides || !settings::is_format_set() {
        settings::set_format(format);
    }
}

/// Have the code of this library left out of stacks, if it can be told apart.
pub(crate) fn know_own_code() {
    if let Some(own) = own_code() {
        sampler::set_own_code(own);
    }
}

/// The code of this library, if it is a library: as part of a program it cannot be told from the program's own code.
fn own_code() -> Option<core::ops::Range<usize>> {
    let own = modules::begin(own_code as *const () as usize)?;
    let program = os::program_entry();
    (!own.contains(&program)).then_some(own)
}
