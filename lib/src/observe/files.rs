//! The files of this process: their names, and what becomes of those that cannot be written.
//!
//! Whoever has a dump written, by whatever trigger, comes through here: one at a time, on a stack that is large enough.

use super::output::Failure;
use super::path::{Path, expand};
use super::settings::{self, Named, is_named, with_pattern};
use super::{dump, exact, inherited};
use crate::os::{self, libc, lock::Lock};
use core::fmt::Write;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::*};

/// One file at a time.
static WRITING: Lock = Lock::new();
/// Files of this process that could not be written.
static FAILED: AtomicU64 = AtomicU64::new(0);
/// Those of them that nobody was told of.
static UNTOLD: AtomicU64 = AtomicU64::new(0);
/// Why the last of them could not, as `errno` has it.
static CAUSE: AtomicI32 = AtomicI32::new(0);
/// The number of the last triggered dump.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Write a file of this kind, if it is wanted at all. `number`: what `%n` is. False: it could not be written, which is counted.
pub(crate) fn write(file: Named, number: u32) -> bool {
    let write = |file| !is_named(file) || os::on_large_stack(|| write_here(file, number));
    WRITING.held_by_me() || (write(file) & (file != Named::Exit || write(Named::ExitPacked)))
}

/// Write the next numbered dump. Its number; `None`: it could not be written, or there is no name for it.
pub(crate) fn write_next() -> Option<u32> {
    if !is_named(Named::Dump) {
        return None;
    }
    let number = NUMBER.fetch_add(1, Relaxed) + 1;
    write(Named::Dump, number).then_some(number)
}

/// Remove a file that [`write()`] has written.
pub(crate) fn remove(file: Named, number: u32) {
    os::on_large_stack(|| {
        if let Ok(path) = path(file, number) {
            path.remove();
        }
    });
}

#[inline(never)]
fn write_here(file: Named, number: u32) -> bool {
    WRITING.lock();
    let written = path(file, number).and_then(|path| match file {
        Named::Exact => exact::write(&path),
        _ => dump::write(&path, settings::format(file)),
    });
    WRITING.unlock();
    if let Err(why) = written {
        FAILED.fetch_add(1, Relaxed);
        UNTOLD.fetch_add(1, Relaxed);
        CAUSE.store(why.cause, Relaxed);
    }
    written.is_ok()
}

/// The dump at exit could not be written, or one before: say so, once.
pub(crate) fn tell_failures() {
    if UNTOLD.swap(0, Relaxed) == 0 {
        return;
    }
    os::on_large_stack(|| {
        let file = if is_named(Named::Exit) { Named::Exit } else { Named::Dump };
        let path = path(file, NUMBER.load(Relaxed)).unwrap_or(Path::EMPTY);
        let mut why = Path::EMPTY;
        let _ = write!(why, ": {}", Failure::from(CAUSE.load(Relaxed)));
        os::complain_parts(&[b"cannot write the profile ", path.as_bytes(), why.as_bytes()]);
    });
}

/// What every dump is to tell about this process and its files.
pub(crate) fn facts(mut tell: impl FnMut(&str, u64)) {
    tell("failed_dumps", FAILED.load(Relaxed));
    if let Some(samples) = inherited::live() {
        tell("inherited_samples", samples);
    }
}

/// A signal handler has interrupted this thread while it writes.
pub(crate) fn is_busy_here() -> bool {
    WRITING.held_by_me()
}

/// In a forked child with one thread.
pub(crate) fn forked() {
    if WRITING.held_by_vanished() {
        WRITING.reset();
    }
    settings::forked();
    for count in [&FAILED, &UNTOLD] {
        count.store(0, Relaxed);
    }
    NUMBER.store(0, Relaxed);
}

fn path(file: Named, number: u32) -> Result<Path, Failure> {
    let mut path = Path::EMPTY;
    let expanded = with_pattern(file, |pattern| expand(pattern, number, &mut path));
    expanded.unwrap_or(Err(libc::EDEADLK)).map(|()| path).map_err(Failure::from)
}
