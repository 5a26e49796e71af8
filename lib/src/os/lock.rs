//! A lock whose word names its owner.
//!
//! `0` is free; otherwise the word is the owner's [`thread_id`](super::thread_id) with bit 0 set while somebody may be
//! waiting. Taking the lock and naming the owner are **one** atomic step, so that a signal handler or a forked child can
//! always tell "held by this thread" from "held by another", and a child can find the locks of threads that it does not
//! have. Sections are short (0.05–3 µs) and never call out.

use super::{child, thread_id};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Tries before a waiter goes to sleep; sections are shorter than a sleep.
const SPINS: u32 = 100;

pub(crate) struct Lock(AtomicU64);

impl Lock {
    pub(crate) const fn new() -> Self {
        Lock(AtomicU64::new(0))
    }

    #[inline(always)]
    pub(crate) fn lock(&self) {
        let me = thread_id();
        if self.0.compare_exchange(0, me, Acquire, Relaxed).is_err() {
            self.wait(me);
        }
    }

    #[inline(always)]
    pub(crate) fn unlock(&self) {
        if self.0.swap(0, Release) & 1 != 0 {
            super::futex_wake(self.low_half());
        }
    }

    #[inline(always)]
    pub(crate) fn held_by_me(&self) -> bool {
        self.0.load(Relaxed) & !1 == thread_id()
    }

    /// Held by a thread that this process does not have. Meaningful in a new process while it has one thread.
    pub(crate) fn held_by_vanished(&self) -> bool {
        let owner = self.0.load(Relaxed) & !1;
        owner != 0 && owner != thread_id()
    }

    /// Free a lock whose owner is not in this process.
    pub(crate) fn reset(&self) {
        self.0.store(0, Release);
    }

    fn low_half(&self) -> *const u32 {
        self.0.as_ptr().cast()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, me: u64) {
        for _ in 0..SPINS {
            core::hint::spin_loop();
            if self.0.load(Relaxed) == 0 && self.0.compare_exchange(0, me, Acquire, Relaxed).is_ok() {
                return;
            }
        }
        loop {
            // After a clone() without handlers the owner may not exist in this process.
            child::check();
            let word = self.0.load(Relaxed);
            if word == 0 {
                // Others may sleep: whoever comes this way leaves the waiting bit set.
                if self.0.compare_exchange(0, me | 1, Acquire, Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            if word & !1 == me {
                super::fatal(b"internal error: a thread waits for a lock that it holds");
            }
            if word & 1 == 0 && self.0.compare_exchange(word, word | 1, Relaxed, Relaxed).is_err() {
                continue;
            }
            super::futex_wait(self.low_half(), (word | 1) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes_and_names_its_owner() {
        static LOCK: Lock = Lock::new();
        static mut SUM: u64 = 0;
        let workers: std::vec::Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..20_000 {
                        LOCK.lock();
                        assert!(LOCK.held_by_me());
                        // SAFETY: guarded by LOCK, which is what is being tested.
                        unsafe { SUM += 1 };
                        LOCK.unlock();
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|w| w.join().unwrap());
        // SAFETY: all workers have ended.
        assert_eq!(unsafe { SUM }, 80_000);
        assert!(!LOCK.held_by_me() && !LOCK.held_by_vanished());
    }
}
