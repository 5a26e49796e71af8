//! Who is at the memory of a run, so that it is given back only when nobody is.
//!
//! Whoever wants to use what a word points to enters first, and looks at the word afterwards. Who takes the memory back clears the word
//! first, and looks for users afterwards. So one of the two sees the other. `lib/tests/models/users.rs` looks at every interleaving.

use crate::os;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

const SHARDS: usize = 16;

/// In a line of the cache of its own.
#[repr(C, align(64))]
struct Shard(AtomicU32);

/// Threads share counters, but not many threads one.
static USERS: [Shard; SHARDS] = [const { Shard(AtomicU32::new(0)) }; SHARDS];

/// The right to use what was found; ends when it is dropped.
pub(super) struct User(&'static AtomicU32);

impl Drop for User {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

/// What the word points to, to be used until [`User`] is dropped.
#[inline(always)]
pub(super) fn enter<T>(word: &AtomicPtr<T>) -> Option<(User, *mut T)> {
    // Thread control blocks lie apart by the size of a stack, or by that of a page and more.
    let thread = os::thread_id() as usize;
    let users = &USERS[(thread >> 12 ^ thread >> 16 ^ thread >> 20) % SHARDS].0;
    users.fetch_add(1, SeqCst);
    let user = User(users);
    let found = word.load(SeqCst);
    (!found.is_null()).then_some((user, found))
}

/// Whether everybody has left who may have found what a word pointed to that was cleared before, with `SeqCst`.
pub(super) fn have_left() -> bool {
    USERS.iter().all(|shard| shard.0.load(SeqCst) == 0)
}
