//! All runs, in the order of their addresses.

use super::layout::FIRST;
use super::spans::{LOCK, end_of_runs};
use super::window::slice;
use super::{Kind, arenas};

/// The first run from `from` on that has blocks, and what `look` sees there before it can be handed out again. `None`: there is none.
pub(crate) fn next_with_blocks<T>(from: usize, look: impl FnOnce(usize, Kind) -> T) -> Option<(usize, usize, T)> {
    next_of(from, |kind| matches!(kind, Kind::Slab | Kind::Zone | Kind::Span | Kind::Sampled), look)
}

/// The same for a run of any wanted kind.
pub(crate) fn next_of<T>(
    from: usize,
    wanted: impl Fn(Kind) -> bool,
    look: impl FnOnce(usize, Kind) -> T,
) -> Option<(usize, usize, T)> {
    if LOCK.held_by_me() {
        return None;
    }
    LOCK.lock();
    let window = first_of(from.max(FIRST), end_of_runs(), &wanted);
    let found = window.or_else(|| {
        let ranges = arenas::all().filter(|arena| arena.is_outside()).map(|arena| arena.range());
        ranges
            .filter(|&(first, slices)| from < first + slices)
            .find_map(|(first, slices)| first_of(from.max(first), first + slices, &wanted))
    });
    let found = found.map(|(index, length, kind)| (index, length, look(index, kind)));
    LOCK.unlock();
    found
}

fn first_of(mut index: usize, end: usize, wanted: &impl Fn(Kind) -> bool) -> Option<(usize, usize, Kind)> {
    while index < end {
        // SAFETY: slices below the end of a range have metadata. The end of the run before may be inside a free one by now.
        match unsafe { (*slice(index)).run() } {
            Some((kind, length)) if wanted(kind) => return Some((index, length, kind)),
            Some((_, length)) => index += length,
            None => index += 1,
        }
    }
    None
}

/// Slices of the window that runs may begin in.
pub(crate) fn used() -> core::ops::Range<usize> {
    FIRST..end_of_runs()
}

/// Every run from the first to the last, as it is at this moment; then those outside the window.
pub(crate) fn walk(mut visit: impl FnMut(usize, Kind)) {
    walk_range(FIRST, end_of_runs(), &mut visit);
    for arena in arenas::all().filter(|arena| arena.is_outside()) {
        let (first, slices) = arena.range();
        walk_range(first, first + slices, &mut visit);
    }
}

fn walk_range(mut run: usize, end: usize, visit: &mut impl FnMut(usize, Kind)) {
    while run < end {
        // SAFETY: these slices have metadata.
        let Some((kind, length)) = (unsafe { (*slice(run)).run() }) else { break };
        visit(run, kind);
        run += length;
    }
}

/// Slices in free runs between two heads.
pub(super) fn free_slices(first: usize, end: usize) -> usize {
    let mut sum = 0;
    LOCK.lock();
    walk_range(first, end, &mut |run, kind| {
        if kind == Kind::Free {
            // SAFETY: the lock is held, and this is the head of a run.
            sum += unsafe { (*slice(run)).length() };
        }
    });
    LOCK.unlock();
    sum
}
