//! Begin and end of the process and of modules, as the preload library sees them.

use super::c::stats;
use crate::observe::life;
use crate::options::{self, Name};
use crate::os;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use crate::observe::life::{begin, module_unloaded};

/// The process ends: write the dump and the statistics that were asked for. Later calls do nothing.
pub fn end() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    if ENDED.swap(true, Relaxed) {
        return;
    }
    life::end();
    if options::get(Name::ShowStats) != 0 {
        stats::malloc_stats();
    }
}

/// In a forked child with one thread.
pub(crate) fn forked() {
    life::forked();
    super::c::repair();
}

/// Whether a switch is on in the environment.
pub fn is_set(name: &[u8]) -> bool {
    !os::is_privileged() && os::variable(name).is_some_and(os::is_true)
}
