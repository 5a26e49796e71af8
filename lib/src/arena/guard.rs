//! Pages around the metadata that nobody may touch: an overflow of something that lies before or behind it faults.

use super::layout::{FIRST, INDICES};
use super::window::{address_of, slice};
use crate::os;

/// Guard the class map and the metadata of slices: the page before the first and the one before the first slice. What lies
/// between is not mapped until it is needed.
pub(crate) fn guard_metadata() {
    os::forbid_at(address_of(0) - os::PAGE, os::PAGE);
    if slice(INDICES) as usize <= address_of(FIRST) - os::PAGE {
        os::forbid_at(address_of(FIRST) - os::PAGE, os::PAGE);
    }
}
