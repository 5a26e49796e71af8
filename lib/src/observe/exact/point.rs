//! A program point: one stack that has allocated, and everything that is counted of it.
//!
//! # The global peak
//! Each point tells what it held when the process held most, but nobody goes through all points at each new high. The peak is a
//! number that only grows ([`Live`]), and each point remembers the value of it when the point was last about to change. As long
//! as that is the present peak, what it has saved is what it held then. If the peak is higher, then the point has not changed
//! since the new high: what it holds *now* is what it held then, and is saved before the change. A reader does the same.
//! With one thread this is exact. With several, a thread between its own count and that of the process may count one event on
//! the wrong side of a peak that another thread makes in this moment; the peak itself is exact all the same.

use super::live::Live;
use crate::observe::unwind::End;
use crate::os::lock::Lock;
use core::cell::UnsafeCell;

/// What is counted of a program point. Bytes are those that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) bytes: u64,
    pub(super) blocks: u64,
    pub(super) total_bytes: u64,
    pub(super) total_blocks: u64,
    /// When this point held most bytes: so many, in so many blocks.
    pub(super) max_bytes: u64,
    pub(super) max_blocks: u64,
    /// Deaths of all blocks less their births, modulo 2^64; of the live ones the death is missing.
    lifetimes: u64,
    /// When the process held most bytes.
    pub(super) peak_bytes: u64,
    pub(super) peak_blocks: u64,
    /// The peak for which that holds.
    seen: u64,
}

impl Counts {
    /// About to change.
    #[inline(always)]
    fn keep_peak(&mut self, peak: u64) {
        if self.seen != peak {
            (self.peak_bytes, self.peak_blocks, self.seen) = (self.bytes, self.blocks, peak);
        }
    }

    #[inline(always)]
    fn keep_maximum(&mut self) {
        if self.bytes > self.max_bytes {
            (self.max_bytes, self.max_blocks) = (self.bytes, self.blocks);
        }
    }

    /// Lifetimes of all blocks, those that live counted until `now`.
    pub(super) fn lifetimes(&self, now: u64) -> u64 {
        self.lifetimes.wrapping_add(self.blocks.wrapping_mul(now))
    }
}

/// A program point. Its frames follow it.
#[repr(C, align(64))]
pub(super) struct Point {
    lock: Lock,
    counts: UnsafeCell<Counts>,
    hash: u64,
    /// The point that was made before it; 0 = none.
    pub(super) before: u32,
    depth: u16,
    end: End,
    /// What the addresses mean: see [`modules::generation`](crate::observe::modules::generation).
    generation: u32,
}

// SAFETY: `counts` is guarded by `lock`; the rest is constant.
unsafe impl Sync for Point {}

impl Point {
    /// A point whose frames, `depth` of them, are written behind it.
    pub(super) fn new(hash: u64, depth: u16, end: End, generation: u32) -> Point {
        let counts = UnsafeCell::new(Counts::default());
        Point { lock: Lock::new(), counts, hash, before: 0, depth, end, generation }
    }

    /// Return addresses, innermost first.
    pub(super) fn frames(&self) -> &[usize] {
        // SAFETY: written behind the point before it was published.
        unsafe { core::slice::from_raw_parts((&raw const *self).add(1).cast(), usize::from(self.depth)) }
    }

    /// How the walk ended.
    pub(super) fn end(&self) -> End {
        self.end
    }

    /// What its addresses mean.
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    pub(super) fn is(&self, hash: u64, frames: &[usize], end: End, generation: u32) -> bool {
        self.hash == hash && self.end == end && self.generation == generation && self.frames() == frames
    }

    #[inline(always)]
    fn change<R>(&self, change: impl FnOnce(&mut Counts) -> R) -> R {
        self.lock.lock();
        // SAFETY: the lock is held.
        let result = change(unsafe { &mut *self.counts.get() });
        self.lock.unlock();
        result
    }

    /// A block has been allocated here.
    #[inline(always)]
    pub(super) fn allocate(&self, bytes: u64, now: u64, live: &Live) {
        self.change(|counts| {
            counts.keep_peak(live.peak());
            counts.bytes += bytes;
            counts.blocks += 1;
            counts.total_bytes += bytes;
            counts.total_blocks += 1;
            counts.lifetimes = counts.lifetimes.wrapping_sub(now);
            counts.keep_maximum();
            live.grow(bytes, now);
        });
    }

    /// A block of here has been freed.
    #[inline(always)]
    pub(super) fn free(&self, bytes: u64, born: u64, now: u64, live: &Live) {
        self.change(|counts| {
            counts.keep_peak(live.peak());
            counts.bytes -= bytes;
            counts.blocks -= 1;
            counts.lifetimes = counts.lifetimes.wrapping_add(now.max(born));
            live.shrink(bytes);
        });
    }

