//! Begin, fork and end of the process.

use super::output::Path;
use super::settings::{self, Follow};
use super::{dump, modules, sampler, unwind};
use crate::{arena, os};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// Where to write at exit. Written once, before [`PROCESS`].
struct Destination(UnsafeCell<Path>);
// SAFETY: see the field's users: one writer, before the readers can know.
unsafe impl Sync for Destination {}

static DESTINATION: Destination = Destination(UnsafeCell::new(Path::EMPTY));
/// The environment has been read.
static READ: AtomicBool = AtomicBool::new(false);
/// The process that writes a dump at exit; 0 = none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static FOLLOW_FORKS: AtomicBool = AtomicBool::new(false);

/// The process ends: write the dump that was asked for.
pub(crate) fn end() {
    if PROCESS.load(Acquire) != os::process_id() {
        return;
    }
    let mut path = Path::EMPTY;
    // SAFETY: complete before PROCESS was set.
    let complete = expand(unsafe { &*DESTINATION.0.get() }.as_bytes(), &mut path);
    if !complete || !dump::write(&path) {
        os::complain_about(b"cannot write the profile ", path.as_bytes());
    }
}

/// A module was unloaded: what is known about code at its addresses is no longer true.
pub fn module_unloaded() {
    unwind::invalidate();
}

/// Do what the environment asks for, as soon as it is known. Later calls do nothing.
pub(crate) fn start() {
    arena::reserve_at_start();
    if !os::environment_is_known() || READ.swap(true, AcqRel) {
        return;
    }
    let Some(settings) = settings::read() else { return };
    if let Some(own) = own_code() {
        sampler::set_own_code(own);
    }
    if !sampler::start(&settings.profile) {
        os::complain(b"no memory for the profiler; the program goes on without");
        return;
    }
    if !settings.dump.as_bytes().is_empty() {
        // SAFETY: READ lets one thread through, and PROCESS is still 0.
        unsafe { *DESTINATION.0.get() = settings.dump };
        FOLLOW_FORKS.store(settings.follow == Follow::All, Relaxed);
        PROCESS.store(os::process_id(), Release);
    }
}

/// In a forked child with one thread.
pub(crate) fn forked() {
    dump::repair();
    sampler::forked();
    if PROCESS.load(Relaxed) == 0 {
        return;
    }
    if FOLLOW_FORKS.load(Relaxed) {
        PROCESS.store(os::process_id(), Release);
    } else {
        sampler::stop_in_child();
    }
}

/// The code of this library, if it is a library: as part of a program it cannot be told from the program's own code.
fn own_code() -> Option<core::ops::Range<usize>> {
    let own = modules::range_around(own_code as *const () as usize)?;
    let program = os::program_entry();
    (!own.contains(&program)).then_some(own)
}

/// Replace `%p` by the process id and `%%` by `%`.
fn expand(pattern: &[u8], path: &mut Path) -> bool {
    let mut rest = pattern;
    while let Some(percent) = rest.iter().position(|&b| b == b'%') {
        let mut digits = [0u8; 10];
        let (with, length) = match rest.get(percent + 1) {
            Some(b'p') => (decimal(os::process_id(), &mut digits), 2),
            Some(b'%') => (b"%".as_slice(), 2),
            _ => (b"%".as_slice(), 1),
        };
        if !path.push(&rest[..percent]) || !path.push(with) {
            return false;
        }
        rest = &rest[percent + length..];
    }
    path.push(rest)
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let mut path = Path::EMPTY;
        assert!(expand(b"/a/%p/100%%/%x%", &mut path));
        let expected = std::format!("/a/{}/100%/%x%", std::process::id());
        assert_eq!(core::str::from_utf8(path.as_bytes()).unwrap(), expected);
    }
}
