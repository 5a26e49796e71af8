//! Stacks of names: what formats have that know neither addresses nor modules.

use std::collections::HashMap;
use std::sync::Arc;

use super::Limits;
use super::lines::Fault;
use crate::analysis::{Weights, location_label};
use crate::model::{
    Amount, Format, Frame, Location, LocationId, Metric, Profile, Sample, Stack, StackEnd, StackId, ThreadId,
    Truncation, TruncationReason,
};
use crate::text::escaped;

/// The outermost frame of a stack that does not exist.
const NO_STACK: &str = "[no stack]";
/// The outermost frame of a stack that is known to be cut off begins so.
const TRUNCATED: &str = "[truncated: ";
/// Sums from here on are refused: 2^63, so that every later sum of two of them fits into 64 bits.
const ABSURD: u64 = 1 << 63;

/// The metrics that are stored; [`Metric::Freed`] follows from them.
pub(super) const STORED: [(Metric, &str); 4] = [
    (Metric::Live, "live"),
    (Metric::Allocated, "allocated"),
    (Metric::Peak, "peak"),
    (Metric::Temporary, "temporary"),
];

/// Whether the recorder kept a metric.
pub(super) fn has(profile: &Profile, metric: Metric) -> bool {
    match metric {
        Metric::Live => true,
        Metric::Allocated | Metric::Freed => profile.has_allocated(),
        Metric::Peak => profile.has_peak(),
        Metric::Temporary => profile.has_temporary(),
    }
}

/// The amount of a sample that a stored metric is in.
pub(super) fn amount_mut(sample: &mut Sample, metric: Metric) -> &mut Amount {
    match metric {
        Metric::Live | Metric::Freed => &mut sample.live,
        Metric::Allocated => &mut sample.allocated,
        Metric::Peak => &mut sample.peak,
        Metric::Temporary => &mut sample.temporary,
    }
}

/// A profile as stacks of names and whole estimated numbers.
pub(super) struct Named {
    /// Each once, with visible names only.
    pub(super) frames: Vec<Frame>,
    /// Of each sample: indices into `frames`, outermost first.
    pub(super) stacks: Vec<Vec<u32>>,
    /// The metrics that the recorder kept.
    pub(super) columns: Vec<(Metric, &'static str, Weights)>,
}

impl Named {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut numbers = Numbers::default();
        let places: Vec<Vec<u32>> = profile
            .locations
            .iter()
            .map(|location| match location.frames.as_slice() {
                [] => vec![numbers.of(Frame::named(location_label(profile, location)))],
                frames => frames.iter().map(|frame| numbers.of(with_name(profile, location, frame))).collect(),
            })
            .collect();
        let mut stack = |stack: &Stack| -> Vec<u32> {
            let root = root(stack).map(|root| numbers.of(Frame::named(root)));
            let inner = stack.locations.iter().rev().flat_map(|id| places[id.index()].iter().rev().copied());
            root.into_iter().chain(inner).collect()
        };
        let stacks = profile.samples.iter().map(|sample| stack(profile.stack(sample.stack))).collect();
        let kept = STORED.into_iter().filter(|&(metric, _)| has(profile, metric));
        let columns = kept.map(|(metric, word)| (metric, word, Weights::of(profile, metric))).collect();
        Self { frames: numbers.frames, stacks, columns }
    }
}

#[derive(Default)]
struct Numbers {
    known: HashMap<Frame, u32>,
    frames: Vec<Frame>,
}

impl Numbers {
    fn of(&mut self, frame: Frame) -> u32 {
        let visible = |text: &str| -> Arc<str> { escaped(text).to_string().into() };
        let (function, file) = (visible(&frame.function), frame.file.as_deref().map(visible));
        let frame = Frame { function, file, line: frame.line, inlined: false };
        *self.known.entry(frame).or_insert_with_key(|frame| {
            self.frames.push(frame.clone());
            self.frames.len() as u32 - 1
        })
    }
}

fn with_name(profile: &Profile, location: &Location, frame: &Frame) -> Frame {
    match &*frame.function {
        "" => Frame { function: location_label(profile, location).into(), ..frame.clone() },
        _ => frame.clone(),
    }
}

fn root(stack: &Stack) -> Option<String> {
    match &stack.end {
        StackEnd::Truncated(truncation) => Some(format!("{TRUNCATED}{}]", truncation.reason.as_text())),
        _ if stack.locations.is_empty() => Some(NO_STACK.to_owned()),
        _ => None,
    }
}

/// Builds a profile from stacks of names.
pub(super) struct Builder<'l> {
    limits: &'l Limits,
    profile: Profile,
    locations: HashMap<Frame, LocationId>,
    stacks: HashMap<Stack, StackId>,
    samples: HashMap<(StackId, Option<ThreadId>), usize>,
    entries: usize,
    sums: [Amount; STORED.len()],
}

