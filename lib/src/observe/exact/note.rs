//! What is kept of each live block, in the 16 bytes that the heap has for it: where it came from, when, how large it was asked for,
//! and in which recording: a block can outlive the one that saw it.

use crate::heap::notes::Note;
use core::sync::atomic::Ordering::Relaxed;

const POINT_BITS: u32 = 24;
const RUN_BITS: u32 = 12;
const LOW_BITS: u32 = 64 - POINT_BITS - RUN_BITS;
const BIRTH_BITS: u32 = 45;

/// Numbers of program points are below this, and never 0.
pub(super) const MOST_POINTS: u32 = 1 << POINT_BITS;
/// Numbers of recordings are below this, and never 0.
pub(super) const MOST_RUNS: u32 = 1 << RUN_BITS;
/// Ticks since the beginning are kept up to here: months.
const LATEST: u64 = (1 << BIRTH_BITS) - 1;

/// The content of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Birth {
    pub(super) point: u32,
    pub(super) run: u32,
    /// Bytes that the program asked for, below 2^47 as all blocks.
    pub(super) requested: u64,
    /// When, in ticks.
    pub(super) at: u64,
}

impl Birth {
    #[inline(always)]
    fn pack(self) -> (u64, u64) {
        let low = self.requested & ((1 << LOW_BITS) - 1);
        let first = u64::from(self.point) | u64::from(self.run) << POINT_BITS | low << (POINT_BITS + RUN_BITS);
        (first, self.at.min(LATEST) | (self.requested >> LOW_BITS) << BIRTH_BITS)
    }

    /// `None`: nothing was noted.
    #[inline(always)]
    fn unpack(first: u64, second: u64) -> Option<Birth> {
        let low = first >> (POINT_BITS + RUN_BITS);
        (first != 0).then_some(Birth {
            point: first as u32 & (MOST_POINTS - 1),
            run: (first >> POINT_BITS) as u32 & (MOST_RUNS - 1),
            requested: low | (second >> BIRTH_BITS) << LOW_BITS,
            at: second & LATEST,
        })
    }

    /// Note it. The note belongs to who holds the block.
    #[inline(always)]
    pub(super) fn write(self, note: &Note) {
        let (first, second) = self.pack();
        note.1.store(second, Relaxed);
        note.0.store(first, Relaxed);
    }

    /// What was noted, if that was in this recording; afterwards there is nothing.
    #[inline(always)]
    pub(super) fn take(note: &Note, run: u32) -> Option<Birth> {
        let found = Birth::unpack(note.0.load(Relaxed), note.1.load(Relaxed));
        note.0.store(0, Relaxed);
        note.1.store(0, Relaxed);
        found.filter(|birth| birth.run == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_room() {
        for (point, run, requested, at) in [
            (1, 1, 0, 0),
            (MOST_POINTS - 1, MOST_RUNS - 1, (1 << 47) - 1, LATEST),
            (7, 3, (1 << LOW_BITS) - 1, 12_345),
            (7, 3, 1 << LOW_BITS, 12_345),
        ] {
            let birth = Birth { point, run, requested, at };
            let (first, second) = birth.pack();
            assert_eq!(Birth::unpack(first, second), Some(birth));
        }
        let late = Birth { point: 1, run: 1, requested: 1 << 40, at: u64::MAX }.pack();
        let kept = Birth::unpack(late.0, late.1).unwrap();
        assert_eq!((kept.at, kept.requested), (LATEST, 1 << 40));
        assert_eq!(Birth::unpack(0, 5), None);
    }
}
