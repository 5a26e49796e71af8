//! One profile out of many.

use std::collections::HashMap;

use super::Weights;
use crate::formats::intern::{Samples, Stacks};
use crate::model::{
    Amount, Amounts, Format, Frame, Location, LocationId, Metric, Module, ModuleId, Profile, Sample, Thread, ThreadId,
};

/// Facts of dumps that mean the sum when they are added up: exact counts, and what is missing.
const SUMS: [&str; 6] = [
    "exact_live_blocks",
    "exact_live_bytes",
    "exact_allocated_blocks",
    "exact_allocated_bytes",
    "dropped_samples",
    "estimated_temporary_blocks",
];

/// What makes two mappings the same: start, end, offset in the file, path, build id.
type File = (u64, u64, u64, String, Option<String>);
/// What makes two locations the same: address and module; where these say nothing, the functions and lines there.
type Place = (u64, Option<ModuleId>, Vec<Frame>);

/// Adds profiles up, one after the other, so that only the sum and one of them are in memory. Modules, locations, stacks, threads that are
/// the same become one, and so do samples of the same stack, block size and thread in large sums.
///
/// As long as all profiles have one sampling rate, what was recorded is added, and estimates are made of the sum. Where rates differ,
/// estimates are added; their error is then told as that of the largest rate, which is rather too much than too little.
#[derive(Debug, Default)]
pub struct Merger {
    merged: Option<Profile>,
    count: usize,
    modules: HashMap<File, ModuleId>,
    locations: HashMap<Place, LocationId>,
    threads: HashMap<Thread, ThreadId>,
    stacks: Stacks,
    samples: Samples,
    sums: HashMap<&'static str, u64>,
}

impl Merger {
    /// Adds a profile.
    ///
    /// # Errors
    /// When the sums exceed what can be counted, in a plain sentence.
    pub fn add(&mut self, mut other: Profile) -> Result<(), String> {
        self.count += 1;
        self.add_facts(&other);
        let mut merged = match self.merged.take() {
            Some(merged) => merged,
            None => {
                let mut first = Profile::new(other.format, other.sample_rate);
                (first.amounts, first.time_unit) = (other.amounts, other.time_unit.clone());
                first
            }
        };
        let is_same_kind = merged.sample_rate == other.sample_rate && merged.amounts == other.amounts;
        if !is_same_kind {
            estimated(&mut merged);
            estimated(&mut other);
            merged.sample_rate = merged.sample_rate.max(other.sample_rate);
            const NOTE: &str =
                "profiles of different sampling rates were added up: errors are those of the largest rate";
            if !merged.warnings.iter().any(|warning| warning == NOTE) {
                merged.warnings.push(NOTE.to_owned());
            }
        }
        if merged.format != other.format {
            merged.format = Format::PprofForeign;
        }
        let fits = |metric| {
            let (one, two) = (merged.recorded(metric), other.recorded(metric));
            one.checked_add(two).is_some_and(|sum| sum.bytes.max(sum.objects) < 1 << 63)
        };
        if !Metric::ALL.into_iter().all(fits) {
            return Err("the profiles together are too large to be added up".to_owned());
        }
        if merged.time_unit != other.time_unit {
            // Times of different units mean nothing together.
            merged.time_unit = "".into();
            merged.samples.iter_mut().chain(&mut other.samples).for_each(|sample| sample.lived = 0);
        }
        self.append(&mut merged, other);
        self.merged = Some(merged);
        Ok(())
    }

    /// The sum; `None` if nothing was added.
    pub fn finish(self) -> Option<Profile> {
        let Self { merged, count, sums, .. } = self;
        let mut merged = merged?;
        merged.comments = vec![("merged_profiles".to_owned(), count.to_string())];
        let known = SUMS.iter().filter_map(|key| Some(((*key).to_owned(), sums.get(key)?.to_string())));
        merged.comments.extend(known);
        Some(merged)
    }

    /// A fact counts as long as all profiles have it.
    fn add_facts(&mut self, profile: &Profile) {
        for key in SUMS {
            let value = profile.comment(key).and_then(|value| value.parse::<u64>().ok());
            match (value, self.count) {
                (Some(value), 1) => _ = self.sums.insert(key, value),
                (Some(value), _) => {
                    if let Some(sum) = self.sums.get_mut(key) {
                        *sum = sum.saturating_add(value);
                    }
                }
                (None, _) => _ = self.sums.remove(key),
            }
        }
    }

    fn append(&mut self, merged: &mut Profile, other: Profile) {
        let modules: Vec<ModuleId> = other.modules.into_iter().map(|module| self.module(merged, module)).collect();
        let mut locations = Vec::with_capacity(other.locations.len());
        for location in other.locations {
            let module = location.module.map(|id| modules[id.index()]);
            locations.push(self.location(merged, Location { module, ..location }));
        }
        let threads: Vec<ThreadId> = other.threads.into_iter().map(|thread| self.thread(merged, thread)).collect();
        let mut stacks = Vec::with_capacity(other.stacks.len());
        let mut scratch = Vec::new();
        for stack in other.stacks {
            scratch.clear();
            scratch.extend(stack.locations.iter().map(|id| locations[id.index()]));
            stacks.push(self.stacks.intern(merged, &scratch, stack.end).unwrap_or_else(|new| new));
        }
        for sample in other.samples {
            let thread = sample.thread.and_then(|id| threads.get(id.index()).copied());
            self.samples.add(merged, Sample { stack: stacks[sample.stack.index()], thread, ..sample });
        }
        for (name, raw) in other.linker_names {
            merged.linker_names.entry(name).or_insert(raw);
        }
        for warning in other.warnings {
            if !merged.warnings.contains(&warning) {
                merged.warnings.push(warning);
            }
        }
    }