impl<'l> Builder<'l> {
    pub(super) fn new(format: Format, limits: &'l Limits) -> Self {
        Self {
            limits,
            profile: Profile::new(format, 1),
            locations: HashMap::new(),
            stacks: HashMap::new(),
            samples: HashMap::new(),
            entries: 0,
            sums: Default::default(),
        }
    }

    /// What is not about stacks and samples.
    pub(super) fn profile(&mut self) -> &mut Profile {
        &mut self.profile
    }

    pub(super) fn finish(mut self, warnings: &[&str]) -> Profile {
        self.profile.warnings.extend(warnings.iter().map(|&warning| warning.to_owned()));
        self.profile
    }

    /// The place of a function.
    pub(super) fn location(&mut self, frame: Frame) -> Result<LocationId, Fault> {
        if let Some(&known) = self.locations.get(&frame) {
            return Ok(known);
        }
        let id = LocationId(self.profile.locations.len() as u32);
        if id.index() >= self.limits.locations {
            return Err(Fault::TooLarge(format!("more than {} different functions", self.limits.locations)));
        }
        let frames = vec![frame.clone()];
        self.profile.locations.push(Location { address: 0, module: None, file_address: None, frames });
        self.locations.insert(frame, id);
        Ok(id)
    }

    /// A stack, outermost first.
    pub(super) fn stack(&mut self, outermost_first: &[LocationId]) -> Result<StackId, Fault> {
        if outermost_first.len() > self.limits.stack_depth {
            return Err(Fault::TooLarge(format!("a stack of more than {} frames", self.limits.stack_depth)));
        }
        let first = outermost_first.first().map(|id| &*self.profile.locations[id.index()].frames[0].function);
        let reason = first.and_then(|name| name.strip_prefix(TRUNCATED)?.strip_suffix(']'));
        let (skipped, end) = match (first, reason) {
            (_, Some(reason)) => {
                let reason = TruncationReason::from_text(reason);
                (1, StackEnd::Truncated(Truncation { reason, at: None }))
            }
            (Some(NO_STACK), _) if outermost_first.len() == 1 => (1, StackEnd::Unknown),
            _ => (0, StackEnd::Unknown),
        };
        let stack = Stack { locations: outermost_first[skipped..].iter().rev().copied().collect(), end };
        if let Some(&known) = self.stacks.get(&stack) {
            return Ok(known);
        }
        self.entries += stack.locations.len();
        if self.entries > self.limits.stack_entries {
            return Err(Fault::TooLarge(format!("stacks of more than {} frames together", self.limits.stack_entries)));
        }
        let id = StackId(self.profile.stacks.len() as u32);
        if id.index() >= self.limits.samples {
            return Err(Fault::TooLarge(format!("more than {} stacks", self.limits.samples)));
        }
        self.profile.stacks.push(stack.clone());
        self.stacks.insert(stack, id);
        Ok(id)
    }

    /// Adds one number of a stack to what is known of it.
    pub(super) fn add(
        &mut self,
        stack: StackId,
        thread: Option<ThreadId>,
        metric: Metric,
        amount: Amount,
    ) -> Result<(), Fault> {
        if amount.is_zero() {
            return Ok(());
        }
        self.count(metric, amount)?;
        let index = match self.samples.get(&(stack, thread)) {
            Some(&known) => known,
            None => {
                self.push(Sample { thread, ..Sample::new(stack, 0) })?;
                self.samples.insert((stack, thread), self.profile.samples.len() - 1);
                self.profile.samples.len() - 1
            }
        };
        let sum = amount_mut(&mut self.profile.samples[index], metric);
        // The sum over all samples fits.
        *sum = sum.checked_add(amount).unwrap_or(*sum);
        Ok(())
    }

    /// Adds a whole sample.
    pub(super) fn sample(&mut self, sample: Sample) -> Result<(), Fault> {
        for (metric, _) in STORED {
            self.count(metric, sample.amount(metric))?;
        }
        self.push(sample)
    }

    fn push(&mut self, sample: Sample) -> Result<(), Fault> {
        if self.profile.samples.len() >= self.limits.samples {
            return Err(Fault::TooLarge(format!("more than {} samples", self.limits.samples)));
        }
        self.profile.samples.push(sample);
        Ok(())
    }

    fn count(&mut self, metric: Metric, amount: Amount) -> Result<(), Fault> {
        let column = STORED.iter().position(|&(stored, _)| stored == metric).unwrap_or(0);
        let sum = self.sums[column].checked_add(amount).filter(|sum| sum.bytes < ABSURD && sum.objects < ABSURD);
        self.sums[column] = sum.ok_or_else(|| Fault::Damaged("the sums up to here exceed 2^63".into()))?;
        Ok(())
    }
}
