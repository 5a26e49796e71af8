//! Folded stacks, the input of flame graphs: `main;parse;grow 4096`, outermost first.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::frames::{Frames, Key};
use super::table::sample_group;
use super::{Group, View, Weights};
use crate::model::{Profile, Stack, StackEnd};
use crate::text::escaped;

/// The name of the box under which stacks without any frame are drawn.
const NO_STACK: &str = "[no stack]";

/// Stacks with their weights, each distinct stack once, in the order of their frames' names.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    names: Vec<String>,
    /// Indices into `names`, outermost first.
    stacks: BTreeMap<Box<[u32]>, u64>,
    total: u64,
}

impl Folded {
    /// Folds the stacks of a profile. The weights of all lines add up to the rounded total of the view's unit. Stacks of
    /// no weight are left out.
    ///
    /// Stacks that are known to be cut off are put under a box of their own, `[truncated: depth limit]`. With [`Group::Thread`] and
    /// [`Group::Size`] all stacks are in a box of their thread or size.
    pub fn build(profile: &Profile, view: &View) -> Self {
        let weights = Weights::of(profile, view.metric);
        let frames = Frames::of(profile, view.group, view.inlines);
        let mut names: Vec<String> = frames.keys.iter().map(|key| name(key, view.group)).collect();
        let mut extra: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        let mut stacks: BTreeMap<Box<[u32]>, u64> = BTreeMap::new();
        let mut shown = Vec::new();
        let grouped = matches!(view.group, Group::Thread | Group::Size);
        for (sample, sum) in profile.samples.iter().zip(weights.samples()) {
            let weight = sum.value(view.unit);
            if weight == 0 {
                continue;
            }
            let stack = profile.stack(sample.stack);
            frames.visible(stack, view.runtime, &mut shown);
            let root = root_box(stack).map(|root| {
                *extra.entry(root).or_insert_with_key(|root| {
                    names.push(sanitised(root));
                    names.len() as u32 - 1
                })
            });
            let group = grouped.then(|| {
                let name = sample_group(profile, sample, view.group);
                *extra.entry(name).or_insert_with_key(|name| {
                    names.push(sanitised(name));
                    names.len() as u32 - 1
                })
            });
            let path: Box<[u32]> =
                group.into_iter().chain(root).chain(shown.iter().rev().map(|frame| frame.key)).collect();
            let total = stacks.entry(path).or_default();
            *total = total.saturating_add(weight);
        }
        Self { names, stacks, total: weights.total().value(view.unit) }
    }

    /// The sum of the weights of all stacks.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Each stack as its frame names, outermost first, and its weight. Names are escaped and free of `;`.
    pub fn stacks(&self) -> impl Iterator<Item = (impl Iterator<Item = &str>, u64)> {
        self.stacks.iter().map(|(path, &weight)| (path.iter().map(|&name| self.names[name as usize].as_str()), weight))
    }

    /// Each stack as a line `main;parse;grow 4096`, without a line end. Made one at a time: all of them together can be
    /// much larger than the profile.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.stacks().map(|(frames, weight)| {
            let mut line = String::new();
            for (depth, name) in frames.enumerate() {
                if depth > 0 {
                    line.push(';');
                }
                line.push_str(name);
            }
            line.push_str(&format!(" {weight}"));
            line
        })
    }

    /// Writes all lines.
    ///
    /// # Errors
    /// When the output does not take them.
    pub fn write(&self, mut output: impl Write) -> io::Result<()> {
        self.lines().try_for_each(|line| writeln!(output, "{line}"))
    }
}

/// The box that a stack is put under if it does not begin at the start of a thread or does not exist.
pub(super) fn root_box(stack: &Stack) -> Option<Arc<str>> {
    match &stack.end {
        StackEnd::Truncated(truncation) => Some(format!("[truncated: {}]", truncation.reason.as_text()).into()),
        _ if stack.locations.is_empty() => Some(NO_STACK.into()),
        _ => None,
    }
}

fn name(key: &Key, group: Group) -> String {
    match (&key.file, key.line) {
        (Some(file), line) if group == Group::Line && line > 0 => {
            let file_name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            sanitised(&format!("{} ({file_name}:{line})", key.name))
        }
        _ => sanitised(&key.name),
    }
}

/// A name that cannot break a line of folded stacks: `;` separates frames, so Rust's `[u8; 4]` becomes `[u8, 4]`.
fn sanitised(name: &str) -> String {
    escaped(name).to_string().replace(';', ",")
}

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;
