//! An event of a sampled block, as it is kept until it is written.

use crate::heap::interval::mix;

/// What has happened to a block. The numbers are those in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Allocated = 0,
    Freed = 1,
    /// Its content has moved to another block (realloc).
    Moved = 2,
    /// It has another requested size, and stays where it is.
    Resized = 3,
}

impl Kind {
    pub(super) fn of(bits: u64) -> Kind {
        match bits & 3 {
            0 => Kind::Allocated,
            1 => Kind::Freed,
            2 => Kind::Moved,
            _ => Kind::Resized,
        }
    }
}

/// Times in nanoseconds, as [`now`](crate::os::now) tells them. Half a line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Event {
    pub(super) time: u64,
    /// When the block was allocated. With the site that is all that is needed to find its allocation again: of two blocks that have both
    /// in common it does not matter which is which.
    pub(super) birth: u64,
    /// As the sampler numbers sites; never 0.
    pub(super) site: u32,
    /// Number of the thread that did it.
    pub(super) thread: u32,
    /// The kind in 2 bits, the last bits of the sampling run's epoch in 14, then the bytes that are asked for.
    what: u64,
}

const RUN_BITS: u32 = 14;

impl Event {
    pub(super) fn new(kind: Kind, place: Place, birth: u64, time: u64, thread: u32, requested: usize) -> Event {
        let run = u64::from(place.run) & ((1 << RUN_BITS) - 1);
        let what = (requested as u64) << (2 + RUN_BITS) | run << 2 | kind as u64;
        Event { time, birth, site: place.site, thread, what }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of(self.what)
    }

    pub(super) fn requested(&self) -> u64 {
        self.what >> (2 + RUN_BITS)
    }

    /// Whether it is of this run, as far as can be seen.
    pub(super) fn is_of(&self, run: u32) -> bool {
        self.what >> 2 & ((1 << RUN_BITS) - 1) == u64::from(run) & ((1 << RUN_BITS) - 1)
    }
}

/// A site of a sampling run.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) run: u32,
    pub(crate) site: u32,
}

/// Whether what happens to a block that was allocated at this time (in microseconds since the start) is kept in a file that is thinned
/// so often. The same for all that happens to the block; of what is kept at one level, a half chosen by chance is kept at the next.
pub(super) fn is_kept(birth: u64, level: u32) -> bool {
    mix(birth.wrapping_add(SALT)) & ((1 << level) - 1) == 0
}

/// So that 0 is not always kept.
const SALT: u64 = 0x5851_F42D_4C95_7F2D;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_of_each_level_is_kept_at_the_next() {
        let mut before = 1 << 20;
        for level in 0..8 {
            let kept = (0..1 << 20).filter(|&birth| is_kept(birth, level)).count();
            assert!((0..1 << 20).all(|birth| is_kept(birth, level) || !is_kept(birth, level + 1)));
            if level == 0 {
                assert_eq!(kept, 1 << 20);
            } else {
                let half = before as f64 / 2.0;
                assert!((kept as f64 - half).abs() < 6.0 * half.sqrt(), "{kept} of {before} at {level}");
            }
            before = kept;
        }
    }

    #[test]
    fn sizes_and_kinds_do_not_mix() {
        for kind in [Kind::Allocated, Kind::Freed, Kind::Moved, Kind::Resized] {
            let event = Event::new(kind, Place { run: 0x7fff, site: 1 }, 2, 3, 4, 1 << 46);
            assert_eq!((event.kind(), event.requested()), (kind, 1 << 46));
            assert!(event.is_of(0x7fff) && !event.is_of(0x7ffd));
        }
    }
}
