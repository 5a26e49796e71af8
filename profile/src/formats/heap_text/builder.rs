//! Makes a profile out of the records of a text file, whatever its dialect, and checks what all dialects share.

use std::collections::{HashMap, HashSet};

use super::super::Limits;
use super::super::intern::{Samples, Stacks};
use super::super::lines::Fault;
use super::super::maps;
use super::comment::{self, Comment};
use super::go_symbols::GoSymbols;
use super::header::Header;
use crate::hashing::NumberMap;
use crate::model::{
    Amount, BuildId, Estimate, Format, Location, LocationId, Metric, Profile, Resolution, Sample, StackEnd, StackId,
    lookup_address, module_at,
};

/// Sums and estimates from here on are refused: 2^63, so that every later sum of two of them fits into 64 bits.
const ABSURD: f64 = 9_223_372_036_854_775_808.0;

/// A file that ended too early or does not add up.
pub(super) enum Incomplete {
    /// The header does not agree with what follows.
    Totals(String),
    /// Something is missing at the end.
    End(String),
}

/// A record whose last comment may still come.
struct Pending {
    live: Amount,
    allocated: Amount,
    addresses: Vec<u64>,
    end: StackEnd,
}

pub(super) struct Builder {
    profile: Profile,
    limits: Limits,
    /// What the header announces: live and allocated.
    announced: Option<(Amount, Amount)>,
    live: Amount,
    allocated: Amount,
    estimates: [Estimate; 3],
    pending: Option<Pending>,
    locations: NumberMap<u64, LocationId>,
    stacks: Stacks,
    samples: Samples,
    /// The locations of one stack.
    scratch: Vec<LocationId>,
    stack_entries: usize,
    build_ids: HashMap<String, BuildId>,
    /// Of single mappings: by start and end.
    build_ids_at: HashMap<(u64, u64), BuildId>,
    go_symbols: GoSymbols,
    /// The file is our own: `# stacks_marked = 1` was seen under a `heap_v2` header.
    is_own: bool,
    has_maps: bool,
    live_above_allocated: u64,
    odd_map_lines: u64,
    ignored_comments: u64,
    build_id_conflicts: u64,
}

impl Builder {
    pub(super) fn new(header: &Header, limits: &Limits) -> Self {
        let (format, sample_rate, announced) = match *header {
            Header::OneLine { format, sample_rate, live, allocated } => (format, sample_rate, Some((live, allocated))),
            Header::Jemalloc { sample_rate } => (Format::JemallocHeapV2, sample_rate, None),
        };
        Self {
            profile: Profile::new(format, sample_rate),
            limits: *limits,
            announced,
            live: Amount::default(),
            allocated: Amount::default(),
            estimates: Default::default(),
            pending: None,
            locations: NumberMap::default(),
            stacks: Stacks::default(),
            samples: Samples::default(),
            scratch: Vec::new(),
            stack_entries: 0,
            build_ids: HashMap::new(),
            build_ids_at: HashMap::new(),
            go_symbols: GoSymbols::default(),
            is_own: false,
            has_maps: false,
            live_above_allocated: 0,
            odd_map_lines: 0,
            ignored_comments: 0,
            build_id_conflicts: 0,
        }
    }

    pub(super) fn warn(&mut self, message: String) {
        self.profile.warnings.push(message);
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a record. Its stack is of unknown end until [`Builder::comment`] says otherwise.
    pub(super) fn sample(&mut self, live: Amount, allocated: Amount, addresses: Vec<u64>) -> Result<(), Fault> {
        self.flush()?;
        self.go_symbols.end_block();
        self.check(live, allocated)?;
        self.add_to_sums(live, allocated)?;
        self.pending = Some(Pending { live, allocated, addresses, end: StackEnd::Unknown });
        Ok(())
    }

    /// Books the record that was taken last: no comment about it can follow any more.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        let Some(Pending { live, allocated, addresses, end }) = self.pending.take() else { return Ok(()) };
        if live.is_zero() && allocated.is_zero() {
            return Ok(());
        }
        if self.profile.samples.len() >= self.limits.samples {
            return Err(Fault::TooLarge(format!("more than {} stack lines", self.limits.samples)));
        }
        let stack = self.stack(&addresses, end)?;
        let sized = if live.objects > 0 { live } else { allocated };
        let block_size = sized.bytes.checked_div(sized.objects).unwrap_or(0);
        self.samples.add(&mut self.profile, Sample { live, allocated, ..Sample::new(stack, block_size) });
        Ok(())
    }

