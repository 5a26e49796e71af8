//! All pages of a class in one short line.

use mpp_profile::analysis::occupancy::{PAGE, Slab, State};

/// Characters of a line, at most.
const WIDTH: usize = 24;

/// A character for each page or, if there are many, for as many as share it, evenly: how much of them is live, as a height; a space where nothing is, `·`
/// where nothing of them is in memory. Single blocks are one character each.
pub(super) fn line(slabs: &[&Slab]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let cells: usize = slabs.iter().map(|slab| slab.pages.len().max(1)).sum();
    let shown = cells.min(WIDTH);
    // Bytes that are live, those in memory, and pages that are known.
    let mut sums = vec![(0u64, 0u64, 0u64); shown];
    let states = slabs.iter().flat_map(|slab| {
        let single = slab.pages.is_empty().then_some((slab.bytes.live, slab.bytes.kept(), 1));
        let pages = slab.pages.iter().map(|state| match *state {
            State::Live(live) => (u64::from(live), PAGE, 1),
            State::Empty => (0, PAGE, 1),
            State::Returned | State::Unused => (0, 0, 1),
            State::Unknown => (0, PAGE, 0),
        });
        single.into_iter().chain(pages)
    });
    for (number, (live, kept, known)) in states.enumerate() {
        let sum = &mut sums[number * shown / cells];
        *sum = (sum.0.saturating_add(live), sum.1.saturating_add(kept), sum.2 + known);
    }
    let character = |&(live, kept, known): &(u64, u64, u64)| match () {
        () if known == 0 => '?',
        () if kept == 0 => '·',
        () if live == 0 => ' ',
        () => HEIGHTS[((live as f64 / kept as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    sums.iter().map(character).collect()
}