    /// A block of here has another size. As Valgrind's DHAT counts it: one more block and all its new bytes in the totals, and the
    /// block goes on where and when it began.
    #[inline(always)]
    pub(super) fn resize(&self, from: u64, to: u64, now: u64, live: &Live) {
        self.change(|counts| {
            counts.keep_peak(live.peak());
            counts.bytes = counts.bytes - from + to;
            counts.total_bytes += to;
            counts.total_blocks += 1;
            counts.keep_maximum();
            if to > from { live.grow(to - from, now) } else { live.shrink(from - to) }
        });
    }

    /// What is counted, with the peak that is the process's now.
    pub(super) fn counts(&self, live: &Live) -> Counts {
        self.change(|counts| {
            let mut copy = *counts;
            copy.keep_peak(live.peak());
            copy
        })
    }

    /// In a forked child: the thread that held the lock is not in this process. What it was counting is half done, at worst.
    pub(super) fn repair(&self) {
        if self.lock.held_by_vanished() {
            self.lock.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn new() -> Point {
        Point::new(0, 0, End::Complete, 0)
    }

    /// A small generator, so that a failure can be repeated.
    struct Random(u64);
    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    /// What a point should say, kept the simple way: all of it looked at after each event.
    #[derive(Clone, Default)]
    struct Shadow {
        now: Vec<Counts>,
        lifetimes: Vec<u64>,
        peak: u64,
    }

    impl Shadow {
        fn look(&mut self) {
            let live = self.now.iter().map(|counts| counts.bytes).sum();
            let is_peak = live > self.peak;
            self.peak = self.peak.max(live);
            for counts in &mut self.now {
                counts.keep_maximum();
                if is_peak {
                    (counts.peak_bytes, counts.peak_blocks) = (counts.bytes, counts.blocks);
                }
            }
        }
    }

    #[test]
    fn counts_are_those_of_a_full_look_at_each_event() {
        const POINTS: usize = 5;
        for seed in 0..50 {
            let mut random = Random(seed);
            let live = Live::new();
            let points: Vec<Point> = (0..POINTS).map(|_| new()).collect();
            let mut shadow = Shadow { now: std::vec![Counts::default(); POINTS], ..Shadow::default() };
            shadow.lifetimes = std::vec![0; POINTS];
            let mut blocks: Vec<(usize, u64, u64)> = Vec::new();
            for now in 1..2_000u64 {
                // Phases of growth and of shrinking, so that there are many peaks.
                let grows = (now / 150) % 2 == 0;
                if blocks.is_empty() || random.below(100) < if grows { 70 } else { 30 } {
                    let (at, bytes) = (random.below(POINTS as u64) as usize, random.below(1000));
                    points[at].allocate(bytes, now, &live);
                    let counts = &mut shadow.now[at];
                    counts.bytes += bytes;
                    counts.blocks += 1;
                    counts.total_bytes += bytes;
                    counts.total_blocks += 1;
                    blocks.push((at, bytes, now));
                } else if random.below(4) == 0 {
                    let i = random.below(blocks.len() as u64) as usize;
                    let to = random.below(1000);
                    let (at, from, _) = blocks[i];
                    points[at].resize(from, to, now, &live);
                    let counts = &mut shadow.now[at];
                    counts.bytes = counts.bytes + to - from;
                    counts.total_bytes += to;
                    counts.total_blocks += 1;
                    blocks[i].1 = to;
                } else {
                    let (at, bytes, born) = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                    points[at].free(bytes, born, now, &live);
                    let counts = &mut shadow.now[at];
                    counts.bytes -= bytes;
                    counts.blocks -= 1;
                    shadow.lifetimes[at] += now - born;
                }
                shadow.look();
            }
            assert_eq!(live.peak(), shadow.peak);
            for (at, point) in points.iter().enumerate() {
                let ages: u64 = blocks.iter().filter(|block| block.0 == at).map(|block| 2_000 - block.2).sum();
                let counts = point.counts(&live);
                assert_eq!(counts.lifetimes(2_000), shadow.lifetimes[at] + ages, "seed {seed}");
                let expected = Counts { lifetimes: counts.lifetimes, seen: counts.seen, ..shadow.now[at] };
                assert_eq!(counts, expected, "seed {seed}, point {at}");
            }
            let at_peak: u64 = points.iter().map(|point| point.counts(&live).peak_bytes).sum();
            assert_eq!(at_peak, live.peak());
        }
    }

    #[test]
    fn threads_lose_nothing() {
        let live = Live::new();
        let points = [new(), new()];
        std::thread::scope(|scope| {
            for worker in 0..4u64 {
                let (points, live) = (&points, &live);
                scope.spawn(move || {
                    for i in 0..20_000u64 {
                        let point = &points[(i & 1) as usize];
                        point.allocate(16 + worker, i, live);
                        if i % 4 != 0 {
                            point.free(16 + worker, i, i + 3, live);
                        }
                    }
                });
            }
        });
        let all = [points[0].counts(&live), points[1].counts(&live)];
        assert_eq!(all[0].total_blocks + all[1].total_blocks, 80_000);
        assert_eq!((all[0].blocks, all[1].blocks), (20_000, 0));
        assert_eq!(all[0].bytes, 5_000 * (16 + 17 + 18 + 19));
        assert_eq!(all[1].lifetimes(7), 40_000 * 3);
    }
}
