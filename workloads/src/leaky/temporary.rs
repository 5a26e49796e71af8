//! Sites that keep nothing: much flow, no leak. A profile of live memory that shows them at exit is wrong.

use super::block::Made;
use super::place::{Place, place};

#[inline(never)]
pub(super) fn make_scratch(seed: u64) -> Made {
    let (at, value) = (place!(), Box::new([seed; 96]));
    Made::from_box(value, at)
}

#[inline(never)]
pub(super) fn make_buffer(seed: u64) -> Made {
    let (at, mut buffer) = (place!(), Vec::<u8>::with_capacity(8192));
    buffer.extend_from_slice(&seed.to_ne_bytes());
    Made::from_vec(buffer, at)
}
