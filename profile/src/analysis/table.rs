//! The table of allocation sites: who allocated (flat) and through whom (cumulative).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::frames::{FrameRef, Frames, Key, Place, Site};
use super::{Group, Sum, View, Weights};
use crate::model::{Profile, Sample, StackEnd, Unit};
use crate::units::bytes;

/// What stacks without any frame are booked under.
const NO_STACK: &str = "[no stack]";

/// One row: a function, line, file or library, as [`View::group`] says.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The function, file or library; an address such as `libfoo.so+0x1234` where there is no name. Not escaped.
    pub name: Arc<str>,
    /// The source place to show: of the group itself where it has one, else of the heaviest allocation (or, when nothing
    /// was allocated here itself, call) in the row. Not escaped.
    pub place: Option<(Arc<str>, u32)>,
    /// How many different source places have been merged into the row; 1 when `place` is all there is.
    pub places: usize,
    /// The module's file name, where the group depends on it. Not escaped.
    pub module: Option<Arc<str>>,
    /// The function is known by name; false for addresses.
    pub named: bool,
    /// What was allocated here itself. The flats of all rows add up to [`Table::total`].
    pub flat: Sum,
    /// What was allocated here and in everything called from here. A function that calls itself counts once.
    pub cumulative: Sum,
}

/// The table of allocation sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Rows by falling flat, then falling cumulative, then name.
    pub rows: Vec<Row>,
    /// The sum of all samples, which is exactly the sum of the flats.
    pub total: Sum,
    /// The part of `total` that is booked under an address because the function has no name.
    pub unresolved: Sum,
    /// The part of `total` whose stacks are known to be cut off. Their flat is right where they are cut off above the
    /// first user frame; their cumulative parts are too low.
    pub truncated: Sum,
}

impl Table {
    /// Adds up a profile.
    pub fn build(profile: &Profile, view: &View) -> Self {
        Self::of(profile, view, &Weights::of(profile, view.metric))
    }

    /// Adds up these numbers.
    pub(super) fn of(profile: &Profile, view: &View, weights: &Weights) -> Self {
        if matches!(view.group, Group::Thread | Group::Size) {
            return Self::by_sample(profile, view, weights);
        }
        let frames = Frames::of(profile, view.group, view.inlines);
        let mut rows = Rows::new(&frames, view.unit);
        let (mut unresolved, mut truncated) = (Sum::default(), Sum::default());
        let mut shown = Vec::new();
        for (sample, &sum) in profile.samples.iter().zip(weights.samples()) {
            let stack = profile.stack(sample.stack);
            frames.visible(stack, view.runtime, &mut shown);
            rows.add(&shown, sum);
            if !shown.first().is_some_and(|frame| frame.named) {
                unresolved += sum;
            }
            if matches!(stack.end, StackEnd::Truncated(_)) {
                truncated += sum;
            }
        }
        let mut table = Self { rows: rows.finish(), total: weights.total(), unresolved, truncated };
        table.sort_by_flat(view.unit);
        table
    }

    /// Adds up by what is known of samples, not of frames: flat and cumulative are the same.
    fn by_sample(profile: &Profile, view: &View, weights: &Weights) -> Self {
        let mut sums: BTreeMap<Arc<str>, Sum> = BTreeMap::new();
        let mut truncated = Sum::default();
        for (sample, &sum) in profile.samples.iter().zip(weights.samples()) {
            *sums.entry(sample_group(profile, sample, view.group)).or_default() += sum;
            if matches!(profile.stack(sample.stack).end, StackEnd::Truncated(_)) {
                truncated += sum;
            }
        }
        let row =
            |(name, sum)| Row { name, place: None, places: 1, module: None, named: true, flat: sum, cumulative: sum };
        let rows = sums.into_iter().map(row).collect();
        let mut table = Self { rows, total: weights.total(), unresolved: Sum::default(), truncated };
        table.sort_by_flat(view.unit);
        table
    }

    /// Orders the rows by falling flat, then falling cumulative, then name.
    pub fn sort_by_flat(&mut self, unit: Unit) {
        self.sort_by(|row| (Reverse(row.flat.value(unit)), Reverse(row.cumulative.value(unit))));
    }

    /// Orders the rows by falling cumulative, then falling flat, then name.
    pub fn sort_by_cumulative(&mut self, unit: Unit) {
        self.sort_by(|row| (Reverse(row.cumulative.value(unit)), Reverse(row.flat.value(unit))));
    }

