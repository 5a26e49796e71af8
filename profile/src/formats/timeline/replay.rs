//! A heap profile of a stretch of a timeline.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use super::super::Limits;
use super::tables::{SiteId, Tables};
use super::{Ending, Happening, Item, open};
use crate::error::{Position, ReadError};
use crate::model::{
    Amount, Format, Location, LocationId, Profile, Sample, Stack, StackId, Thread, ThreadId, lookup_address, module_at,
};

/// A stretch of a timeline, in microseconds since its start; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Blocks that were allocated before are left out.
    pub from: u64,
    /// What happens later is left out.
    pub to: u64,
}

impl Slice {
    /// From the start to the end: what a dump at the end has.
    pub const ALL: Self = Self { from: 0, to: u64::MAX };

    /// All that was allocated up to a time; [`Metric::Live`](crate::Metric::Live) is what was there at that time.
    pub fn at(time: u64) -> Self {
        Self { from: 0, to: time }
    }
}

/// What is counted of a site.
#[derive(Clone, Copy, Default)]
struct Counts {
    allocated: u64,
    ended: u64,
    /// Times of their beginnings, added up, in microseconds.
    births: u128,
    births_of_ended: u128,
    /// How long those that ended lived, added up.
    lives_of_ended: u128,
}

impl Counts {
    /// How long all lived, up to a time.
    fn lived(&self, end: u64) -> u64 {
        let live = u128::from(self.allocated.saturating_sub(self.ended));
        let births = self.births.saturating_sub(self.births_of_ended);
        let lives = (live * u128::from(end)).saturating_sub(births);
        u64::try_from(self.lives_of_ended + lives).unwrap_or(u64::MAX)
    }
}

/// Reads a timeline and makes a profile of what was allocated in a stretch of it, and of what of that was there at its end. Blocks that
/// were allocated before the recording began (in a parent process, for one) are not in it.
///
/// Of several sampling runs, that which ran at the end of the stretch is told. Where the file was thinned, amounts are multiplied by
/// [`Header::weight`](super::Header::weight): sums are right on average, and their error is larger than that of as many samples.
///
/// # Errors
/// As those of [`Timeline::next_item`](super::Timeline::next_item); and when the sums exceed 2^63.
pub fn profile(input: impl Read, name: &str, limits: &Limits, slice: Slice) -> Result<Profile, ReadError> {
    let mut timeline = open(input, name, limits)?;
    let mut counts: BTreeMap<SiteId, Counts> = BTreeMap::new();
    while let Some(item) = timeline.next_item()? {
        let Item::Event(event) = item else { continue };
        if event.time > slice.to || event.birth < slice.from {
            continue;
        }
        let counts = counts.entry(event.site).or_default();
        match event.happening {
            Happening::Allocated => {
                counts.allocated += 1;
                counts.births += u128::from(event.time);
            }
            Happening::Freed | Happening::Moved => {
                counts.ended += 1;
                counts.births_of_ended += u128::from(event.birth);
                counts.lives_of_ended += u128::from(event.time - event.birth);
            }
            Happening::Resized => {}
        }
    }
    let run = timeline.tables().runs().iter().rev().find(|run| run.start <= slice.to).copied();
    let sample_rate = run.map_or(1, |run| run.sample_rate);
    let weight = timeline.header().weight();
    let end = slice.to.min(timeline.latest());
    let mut made = Maker::new(sample_rate, weight, end);
    for (id, counts) in counts {
        let site = timeline.tables().known(id);
        if run.is_some_and(|run| run.number != site.run) {
            made.other_runs += counts.allocated;
            continue;
        }
        made.sample(timeline.tables(), id, counts).map_err(|message| ReadError::Damaged {
            name: name.to_owned(),
            position: Position::Offset(0),
            message,
        })?;
    }
    made.place_modules(timeline.tables());
    made.tell(timeline.ending(), timeline.lost(), timeline.older(), timeline.latest(), timeline.tables());
    Ok(made.profile)
}

struct Maker {
    profile: Profile,
    weight: u64,
    /// The end of the stretch.
    end: u64,
    locations: HashMap<u64, LocationId>,
    stacks: HashMap<Stack, StackId>,
    /// By their numbers in the file.
    threads: HashMap<u32, ThreadId>,
    total: Amount,
    other_runs: u64,
    /// Ends without a beginning.
    homeless: u64,
}

impl Maker {
    fn new(sample_rate: u64, weight: u64, end: u64) -> Self {
        let mut profile = Profile::new(Format::Timeline, sample_rate);
        profile.time_unit = "µs".into();
        Self {
            profile,
            weight,
            end,
            locations: HashMap::new(),
            stacks: HashMap::new(),
            threads: HashMap::new(),
            total: Amount::default(),
            other_runs: 0,
            homeless: 0,
        }
    }

