//! Writing a profile in any format, and saying what the format has no place for.

use std::borrow::Cow;
use std::io::Write;

use super::{callgrind, csv, dhat, firefox, folded, heap_text, pprof, speedscope};
use crate::analysis::Weights;
use crate::error::WriteError;
use crate::model::{Amount, Amounts, Metric, Profile, StackEnd, Unit};

/// A format that profiles are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// pprof's `profile.proto`.
    Proto,
    /// The same packed with gzip.
    ProtoGz,
    /// heap_v2 text in this project's dialect.
    HeapV2,
    /// gperftools' unsampled text.
    Gperftools,
    /// jemalloc's heap_v2 text.
    Jemalloc,
    /// DHAT's JSON.
    Dhat,
    /// Folded stacks of one metric.
    Folded,
    /// speedscope's JSON.
    Speedscope,
    /// The Firefox profiler's JSON.
    Firefox,
    /// A row for each sample.
    Csv,
    /// Callgrind's text, with the events of Valgrind's execution trees of memory.
    Callgrind,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Proto,
        Self::ProtoGz,
        Self::HeapV2,
        Self::Gperftools,
        Self::Jemalloc,
        Self::Dhat,
        Self::Folded,
        Self::Speedscope,
        Self::Firefox,
        Self::Csv,
        Self::Callgrind,
    ];

    /// The metrics that the format has a place for; one of the user's choice in folded stacks.
    pub fn metrics(self) -> &'static [Metric] {
        match self {
            Self::HeapV2 | Self::Gperftools | Self::Jemalloc => &[Metric::Live, Metric::Allocated],
            Self::Dhat => &[Metric::Live, Metric::Allocated, Metric::Peak],
            Self::Folded => &[],
            _ => &[Metric::Live, Metric::Allocated, Metric::Peak, Metric::Temporary],
        }
    }

    fn has_only_addresses(self) -> bool {
        matches!(self, Self::HeapV2 | Self::Gperftools | Self::Jemalloc)
    }

    fn has_addresses(self) -> bool {
        self.has_only_addresses() || matches!(self, Self::Proto | Self::ProtoGz | Self::Dhat)
    }

    fn has_rate(self) -> bool {
        matches!(self, Self::Proto | Self::ProtoGz | Self::HeapV2 | Self::Jemalloc | Self::Csv)
    }

    fn has_threads(self) -> bool {
        matches!(self, Self::Proto | Self::ProtoGz | Self::Csv)
    }

    fn has_sizes(self) -> bool {
        self.has_threads() || self == Self::HeapV2
    }

    /// Whether the numbers of the samples are written as they are, and not as estimates.
    fn has_recorded(self) -> bool {
        matches!(self, Self::HeapV2 | Self::Jemalloc)
    }
}

/// What is written where a format has one number for each stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The metric.
    pub metric: Metric,
    /// Bytes or blocks.
    pub unit: Unit,
}

/// What of a profile a format has no place for, in plain sentences with nothing left to escape.
pub type Losses = Vec<String>;

/// Writes a profile, and tells what was lost. All that is not in the losses comes back when it is read.
///
/// # Errors
/// When the output fails, or the format cannot express the profile at all.
pub fn write(
    profile: &Profile,
    target: Target,
    options: Options,
    mut output: impl Write,
) -> Result<Losses, WriteError> {
    if target.has_only_addresses() && profile.has_no_address() {
        let reason = "its functions have names and no addresses, and the format has addresses only".to_owned();
        return Err(WriteError::Inexpressible { format: "text with addresses", reason });
    }
    let losses = losses(profile, target, options);
    let output = &mut output;
    match target {
        Target::Proto => pprof::write(profile, output),
        Target::ProtoGz => pprof::write_packed(profile, output),
        Target::HeapV2 => heap_text::write(&recorded(profile), output),
        Target::Gperftools => heap_text::write_gperftools(&whole(profile), output),
        Target::Jemalloc => heap_text::write_jemalloc(&recorded(profile), output),
        Target::Dhat => dhat::write(&whole(profile), output),
        Target::Folded => folded::write(profile, options.metric, options.unit, output),
        Target::Speedscope => speedscope::write(profile, output),
        Target::Firefox => firefox::write(profile, output),
        Target::Csv => csv::write(profile, output),
        Target::Callgrind => callgrind::write(profile, output),
    }?;
    Ok(losses)
}