    /// Takes a line that begins with `#`.
    pub(super) fn comment(&mut self, line: &[u8]) -> Result<(), Fault> {
        let comment = comment::parse(line)?;
        if let Some(Comment::Truncated(truncation)) = comment {
            let Some(pending) = &mut self.pending else {
                return Err("expected \"# stack truncated\" only in the line after a stack".to_owned().into());
            };
            pending.end = StackEnd::Truncated(truncation);
            return self.flush();
        }
        self.flush()?;
        match comment {
            Some(Comment::BuildId(id, path)) => self.build_id(id, path),
            Some(Comment::BuildIdAt(start, end, id)) if self.build_ids_at.len() < self.limits.modules => {
                self.build_ids_at.insert((start, end), id);
                Ok(())
            }
            Some(Comment::Value(key, value)) => self.value(key, value),
            _ => {
                self.go_symbols.take(line);
                Ok(())
            }
        }
    }

    /// The mapping table begins.
    pub(super) fn start_maps(&mut self, ended: bool) -> Result<(), Fault> {
        self.flush()?;
        if !ended && self.is_own {
            return Err(super::CUT_OFF.to_owned().into());
        }
        if std::mem::replace(&mut self.has_maps, true) {
            return Err("a second mapping table; if two dumps were joined, split them".to_owned().into());
        }
        Ok(())
    }

    /// Takes a line of the mapping table. In dumps of others, lines that are no mappings are counted and skipped.
    pub(super) fn map_line(&mut self, line: &[u8], ended: bool) -> Result<(), Fault> {
        if !ended && self.is_own {
            return Err(super::CUT_OFF.to_owned().into());
        }
        if line.starts_with(b"heap profile:") || line.starts_with(b"heap_v2/") {
            return Err("a second dump begins here; split the file".to_owned().into());
        }
        match maps::parse_line(line) {
            _ if line.trim_ascii().is_empty() => {}
            Ok(_) if self.profile.modules.len() >= self.limits.modules => {
                return Err(Fault::TooLarge(format!("more than {} mappings", self.limits.modules)));
            }
            Ok(module) => self.profile.modules.push(module),
            Err(message) if self.is_own => return Err(message.into()),
            Err(_) => self.odd_map_lines += 1,
        }
        if !ended {
            self.warn("the last line of the mapping table does not end: the file may be cut off there".into());
        }
        Ok(())
    }

    /// Checks the whole and hands it out.
    pub(super) fn finish(mut self) -> Result<Profile, Incomplete> {
        self.flush().map_err(|fault| match fault {
            Fault::Damaged(message) | Fault::TooLarge(message) => Incomplete::End(message),
        })?;
        self.check_totals()?;
        let needs_maps = matches!(self.profile.format, Format::HeapV2Foreign | Format::JemallocHeapV2);
        if needs_maps && !self.has_maps {
            return Err(Incomplete::End(
                "the file is cut off: expected a section MAPPED_LIBRARIES: before the end".into(),
            ));
        }
        if self.is_own {
            self.profile.format = Format::HeapV2;
            for stack in &mut self.profile.stacks {
                if stack.end == StackEnd::Unknown && !stack.locations.is_empty() {
                    stack.end = StackEnd::Complete;
                }
            }
        }
        self.place_modules();
        self.go_symbols.end_block();
        if !self.go_symbols.is_empty() {
            let symbols = std::mem::take(&mut self.go_symbols);
            self.profile.resolve(|_, location| {
                let frames = symbols.find(lookup_address(location.address))?.clone();
                Some(Resolution { file_address: None, frames })
            });
        }
        self.add_warnings();
        Ok(self.profile)
    }

    fn check(&mut self, live: Amount, allocated: Amount) -> Result<(), String> {
        for (amount, what) in [(live, "live"), (allocated, "allocated")] {
            if amount.objects == 0 && amount.bytes > 0 {
                return Err(format!("{} {what} bytes of 0 objects; expected objects for the bytes", amount.bytes));
            }
        }
        let keeps_allocated = self.announced.is_some_and(|(_, allocated)| !allocated.is_zero());
        if live.exceeds(allocated) && (keeps_allocated || !allocated.is_zero()) {
            if self.profile.format != Format::JemallocHeapV2 {
                return Err(
                    "more is live than was ever allocated; expected the bracketed numbers to be the larger".into()
                );
            }
            self.live_above_allocated += 1;
        }
        Ok(())
    }

    fn add_to_sums(&mut self, live: Amount, allocated: Amount) -> Result<(), String> {
        let overflow = || "the sums up to this line exceed 2^63; no program has that many blocks or bytes".to_owned();
        self.live = self.live.checked_add(live).ok_or_else(overflow)?;
        self.allocated = self.allocated.checked_add(allocated).ok_or_else(overflow)?;
        let sample = Sample { live, allocated, ..Sample::new(StackId(0), 0) };
        for (metric, sum) in [Metric::Live, Metric::Allocated, Metric::Freed].into_iter().zip(&mut self.estimates) {
            *sum = sum.plus(sample.estimate(metric, self.profile.sample_rate));
            // Negated so that NaN is refused too.
            if !(sum.blocks < ABSURD && sum.bytes < ABSURD) {
                return Err(
                    "what the lines up to here stand for, at the sampling rate of the header, exceeds 2^63".into()
                );
            }
        }
        Ok(())
    }

