//! Moments that the user has given a name, to be found again in dumps and in the timeline.

use super::timeline;
use crate::os::{self, lock::Lock};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The last ones are kept.
const KEPT: usize = 32;
/// Longest name, in bytes.
const NAME: usize = 64;

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    /// When: see [`os::now`].
    pub(crate) time: u64,
    name: [u8; NAME],
    length: usize,
}

impl Mark {
    const NONE: Mark = Mark { time: 0, name: [0; NAME], length: 0 };

    /// As it was given, cut after 64 bytes; nothing in it ends a line.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name[..self.length]
    }
}

struct Marks(UnsafeCell<[Mark; KEPT]>);
// SAFETY: only touched under `LOCK`.
unsafe impl Sync for Marks {}

static MARKS: Marks = Marks(UnsafeCell::new([Mark::NONE; KEPT]));
static LOCK: Lock = Lock::new();
static MADE: AtomicU64 = AtomicU64::new(0);

/// This moment has a name, in dumps and in the timeline. How many have one now.
pub(super) fn mark(name: impl Iterator<Item = u8>) -> u64 {
    let mut mark = Mark { time: os::now(), ..Mark::NONE };
    for byte in name.take(NAME) {
        mark.name[mark.length] = if byte.is_ascii_control() { b' ' } else { byte };
        mark.length += 1;
    }
    LOCK.lock();
    let made = MADE.load(Relaxed);
    // SAFETY: the lock is held.
    unsafe { (*MARKS.0.get())[made as usize % KEPT] = mark };
    MADE.store(made + 1, Relaxed);
    LOCK.unlock();
    timeline::mark(mark.name());
    made + 1
}

/// Those that are kept, oldest first.
pub(crate) fn each(mut tell: impl FnMut(&Mark)) {
    let made = MADE.load(Relaxed);
    for number in made.saturating_sub(KEPT as u64)..made {
        if LOCK.held_by_me() {
            return;
        }
        LOCK.lock();
        // SAFETY: the lock is held.
        let mark = unsafe { (*MARKS.0.get())[number as usize % KEPT] };
        LOCK.unlock();
        tell(&mark);
    }
}

/// In a forked child with one thread: they were its parent's.
pub(super) fn forked() {
    if LOCK.held_by_vanished() {
        LOCK.reset();
    }
    MADE.store(0, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    #[test]
    fn the_last_are_kept() {
        for number in 0..40 {
            mark(std::format!("a\nb{number}").bytes().chain(core::iter::repeat_n(b'x', 100)));
        }
        let mut names: Vec<String> = Vec::new();
        each(|mark| names.push(core::str::from_utf8(mark.name()).unwrap().to_string()));
        assert_eq!(names.len(), KEPT);
        assert!(names[0].starts_with("a b8xx") && names[31].starts_with("a b39xx") && names[31].len() == NAME);
    }
}
