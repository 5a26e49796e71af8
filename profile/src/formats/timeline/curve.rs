//! Live memory between two measurements, as the samples tell it.
//!
//! A program of one thread is measured in passing, when it allocates: one that fills its memory, sleeps, and frees it may be
//! measured only when it is empty. The samples have no such gaps. So between ticks live memory is that of the last tick, which
//! is exact, plus what the samples since then add and take, each times what it stands for; an estimate, with the error of these samples only.

use super::{Event, Happening, Header, Tables, Tick};
use crate::model::{Amount, Estimate};

/// Stretches of time that are kept apart, at most.
const MOST: usize = 4096;

/// The most that was live in each stretch of time.
#[derive(Clone, Debug)]
pub struct Curve {
    weight: u64,
    /// Microseconds of a stretch.
    width: u64,
    /// By the number of the stretch, in order.
    stretches: Vec<Moment>,
    /// Exact at the last tick, and the sum of the samples then and now.
    measured: u64,
    sum_then: f64,
    sum: f64,
}

/// Live memory at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Microseconds since the start.
    pub time: u64,
    /// Bytes, estimated.
    pub live: u64,
}

impl Curve {
    /// Of a timeline with this header.
    pub fn new(header: &Header) -> Self {
        Self { weight: header.weight(), width: 1, stretches: Vec::new(), measured: 0, sum_then: 0.0, sum: 0.0 }
    }

    /// A measurement. To be given in the order of the file, as events are.
    pub fn tick(&mut self, tick: &Tick) {
        self.measured = tick.live;
        self.sum_then = self.sum;
        self.keep(tick.time);
    }

    /// An event; `tables` as they are when it comes.
    pub fn event(&mut self, event: &Event, tables: &Tables) {
        let Some(site) = tables.site(event.site) else { return };
        let rate = tables.runs().iter().find(|run| run.number == site.run).map_or(1, |run| run.sample_rate);
        let block = Estimate::of(Amount { objects: 1, bytes: site.block_size }, rate).bytes * self.weight as f64;
        match event.happening {
            Happening::Allocated => self.sum += block,
            Happening::Freed | Happening::Moved => self.sum -= block,
            Happening::Resized => return,
        }
        self.keep(event.time);
    }

    fn keep(&mut self, time: u64) {
        let live = (self.measured as f64 + self.sum - self.sum_then).max(0.0) as u64;
        let moment = Moment { time, live };
        // Events of several threads are nearly in order: one that is late belongs to the last stretch.
        match self.stretches.last_mut() {
            Some(last) if time / self.width <= last.time / self.width => {
                if live > last.live {
                    *last = Moment { time: last.time.max(time), live };
                }
            }
            _ => self.stretches.push(moment),
        }
        while self.stretches.len() > MOST {
            self.width *= 2;
            let width = self.width;
            let all = std::mem::take(&mut self.stretches);
            for moment in all {
                match self.stretches.last_mut() {
                    Some(last) if moment.time / width == last.time / width => {
                        if moment.live > last.live {
                            *last = moment;
                        }
                    }
                    _ => self.stretches.push(moment),
                }
            }
        }
    }

    /// In the order of time.
    pub fn moments(&self) -> &[Moment] {
        &self.stretches
    }

    /// Where most was live; the first of several.
    pub fn highest(&self) -> Option<Moment> {
        self.stretches.iter().rev().max_by_key(|moment| moment.live).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header { level: 0, process: 1, wall_start: 0, monotonic_start: 0, interval: 100_000 }
    }

    fn curve(changes: &[(u64, f64)]) -> Curve {
        let mut curve = Curve::new(&header());
        for &(time, change) in changes {
            curve.sum += change;
            curve.keep(time);
        }
        curve
    }

    #[test]
    fn what_comes_and_goes_between_ticks_is_seen() {
        let mut curve = curve(&[(0, 0.0)]);
        curve.tick(&Tick { time: 10, live: 100, ..Tick::default() });
        for (time, change) in [(20, 5000.0), (30, -5000.0)] {
            curve.sum += change;
            curve.keep(time);
        }
        curve.tick(&Tick { time: 40, live: 90, ..Tick::default() });
        let expected = [(0, 0), (10, 100), (20, 5100), (30, 100), (40, 90)];
        assert_eq!(curve.moments(), expected.map(|(time, live)| Moment { time, live }));
        assert_eq!(curve.highest(), Some(Moment { time: 20, live: 5100 }));
    }

    #[test]
    fn memory_is_bounded_and_peaks_stay() {
        let changes: Vec<(u64, f64)> =
            (0..100_000).map(|time| (time, if time % 2 == 0 { time as f64 } else { 1.0 - time as f64 })).collect();
        let curve = curve(&changes);
        assert!((MOST / 2..=MOST).contains(&curve.moments().len()), "{}", curve.moments().len());
        assert!(curve.moments().is_sorted_by_key(|moment| moment.time));
        let sums = changes.iter().scan(0.0, |sum, (_, change)| {
            *sum += change;
            Some(*sum as u64)
        });
        assert_eq!(curve.highest().map(|moment| moment.live), sums.max());
    }

    #[test]
    fn late_and_impossible_events() {
        let curve = curve(&[(u64::MAX, 1.0), (0, 7.0), (5, -100.0)]);
        assert_eq!(curve.moments(), [Moment { time: u64::MAX, live: 8 }]);
    }
}
