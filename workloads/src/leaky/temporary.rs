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

/// Blocks of [`make_greetings`], each gone before the next one comes.
const GREETINGS: u64 = 5;

/// Allocates the same again and again, where once would do.
#[inline(never)]
pub(super) fn make_greetings(seed: u64) -> Made {
    let mut last: Option<Made> = None;
    for round in 0..GREETINGS {
        if let Some(before) = last.take() {
            before.free();
        }
        let (at, value) = (place!(), Box::new([seed ^ round; 104]));
        // Or the compiler would see that nobody looks, and leave it all out.
        last = Some(Made::from_box(std::hint::black_box(value), at));
    }
    let last = last.expect("a loop of at least one round");
    let bytes = last.size() as u64 * GREETINGS;
    last.grown(GREETINGS, bytes)
}
