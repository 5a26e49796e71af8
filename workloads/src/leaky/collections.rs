//! Sites that allocate through the standard library, whose frames then lie between the site and the allocator.

use super::block::Made;
use super::place::{Place, place};

#[inline(never)]
pub(super) fn keep_box(seed: u64) -> Made {
    let (at, value) = (place!(), Box::new([seed; 6]));
    Made::from_box(value, at)
}

#[inline(never)]
pub(super) fn keep_string(seed: u64) -> Made {
    let pattern = if seed & 1 == 0 { "leak" } else { "keep" };
    let (at, text) = (place!(), pattern.repeat(24));
    Made::from_vec(text.into_bytes(), at)
}

#[inline(never)]
pub(super) fn keep_collected(seed: u64) -> Made {
    let numbers = (0..128).map(|number| seed ^ number);
    let (at, numbers) = (place!(), numbers.collect::<Vec<u64>>());
    Made::from_vec(numbers, at)
}

/// Grows a vector from nothing by `push`: one allocation, then one `realloc` for each doubling.
#[inline(never)]
pub(super) fn keep_grown(seed: u64) -> Made {
    const LENGTH: u64 = 2048;
    let mut grown: Vec<u64> = Vec::new();
    let (mut capacity, mut blocks, mut bytes) = (0, 0, 0);
    let mut at = place!();
    for number in 0..LENGTH {
        (at, ()) = (place!(), grown.push(seed ^ number));
        if grown.capacity() != capacity {
            capacity = grown.capacity();
            blocks += 1;
            bytes += (capacity * size_of::<u64>()) as u64;
        }
    }
    Made::from_vec(grown, at).grown(blocks, bytes)
}
