//! Makes a profile out of the message: looks numbers up, and checks that it all makes sense.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::Limits;
use super::super::heap_text::comment;
use super::super::intern::Samples;
use super::columns::Columns;
use super::raw::{Raw, RawLocation, RawSample};
use super::{Stop, Wrong};
use crate::model::{
    Amount, Amounts, BuildId, Format, Frame, Location, LocationId, Module, ModuleId, Profile, Sample, Stack, StackEnd,
    StackId, Thread, ThreadId, Truncation, TruncationReason, lookup_address, module_at,
};

/// Values and sums from here on are refused. Larger ones are negative numbers, as they are in differences of profiles.
const ABSURD: u64 = 1 << 63;
/// Longest reason of a truncation that is kept, in characters.
const MAX_REASON: usize = 256;

impl Raw {
    /// A string by its number.
    pub(super) fn string(&self, number: u64, offset: u64) -> Result<&str, Wrong> {
        let found = usize::try_from(number).ok().and_then(|number| self.strings.get(number));
        found.map(|string| &**string).ok_or_else(|| {
            let count = self.strings.len();
            Wrong::damaged(
                offset,
                format!("refers to string {number}, but there are {count}; the file is cut off or damaged"),
            )
        })
    }
}

/// Makes the profile.
pub(super) fn profile(raw: Raw, name: &str, limits: &Limits) -> Result<Profile, Stop> {
    if raw.strings.first().is_none_or(|first| !first.is_empty()) {
        let message = "expected a table of strings that begins with an empty one; the file is cut off or damaged";
        return Err(Wrong::damaged(raw.end, message).into());
    }
    let columns = Columns::find(&raw, name)?;
    let mut builder = Builder {
        profile: Profile::new(Format::PprofForeign, sample_rate(&raw)?),
        locations: Vec::new(),
        file_stacks: Vec::new(),
        ended: HashMap::new(),
        samples: Samples::default(),
        threads: HashMap::new(),
        sums: Default::default(),
        is_own: false,
    };
    builder.profile.amounts = Amounts::Estimated;
    builder.comments(&raw, limits)?;
    let mappings = builder.modules(&raw)?;
    let mut raw = raw;
    builder.locations(&mut raw, &mappings)?;
    builder.place_stacks(&mut raw)?;
    raw.forget_lists();
    for sample in &raw.samples {
        builder.sample(&raw, &columns, sample)?;
    }
    Ok(builder.finish())
}

/// A period of something other than bytes says nothing about how blocks were sampled.
fn sample_rate(raw: &Raw) -> Result<u64, Wrong> {
    let unit = raw.string(raw.period_type.unit, raw.period_type.offset)?;
    if raw.period >= ABSURD {
        return Err(Wrong::damaged(raw.period_type.offset, "the period is negative"));
    }
    Ok(if unit == "bytes" { raw.period.max(1) } else { 1 })
}

struct Builder {
    profile: Profile,
    /// By the numbers of [`Raw::ids`]; `None` for those that samples name and that are not there.
    locations: Vec<Option<LocationId>>,
    /// The stacks of the file, and their places in the profile where they have one.
    file_stacks: Vec<(Arc<[LocationId]>, Option<StackId>)>,
    /// Stacks with a known end, by their locations and the end.
    ended: HashMap<(u32, String), StackId>,
    samples: Samples,
    threads: HashMap<Thread, ThreadId>,
    /// Live, allocated, live at the peak, and gone at once, of all samples so far.
    sums: [Amount; 4],
    is_own: bool,
}

impl Builder {
    fn comments(&mut self, raw: &Raw, limits: &Limits) -> Result<(), Wrong> {
        for &comment in &raw.comments {
            let Some((key, value)) = comment::value(raw.string(comment, raw.end)?.as_bytes()) else { continue };
            self.is_own |= key == "stacks_marked" && value == "1";
            if self.profile.comments.len() < limits.comments {
                self.profile.comments.push((key, value));
            }
        }
        Ok(())
    }

    /// Makes modules, sorted; where the mapping of each number is.
    fn modules(&mut self, raw: &Raw) -> Result<HashMap<u64, Option<ModuleId>>, Wrong> {
        let mut numbered = Vec::new();
        let mut places = HashMap::new();
        for mapping in &raw.mappings {
            if mapping.id == 0 || places.insert(mapping.id, None).is_some() {
                return Err(Wrong::damaged(mapping.offset, "a mapping without a number of its own"));
            }
            let path = raw.string(mapping.path, mapping.offset)?;
            let (path, deleted) = path.strip_suffix(" (deleted)").map_or((path, false), |path| (path, true));
            let path = path.to_owned();
            let build_id = BuildId::from_hex(raw.string(mapping.build_id, mapping.offset)?.as_bytes());
            let (start, end, file_offset) = (mapping.start, mapping.end, mapping.file_offset);
            // Some writers have a mapping that is nowhere, for what they cannot tell.
            if start < end {
                let module = Module { start, end, file_offset, path, build_id, executable: true, deleted };
                numbered.push((mapping.id, module));
            }
        }
        numbered.sort_by_key(|(_, module)| module.start);
        for (index, (id, module)) in numbered.into_iter().enumerate() {
            places.insert(id, Some(ModuleId(index as u32)));
            self.profile.modules.push(module);
        }
        Ok(places)
    }

