//! What is measured, and what a limit says of it.

use mpp_profile::analysis::diff::STANDARD_ERRORS;
use mpp_profile::analysis::{Quality, Sum, Weights};
use mpp_profile::{Metric, Profile, Unit};
use serde_json::Number;

use super::GateArgs;
use super::baseline::Baseline;
use crate::exit::{Code, Failure};
use crate::selection::Selected;
use crate::suppressions::{Suppressions, Used};

/// Of so many times the mean distance between two samples, one in twenty is never sampled (e⁻³ = 0.05).
const UNSEEN: f64 = 3.0;

/// A figure with its standard error; 0 if it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Peak,
    LiveEnd,
    Leak,
    Allocs,
    AllocBytes,
    Temp,
    Symbolized,
    Complete,
}

/// In what a figure is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Bytes,
    Count,
    Percent,
}

impl Name {
    pub(super) const ALL: [Name; 8] = [
        Name::Peak,
        Name::LiveEnd,
        Name::Leak,
        Name::Allocs,
        Name::AllocBytes,
        Name::Temp,
        Name::Symbolized,
        Name::Complete,
    ];

    /// As in flags and files.
    pub(super) fn text(self) -> &'static str {
        match self {
            Name::Peak => "peak",
            Name::LiveEnd => "live-end",
            Name::Leak => "leak",
            Name::Allocs => "allocs",
            Name::AllocBytes => "alloc-bytes",
            Name::Temp => "temp",
            Name::Symbolized => "symbolized",
            Name::Complete => "complete",
        }
    }

    /// For people.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Name::Peak => "live at the peak",
            Name::LiveEnd => "live at the end",
            Name::Leak => "not freed and not suppressed",
            Name::Allocs => "allocations",
            Name::AllocBytes => "allocated in all",
            Name::Temp => "temporary allocations",
            Name::Symbolized => "live bytes with a name",
            Name::Complete => "live bytes with a complete stack",
        }
    }

    pub(super) fn measure(self) -> Measure {
        match self {
            Name::Peak | Name::LiveEnd | Name::Leak | Name::AllocBytes => Measure::Bytes,
            Name::Allocs => Measure::Count,
            Name::Temp | Name::Symbolized | Name::Complete => Measure::Percent,
        }
    }

    /// A value as programs read it: a whole number unless it is a percentage.
    pub(super) fn number(self, value: f64) -> Option<Number> {
        match self.measure() {
            Measure::Bytes | Measure::Count => Some((value.round() as u64).into()),
            Measure::Percent => Number::from_f64(value),
        }
    }

    /// More is better.
    pub(super) fn is_least(self) -> bool {
        matches!(self, Name::Symbolized | Name::Complete)
    }

    /// What the sites of a gate that failed are sorted by.
    pub(super) fn metric(self) -> Metric {
        match self {
            Name::Peak => Metric::Peak,
            Name::Allocs | Name::AllocBytes => Metric::Allocated,
            Name::Temp => Metric::Temporary,
            _ => Metric::Live,
        }
    }

    pub(super) fn unit(self) -> Unit {
        if matches!(self, Name::Allocs | Name::Temp) { Unit::Blocks } else { Unit::Bytes }
    }
}

/// The figures of a profile; `None` for what it does not tell.
#[derive(Debug)]
pub(super) struct Measured {
    figures: Vec<(Name, Option<Figure>)>,
    /// The profile without what is suppressed.
    pub(super) rest: Profile,
    pub(super) used: Vec<Used>,
    /// Whether it is of a part of the program.
    pub(super) filtered: bool,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Passed,
    Inconclusive,
    Failed,
}

/// One limit, and what was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gate {
    pub(super) name: Name,
    pub(super) figure: Figure,
    pub(super) limit: f64,
    /// What the baseline has, if the limit comes from there.
    pub(super) baseline: Option<Figure>,
    pub(super) verdict: Verdict,
}

impl Measured {
    pub(super) fn of(selected: &Selected, suppressions: &Suppressions) -> Measured {
        let profile = &selected.loaded.profile;
        let mut rest = profile.clone();
        let used = suppressions.apply(&mut rest);
        let total = |profile: &Profile, metric| Weights::of(profile, metric).total();
        // Nothing sampled is not nothing there; and a block has a byte at least.
        let unseen = if profile.is_sampled() { UNSEEN / STANDARD_ERRORS * profile.sample_rate as f64 } else { 0.0 };
        let estimate = |sum: Sum, unit| {
            let value = sum.value(unit) as f64;
            Figure { value, error: if value > 0.0 { sum.standard_error(unit) } else { unseen } }
        };
        let bytes = |sum: Sum| estimate(sum, Unit::Bytes);
        let blocks = |sum: Sum| estimate(sum, Unit::Blocks);
        // Of a part of the profile nothing was counted.
        let counted = |key: &str| {
            let number = profile.comment(key)?.parse::<u64>().ok()?;
            (!selected.filtered).then_some(Figure { value: number as f64, error: 0.0 })
        };
        let (live, allocated) = (total(profile, Metric::Live), total(profile, Metric::Allocated));
        let has_allocated = profile.has_allocated();
        let quality = Quality::of(profile, Metric::Live);
        let share = |part: f64| Some(Figure { value: 100.0 * quality.share(part), error: 0.0 });
        let figure = |name| match name {
            Name::Peak => profile.has_peak().then(|| bytes(total(profile, Metric::Peak))),
            Name::LiveEnd => counted("exact_live_bytes").or(Some(bytes(live))),
            Name::Leak if used.is_empty() => counted("exact_live_bytes").or(Some(bytes(live))),
            Name::Leak => Some(bytes(total(&rest, Metric::Live))),
            Name::Allocs => counted("exact_allocated_blocks").or(has_allocated.then(|| blocks(allocated))),
            Name::AllocBytes => counted("exact_allocated_bytes").or(has_allocated.then(|| bytes(allocated))),
            Name::Temp => profile.has_temporary().then(|| share_of(total(profile, Metric::Temporary), allocated)),
            Name::Symbolized => share(quality.first_frame.lines + quality.first_frame.names),
            Name::Complete => share(quality.complete as f64),
        };
        let figures = Name::ALL.map(|name| (name, figure(name))).to_vec();
        Measured { figures, rest, used, filtered: selected.filtered }
    }

