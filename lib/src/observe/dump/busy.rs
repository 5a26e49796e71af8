//! Which threads are writing a dump: one that does must not begin another, be it in a function that gets the dump or in a signal handler.

use crate::observe::output::Failure;
use crate::os::{self, libc};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Dumps at a time. There is no reason for more than one, but none to wait either.
const MOST: usize = 16;

/// Their threads; 0 = nobody.
static THREADS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];

/// The calling thread writes a dump until this is dropped.
pub(super) struct Busy(&'static AtomicU64);

impl Busy {
    pub(super) fn enter() -> Result<Busy, Failure> {
        let me = os::thread_id();
        if is_busy_here() {
            return Err(libc::EDEADLK.into());
        }
        let free = THREADS.iter().find(|thread| thread.compare_exchange(0, me, Relaxed, Relaxed).is_ok());
        free.map(Busy).ok_or(libc::EBUSY.into())
    }
}

/// The calling thread writes a dump: this is a function that gets it, or a signal handler.
pub(crate) fn is_busy_here() -> bool {
    let me = os::thread_id();
    THREADS.iter().any(|thread| thread.load(Relaxed) == me)
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(0, Relaxed);
    }
}

/// In a forked child: only its one thread can be at it.
pub(super) fn repair() {
    let me = os::thread_id();
    THREADS.iter().filter(|thread| thread.load(Relaxed) != me).for_each(|thread| thread.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_for_each_thread() {
        let busy = Busy::enter().unwrap();
        assert_eq!(Busy::enter().err(), Some(libc::EDEADLK.into()));
        std::thread::scope(|scope| {
            scope.spawn(|| drop(Busy::enter().unwrap())).join().unwrap();
        });
        drop(busy);
        drop(Busy::enter().unwrap());
    }
}
