//! How far a profile can be trusted: are its stacks complete, and do its frames have names and lines?

use std::collections::BTreeMap;

use super::frames::{FrameRef, Frames};
use super::{Group, Weights};
use crate::model::{Metric, Profile, StackEnd};

/// Estimated bytes by what is known about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// All estimated bytes of the metric.
    pub total: u64,
    /// Bytes whose stack reaches the start of its thread.
    pub complete: u64,
    /// Bytes whose stack is known to be cut off.
    pub truncated: u64,
    /// `truncated` by reason, with the reason's text in the input; heaviest first. Not escaped.
    pub truncated_by_reason: Vec<(String, u64)>,
    /// Bytes of whose stack the file does not say whether it is complete.
    pub unknown: u64,
    /// Bytes whose stack has no frame at all; also counted in one of the three above.
    pub without_stack: u64,
    /// Judged on the frame a person looks at first: the innermost user frame (as
    /// [`RuntimeFrames::Collapse`](super::RuntimeFrames::Collapse) finds it).
    pub first_frame: Resolved,
    /// Judged on all frames: the bytes of a stack are shared equally among its frames.
    pub all_frames: Resolved,
}

/// Estimated bytes by what the symbolizer found. The three add up to [`Quality::total`], up to rounding errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resolved {
    /// File and line, and as a rule the function.
    pub lines: f64,
    /// The function's name only.
    pub names: f64,
    /// Not even that.
    pub nothing: f64,
}

impl Quality {
    /// Measures a profile.
    pub fn of(profile: &Profile, metric: Metric) -> Self {
        let weights = Weights::of(profile, metric);
        let frames = Frames::of(profile, Group::Function, true);
        let mut quality = Self { total: weights.total().bytes, ..Self::default() };
        let mut by_reason: BTreeMap<String, u64> = BTreeMap::new();
        // Frames of each location by what is known of them: a stack can be deep, and there are many.
        let counts: Vec<[u32; 3]> = (0..profile.locations.len()).map(|index| frames.counts(index)).collect();
        for (sample, sum) in profile.samples.iter().zip(weights.samples()) {
            let stack = profile.stack(sample.stack);
            let part = match &stack.end {
                StackEnd::Complete => &mut quality.complete,
                StackEnd::Unknown => &mut quality.unknown,
                StackEnd::Truncated(truncation) => {
                    let reason = by_reason.entry(truncation.reason.as_text().into()).or_default();
                    *reason = reason.saturating_add(sum.bytes);
                    &mut quality.truncated
                }
            };
            *part = part.saturating_add(sum.bytes);
            if stack.locations.is_empty() {
                quality.without_stack = quality.without_stack.saturating_add(sum.bytes);
            }
            let bytes = sum.bytes as f64;
            quality.first_frame.add(frames.first_visible(stack), bytes);
            let (mut lines, mut names, mut nothing) = (0_u32, 0_u32, 0_u32);
            for id in &*stack.locations {
                let of_location = &counts[id.index()];
                lines += of_location[0];
                names += of_location[1];
                nothing += of_location[2];
            }
            let all = lines + names + nothing;
            let share = bytes / f64::from(all.max(1));
            quality.all_frames.lines += share * f64::from(lines);
            quality.all_frames.names += share * f64::from(names);
            quality.all_frames.nothing += share * f64::from(if all == 0 { 1 } else { nothing });
        }
        quality.truncated_by_reason = by_reason.into_iter().collect();
        quality.truncated_by_reason.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        quality
    }

    /// `bytes` as a share of the total, from 0 to 1; 1 of an empty profile, which lacks nothing.
    pub fn share(&self, bytes: f64) -> f64 {
        if self.total == 0 { 1.0 } else { bytes / self.total as f64 }
    }
}

impl Resolved {
    fn add(&mut self, frame: Option<&FrameRef>, bytes: f64) {
        *match frame {
            Some(frame) if frame.with_line => &mut self.lines,
            Some(frame) if frame.named => &mut self.names,
            _ => &mut self.nothing,
        } += bytes;
    }
}

#[cfg(test)]
#[path = "quality_tests.rs"]
mod tests;
