//! The profile as a whole.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::estimate::Estimate;
use super::location::{Frame, Location, LocationId};
use super::module::{Module, ModuleId};
use super::sample::{Amount, Metric, Sample};
use super::stack::{Stack, StackEnd, StackId};
use super::thread::Thread;

/// The format a profile was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// heap_v2 text as our own library writes it, with marked stacks.
    HeapV2,
    /// heap_v2 text of another writer.
    HeapV2Foreign,
    /// heap_v2 text of jemalloc.
    JemallocHeapV2,
    /// gperftools' unsampled text, `@ heapprofile`.
    GperftoolsHeap,
    /// Text of Google's servers, `@ heapz_v2/R`.
    HeapzV2,
    /// Go's text, `@ heap/2R`.
    GoHeapText,
    /// DHAT's JSON as our own library writes it.
    Dhat,
    /// DHAT's JSON of another writer: Valgrind, dhat-rs.
    DhatForeign,
    /// pprof's `profile.proto` as our own library writes it, with marked stacks.
    Pprof,
    /// pprof's `profile.proto` of another writer, or one of ours after another program has changed it.
    PprofForeign,
    /// A stretch of a recording of our own library.
    Timeline,
    /// Folded stacks.
    Folded,
    /// speedscope's JSON.
    Speedscope,
    /// The Firefox profiler's JSON.
    Firefox,
    /// Our own CSV.
    Csv,
    /// Callgrind's text.
    Callgrind,
}

/// What the amounts of the samples are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Amounts {
    /// What was recorded; estimates are computed from it.
    #[default]
    Recorded,
    /// Estimates already: the file does not tell what was recorded.
    Estimated,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeapV2 => "mimalloc-pprof heap_v2 text",
            Self::HeapV2Foreign => "heap_v2 text",
            Self::JemallocHeapV2 => "jemalloc heap_v2 text",
            Self::GperftoolsHeap => "gperftools heap profile text",
            Self::HeapzV2 => "heapz_v2 text",
            Self::GoHeapText => "Go heap profile text",
            Self::Dhat => "mimalloc-pprof DHAT recording",
            Self::DhatForeign => "DHAT recording",
            Self::Pprof => "mimalloc-pprof profile.proto",
            Self::PprofForeign => "pprof profile.proto",
            Self::Timeline => "mimalloc-pprof timeline",
            Self::Folded => "folded stacks",
            Self::Speedscope => "speedscope profile",
            Self::Firefox => "Firefox profile",
            Self::Csv => "mimalloc-pprof CSV",
            Self::Callgrind => "callgrind file",
        })
    }
}

/// A heap profile. See the [crate documentation](crate) for how to get one.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The format it was read from.
    pub format: Format,
    /// Mean distance between two samples in bytes, at least 1; 1 means that every block was recorded.
    pub sample_rate: u64,
    /// Whether the amounts of samples are as recorded, or estimates.
    pub amounts: Amounts,
    /// Mappings of the process, sorted by start; of those with the same start the last one counts.
    pub modules: Vec<Module>,
    /// Code addresses.
    pub locations: Vec<Location>,
    /// Call stacks.
    pub stacks: Vec<Stack>,
    /// What was recorded, in the order of the file. A stack can have several samples, one for each block size.
    pub samples: Vec<Sample>,
    /// The threads that samples name.
    pub threads: Vec<Thread>,
    /// What the times of the file are in: `instrs`, `\u{b5}s`, `ms`; empty where it has none. Comes from the input: escape it before it is
    /// printed.
    pub time_unit: Arc<str>,
    /// The `key = value` comments of the file in their order. Come from the input: escape them before they are printed.
    pub comments: Vec<(String, String)>,
    /// The names of functions as the linker has them (mangled), by their names in frames; only where the two differ.
    /// Of several functions with one name, one is there. Come from the input: escape them before they are printed.
    pub linker_names: HashMap<Arc<str>, Arc<str>>,
    /// What is odd about the file but does not make it useless, in plain sentences with nothing left to escape.
    pub warnings: Vec<String>,
}

/// What the symbolizer found for one location: the argument of [`Profile::resolve`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The address in the file's own address space (ELF `p_vaddr`), for printing what has no name.
    pub file_address: Option<u64>,
    /// The functions there, innermost first; empty when none was found.
    pub frames: Vec<Frame>,
}

impl Profile {
    /// A profile without samples.
    pub fn new(format: Format, sample_rate: u64) -> Self {
        Self {
            format,
            sample_rate,
            amounts: Amounts::Recorded,
            modules: Vec::new(),
            locations: Vec::new(),
            stacks: Vec::new(),
            samples: Vec::new(),
            threads: Vec::new(),
            time_unit: "".into(),
            comments: Vec::new(),
            linker_names: HashMap::new(),
            warnings: Vec::new(),
        }
    }

