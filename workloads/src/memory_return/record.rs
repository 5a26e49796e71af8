//! What an observer found out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::process::{Helper, Switches};
use super::system::Splits;

/// Resident memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds after the drain; negative before it.
    pub ms: f64,
    /// Resident memory in bytes.
    pub rss: u64,
    /// Bytes that the kernel charges to the subject's control group.
    pub charged: Option<u64>,
}

/// Bytes at three moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Three {
    /// Before the first block.
    pub start: u64,
    /// When all blocks were live.
    pub peak: u64,
    /// At the end of the watch.
    pub end: u64,
}

impl Three {
    /// The share of the peak that is gone at the end.
    #[must_use]
    pub fn returned(&self) -> f64 {
        share(self.peak, self.end)
    }

    /// The same of what came between start and peak: for figures that others have a part in.
    #[must_use]
    pub fn returned_of_growth(&self) -> f64 {
        share(self.peak.saturating_sub(self.start), self.end.saturating_sub(self.start))
    }
}

/// The share of `peak` that is gone when there is `now`; below 0 if there is more.
#[must_use]
pub fn share(peak: u64, now: u64) -> f64 {
    if peak == 0 { 0.0 } else { 1.0 - now as f64 / peak as f64 }
}

/// Physical truth: what is really free for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// What was charged, and to whom.
    pub group: Option<String>,
    /// Bytes that the group was charged.
    pub charged: Option<Three>,
    /// The share of the charge at the peak that was gone at the end.
    pub charged_returned: Option<f64>,
    /// Bytes of the system that were not free, less those before the start. Other programs change this too.
    pub used: Three,
    /// The share of them that was free again.
    pub used_returned: f64,
    /// Bytes of the subject in huge pages, at the peak and at the end.
    pub huge: [Option<u64>; 2],
    /// Huge pages of the whole system that were split between start and end.
    pub splits: Splits,
}

/// All of it. Shares are of the peak of the whole process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The file that the subject's `malloc` is in.
    pub malloc_from: String,
    /// The subject's command line.
    pub command: String,
    /// What is called when memory is asked for.
    pub purge: Option<String>,
    /// Resident memory in bytes. The peak is the highest ever.
    pub rss: Three,
    /// Shares returned after the drain.
    pub returned: Returned,
    /// What is really free.
    pub truth: Truth,
    /// How often all threads together stopped running in the quiet part of the watch.
    pub switches: Switches,
    /// Threads that are none of the program's.
    pub helpers: Vec<Helper>,
    /// What the subject measured itself.
    pub figures: BTreeMap<String, f64>,
    /// Blocks that were damaged.
    pub damaged: u64,
    /// Resident memory over time.
    pub samples: Vec<Sample>,
}

impl Record {
    /// What the kernel charged to a group of the subject's own; nobody else has a part in it.
    #[must_use]
    pub fn own_charge(&self) -> Option<Three> {
        self.truth.charged.filter(|_| self.truth.group.as_deref().is_some_and(|group| group.ends_with("own")))
    }
}

/// Milliseconds that a sample may be late: a busy machine has other things to do.
const LATE: f64 = 15.0;

/// Shares of the peak that were returned so long after the drain. `None` if the watch was shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    /// After 0.1 s.
    pub after_100ms: Option<f64>,
    /// After 0.5 s.
    pub after_500ms: Option<f64>,
    /// After 1 s.
    pub after_1s: Option<f64>,
    /// After 2 s.
    pub after_2s: Option<f64>,
    /// At the end of the watch.
    pub end: f64,
}

impl Returned {
    /// The shares at those moments, each by the last sample up to then.
    #[must_use]
    pub fn of(samples: &[Sample], rss: Three) -> Self {
        let last = samples.last().map_or(0.0, |sample| sample.ms);
        let at = |ms: f64| {
            let sample = samples.iter().rev().find(|sample| sample.ms >= 0.0 && sample.ms <= ms + LATE)?;
            (last + LATE >= ms).then(|| share(rss.peak, sample.rss))
        };
        Self {
            after_100ms: at(100.0),
            after_500ms: at(500.0),
            after_1s: at(1000.0),
            after_2s: at(2000.0),
            end: rss.returned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_at_their_moments() {
        let sample = |(ms, rss)| Sample { ms, rss, charged: None };
        let samples = [(-50.0, 5), (0.0, 100), (51.0, 80), (101.0, 60), (480.0, 40), (1013.0, 20)].map(sample);
        let returned = Returned::of(&samples, Three { start: 1, peak: 100, end: 10 });
        assert_eq!(returned.after_100ms, Some(0.4));
        assert_eq!(returned.after_500ms, Some(0.6));
        assert_eq!((returned.after_1s, returned.after_2s, returned.end), (Some(0.8), None, 0.9));
        assert_eq!(Three { start: 20, peak: 120, end: 70 }.returned_of_growth(), 0.5);
        assert_eq!(share(0, 5), 0.0);
        assert!(share(100, 120) < 0.0);
    }
}
