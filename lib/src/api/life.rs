//! Begin and end of the process and of modules, as the preload library sees them.

pub use crate::observe::life::{begin, end, module_unloaded};

/// Whether a switch is on in the environment.
pub fn is_set(name: &[u8]) -> bool {
    crate::os::variable(name).is_some_and(crate::os::is_true)
}

/// Give the cached blocks of all threads back to their slabs, without waiting for any thread. Returns how many blocks were taken
/// from other threads. What `mi_collect` and `malloc_trim` begin with.
pub fn give_back_caches() -> usize {
    crate::heap::steal::steal_all()
}