    fn stack(&mut self, addresses: &[u64], end: StackEnd) -> Result<StackId, Fault> {
        let mut locations = std::mem::take(&mut self.scratch);
        locations.clear();
        for &address in addresses {
            locations.push(self.location(address)?);
        }
        let interned = self.stacks.intern(&mut self.profile, &locations, end);
        self.scratch = locations;
        let id = match interned {
            Ok(known) => return Ok(known),
            Err(new) => new,
        };
        self.stack_entries += addresses.len();
        if self.stack_entries > self.limits.stack_entries {
            return Err(Fault::TooLarge(format!(
                "stacks of more than {} addresses together",
                self.limits.stack_entries
            )));
        }
        Ok(id)
    }

    fn location(&mut self, address: u64) -> Result<LocationId, Fault> {
        let next = LocationId(self.profile.locations.len() as u32);
        if let Some(&known) = self.locations.get(&address) {
            return Ok(known);
        }
        if next.index() >= self.limits.locations {
            return Err(Fault::TooLarge(format!("more than {} different addresses", self.limits.locations)));
        }
        self.locations.insert(address, next);
        self.profile.locations.push(Location { address, module: None, file_address: None, frames: Vec::new() });
        Ok(next)
    }

    fn build_id(&mut self, id: BuildId, path: String) -> Result<(), Fault> {
        if self.build_ids.len() >= self.limits.modules {
            return Err(Fault::TooLarge(format!("more than {} build ids", self.limits.modules)));
        }
        let before = self.build_ids.insert(path, id.clone());
        self.build_id_conflicts += u64::from(before.is_some_and(|other| other != id));
        Ok(())
    }

    fn value(&mut self, key: String, value: String) -> Result<(), Fault> {
        if key == "stacks_marked" && value == "1" && self.profile.format == Format::HeapV2Foreign {
            self.is_own = true;
        }
        if key == "sample_rate" && self.profile.format == Format::HeapV2Foreign {
            let rate = self.profile.sample_rate;
            if value.parse() != Ok(rate) {
                return Err(format!("the header has the sampling rate {rate}; expected the same here").into());
            }
        }
        if self.profile.comments.len() < self.limits.comments {
            self.profile.comments.push((key, value));
        } else {
            self.ignored_comments += 1;
        }
        Ok(())
    }

    fn check_totals(&mut self) -> Result<(), Incomplete> {
        let Some((live, allocated)) = self.announced else { return Ok(()) };
        if (live, allocated) == (self.live, self.allocated) {
            return Ok(());
        }
        let text = |live: Amount, allocated: Amount| {
            format!("{}: {} [{}: {}]", live.objects, live.bytes, allocated.objects, allocated.bytes)
        };
        let message = format!(
            "the header announces {} but the lines add up to {}",
            text(live, allocated),
            text(self.live, self.allocated)
        );
        if self.is_own || !self.has_maps {
            return Err(Incomplete::Totals(format!("{message}; the file is cut off or damaged")));
        }
        self.warn(message);
        Ok(())
    }

    /// Sorts the modules, gives them their build ids, and finds the one of each location.
    fn place_modules(&mut self) {
        let Profile { modules, locations, .. } = &mut self.profile;
        modules.sort_by_key(|module| module.start);
        for module in modules.iter_mut() {
            let of_mapping = self.build_ids_at.get(&(module.start, module.end));
            module.build_id = of_mapping.or_else(|| self.build_ids.get(&module.path)).cloned();
        }
        for location in locations {
            location.module = module_at(modules, lookup_address(location.address));
        }
    }

    fn add_warnings(&mut self) {
        let modules = &self.profile.modules;
        let overlapping = modules.windows(2).filter(|pair| pair[0].end > pair[1].start).count();
        let paths: HashSet<&str> = modules.iter().map(|module| module.path.as_str()).collect();
        let homeless = self.build_ids.keys().filter(|path| !paths.contains(path.as_str())).count();
        let counted = [
            (self.live_above_allocated, "stacks have more live than was ever allocated"),
            (self.odd_map_lines, "lines of the mapping table are not mappings and were skipped"),
            (overlapping as u64, "mappings overlap; where they do, the one that starts later counts"),
            (self.build_id_conflicts, "files have two build ids; the last one counts"),
            (homeless as u64, "build ids are for files that are not mapped"),
            (self.ignored_comments, "comments too many were ignored"),
        ];
        for (count, what) in counted.into_iter().filter(|&(count, _)| count > 0) {
            self.warn(format!("{count} {what}"));
        }
        if self.profile.modules.is_empty() && !self.profile.locations.is_empty() {
            self.warn("there are no mappings: addresses cannot be traced to files".into());
        }
    }
}