    pub(super) fn figure(&self, name: Name) -> Option<Figure> {
        self.figures.iter().find(|(known, _)| *known == name).and_then(|(_, figure)| *figure)
    }

    /// What is in a baseline and cannot be compared, and why.
    pub(super) fn not_compared(&self, baseline: &Baseline) -> Vec<String> {
        let untold = baseline.figures().filter(|(name, _)| self.figure(*name).is_none());
        let untold = untold.map(|(name, _)| format!("not compared: {}, which this profile does not tell", name.text()));
        let unknown = baseline.unknown().map(|name| format!("not compared: {name}, which this mpp does not know"));
        untold.chain(unknown).collect()
    }

    /// Judges all limits that the user gives, and all figures that a baseline has.
    pub(super) fn judge(&self, args: &GateArgs, baseline: Option<&Baseline>) -> Result<Vec<Gate>, Failure> {
        let whole = |limit: Option<u64>| limit.map(|limit| limit as f64);
        let limits = [
            (Name::Peak, whole(args.max_peak)),
            (Name::LiveEnd, whole(args.max_live_end)),
            (Name::Leak, whole(args.max_leak)),
            (Name::Allocs, whole(args.max_allocs)),
            (Name::AllocBytes, whole(args.max_alloc_bytes)),
            (Name::Temp, args.max_temp),
            (Name::Symbolized, args.min_symbolized),
            (Name::Complete, args.min_complete),
        ];
        let mut gates = Vec::new();
        for (name, limit) in limits {
            let Some(limit) = limit else { continue };
            let Some(figure) = self.figure(name) else {
                let why = format!("the profile does not tell {}, so that cannot be checked", name.sentence());
                return Err(Failure::new(
                    Code::Usage,
                    format!("{why}\nrecord it with `mpp run`, or leave the gate out"),
                ));
            };
            gates.push(Gate { name, figure, limit, baseline: None, verdict: judge(name, figure, limit) });
        }
        for (name, before) in baseline.map(Baseline::figures).into_iter().flatten() {
            let Some(figure) = self.figure(name) else { continue };
            let factor = if name.is_least() { 1.0 - args.tolerance / 100.0 } else { 1.0 + args.tolerance / 100.0 };
            let limit = before.value * factor;
            // Both are uncertain.
            let both = Figure { value: figure.value, error: figure.error.hypot(before.error * factor) };
            let verdict = judge(name, both, limit);
            gates.push(Gate { name, figure, limit, baseline: Some(before), verdict });
        }
        Ok(gates)
    }
}

fn share_of(part: Sum, whole: Sum) -> Figure {
    if whole.blocks == 0 {
        return Figure::default();
    }
    let value = 100.0 * part.blocks as f64 / whole.blocks as f64;
    // The part is in the whole, so this is more than the error of the share.
    let relative = |sum: Sum| sum.standard_error(Unit::Blocks) / (sum.blocks as f64).max(1.0);
    Figure { value, error: value * relative(part).hypot(relative(whole)) }
}

fn judge(name: Name, figure: Figure, limit: f64) -> Verdict {
    let spread = STANDARD_ERRORS * figure.error;
    let (value, limit) = if name.is_least() { (-figure.value, -limit) } else { (figure.value, limit) };
    if value + spread <= limit {
        Verdict::Passed
    } else if value - spread > limit {
        Verdict::Failed
    } else {
        Verdict::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_belong_to_what_is_allowed() {
        let figure = |value, error| Figure { value, error };
        assert_eq!(judge(Name::Peak, figure(100.0, 0.0), 100.0), Verdict::Passed);
        assert_eq!(judge(Name::Peak, figure(100.1, 0.0), 100.0), Verdict::Failed);
        assert_eq!(judge(Name::Peak, figure(90.0, 6.0), 100.0), Verdict::Inconclusive);
        assert_eq!(judge(Name::Peak, figure(110.0, 6.0), 100.0), Verdict::Inconclusive);
        assert_eq!(judge(Name::Peak, figure(113.0, 6.0), 100.0), Verdict::Failed);
        assert_eq!(judge(Name::Symbolized, figure(95.0, 0.0), 95.0), Verdict::Passed);
        assert_eq!(judge(Name::Symbolized, figure(94.0, 0.0), 95.0), Verdict::Failed);
    }
}
