//! What a forked child finds under the locks of threads that it does not have: the arena's chain of heads, a heap's slabs and
//! lists, sampled slabs, lock words. (The stacks of cached blocks are in the model `steal`.)
//!
//! A fork copies a causal cut: the vanished thread has stopped between two stores. So each operation is run with every number of
//! stores that it may have got to, then the child repairs, checks, and goes on.

mod arena;
mod lists;
mod lock;
mod reentry;

/// Which code is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// As it was before the models found mistakes in it: they must go on finding them.
    Earlier,
    /// As it is.
    Now,
}

/// How many more stores of a thread count: what comes after them never happened.
#[derive(Clone, Copy)]
pub(crate) struct Stores {
    left: usize,
    /// Stores that were dropped.
    dropped: usize,
}

impl Stores {
    pub(crate) const ALL: Stores = Stores { left: usize::MAX, dropped: 0 };

    pub(crate) fn first(left: usize) -> Stores {
        Stores { left, dropped: 0 }
    }

    /// Whether one more store happens.
    pub(crate) fn next(&mut self) -> bool {
        if self.left == 0 {
            self.dropped += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    pub(crate) fn stopped(&self) -> bool {
        self.dropped != 0
    }
}
