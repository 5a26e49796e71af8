//! Who is at memory that others may want to give back: so it is given back only when nobody is.
//!
//! Whoever wants to use what a word says enters first, and looks at the word afterwards. Who takes the memory back changes the word
//! first, and looks for users afterwards. So one of the two sees the other. `lib/tests/models/users.rs` looks at every interleaving.
//!
//! A forked child takes over the users that its parent had: what threads were at that it does not have, it never gives back.

use core::sync::atomic::{AtomicU32, Ordering::*, fence};

const SHARDS: usize = 16;

/// In a line of the cache of its own.
#[repr(C, align(64))]
struct Shard(AtomicU32);

/// Counters, which threads share, but not many threads one.
pub(crate) struct Users([Shard; SHARDS]);

/// The right to use what is found from here on; ends when it is dropped.
pub(crate) struct User(&'static AtomicU32);

impl Drop for User {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

impl Users {
    /// Nobody is there.
    pub(crate) const fn new() -> Users {
        Users([const { Shard(AtomicU32::new(0)) }; SHARDS])
    }

    /// The word is to be looked at afterwards, with `SeqCst`.
    #[inline(always)]
    pub(crate) fn enter(&'static self) -> User {
        // Thread control blocks lie apart by the size of a stack, or by that of a page and more.
        let thread = super::thread_id() as usize;
        let users = &self.0[(thread >> 12 ^ thread >> 16 ^ thread >> 20) % SHARDS].0;
        users.fetch_add(1, SeqCst);
        User(users)
    }

    /// Whether everybody has left who may have found what the word said before it was changed.
    pub(crate) fn have_left(&self) -> bool {
        fence(SeqCst);
        self.0.iter().all(|shard| shard.0.load(SeqCst) == 0)
    }
}