    fn locations(&mut self, raw: &mut Raw, mappings: &HashMap<u64, Option<ModuleId>>) -> Result<(), Wrong> {
        let mut functions = HashMap::new();
        let mut strings: HashMap<u64, Arc<str>> = HashMap::new();
        let file_locations = std::mem::take(&mut raw.locations);
        let mut share = |number, offset| -> Result<Arc<str>, Wrong> {
            let string = raw.string(number, offset)?;
            Ok(strings.entry(number).or_insert_with(|| string.into()).clone())
        };
        for function in &raw.functions {
            let (name, file) = (share(function.name, function.offset)?, share(function.file, function.offset)?);
            let linker_name = share(function.linker_name, function.offset)?;
            if !linker_name.is_empty() && linker_name != name {
                self.profile.linker_names.entry(name.clone()).or_insert(linker_name);
            }
            if function.id == 0 || functions.insert(function.id, (name, file)).is_some() {
                return Err(Wrong::damaged(function.offset, "a function without a number of its own"));
            }
        }
        for location in &file_locations {
            let id = LocationId(self.profile.locations.len() as u32);
            let number = raw.ids.number(location.id).index();
            if self.locations.len() <= number {
                self.locations.resize(number + 1, None);
            }
            if location.id == 0 || self.locations[number].replace(id).is_some() {
                return Err(Wrong::damaged(location.offset, "a location without a number of its own"));
            }
            // The model has return addresses.
            let address = location.address.saturating_add(1);
            let module = match location.mapping {
                0 => module_at(&self.profile.modules, lookup_address(address)),
                mapping => *mappings.get(&mapping).ok_or_else(|| {
                    Wrong::damaged(location.offset, format!("refers to mapping {mapping}, which is not there"))
                })?,
            };
            let frames = frames(location, &functions)?;
            self.profile.locations.push(Location { address, module, file_address: None, frames });
        }
        Ok(())
    }

    fn sample(&mut self, raw: &Raw, columns: &Columns, sample: &RawSample) -> Result<(), Wrong> {
        let (offset, values) = (sample.offset, sample.values(raw));
        if values.len() != raw.types.len() {
            let message = format!("a sample of {} values; expected {}", values.len(), raw.types.len());
            return Err(Wrong::damaged(offset, message));
        }
        if values.iter().any(|&value| value >= ABSURD) {
            let message = "a negative value; if this is a difference of two profiles, give one of them";
            return Err(Wrong::damaged(offset, message));
        }
        let (mut block_size, mut reason) = (0, None);
        let (mut thread_name, mut thread_number) = (None, None);
        for label in sample.labels(raw).chunks_exact(3) {
            match raw.string(label[0], offset)? {
                "bytes" if label[1] == 0 => block_size = label[2],
                "thread" if label[1] != 0 => thread_name = Some(raw.string(label[1], offset)?),
                "thread_id" if label[1] == 0 => thread_number = Some(label[2]),
                "stack_truncated" => reason = Some(raw.string(label[1], offset)?),
                _ => {}
            }
        }
        let amounts = columns.amounts(values);
        if amounts.iter().all(|amount| amount.is_zero()) {
            return Ok(());
        }
        for (sum, amount) in self.sums.iter_mut().zip(amounts) {
            let added = sum.checked_add(amount).filter(|sum| sum.objects < ABSURD && sum.bytes < ABSURD);
            *sum = added.ok_or_else(|| Wrong::damaged(offset, "the sums up to this sample exceed 2^63"))?;
        }
        let [live, allocated, peak, temporary] = amounts;
        let stack = self.stack(sample.stack, reason);
        let sized = if live.objects > 0 { live } else { allocated };
        if block_size == 0 {
            block_size = sized.bytes.checked_div(sized.objects).unwrap_or(0);
        }
        let thread = self.thread(thread_name, thread_number);
        let sample = Sample { live, allocated, peak, temporary, thread, ..Sample::new(stack, block_size) };
        // What was recorded is computed back from the estimates of single samples.
        if self.is_own {
            self.profile.samples.push(sample);
        } else {
            self.samples.add(&mut self.profile, sample);
        }
        Ok(())
    }

    /// The thread with this name and number; the same as before if it was seen before.
    fn thread(&mut self, name: Option<&str>, number: Option<u64>) -> Option<ThreadId> {
        if name.is_none() && number.is_none() {
            return None;
        }
        let thread = Thread { name: name.unwrap_or_default().into(), number };
        if let Some(&known) = self.threads.get(&thread) {
            return Some(known);
        }
        let id = ThreadId(self.profile.threads.len() as u32);
        self.profile.threads.push(thread.clone());
        self.threads.insert(thread, id);
        Some(id)
    }