    fn sample(&mut self, tables: &Tables, id: SiteId, counts: Counts) -> Result<(), String> {
        let site = tables.known(id);
        self.homeless += counts.ended.saturating_sub(counts.allocated);
        let amount = |objects: u64| {
            let objects = objects.checked_mul(self.weight)?;
            Some(Amount { objects, bytes: objects.checked_mul(site.block_size)? })
        };
        let allocated = amount(counts.allocated);
        let total = allocated.and_then(|amount| self.total.checked_add(amount));
        let absurd = total.is_none_or(|total| total.objects.max(total.bytes) >= 1 << 63);
        let (Some(allocated), Some(total), false) = (allocated, total, absurd) else {
            return Err("the sums exceed 2^63; no program has that many blocks or bytes".to_owned());
        };
        self.total = total;
        let live = amount(counts.allocated.saturating_sub(counts.ended)).unwrap_or_default();
        if allocated.is_zero() {
            return Ok(());
        }
        let stack = self.stack(tables, id);
        let thread = self.thread(tables, site.thread);
        self.profile.samples.push(Sample {
            thread,
            lived: counts.lived(self.end).saturating_mul(self.weight),
            live,
            allocated,
            ..Sample::new(stack, site.block_size)
        });
        Ok(())
    }

    /// The thread with a number of the file; `None` for those that came when the recorder had no more numbers.
    fn thread(&mut self, tables: &Tables, number: u32) -> Option<ThreadId> {
        let thread = tables.threads().get(&number)?;
        let threads = &mut self.profile.threads;
        Some(*self.threads.entry(number).or_insert_with(|| {
            threads.push(Thread { name: thread.name.as_str().into(), number: Some(thread.tid.into()) });
            ThreadId(threads.len() as u32 - 1)
        }))
    }

    fn stack(&mut self, tables: &Tables, id: SiteId) -> StackId {
        let Some(stack) = tables.stack(tables.known(id).stack) else { return self.intern(Vec::new(), None) };
        let locations = stack.addresses.iter().map(|&address| self.location(address)).collect();
        self.intern(locations, Some(stack))
    }

    fn intern(&mut self, locations: Vec<LocationId>, from: Option<&super::Stack>) -> StackId {
        let end = from.map_or(crate::model::StackEnd::Unknown, |stack| stack.end.clone());
        let stack = Stack { locations: locations.into(), end };
        let next = StackId(self.profile.stacks.len() as u32);
        let id = *self.stacks.entry(stack.clone()).or_insert(next);
        if id == next {
            self.profile.stacks.push(stack);
        }
        id
    }

    fn location(&mut self, address: u64) -> LocationId {
        let locations = &mut self.profile.locations;
        *self.locations.entry(address).or_insert_with(|| {
            locations.push(Location { address, module: None, file_address: None, frames: Vec::new() });
            LocationId(locations.len() as u32 - 1)
        })
    }

    fn place_modules(&mut self, tables: &Tables) {
        let Profile { modules, locations, .. } = &mut self.profile;
        modules.extend_from_slice(tables.modules());
        modules.sort_by_key(|module| module.start);
        for location in locations {
            location.module = module_at(modules, lookup_address(location.address));
        }
    }

    fn tell(&mut self, ending: Ending, lost: u64, older: u64, latest: u64, tables: &Tables) {
        let Profile { comments, warnings, .. } = &mut self.profile;
        comments.push(("dropped_samples".to_owned(), lost.to_string()));
        comments.push(("timeline_end_us".to_owned(), latest.to_string()));
        comments.push(("timeline_weight".to_owned(), self.weight.to_string()));
        match ending {
            Ending::Exit | Ending::Stopped => {}
            Ending::Open => warnings.push("the recording has no end: its process was killed, or still runs".to_owned()),
            Ending::Cut { offset, bytes } => warnings.push(format!(
                "the recording has no end, and its last block, {bytes} bytes from byte {offset} on, is not whole and was left out"
            )),
        }
        if self.weight > 1 {
            warnings.push(format!(
                "the file was thinned to its limit: each sample stands for {} of them, and standard errors are larger by the root of that",
                self.weight
            ));
        }
        let counted = [
            (older, "blocks that were allocated before the recording began were freed; they are not in it"),
            (self.homeless, "blocks end that were never allocated"),
            (self.other_runs, "samples are of another sampling run and were left out"),
            (tables.odd_module_lines(), "lines of the mapping table are not mappings and were skipped"),
        ];
        for (count, what) in counted.into_iter().filter(|&(count, _)| count > 0) {
            warnings.push(format!("{count} {what}"));
        }
    }
}
