//! The neighbours of a function: who called it, and whom it called.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::frames::Frames;
use super::{Sum, View, Weights};
use crate::model::{Profile, Unit};

/// A caller or callee.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its name; `None` for none: the function was the outermost, or has allocated itself. Not escaped.
    pub name: Option<Arc<str>>,
    /// The function is known by name; false for addresses.
    pub named: bool,
    /// What went this way.
    pub sum: Sum,
}

/// A function and its neighbours. Callers add up to its cumulative sum, and so do callees, with what it allocated itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Peek {
    /// The function; not escaped.
    pub name: Arc<str>,
    /// Its source file; not escaped.
    pub file: Option<Arc<str>>,
    /// What it allocated itself.
    pub flat: Sum,
    /// What it and all that it called allocated.
    pub cumulative: Sum,
    /// Who called it, heaviest first. Of a stack with several calls of it, the outermost one's caller.
    pub callers: Vec<Neighbour>,
    /// Whom it called, heaviest first. Of a stack with several calls of it, the innermost one's callee.
    pub callees: Vec<Neighbour>,
}

#[derive(Default)]
struct Entry {
    flat: Sum,
    cumulative: Sum,
    /// By key and whether it has a name.
    callers: BTreeMap<Option<(u32, bool)>, Sum>,
    callees: BTreeMap<Option<(u32, bool)>, Sum>,
}

impl Peek {
    /// Every function that `wants` picks by its name and file, heaviest first.
    pub fn all(profile: &Profile, view: &View, mut wants: impl FnMut(&str, Option<&str>) -> bool) -> Vec<Peek> {
        let weights = Weights::of(profile, view.metric);
        let frames = Frames::of(profile, view.group, view.inlines);
        let wanted: Vec<bool> = frames.keys.iter().map(|key| wants(&key.name, key.file.as_deref())).collect();
        let mut entries: BTreeMap<u32, Entry> = BTreeMap::new();
        let mut shown = Vec::new();
        for (sample, &sum) in profile.samples.iter().zip(weights.samples()) {
            frames.visible(profile.stack(sample.stack), view.runtime, &mut shown);
            let here: BTreeSet<u32> = shown.iter().map(|frame| frame.key).filter(|&key| wanted[key as usize]).collect();
            for key in here {
                let entry = entries.entry(key).or_default();
                let innermost = shown.iter().position(|frame| frame.key == key).unwrap_or(0);
                let outermost = shown.iter().rposition(|frame| frame.key == key).unwrap_or(0);
                let neighbour = |index: Option<usize>| {
                    let frame = shown.get(index?)?;
                    Some((frame.key, frame.named))
                };
                entry.cumulative += sum;
                if innermost == 0 {
                    entry.flat += sum;
                }
                *entry.callers.entry(neighbour(outermost.checked_add(1))).or_default() += sum;
                *entry.callees.entry(neighbour(innermost.checked_sub(1))).or_default() += sum;
            }
        }
        let made = entries.into_iter().map(|(key, entry)| made(&frames, key, entry, view.unit));
        let mut peeks: Vec<Peek> = made.filter(|peek| peek.cumulative.value(view.unit) > 0).collect();
        peeks.sort_by(|a, b| {
            let weight = |peek: &Peek| Reverse(peek.cumulative.value(view.unit));
            (weight(a), &a.name, &a.file).cmp(&(weight(b), &b.name, &b.file))
        });
        peeks
    }
}

fn made(frames: &Frames, key: u32, entry: Entry, unit: Unit) -> Peek {
    let of = &frames.keys[key as usize];
    let neighbours = |sums: BTreeMap<Option<(u32, bool)>, Sum>| {
        let neighbour = |(id, sum): (Option<(u32, bool)>, Sum)| Neighbour {
            name: id.map(|(key, _)| frames.keys[key as usize].name.clone()),
            named: id.is_none_or(|(_, named)| named),
            sum,
        };
        let mut list: Vec<Neighbour> = sums.into_iter().map(neighbour).filter(|one| one.sum.value(unit) > 0).collect();
        list.sort_by(|a, b| (Reverse(a.sum.value(unit)), &a.name).cmp(&(Reverse(b.sum.value(unit)), &b.name)));
        list
    };
    Peek {
        name: of.name.clone(),
        file: of.file.clone(),
        flat: entry.flat,
        cumulative: entry.cumulative,
        callers: neighbours(entry.callers),
        callees: neighbours(entry.callees),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_profile::{profile, stacks};
    use super::*;
    use proptest::prelude::*;

    fn pairs(neighbours: &[Neighbour]) -> Vec<(&str, u64)> {
        neighbours.iter().map(|one| (one.name.as_deref().unwrap_or("-"), one.sum.bytes)).collect()
    }

    #[test]
    fn neighbours_are_found() {
        let profile = profile(&[
            (&["c", "b", "a", "main"], 4),
            (&["b", "main"], 2),
            (&["b"], 1),
            (&["c", "b", "x", "b", "a"], 8),
        ]);
        let peeks = Peek::all(&profile, &View::default(), |name, _| name == "b");
        assert_eq!((peeks.len(), peeks[0].flat.bytes, peeks[0].cumulative.bytes), (1, 3, 15));
        assert_eq!(pairs(&peeks[0].callers), [("a", 12), ("main", 2), ("-", 1)]);
        assert_eq!(pairs(&peeks[0].callees), [("c", 12), ("-", 3)]);
    }

    proptest! {
        #[test]
        fn both_sides_add_up(profile in stacks()) {
            for peek in Peek::all(&profile, &View::default(), |_, _| true) {
                for side in [&peek.callers, &peek.callees] {
                    prop_assert_eq!(side.iter().map(|one| one.sum.bytes).sum::<u64>(), peek.cumulative.bytes);
                }
            }
        }
    }
}
