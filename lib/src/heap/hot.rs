//! Words that every slow path reads, in one line of the cache.

use crate::os::OffPageStart;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

pub(super) struct Words {
    /// See [`interval`](super::interval).
    pub(super) epoch: AtomicU32,
    /// See [`due`](super::due).
    pub(super) due: AtomicBool,
    /// See [`emergency`](super::emergency).
    pub(super) deferred: AtomicPtr<u8>,
}

pub(super) static WORDS: OffPageStart<Words> = OffPageStart::new(Words {
    epoch: AtomicU32::new(0),
    due: AtomicBool::new(false),
    deferred: AtomicPtr::new(core::ptr::null_mut()),
});
