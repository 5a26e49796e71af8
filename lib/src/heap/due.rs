//! Whether the layer above wants to hear from slow paths that give nothing back, either.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

static DUE: AtomicBool = AtomicBool::new(false);

/// Asked wherever stacks are swapped.
#[inline(always)]
pub(crate) fn is_due() -> bool {
    DUE.load(Relaxed)
}

pub(crate) fn set(due: bool) {
    if DUE.load(Relaxed) != due {
        DUE.store(due, Relaxed);
    }
}