/// The profile with what was recorded; of estimates, as if every block had been.
fn recorded(profile: &Profile) -> Cow<'_, Profile> {
    match profile.amounts {
        Amounts::Recorded => Cow::Borrowed(profile),
        Amounts::Estimated => Cow::Owned(whole(profile)),
    }
}

/// The profile with its whole-number estimates, as if every block had been recorded.
fn whole(profile: &Profile) -> Profile {
    let mut whole = profile.clone();
    for metric in [Metric::Live, Metric::Allocated, Metric::Peak, Metric::Temporary] {
        let weights = Weights::of(profile, metric);
        for (sample, sum) in whole.samples.iter_mut().zip(weights.samples()) {
            *super::named::amount_mut(sample, metric) = Amount { objects: sum.blocks, bytes: sum.bytes };
        }
    }
    // Rounding may leave one more live than allocated, which readers take for damage.
    if whole.has_allocated() {
        for sample in &mut whole.samples {
            let (live, all) = (sample.live, sample.allocated);
            sample.allocated = Amount { objects: live.objects.max(all.objects), bytes: live.bytes.max(all.bytes) };
        }
    }
    whole.sample_rate = 1;
    whole.amounts = Amounts::Recorded;
    whole
}

fn losses(profile: &Profile, target: Target, options: Options) -> Losses {
    let mut losses = Losses::new();
    let mut lost = |is_lost: bool, what: &str| {
        if is_lost {
            losses.push(what.to_owned());
        }
    };
    let is_named = profile.locations.iter().any(|location| !location.frames.is_empty());
    let has_address = profile.locations.iter().any(|location| location.address != 0);
    let exactness = match (profile.is_sampled(), profile.amounts) {
        (true, _) if !target.has_rate() => "that the numbers are estimates, and their errors",
        (true, Amounts::Estimated) if target.has_recorded() => "that the numbers are estimates, and their errors",
        _ => "",
    };
    lost(!exactness.is_empty(), exactness);
    lost(is_named && target.has_only_addresses(), "names, files and lines of functions");
    lost(has_address && !target.has_addresses(), "addresses and modules: what has no name now gets none later");
    let missing = |metric| super::named::has(profile, metric) && !target.metrics().contains(&metric);
    if target == Target::Folded {
        let others = super::named::STORED
            .iter()
            .any(|&(other, _)| other != options.metric && !profile.recorded(other).is_zero());
        lost(others, "metrics other than the one chosen (see --metric)");
        lost(true, if options.unit == Unit::Bytes { "numbers of blocks" } else { "bytes" });
        lost(
            profile.locations.iter().any(|place| place.frames.iter().any(|frame| frame.file.is_some())),
            "files and lines",
        );
    } else {
        lost(missing(Metric::Allocated), "what was allocated in all");
        lost(missing(Metric::Peak), "what was live at the peak");
        lost(missing(Metric::Temporary), "what was freed at once");
    }
    lost(profile.samples.iter().any(|sample| sample.thread.is_some()) && !target.has_threads(), "threads");
    lost(profile.samples.iter().any(|sample| sample.block_size > 0) && !target.has_sizes(), "sizes of single blocks");
    lost(profile.samples.iter().any(|sample| sample.lived > 0) && target != Target::Dhat, "how long blocks lived");
    let marked = profile.stacks.iter().any(|stack| matches!(stack.end, StackEnd::Complete));
    let keeps_marks = matches!(target, Target::Proto | Target::ProtoGz | Target::HeapV2);
    lost(marked && !keeps_marks, "which stacks are known to be complete");
    let inlined = profile.locations.iter().any(|place| place.frames.len() > 1);
    lost(inlined && !target.has_addresses(), "which functions were inlined");
    lost(target == Target::Callgrind, "stacks: the format has callers and callees, two at a time");
    lost(
        target == Target::Dhat && !profile.has_allocated(),
        "that only live memory is known: totals are those of live blocks",
    );
    losses
}
