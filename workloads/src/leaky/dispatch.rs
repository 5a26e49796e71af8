//! Sites whose names are more than a path: a generic function, a closure, and a trait method behind a trait object.

use std::hint::black_box;

use super::block::Made;
use super::place::{Place, place};

/// One line of source, one site for each `N`.
#[inline(never)]
pub(super) fn keep_generic<const N: usize>(seed: u64) -> Made {
    let (at, value) = (place!(), Box::new([seed; N]));
    Made::from_box(value, at)
}

#[inline(never)]
pub(super) fn keep_by_closure(seed: u64) -> Made {
    let keeper = |seed: u64| {
        let (at, value) = (place!(), Box::new([seed; 16]));
        Made::from_box(value, at)
    };
    let made = black_box::<&dyn Fn(u64) -> Made>(&keeper)(seed);
    black_box(seed);
    made
}

trait Keeper {
    fn keep(&self, seed: u64) -> Made;
}

struct Page;

impl Keeper for Page {
    #[inline(never)]
    fn keep(&self, seed: u64) -> Made {
        let (at, mut page) = (place!(), Vec::<u64>::with_capacity(512));
        page.push(seed);
        Made::from_vec(page, at)
    }
}

#[inline(never)]
pub(super) fn keep_by_trait(seed: u64) -> Made {
    let made = black_box::<&dyn Keeper>(&Page).keep(seed);
    black_box(seed);
    made
}
