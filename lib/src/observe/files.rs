//! The files of this process: their names, and what becomes of those that cannot be written.
//!
//! Whoever has a dump written, by whatever trigger, comes through here: one at a time, on a stack that is large enough.

use super::dump::{self, Format};
use super::output::Failure;
use super::path::{Path, expand};
use super::settings::{self, Named, is_named, with_pattern};
use super::{exact, inherited, life, marks, sampler};
use crate::os::{self, libc, lock::Lock};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};

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
/// Dumps that were written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// The user has ended the run: what was written then is not to be written over by a dump of nothing.
static STANDS: AtomicBool = AtomicBool::new(false);

/// Write a file of this kind, if it is wanted at all. `number`: what `%n` is. False: it could not be written, which is counted.
pub(crate) fn write(file: Named, number: u32) -> bool {
    let write = |file| !is_named(file) || os::on_large_stack(|| write_here(file, number));
    WRITING.held_by_me() || (write(file) & (file != Named::Exit || write(Named::ExitPacked)))
}

/// Write the dump that is left when the process ends.
pub(crate) fn write_last() -> bool {
    if STANDS.load(Relaxed) && sampler::hold().is_none() {
        return true;
    }
    STANDS.store(false, Relaxed);
    write(Named::Exit, 0)
}

/// The run is about to be ended by the user: write that dump now, and not again without another run. False: there is none, or it
/// could not be written.
pub(super) fn write_last_of_run() -> bool {
    let written = is_named(Named::Exit) && write_last();
    STANDS.store(true, Relaxed);
    written
}

/// Write to where the user says.
pub(super) fn write_to(path: &Path, format: Format) -> Result<(), Failure> {
    if WRITING.held_by_me() {
        return Err(Failure::from(libc::EDEADLK));
    }
    let written = os::on_large_stack(|| write_path(path, format));
    count(written);
    written
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
    let written = path(file, number).and_then(|path| match file {
        Named::Exact => under_lock(|| exact::write(&path)),
        _ => write_path(&path, settings::format(file)),
    });
    count(written);
    UNTOLD.fetch_add(written.is_err() as u64, Relaxed);
    written.is_ok()
}

#[inline(never)]
fn write_path(path: &Path, format: Format) -> Result<(), Failure> {
    under_lock(|| dump::write(path, format))
}

fn under_lock(write: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    WRITING.lock();
    let written = write();
    WRITING.unlock();
    written
}

fn count(written: Result<(), Failure>) {
    match written {
        Ok(()) => WRITTEN.fetch_add(1, Relaxed),
        Err(why) => {
            CAUSE.store(why.cause, Relaxed);
            FAILED.fetch_add(1, Relaxed)
        }
    };
}

/// Dumps that this process has written.
pub(super) fn written() -> u64 {
    WRITTEN.load(Relaxed)
}

/// What a thread without standard error has to say, for the end of the process.
#[derive(Clone, Copy)]
pub(super) enum Remark {
    NoFolderForControl,
    ControlIsTaken,
}
static REMARKS: AtomicU32 = AtomicU32::new(0);

pub(super) fn remark(what: Remark) {
    REMARKS.fetch_or(1 << what as u32, Relaxed);
}

/// What could not be told before is told now, once: files that could not be written, remarks.
pub(crate) fn tell() {
    let remarks = REMARKS.swap(0, Relaxed);
    let remarked = |what: Remark| remarks & (1 << what as u32) != 0;
    if remarked(Remark::NoFolderForControl) {
        os::complain(b"there was no control channel: no folder for the socket (XDG_RUNTIME_DIR, /run/user, /tmp)");
    } else if remarked(Remark::ControlIsTaken) {
        os::complain(b"there was no control channel: a process of the same number has it, in another container maybe");
    }
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

/// What there is to tell about this process and its files.
pub(super) fn facts(mut tell: impl FnMut(&str, u64)) {
    tell("failed_dumps", FAILED.load(Relaxed));
    if let Some(samples) = inherited::live() {
        tell("inherited_samples", samples);
    }
}

/// The same, and the moments that the user has given a name, as names and values of a dump.
pub(super) fn remarks(mut tell: impl FnMut(&str, fmt::Arguments<'_>)) {
    facts(|key, value| tell(key, format_args!("{value}")));
    marks::each(|mark| {
        let milliseconds = life::age_at(mark.time) / 1_000_000;
        let name = Joined(mark.name().utf8_chunks());
        tell("mark", format_args!("{}.{:03} s {name}", milliseconds / 1000, milliseconds % 1000));
    });
}

/// Text with what is not UTF-8 replaced.
struct Joined<'a>(core::str::Utf8Chunks<'a>);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.clone() {
            to.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                to.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}

/// The process ends in a moment: no file is begun any more, or a part of one would be left beside its place.
pub(crate) fn close() {
    WRITING.lock(); // for good
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
    STANDS.store(false, Relaxed);
    for count in [&FAILED, &UNTOLD, &WRITTEN] {
        count.store(0, Relaxed);
    }
    NUMBER.store(0, Relaxed);
}

/// The path of a file of this kind with this number.
pub(super) fn path(file: Named, number: u32) -> Result<Path, Failure> {
    let mut path = Path::EMPTY;
    let expanded = with_pattern(file, |pattern| expand(pattern, number, &mut path));
    expanded.unwrap_or(Err(libc::EDEADLK)).map(|()| path).map_err(Failure::from)
}