    /// Gives the locations in the stacks of the file their places in the profile.
    fn place_stacks(&mut self, raw: &mut Raw) -> Result<(), Wrong> {
        self.locations.resize(raw.ids.len(), None);
        let stacks = std::mem::take(&mut raw.stacks);
        for (number, mut locations) in stacks.into_iter().enumerate() {
            // Nobody else has it yet.
            for id in Arc::make_mut(&mut locations) {
                let Some(place) = self.locations[id.index()] else {
                    let sample = raw.samples.iter().find(|sample| sample.stack as usize == number);
                    let offset = sample.map_or(raw.end, |sample| sample.offset);
                    let message = format!("a sample refers to location {}, which is not there", raw.ids.id(*id));
                    return Err(Wrong::damaged(offset, message));
                };
                *id = place;
            }
            self.file_stacks.push((locations, None));
        }
        Ok(())
    }

    /// The stack with these locations that ends for this reason.
    fn stack(&mut self, number: u32, reason: Option<&str>) -> StackId {
        let next = StackId(self.profile.stacks.len() as u32);
        let (locations, place) = &mut self.file_stacks[number as usize];
        let Some(reason) = reason else {
            if let Some(known) = *place {
                return known;
            }
            *place = Some(next);
            let end = if self.is_own && !locations.is_empty() { StackEnd::Complete } else { StackEnd::Unknown };
            self.profile.stacks.push(Stack { locations: locations.clone(), end });
            return next;
        };
        let reason: String = reason.chars().take(MAX_REASON).collect();
        let known = *self.ended.entry((number, reason.clone())).or_insert(next);
        if known == next {
            let locations = locations.clone();
            let at = locations.last().map(|&last| self.profile.location(last).address);
            let end = StackEnd::Truncated(Truncation { reason: TruncationReason::from_text(&reason), at });
            self.profile.stacks.push(Stack { locations, end });
        }
        known
    }

    fn finish(self) -> Profile {
        let Self { mut profile, is_own, .. } = self;
        if is_own {
            match profile.samples.iter().map(|sample| recorded(sample, profile.sample_rate)).collect() {
                Some(samples) => {
                    profile.samples = samples;
                    profile.amounts = Amounts::Recorded;
                    profile.format = Format::Pprof;
                }
                None => profile.warnings.push(
                    "the profile was changed by another program: its numbers are not those of single samples".into(),
                ),
            }
        }
        let modules = &profile.modules;
        let overlapping = modules.windows(2).filter(|pair| pair[0].end > pair[1].start).count();
        if overlapping > 0 {
            profile.warnings.push(format!("{overlapping} mappings overlap"));
        }
        let is_nameless = profile.locations.iter().all(|location| location.frames.is_empty());
        if modules.is_empty() && !profile.locations.is_empty() && is_nameless {
            profile.warnings.push("there are no mappings: addresses cannot be traced to files".into());
        }
        profile
    }
}

/// The functions at a location.
fn frames(location: &RawLocation, functions: &HashMap<u64, (Arc<str>, Arc<str>)>) -> Result<Vec<Frame>, Wrong> {
    let last = location.lines.len().saturating_sub(1);
    let frame = |(index, &(function, line)): (usize, &(u64, u64))| {
        let (name, file) = functions.get(&function).ok_or_else(|| {
            Wrong::damaged(location.offset, format!("refers to function {function}, which is not there"))
        })?;
        Ok(Frame {
            function: name.clone(),
            file: Some(file).filter(|file| !file.is_empty()).cloned(),
            line: u32::try_from(line).unwrap_or(0),
            inlined: index < last,
        })
    };
    location.lines.iter().enumerate().map(frame).collect()
}

/// What was recorded, from the estimates of a sample with blocks of one size. `None` if they are not such estimates.
fn recorded(sample: &Sample, sample_rate: u64) -> Option<Sample> {
    let size = sample.block_size;
    let one = Amount { objects: 1, bytes: size };
    let probability = one.probability(sample_rate);
    let recorded = |estimate: Amount| {
        let objects = (estimate.objects as f64 * probability).round();
        let by_bytes = (estimate.bytes as f64 * probability / size as f64).round();
        // Bytes are the finer measure. Our library rounds to one of the two whole numbers beside an estimate.
        let stands_for = by_bytes / probability;
        let is_near = |estimate: u64, exact: f64| (estimate as f64 - exact).abs() <= 1.0 + exact * 1e-9;
        let fits = is_near(estimate.objects, stands_for) && is_near(estimate.bytes, stands_for * size as f64);
        (size > 0 && fits && objects.is_finite()).then_some(())?;
        let objects = by_bytes as u64;
        Some(Amount { objects, bytes: objects.checked_mul(size)? })
    };
    let (live, allocated) = (recorded(sample.live)?, recorded(sample.allocated)?);
    let (peak, temporary) = (recorded(sample.peak)?, recorded(sample.temporary)?);
    (!live.exceeds(allocated)).then_some(Sample { live, allocated, peak, temporary, ..*sample })
}
