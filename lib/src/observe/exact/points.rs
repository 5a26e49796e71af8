//! All program points of a recording, each stack once.
//!
//! A point is made the first time that a stack allocates, and stays. Which point a stack has is found without a lock in a [`Table`],
//! which is only added to; and so is the list of all points. So there is nothing to repair in a forked child but the locks of points.
//! Memory is bounded, and touched as points come.

use super::note::MOST_POINTS;
use super::point::Point;
use crate::observe::modules;
use crate::observe::sampler::table::{Table, mix};
use crate::observe::unwind::End;
use crate::os;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// Bytes per number of a point: points begin at multiples of this.
const UNIT: usize = 64;
/// Room for a point with an ordinary stack, by which the table is sized.
const TYPICAL: usize = 256;
/// The least memory that is of any use, and the most that there are numbers for.
const LEAST: usize = 64 * 1024;
const MOST: usize = MOST_POINTS as usize * UNIT;

/// The head of the memory; the table and the points follow it.
#[repr(C, align(64))]
pub(super) struct Points {
    table: Table,
    /// Bytes in all.
    size: usize,
    /// Bytes in use.
    used: AtomicUsize,
    /// The newest point of the list.
    newest: AtomicU32,
    /// The point of what has no stack.
    unknown: u32,
}

// SAFETY: the table is lock-free, the rest atomic or constant.
unsafe impl Sync for Points {}

impl Points {
    /// Points in at most `limit` bytes of address space, less where there is a limit on that. `None`: no memory.
    pub(super) fn map(limit: usize) -> Option<&'static Points> {
        let mut size = limit.clamp(LEAST, MOST).next_multiple_of(os::PAGE);
        let mut at = os::map(size);
        while at.is_null() && size > LEAST {
            size = (size / 4).max(LEAST).next_multiple_of(os::PAGE);
            at = os::map(size);
        }
        // SAFETY: fresh memory of this size, which is never unmapped.
        (!at.is_null()).then(|| unsafe { Points::settle(at.cast(), size) })
    }

    /// Forget all points and begin anew in the same memory. Nobody uses them any more, or what they do with them is of no account.
    pub(super) fn renew(&'static self) -> Option<&'static Points> {
        let (at, size) = ((&raw const *self).cast_mut(), self.size);
        // SAFETY: the memory is that of this object, mapped for good.
        os::discard(at.cast(), size).then(|| unsafe { Points::settle(at, size) })
    }

    /// # Safety
    /// `size` bytes of zeroed memory at `at`, mapped for good.
    unsafe fn settle(at: *mut Points, size: usize) -> &'static Points {
        let levels = Table::levels_for(size / TYPICAL);
        let slots = size_of::<Points>();
        let first = (slots + Table::bytes(levels)).next_multiple_of(UNIT);
        // SAFETY: the caller's memory is large enough for the head and the table.
        unsafe {
            let table = Table::at(at.cast::<u8>().add(slots), levels);
            at.write(Points {
                table,
                size,
                used: first.into(),
                newest: AtomicU32::new(0),
                unknown: (first / UNIT) as u32,
            });
            (*at).make(0, &[], End::Complete, 0);
            &*at
        }
    }

    fn address(&self) -> usize {
        &raw const *self as usize
    }

    /// The point of what has no stack: its stack could not be kept, or not be walked.
    pub(super) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// A point by its number.
    #[inline(always)]
    pub(super) fn point(&self, number: u32) -> &Point {
        debug_assert!(number >= self.unknown);
        // SAFETY: numbers are those of complete points.
        unsafe { &*((self.address() + number as usize * UNIT) as *const Point) }
    }

    /// A point by a number that may be of points that were [renewed](Self::renew).
    #[inline(always)]
    pub(super) fn point_if_any(&self, number: u32) -> Option<&Point> {
        let is_inside = number >= self.unknown && (number as usize + 2) * UNIT < self.used.load(Relaxed);
        is_inside.then(|| self.point(number))
    }

    /// The point of a stack. `None`: there is no memory for a new one.
    pub(super) fn intern(&self, frames: &[usize], end: End) -> Option<u32> {
        if frames.is_empty() && end == End::Complete {
            return Some(self.unknown);
        }
        let hash = frames.iter().fold(end as u64, |hash, &frame| mix(hash, frame as u64));
        let generation = modules::generation(frames);
        let is = |number| self.point(number).is(hash, frames, end, generation);
        let make = || {
            let made = self.make(hash, frames, end, generation)?;
            modules::meet(frames);
            Some(made)
        };
        Some(self.table.intern(hash, is, make)?.number)
    }

    /// A new point, in the list but not yet in the table: if it never comes there, nothing is ever counted in it.
    fn make(&self, hash: u64, frames: &[usize], end: End, generation: u32) -> Option<u32> {
        let size = (size_of::<Point>() + size_of_val(frames)).next_multiple_of(UNIT);
        let at = self.used.fetch_add(size, Relaxed);
        if at + size > self.size {
            self.used.fetch_sub(size, Relaxed);
            return None;
        }
        let number = (at / UNIT) as u32;
        // SAFETY: [at, at + size) was given to this thread alone.
        unsafe {
            let point = (self.address() + at) as *mut Point;
            point.write(Point::new(hash, frames.len() as u16, end, generation));
            point.add(1).cast::<usize>().copy_from_nonoverlapping(frames.as_ptr(), frames.len());
            let mut newest = self.newest.load(Relaxed);
            loop {
                (*point).before = newest;
                match self.newest.compare_exchange(newest, number, Release, Relaxed) {
                    Ok(_) => return Some(number),
                    Err(now) => newest = now,
                }
            }
        }
    }

    /// The numbers of all points, also those in which nothing is counted.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        let mut number = self.newest.load(Acquire);
        core::iter::from_fn(move || {
            let this = number;
            (this != 0).then(|| number = self.point(this).before)?;
            Some(this)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::live::Live;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_stack_has_one_point() {
        let points = Points::map(1 << 20).unwrap();
        let numbers: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let intern = || (0..500).map(|i| points.intern(&[i, i * 3, 7], End::Complete).unwrap()).collect();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(intern)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|of_thread| *of_thread == numbers[0]));
        assert_eq!(points.point(numbers[0][3]).frames(), [3, 9, 7]);
        assert_ne!(points.intern(&[3, 9, 7], End::BadFrame), Some(numbers[0][3]));
        let live = Live::new();
        numbers[0].iter().for_each(|&number| points.point(number).allocate(1, 1, &live));
        assert_eq!(points.all().filter(|&number| points.point(number).counts(&live).blocks == 1).count(), 500);
    }

    #[test]
    fn memory_is_bounded_and_can_be_used_anew() {
        let points = Points::map(LEAST).unwrap();
        let made = (0..10_000).map_while(|i| points.intern(&[i; 20], End::Complete)).count();
        assert!((50..1000).contains(&made), "{made}");
        assert!(points.bytes() <= LEAST);
        assert!(points.intern(&[made - 1; 20], End::Complete).is_some(), "what is there is still found");
        assert!(points.point_if_any(MOST_POINTS - 1).is_none() && points.point_if_any(0).is_none());

        let unknown = points.unknown();
        let points = points.renew().unwrap();
        assert_eq!((points.unknown(), points.all().count()), (unknown, 1));
        assert!(points.intern(&[5; 20], End::Complete).is_some());
    }
}
