//! Samples: how much was recorded for one stack and block size, and what that stands for.

use super::estimate::Estimate;
use super::stack::StackId;
use super::thread::ThreadId;

/// A number of blocks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amount {
    /// Blocks.
    pub objects: u64,
    /// Bytes of those blocks.
    pub bytes: u64,
}

impl Amount {
    /// Neither blocks nor bytes.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// Both sums, or `None` when one overflows 64 bits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { objects: self.objects.checked_add(other.objects)?, bytes: self.bytes.checked_add(other.bytes)? })
    }

    /// The probability that a block of the average size is recorded, at one sample in `sample_rate` bytes; 1 where that says nothing.
    pub(crate) fn probability(self, sample_rate: u64) -> f64 {
        if sample_rate <= 1 || self.objects == 0 || self.bytes == 0 {
            return 1.0;
        }
        let ratio = self.bytes as f64 / self.objects as f64 / sample_rate as f64;
        // exp_m1 keeps the digits that 1 - exp(-x) loses for small blocks.
        -(-ratio).exp_m1()
    }

    /// How many blocks were recorded, of which this is the estimate.
    pub(crate) fn recorded_blocks(self, sample_rate: u64) -> u64 {
        (self.objects as f64 * self.probability(sample_rate)).round() as u64
    }

    /// Whether there are more blocks or more bytes than in the other amount.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.objects > other.objects || self.bytes > other.bytes
    }

    /// Both differences, each at least 0.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self { objects: self.objects.saturating_sub(other.objects), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// Which of the amounts of a sample is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Blocks that were not freed when the profile was taken.
    #[default]
    Live,
    /// All blocks allocated since recording began.
    Allocated,
    /// Blocks allocated since recording began and freed again: allocated less live.
    Freed,
    /// Blocks that were live when the process held most.
    Peak,
    /// Blocks that were freed by the thread that had allocated them before it allocated again.
    Temporary,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Live, Self::Allocated, Self::Freed, Self::Peak, Self::Temporary];
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes.
    #[default]
    Bytes,
    /// Blocks.
    Blocks,
}

/// What was recorded for one stack and, where the format tells them apart, one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The stack that allocated.
    pub stack: StackId,
    /// Bytes of one block: exact in our own dumps, an average over the line elsewhere; 0 when unknown.
    pub block_size: u64,
    /// Sampled blocks that were live, as in the file, not scaled.
    pub live: Amount,
    /// Sampled blocks that were ever allocated, as in the file, not scaled. All zero when the recorder did not keep
    /// this ([`Profile::has_allocated`](crate::Profile::has_allocated)).
    pub allocated: Amount,
    /// Sampled blocks that were live when the process held most, as in the file, not scaled. All zero when the recorder did
    /// not keep this ([`Profile::has_peak`](crate::Profile::has_peak)).
    pub peak: Amount,
    /// Sampled blocks that came and went at once ([`Metric::Temporary`]), as in the file, not scaled. All zero when the recorder
    /// did not keep this ([`Profile::has_temporary`](crate::Profile::has_temporary)).
    pub temporary: Amount,
    /// The thread that allocated, where the file tells it.
    pub thread: Option<ThreadId>,
    /// How long the recorded blocks of `allocated` lived, added up, in [`Profile::time_unit`](crate::Profile::time_unit); 0
    /// where the file does not tell it. Blocks that are live count up to the end of the recording.
    pub lived: u64,
}

impl Sample {
    /// A sample of which nothing was recorded yet.
    pub fn new(stack: StackId, block_size: u64) -> Self {
        let none = Amount::default();
        Self { stack, block_size, live: none, allocated: none, peak: none, temporary: none, thread: None, lived: 0 }
    }

    /// Adds what another sample has. Sums end at the largest number.
    pub(crate) fn absorb(&mut self, other: &Sample) {
        let add = |sum: &mut Amount, more: Amount| {
            sum.objects = sum.objects.saturating_add(more.objects);
            sum.bytes = sum.bytes.saturating_add(more.bytes);
        };
        add(&mut self.live, other.live);
        add(&mut self.allocated, other.allocated);
        add(&mut self.peak, other.peak);
        add(&mut self.temporary, other.temporary);
        self.lived = self.lived.saturating_add(other.lived);
    }

    /// The recorded, unscaled amount.
    pub fn amount(&self, metric: Metric) -> Amount {
        match metric {
            Metric::Live => self.live,
            Metric::Allocated => self.allocated,
            Metric::Freed => self.allocated.saturating_sub(self.live),
            Metric::Peak => self.peak,
            Metric::Temporary => self.temporary,
        }
    }

    /// What the recorded amount stands for in the whole program, given the profile's `sample_rate` in bytes. For amounts that are
    /// estimates already see [`Profile::estimate_of`](crate::Profile::estimate_of).
    ///
    /// Each metric is scaled by its own average block size. Where a line has one block size, live and freed therefore
    /// add up to allocated; where a line mixes sizes they need not.
    pub fn estimate(&self, metric: Metric, sample_rate: u64) -> Estimate {
        Estimate::of(self.amount(metric), sample_rate)
    }
}
