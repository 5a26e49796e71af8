//! Begin and end of the process and of modules, as the preload library sees them.

pub use crate::observe::life::{begin, end, module_unloaded};

/// Whether a switch is on in the environment.
pub fn is_set(name: &[u8]) -> bool {
    crate::os::variable(name).is_some_and(crate::os::is_true)
}
