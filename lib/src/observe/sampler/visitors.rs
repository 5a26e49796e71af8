//! Which threads are in a function of the program that looks at samples: there a start is refused.

use crate::os;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Visits at a time. There is no reason for many.
const MOST: usize = 64;

/// Their threads; 0 = nobody.
static THREADS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];

/// The calling thread visits until this is dropped.
pub(crate) struct Visitor(&'static AtomicU64);

impl Visitor {
    /// `None`: there are too many.
    pub(crate) fn enter() -> Option<Visitor> {
        let me = os::thread_id();
        let free = THREADS.iter().find(|thread| thread.compare_exchange(0, me, Relaxed, Relaxed).is_ok());
        free.map(Visitor)
    }

    /// Whether the calling thread is in a visit.
    pub(crate) fn is_here() -> bool {
        let me = os::thread_id();
        THREADS.iter().any(|thread| thread.load(Relaxed) == me)
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.0.store(0, Relaxed);
    }
}

/// In a forked child: only its one thread can be there.
pub(super) fn repair() {
    let me = os::thread_id();
    THREADS.iter().filter(|thread| thread.load(Relaxed) != me).for_each(|thread| thread.store(0, Relaxed));
}
