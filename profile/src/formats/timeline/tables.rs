//! What events refer to: sites, their stacks, threads, sampling runs; and the modules that the addresses lie in.

use std::collections::{BTreeMap, HashMap};

use super::super::{Limits, maps};
use super::numbers::Numbers;
use crate::model::{BuildId, Module, StackEnd, Truncation, TruncationReason};
use crate::text::excerpt;

/// The number of a [`Site`] in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub(super) u32);

/// The number of a [`Stack`] in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackNumber(pub(super) u32);

/// Where blocks of one size are allocated by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The calls that lead there.
    pub stack: StackNumber,
    /// Usable bytes of each block.
    pub block_size: u64,
    /// The number of the thread.
    pub thread: u32,
    /// The number of the sampling run.
    pub run: u32,
}

/// Return addresses, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The addresses.
    pub addresses: Box<[u64]>,
    /// Whether the last one is the start of the thread.
    pub end: StackEnd,
}

/// A thread of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number in the kernel.
    pub tid: u32,
    /// Its last name. Comes from the input: escape it before it is printed.
    pub name: String,
}

/// A time in which one sampling rate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub number: u32,
    /// When it began, in microseconds since the start of the recording; 0 if that was before.
    pub start: u64,
    /// Mean distance between two samples in bytes.
    pub sample_rate: u64,
}

/// Everything that was explained up to the present place in the file.
#[derive(Debug)]
pub struct Tables {
    limits: Limits,
    sites: HashMap<SiteId, Site>,
    stacks: HashMap<StackNumber, Stack>,
    entries: usize,
    threads: BTreeMap<u32, Thread>,
    runs: Vec<Run>,
    /// The parts of a table of modules.
    parts: Vec<u8>,
    modules: Vec<Module>,
    /// Lines of it that are no mappings.
    odd_lines: u64,
}

const RUN: u64 = 1;
const THREAD: u64 = 2;
const STACK: u64 = 3;
const SITE: u64 = 4;

/// Bytes of a table of modules, and of a thread's name.
const MOST_MODULES: usize = 256 << 20;
const MOST_NAME: u64 = 4096;