    fn module(&mut self, merged: &mut Profile, module: Module) -> ModuleId {
        let Module { start, end, file_offset, ref path, ref build_id, .. } = module;
        let key = (start, end, file_offset, path.clone(), build_id.as_ref().map(ToString::to_string));
        let next = ModuleId(merged.modules.len() as u32);
        let id = *self.modules.entry(key).or_insert(next);
        if id == next {
            merged.modules.push(module);
        }
        id
    }

    fn location(&mut self, merged: &mut Profile, location: Location) -> LocationId {
        let is_sure = location.address != 0 && location.module.is_some();
        let frames = if is_sure { Vec::new() } else { location.frames.clone() };
        let next = LocationId(merged.locations.len() as u32);
        let id = *self.locations.entry((location.address, location.module, frames)).or_insert(next);
        if id == next {
            merged.locations.push(location);
        }
        id
    }

    fn thread(&mut self, merged: &mut Profile, thread: Thread) -> ThreadId {
        let next = ThreadId(merged.threads.len() as u32);
        let id = *self.threads.entry(thread.clone()).or_insert(next);
        if id == next {
            merged.threads.push(thread);
        }
        id
    }
}

/// Makes estimates of what was recorded: whole numbers, which add up.
fn estimated(profile: &mut Profile) {
    if profile.amounts == Amounts::Estimated {
        return;
    }
    let weights =
        [Metric::Live, Metric::Allocated, Metric::Peak, Metric::Temporary].map(|metric| Weights::of(profile, metric));
    for (index, sample) in profile.samples.iter_mut().enumerate() {
        let [live, allocated, peak, temporary] = weights.each_ref().map(|weights| {
            let sum = weights.samples()[index];
            Amount { objects: sum.blocks, bytes: sum.bytes }
        });
        *sample = Sample { live, allocated, peak, temporary, ..*sample };
    }
    profile.amounts = Amounts::Estimated;
}

#[cfg(test)]
mod tests {
    use super::super::test_profile::{profile, stacks as any_profile};
    use super::*;
    use proptest::prelude::*;

    fn merge(profiles: Vec<Profile>) -> Profile {
        let mut merger = Merger::default();
        profiles.into_iter().for_each(|profile| merger.add(profile).expect("small numbers"));
        merger.finish().expect("a profile")
    }

    #[test]
    fn what_is_the_same_becomes_one() {
        let one = profile(&[(&["a", "main"], 10)]);
        let mut two = profile(&[(&["a", "main"], 10), (&["b", "main"], 5)]);
        two.comments = vec![("exact_live_bytes".to_owned(), "15".to_owned())];
        let mut one_with_count = one.clone();
        one_with_count.comments = vec![("exact_live_bytes".to_owned(), "11".to_owned())];
        let merged = merge(vec![one_with_count, two.clone()]);
        assert_eq!((merged.stacks.len(), merged.locations.len(), merged.modules.len()), (2, 3, 1));
        assert_eq!(merged.recorded(Metric::Live), Amount { objects: 3, bytes: 25 });
        assert_eq!((merged.comment("exact_live_bytes"), merged.comment("merged_profiles")), (Some("26"), Some("2")));
        assert_eq!(merge(vec![one, two]).comment("exact_live_bytes"), None, "one of them does not tell it");
    }

    /// Profiles of names alone have no addresses to tell places by.
    #[test]
    fn lines_of_one_function_stay_apart() {
        let at = |line| {
            let mut profile = profile(&[(&["a"], 10)]);
            profile.locations[0].address = 0;
            profile.locations[0].module = None;
            profile.locations[0].frames = vec![Frame::named("a").at("a.c", line)];
            profile
        };
        assert_eq!(merge(vec![at(1), at(2), at(1)]).locations.len(), 2);
    }

    #[test]
    fn sums_that_do_not_fit_are_refused() {
        let mut huge = profile(&[(&["a"], 1)]);
        huge.samples[0].live.bytes = 1 << 62;
        let mut merger = Merger::default();
        assert!(merger.add(huge.clone()).is_ok());
        assert!(merger.add(huge).is_err());
    }

    proptest! {
        #[test]
        fn totals_add_up(one in any_profile(), two in any_profile()) {
            let total = |profile: &Profile| Metric::ALL.map(|metric| Weights::of(profile, metric).total().bytes);
            let merged = merge(vec![one.clone(), two.clone()]);
            let parts = total(&one).into_iter().zip(total(&two)).zip(Metric::ALL);
            for (sum, ((one_part, two_part), metric)) in total(&merged).into_iter().zip(parts) {
                // What was freed is a difference of two that are rounded for each sample.
                let most = if metric == Metric::Freed { 2 + 2 * merged.samples.len() as u64 } else { 2 };
                prop_assert!(sum.abs_diff(one_part + two_part) <= most, "{metric:?} {sum} {one_part} {two_part}");
            }
            prop_assert_eq!(merged.warnings.is_empty(), one.sample_rate == two.sample_rate);
        }
    }
}
