//! Whether the layer above wants to hear from slow paths that give nothing back, either.

use super::hot::WORDS;
use core::sync::atomic::Ordering::Relaxed;

/// Asked wherever stacks are swapped.
#[inline(always)]
pub(crate) fn is_due() -> bool {
    WORDS.due.load(Relaxed)
}

pub(crate) fn set(due: bool) {
    if WORDS.due.load(Relaxed) != due {
        WORDS.due.store(due, Relaxed);
    }
}
