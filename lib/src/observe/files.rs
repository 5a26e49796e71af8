//! The files of this process: their names, and what becomes of those that cannot be written.
//!
//! Whoever has a dump written, by whatever trigger, comes through here: one at a time, on a stack that is large enough.

use super::output::Path;
use super::settings::{self, Named, is_named, with_pattern};
use super::{dump, inherited};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// One file at a time.
static WRITING: Lock = Lock::new();
/// Files of this process that could not be written.
static FAILED: AtomicU64 = AtomicU64::new(0);
/// Those of them that nobody was told of.
static UNTOLD: AtomicU64 = AtomicU64::new(0);
/// The number of the last triggered dump.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Write a file of this kind, if it is wanted at all. `number`: what `%n` is. False: it could not be written, which is counted.
pub(crate) fn write(file: Named, number: u32) -> bool {
    !is_named(file) || WRITING.held_by_me() || os::on_large_stack(|| write_here(file, number))
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
        if let Some(path) = path(file, number) {
            path.remove();
        }
    });
}

#[inline(never)]
fn write_here(file: Named, number: u32) -> bool {
    WRITING.lock();
    let written = path(file, number).is_some_and(|path| dump::write(&path));
    WRITING.unlock();
    if !written {
        FAILED.fetch_add(1, Relaxed);
        UNTOLD.fetch_add(1, Relaxed);
    }
    written
}

/// The dump at exit could not be written, or one before: say so, once.
pub(crate) fn tell_failures() {
    if UNTOLD.swap(0, Relaxed) == 0 {
        return;
    }
    os::on_large_stack(|| {
        let file = if is_named(Named::Exit) { Named::Exit } else { Named::Dump };
        let path = path(file, NUMBER.load(Relaxed)).unwrap_or(Path::EMPTY);
        os::complain_about(b"cannot write the profile ", path.as_bytes());
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

fn path(file: Named, number: u32) -> Option<Path> {
    let mut path = Path::EMPTY;
    (with_pattern(file, |pattern| expand(pattern, number, &mut path)) == Some(true)).then_some(path)
}

/// Replace `%p` by the process id, `%n` by a number of four digits or more, and `%%` by `%`.
fn expand(pattern: &[u8], number: u32, path: &mut Path) -> bool {
    let mut rest = pattern;
    while let Some(percent) = rest.iter().position(|&b| b == b'%') {
        let mut digits = [0u8; 10];
        let (with, length) = match rest.get(percent + 1) {
            Some(b'p') => (decimal(os::process_id(), 1, &mut digits), 2),
            Some(b'n') => (decimal(number, 4, &mut digits), 2),
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

/// With at least so many digits.
fn decimal(mut number: u32, least: usize, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 && digits.len() - first >= least {
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
        assert!(expand(b"/a/%p/100%%/%n.%x%", 7, &mut path));
        let expected = std::format!("/a/{}/100%/0007.%x%", std::process::id());
        assert_eq!(core::str::from_utf8(path.as_bytes()).unwrap(), expected);
        assert_eq!(decimal(u32::MAX, 4, &mut [0; 10]), b"4294967295");
    }
}