    fn sort_by<K: Ord>(&mut self, weight: impl Fn(&Row) -> K) {
        let identity = |row: &Row| (row.name.clone(), row.place.clone(), row.module.clone());
        self.rows.sort_by(|a, b| weight(a).cmp(&weight(b)).then_with(|| identity(a).cmp(&identity(b))));
    }
}

/// What a sample is booked under by [`Group::Thread`] or [`Group::Size`]; not escaped.
pub(super) fn sample_group(profile: &Profile, sample: &Sample, group: Group) -> Arc<str> {
    match group {
        Group::Thread => match profile.thread_of(sample) {
            Some(thread) => thread.to_string().into(),
            None => "unknown thread".into(),
        },
        _ => match sample.block_size {
            0 => "unknown size".into(),
            size => {
                let least = 1_u64 << size.ilog2();
                match least.checked_mul(2) {
                    Some(next) => format!("{} to below {}", bytes(least), bytes(next)).into(),
                    None => format!("{} and more", bytes(least)).into(),
                }
            }
        },
    }
}

/// What is known of a key while samples are added.
#[derive(Clone, Default)]
struct Entry {
    flat: Sum,
    cumulative: Sum,
    named: bool,
    /// Number of the last sample that was added to `cumulative`, from 1, so that recursion counts once.
    last: usize,
}

/// Weight of a site: flat, then cumulative. `None` where no sample came by.
type SiteWeight = Option<(u64, u64)>;

struct Rows<'a> {
    frames: &'a Frames,
    unit: Unit,
    entries: Vec<Entry>,
    /// One for each of [`Frames::sites`].
    sites: Vec<SiteWeight>,
    no_stack: Option<Sum>,
    sample: usize,
}

impl<'a> Rows<'a> {
    fn new(frames: &'a Frames, unit: Unit) -> Self {
        let entries = vec![Entry::default(); frames.keys.len()];
        Self { frames, unit, entries, sites: vec![None; frames.sites.len()], no_stack: None, sample: 0 }
    }

    /// Books `sum` under the innermost of the frames, and cumulatively under each of them.
    fn add(&mut self, shown: &[FrameRef], sum: Sum) {
        self.sample += 1;
        let Some(leaf) = shown.first() else {
            *self.no_stack.get_or_insert_default() += sum;
            return;
        };
        self.entries[leaf.key as usize].flat += sum;
        for (depth, frame) in shown.iter().enumerate() {
            let entry = &mut self.entries[frame.key as usize];
            let site = self.sites[frame.site as usize].get_or_insert_default();
            if depth == 0 {
                site.0 = site.0.saturating_add(sum.value(self.unit));
            }
            if entry.last != self.sample {
                entry.last = self.sample;
                entry.named = frame.named;
                entry.cumulative += sum;
                site.1 = site.1.saturating_add(sum.value(self.unit));
            }
        }
    }

    fn finish(self) -> Vec<Row> {
        let Self { frames, entries, sites, no_stack, .. } = self;
        let places = Places::of(frames, &sites);
        let no_stack = no_stack.map(|sum| Row {
            name: NO_STACK.into(),
            place: None,
            places: 1,
            module: None,
            named: false,
            flat: sum,
            cumulative: sum,
        });
        let keyed = frames.keys.iter().zip(entries).zip(places);
        keyed
            .filter(|((_, entry), _)| entry.last > 0)
            .map(|((key, entry), places)| row(key, entry, places))
            .chain(no_stack)
            .collect()
    }
}

/// The source places of one key.
#[derive(Clone, Default)]
struct Places<'a> {
    count: usize,
    heaviest: Option<((u64, u64), Reverse<&'a Place>)>,
}

impl<'a> Places<'a> {
    /// One for each key. Of two places of the same weight the one that is first in order is the heaviest.
    fn of(frames: &'a Frames, weights: &[SiteWeight]) -> Vec<Self> {
        let mut places = vec![Self::default(); frames.keys.len()];
        for (Site { key, place }, weight) in frames.sites.iter().zip(weights) {
            let Some(weight) = *weight else { continue };
            let of_key = &mut places[*key as usize];
            of_key.count += 1;
            of_key.heaviest = of_key.heaviest.max(Some((weight, Reverse(place))));
        }
        places
    }
}

fn row(key: &Key, entry: Entry, places: Places<'_>) -> Row {
    let heaviest = places.heaviest.and_then(|(_, Reverse(place))| place.clone());
    let own = key.file.clone().map(|file| (file, key.line));
    Row {
        name: key.name.clone(),
        place: if key.line > 0 { own } else { heaviest.or(own) },
        places: places.count,
        module: key.module.clone(),
        named: entry.named,
        flat: entry.flat,
        cumulative: entry.cumulative,
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
