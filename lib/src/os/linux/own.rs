//! Which mappings are [`map`](super::map)'s, so that it can be said how much memory they take: the tables of the instruments and
//! of the heaps. A statistic and nothing else: what does not fit into the list is left out, and nothing in it is ever read or written.

use super::super::PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Mappings that are known. More than there are as a rule: some for each instrument, one for each thread's heap.
const PLACES: usize = 1024;

struct Place {
    /// 0: free. Whoever makes it another number writes `length` next.
    start: AtomicUsize,
    /// In bytes; 0 between the two steps.
    length: AtomicUsize,
}

static OWN: [Place; PLACES] = [const { Place { start: AtomicUsize::new(0), length: AtomicUsize::new(0) } }; PLACES];

/// Places from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A mapping was made.
pub(super) fn made(start: usize, length: usize) {
    for (index, place) in OWN.iter().enumerate() {
        if place.start.load(Relaxed) == 0 && place.start.compare_exchange(0, start, Relaxed, Relaxed).is_ok() {
            place.length.store(length.next_multiple_of(PAGE), Relaxed);
            USED.fetch_max(index + 1, Relaxed);
            return;
        }
    }
}

/// A mapping, or a part of one, is about to go. Of one that loses its middle, the end is forgotten.
pub(super) fn gone(start: usize, length: usize) {
    let end = start + length.next_multiple_of(PAGE);
    for place in used() {
        let (first, size) = (place.start.load(Relaxed), place.length.load(Relaxed));
        let last = first + size;
        if first == 0 || last <= start || end <= first {
            continue;
        }
        if first < start {
            place.length.store(start - first, Relaxed);
        } else if end < last {
            place.start.store(end, Relaxed);
            place.length.store(last - end, Relaxed);
        } else {
            place.length.store(0, Relaxed);
            place.start.store(0, Relaxed);
        }
    }
}

fn used() -> &'static [Place] {
    &OWN[..USED.load(Relaxed).min(PLACES)]
}

/// Start and length of each, in bytes.
pub(crate) fn own_mappings() -> impl Iterator<Item = (usize, usize)> {
    let known = |place: &Place| (place.start.load(Relaxed), place.length.load(Relaxed));
    used().iter().map(known).filter(|&(start, length)| start != 0 && length != 0)
}

#[cfg(test)]
mod tests {
    use super::super::{map, unmap};
    use super::*;

    /// Whether a place knows this mapping.
    fn knows(start: usize, length: usize) -> bool {
        own_mappings().any(|own| own == (start, length))
    }

    #[test]
    fn mappings_are_cut_to_size() {
        let at = map(8 * PAGE);
        let start = at as usize;
        assert!(knows(start, 8 * PAGE));
        unmap(at, PAGE);
        assert!(knows(start + PAGE, 7 * PAGE));
        unmap(at.wrapping_add(7 * PAGE), PAGE);
        assert!(knows(start + PAGE, 6 * PAGE));
        unmap(at.wrapping_add(PAGE), 6 * PAGE);
        assert!(!knows(start + PAGE, 6 * PAGE));
    }
}
