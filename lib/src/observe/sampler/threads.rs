//! Threads that sample: a number for each, and by that its id and its name.
//!
//! Numbers are handed out in the order in which threads are first sampled. A program may make any number of threads, and each makes sites
//! of its own: so beyond the first [`ALONE`] a thread whose name is known already shares the number of that name, and beyond [`MOST`]
//! all others share number 0.

use crate::os::{self, lock::Lock};
use core::cell::UnsafeCell;

/// Numbers of one thread each.
const ALONE: usize = 256;
/// Numbers in all, with 0.
const MOST: usize = 4097;
/// Bytes of a name, with the zeros at its end.
pub(crate) const NAME: usize = 16;

/// What is known of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thread {
    pub(crate) number: u32,
    /// The kernel's id of the thread, or of the first one that shares the number.
    pub(crate) tid: u32,
    /// As the kernel had it last: see [`Thread::name`].
    name: [u8; NAME],
    /// More than one thread has, or had, this number.
    pub(crate) is_shared: bool,
}

impl Thread {
    const NONE: Thread = Thread { number: 0, tid: 0, name: [0; NAME], is_shared: false };

    /// Without the zeros.
    pub(crate) fn name(&self) -> &[u8] {
        let end = self.name.iter().position(|&b| b == 0).unwrap_or(NAME);
        &self.name[..end]
    }
}

/// All that is known.
struct Known {
    /// How many numbers were handed out, with 0.
    used: usize,
    threads: [Thread; MOST],
}

struct Table(UnsafeCell<Known>);
// SAFETY: only touched under LOCK.
unsafe impl Sync for Table {}

static LOCK: Lock = Lock::new();
static KNOWN: Table = Table(UnsafeCell::new(Known { used: 0, threads: [Thread::NONE; MOST] }));

/// Look into the table; `None` if this thread has been interrupted there.
fn with<R>(look: impl FnOnce(&mut Known) -> R) -> Option<R> {
    if LOCK.held_by_me() {
        return None;
    }
    LOCK.lock();
    // SAFETY: the lock is held.
    let result = look(unsafe { &mut *KNOWN.0.get() });
    LOCK.unlock();
    Some(result)
}

/// What is known of a number; `None`: of 0, of numbers that were not handed out, or while this thread has been interrupted at it.
pub(crate) fn thread(number: u32) -> Option<Thread> {
    with(|known| known.threads[..known.used].get(number as usize).filter(|_| number != 0).copied()).flatten()
}

/// A new run: numbers begin with 1 again.
pub(super) fn forget() {
    with(|known| known.used = 0);
}

/// In a forked child. What was being written is at worst a wrong name.
pub(super) fn repair() {
    if LOCK.held_by_vanished() {
        LOCK.reset();
    }
}

/// What a thread remembers of itself; valid when all zero.
#[derive(Default)]
#[repr(C)]
pub(super) struct Own {
    /// Of which run the number is, and whose: thread and process.
    run: u32,
    number: u32,
    thread: u64,
    /// Samples since the number was handed out.
    samples: u32,
}

impl Own {
    /// The number of the calling thread.
    #[inline(always)]
    pub(super) fn number(&mut self, run: u32) -> u32 {
        self.samples = self.samples.wrapping_add(1);
        let is_known = self.run == run && self.thread == os::thread_id();
        // Threads get their names soon after they begin, if at all.
        if !is_known || self.samples.is_power_of_two() || self.samples.is_multiple_of(1024) {
            self.look(run, is_known);
        }
        self.number
    }

    /// The number that the calling thread has already, else 0.
    pub(super) fn known(&self, run: u32) -> u32 {
        if self.run == run && self.thread == os::thread_id() { self.number } else { 0 }
    }

    /// The thread ends, or leaves its heap to another.
    pub(super) fn leave(&mut self, run: u32) {
        if self.run == run && self.thread == os::thread_id() {
            self.look(run, true);
        }
        *self = Own::default();
    }

    /// In a forked child the thread has another id.
    pub(super) fn forked(&mut self) {
        let (number, tid) = (self.number as usize, os::kernel_thread_id());
        with(|known| {
            if number != 0 && number < known.used {
                known.threads[number].tid = tid;
            }
        });
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, run: u32, is_known: bool) {
        let name = os::thread_name();
        let before = if is_known { self.number } else { 0 };
        let (tid, is_first) = if is_known { (0, false) } else { (os::kernel_thread_id(), true) };
        let Some(number) = with(|known| {
            if !is_first {
                return known.renamed(before as usize, name);
            }
            known.number_for(tid, name)
        }) else {
            return; // as it was
        };
        if is_first {
            self.samples = 1;
        }
        (self.run, self.number, self.thread) = (run, number as u32, os::thread_id());
    }
}

impl Known {
    /// A number for a thread that has none.
    fn number_for(&mut self, tid: u32, name: [u8; NAME]) -> usize {
        self.used = self.used.max(1);
        // It may have left its heap and gone on.
        let same = |thread: &Thread| thread.tid == tid && thread.name == name;
        if let Some(number) = (1..self.used).find(|&number| same(&self.threads[number])) {
            return number;
        }
        self.number_by_name(tid, name)
    }

    fn number_by_name(&mut self, tid: u32, name: [u8; NAME]) -> usize {
        if self.used > ALONE {
            if let Some(number) = (1..self.used).find(|&number| self.threads[number].name == name) {
                self.threads[number].is_shared = true;
                return number;
            }
            if self.used >= MOST {
                return 0;
            }
        }
        let number = self.used;
        self.threads[number] = Thread { number: number as u32, tid, name, is_shared: false };
        self.used += 1;
        number
    }

    /// A thread may have another name now: its number is renamed if it is its own, else it gets another.
    fn renamed(&mut self, number: usize, name: [u8; NAME]) -> usize {
        if number != 0 && self.threads[number].name == name {
            return number;
        }
        if number == 0 || self.threads[number].is_shared {
            return self.number_by_name(os::kernel_thread_id(), name);
        }
        self.threads[number].name = name;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;

    fn name(text: &str) -> [u8; NAME] {
        let mut name = [0; NAME];
        name[..text.len()].copy_from_slice(text.as_bytes());
        name
    }

    #[test]
    fn the_table_is_bounded() {
        let mut known = Box::new(Known { used: 0, threads: [Thread::NONE; MOST] });
        for i in 1..=ALONE {
            assert_eq!(known.number_for(1000 + i as u32, name("worker")), i);
        }
        assert_eq!(known.number_for(1003, name("worker")), 3, "the same thread again");
        assert_eq!(known.number_for(5000, name("worker")), 1);
        assert!(known.threads[1].is_shared && !known.threads[2].is_shared);
        assert_eq!(known.number_for(5001, name("other")), ALONE + 1);
        for i in known.used..MOST {
            assert_eq!(known.number_for(6000 + i as u32, name(&std::format!("n{i}"))), i);
        }
        assert_eq!(known.number_for(1, name("one more")), 0);
        assert_eq!(known.number_for(2, name("n400")), 400);
        assert_eq!(known.threads[400].name(), b"n400");
    }

    #[test]
    fn names_change() {
        let mut known = Box::new(Known { used: 0, threads: [Thread::NONE; MOST] });
        assert_eq!(known.number_for(1, name("a")), 1);
        assert_eq!(known.renamed(1, name("b")), 1);
        assert_eq!(known.threads[1].name(), b"b");
        known.used = ALONE + 1;
        known.threads[1].is_shared = true;
        assert_eq!(known.renamed(1, name("c")), ALONE + 1, "not the name of others");
        assert_eq!(known.threads[1].name(), b"b");
    }
}