impl Tables {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            sites: HashMap::new(),
            stacks: HashMap::new(),
            entries: 0,
            threads: BTreeMap::new(),
            runs: Vec::new(),
            parts: Vec::new(),
            modules: Vec::new(),
            odd_lines: 0,
        }
    }

    /// The site with this number.
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(&id)
    }

    /// That of an event, which was looked up when the event was read.
    pub(super) fn known(&self, id: SiteId) -> Site {
        self.sites.get(&id).copied().unwrap_or(Site { stack: StackNumber(0), block_size: 0, thread: 0, run: 0 })
    }

    /// The stack with this number.
    pub fn stack(&self, number: StackNumber) -> Option<&Stack> {
        self.stacks.get(&number)
    }

    /// The threads by their numbers; a number that is not there is shared by those that came when the recorder had no more.
    pub fn threads(&self) -> &BTreeMap<u32, Thread> {
        &self.threads
    }

    /// The sampling runs in their order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Mappings of the process as the last table had them, in its order.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Lines of that table that are no mappings.
    pub fn odd_module_lines(&self) -> u64 {
        self.odd_lines
    }

    /// Take a block of definitions. What is explained again has the later meaning.
    pub(super) fn define(&mut self, mut payload: Numbers<'_>) -> Result<(), String> {
        while !payload.is_empty() {
            match payload.number("what is explained")? {
                RUN => {
                    let number = payload.small("the number of a run")?;
                    let start = payload.number("the start of a run")?;
                    let sample_rate = payload.number("a sampling rate")?.max(1);
                    self.runs.retain(|run| run.number != number);
                    self.within(self.runs.len(), "sampling runs")?;
                    self.runs.push(Run { number, start, sample_rate });
                }
                THREAD => {
                    let number = payload.small("the number of a thread")?;
                    let tid = payload.small("a thread's number in the kernel")?;
                    let length = payload.number("the length of a name")?;
                    if length > MOST_NAME {
                        return Err(format!("the name of a thread has {length} bytes"));
                    }
                    let name = String::from_utf8_lossy(payload.bytes(length, "a name")?).into_owned();
                    self.within(self.threads.len(), "threads")?;
                    self.threads.insert(number, Thread { tid, name });
                }
                STACK => self.stack_definition(&mut payload)?,
                SITE => {
                    let id = SiteId(payload.small("the number of a site")?);
                    let stack = StackNumber(payload.small("the number of a stack")?);
                    let block_size = payload.number("the size of blocks")?;
                    let thread = payload.small("the number of a thread")?;
                    let run = payload.small("the number of a run")?;
                    if !self.stacks.contains_key(&stack) {
                        return Err(format!("site {} has stack {}, which was not explained before", id.0, stack.0));
                    }
                    self.within(self.sites.len(), "sites")?;
                    self.sites.insert(id, Site { stack, block_size, thread, run });
                }
                other => return Err(format!("something of kind {other} is explained; expected 1 to 4")),
            }
        }
        Ok(())
    }

    fn within(&self, number: usize, what: &str) -> Result<(), String> {
        let most = self.limits.samples;
        if number < most { Ok(()) } else { Err(format!("more than {most} {what}")) }
    }

    fn stack_definition(&mut self, payload: &mut Numbers<'_>) -> Result<(), String> {
        let number = StackNumber(payload.small("the number of a stack")?);
        let end = payload.number("the end of a stack")?;
        let depth = payload.number("the depth of a stack")?;
        let depth = usize::try_from(depth).ok().filter(|&depth| depth <= self.limits.stack_depth);
        let depth = depth.ok_or_else(|| format!("a stack of more than {} addresses", self.limits.stack_depth))?;
        let mut addresses = Vec::new();
        let mut last = 0;
        for _ in 0..depth {
            last = payload.address(last, "an address")?;
            addresses.push(last);
        }
        let at = addresses.last().copied();
        let truncated = |reason| StackEnd::Truncated(Truncation { reason, at });
        let end = match end {
            0 => StackEnd::Complete,
            1 => truncated(TruncationReason::DepthLimit),
            2 => truncated(TruncationReason::NoUnwindInfo),
            3 => truncated(TruncationReason::BadFrame),
            _ => StackEnd::Unknown,
        };
        self.entries += depth;
        if self.entries > self.limits.stack_entries {
            return Err(format!("more than {} addresses in all stacks", self.limits.stack_entries));
        }
        self.within(self.stacks.len(), "stacks")?;
        self.stacks.insert(number, Stack { addresses: addresses.into(), end });
        Ok(())
    }

    /// Take a part of a table of modules: a byte with bit 0 for the first and bit 1 for the last part, then text.
    pub(super) fn add_modules(&mut self, payload: &[u8]) -> Result<(), String> {
        let (flags, text) = payload.split_first().ok_or("a table of modules without a beginning")?;
        if flags & 1 != 0 {
            self.parts.clear();
        }
        if self.parts.len() + text.len() > MOST_MODULES {
            return Err(format!("a table of modules of more than {MOST_MODULES} bytes"));
        }
        self.parts.extend_from_slice(text);
        if flags & 2 != 0 {
            let parts = std::mem::take(&mut self.parts);
            self.parse_modules(&parts)?;
        }
        Ok(())
    }

    fn parse_modules(&mut self, text: &[u8]) -> Result<(), String> {
        (self.modules, self.odd_lines) = (Vec::new(), 0);
        let mut build_ids: HashMap<String, BuildId> = HashMap::new();
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix(b"# build_id ") {
                let rest = String::from_utf8_lossy(rest);
                let (hex, path) = rest.split_once(' ').unwrap_or((&rest, ""));
                let id = BuildId::from_hex(hex.as_bytes())
                    .ok_or_else(|| format!("{} is no build id", excerpt(hex.as_bytes())))?;
                build_ids.insert(path.to_owned(), id);
            } else if line.starts_with(b"#") || line.starts_with(b"MAPPED_LIBRARIES:") {
                // Of a later writer.
            } else if let Ok(module) = maps::parse_line(line) {
                if self.modules.len() >= self.limits.modules {
                    return Err(format!("more than {} mappings", self.limits.modules));
                }
                self.modules.push(module);
            } else {
                self.odd_lines += 1;
            }
        }
        for module in &mut self.modules {
            module.build_id = build_ids.get(&module.path).cloned();
        }
        Ok(())
    }
}