    /// The location with this id.
    ///
    /// # Panics
    /// When the id is of another profile.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.index()]
    }

    /// The stack with this id.
    ///
    /// # Panics
    /// When the id is of another profile.
    pub fn stack(&self, id: StackId) -> &Stack {
        &self.stacks[id.index()]
    }

    /// The module with this id.
    ///
    /// # Panics
    /// When the id is of another profile.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.index()]
    }

    /// The module that a location lies in.
    pub fn module_of(&self, location: &Location) -> Option<&Module> {
        location.module.map(|id| self.module(id))
    }

    /// Fills in the names: `find` is asked once for each location, in order. `None` leaves the location as it is.
    ///
    /// Look up [`lookup_address`](crate::lookup_address) of the location's address. Equal strings are shared afterwards.
    pub fn resolve(&mut self, mut find: impl FnMut(LocationId, &Location) -> Option<Resolution>) {
        let mut strings: HashSet<Arc<str>> = HashSet::new();
        let mut share = |string: &mut Arc<str>| match strings.get(&**string) {
            Some(known) => *string = known.clone(),
            None => _ = strings.insert(string.clone()),
        };
        for (index, location) in self.locations.iter_mut().enumerate() {
            let Some(Resolution { file_address, mut frames }) = find(LocationId(index as u32), location) else {
                continue;
            };
            for frame in &mut frames {
                share(&mut frame.function);
                frame.file.iter_mut().for_each(&mut share);
            }
            location.file_address = file_address.or(location.file_address);
            location.frames = frames;
        }
    }

    /// The name of a function as the linker has it; the name itself if that is all that is known.
    pub fn linker_name<'a>(&'a self, function: &'a str) -> &'a str {
        self.linker_names.get(function).map_or(function, |name| name)
    }

    /// The value of the last comment with this key.
    pub fn comment(&self, key: &str) -> Option<&str> {
        self.comments.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Samples the recorder had to drop, where the file tells it. Anything above 0 means that estimates are too low.
    pub fn dropped_samples(&self) -> Option<u64> {
        self.comment("dropped_samples").or_else(|| self.comment("profiler_dropped_samples"))?.parse().ok()
    }

    /// Whether the recorder kept what was allocated and freed again; without it [`Metric::Allocated`] is all zero.
    pub fn has_allocated(&self) -> bool {
        self.samples.iter().any(|sample| !sample.allocated.is_zero())
    }

    /// Whether the recorder kept what was live when the process held most; without it [`Metric::Peak`] is all zero.
    pub fn has_peak(&self) -> bool {
        self.samples.iter().any(|sample| !sample.peak.is_zero())
    }

    /// Whether the recorder kept which blocks came and went at once; without it [`Metric::Temporary`] is all zero.
    pub fn has_temporary(&self) -> bool {
        // Our own dumps tell the sum, also where it is nothing.
        let is_told_as_none = || self.comment("estimated_temporary_blocks") == Some("0");
        self.samples.iter().any(|sample| !sample.temporary.is_zero()) || is_told_as_none()
    }

    /// The thread that allocated what is in a sample, where the file tells it.
    pub fn thread_of(&self, sample: &Sample) -> Option<&Thread> {
        sample.thread.and_then(|id| self.threads.get(id.index()))
    }

    /// Whether any block may have gone unrecorded, so that sums are estimates.
    pub fn is_sampled(&self) -> bool {
        self.sample_rate > 1
    }

    /// The sum over all samples of what the file has, see [`Profile::amounts`]; at most `u64::MAX`.
    pub fn recorded(&self, metric: Metric) -> Amount {
        self.samples.iter().fold(Amount::default(), |sum, sample| {
            let amount = sample.amount(metric);
            Amount {
                objects: sum.objects.saturating_add(amount.objects),
                bytes: sum.bytes.saturating_add(amount.bytes),
            }
        })
    }

    /// How many blocks were recorded; computed back where the file has estimates only.
    pub fn recorded_blocks(&self, metric: Metric) -> u64 {
        match self.amounts {
            Amounts::Recorded => self.recorded(metric).objects,
            Amounts::Estimated => {
                let recorded = |sample: &Sample| sample.amount(metric).recorded_blocks(self.sample_rate);
                self.samples.iter().fold(0, |sum: u64, sample| sum.saturating_add(recorded(sample)))
            }
        }
    }

    /// What a sample of this profile stands for in the whole program.
    pub fn estimate_of(&self, sample: &Sample, metric: Metric) -> Estimate {
        match self.amounts {
            Amounts::Recorded => sample.estimate(metric, self.sample_rate),
            Amounts::Estimated => Estimate::given(sample.amount(metric), self.sample_rate),
        }
    }

    /// The estimate for the whole program.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        self.samples.iter().fold(Estimate::default(), |sum, sample| sum.plus(self.estimate_of(sample, metric)))
    }

    /// Whether functions are known by their names only.
    pub(crate) fn has_no_address(&self) -> bool {
        !self.locations.is_empty() && self.locations.iter().all(|location| location.address == 0)
    }

    /// Whether the file says of every stack if it is complete.
    pub fn stacks_marked(&self) -> bool {
        self.stacks.iter().all(|stack| stack.end != StackEnd::Unknown)
    }
}
