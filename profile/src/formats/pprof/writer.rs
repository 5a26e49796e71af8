//! Writes `profile.proto`: what is in the model, with the names of functions.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use flate2::{Compression, write::GzEncoder};

use super::message::Message;
use crate::analysis::{Sum, Weights};
use crate::error::WriteError;
use crate::model::{Amounts, Frame, Metric, Module, Profile, Sample, StackEnd, Thread, lookup_address};

/// Fields of the whole; numbers are those of the format's definition.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING: u64 = 6;
    pub(super) const DROP_FRAMES: u64 = 7;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// Functions that only bring others to the allocator: pprof leaves them and what they call out of its reports.
const DROP_FRAMES: &str = "(_*(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc)\
|mi_.*|operator new.*|__rust_(alloc|alloc_zeroed|realloc)|_R.*__rust_.*alloc.*|.*mimalloc_pprof::.*)";

/// The comment by which our own dumps are known.
const MARK: (&str, &str) = ("stacks_marked", "1");

/// Writes a profile as `profile.proto`, not packed. Values are estimates, as the format wants them: those that
/// [`Weights`] has for the same profile.
///
/// Names, files and lines of functions are kept, and so are the linker's names ([`Profile::linker_names`]). Mappings
/// that are not executable and in no stack are left out, and so are lifetimes ([`Sample::lived`]). A profile
/// of what was recorded reads back as such ([`Amounts::Recorded`]) if it tells of every stack whether it is complete,
/// and each of its samples has blocks of one size.
///
/// # Errors
/// When the output fails; when a sum is larger than the format can express.
pub fn write(profile: &Profile, output: impl Write) -> Result<(), WriteError> {
    let columns = columns(profile);
    // Readers add values up in 63 bits.
    if columns.iter().any(|column| column.weights.total().bytes.max(column.weights.total().blocks) >> 62 != 0) {
        let reason = "its sums are larger than the format can express".to_owned();
        return Err(WriteError::Inexpressible { format: "profile.proto", reason });
    }
    let mut writer = Writer { profile, output, strings: Strings::new(), functions: HashMap::new() };
    writer.types(&columns)?;
    writer.samples(&columns)?;
    writer.mappings()?;
    writer.locations()?;
    writer.facts()?;
    let Writer { mut output, strings, .. } = writer;
    for string in &strings.all {
        output.write_all(Message::default().bytes(field::STRING, string.as_bytes()).as_bytes())?;
    }
    output.flush()?;
    Ok(())
}

/// The same packed with gzip, as pprof and Go write it.
///
/// # Errors
/// As [`write()`].
pub fn write_packed(profile: &Profile, output: impl Write) -> Result<(), WriteError> {
    let mut encoder = GzEncoder::new(output, Compression::default());
    write(profile, &mut encoder)?;
    encoder.finish()?.flush()?;
    Ok(())
}

/// One metric of all samples.
struct Column {
    objects: &'static str,
    bytes: &'static str,
    weights: Weights,
}

/// The columns that `profile` has something for; those of live memory are always there.
fn columns(profile: &Profile) -> Vec<Column> {
    let column = |objects, bytes, metric| Column { objects, bytes, weights: Weights::of(profile, metric) };
    let allocated = profile.has_allocated().then(|| column("alloc_objects", "alloc_space", Metric::Allocated));
    let live = column("inuse_objects", "inuse_space", Metric::Live);
    let peak = profile.has_peak().then(|| column("peak_objects", "peak_space", Metric::Peak));
    let temporary = profile.has_temporary().then(|| column("temp_objects", "temp_space", Metric::Temporary));
    allocated.into_iter().chain([live]).chain(peak).chain(temporary).collect()
}

/// Whether a reader can compute back what was recorded.
fn is_own(profile: &Profile) -> bool {
    let is_of_one_size = |sample: &Sample| {
        let amounts = [sample.live, sample.allocated, sample.peak, sample.temporary];
        sample.block_size > 0
            && amounts.iter().all(|amount| amount.objects.checked_mul(sample.block_size) == Some(amount.bytes))
            && !sample.live.exceeds(sample.allocated)
    };
    profile.amounts == Amounts::Recorded && profile.stacks_marked() && profile.samples.iter().all(is_of_one_size)
}

/// Strings by their numbers.
struct Strings {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u64>,
}

impl Strings {
    /// The table begins with an empty string.
    fn new() -> Self {
        Strings { all: vec!["".into()], numbers: HashMap::from([("".into(), 0)]) }
    }

    fn number(&mut self, string: &str) -> u64 {
        self.numbers.get(string).copied().unwrap_or_else(|| self.add(string.into()))
    }

    /// The same without a copy.
    fn shared(&mut self, string: &Arc<str>) -> u64 {
        self.numbers.get(string).copied().unwrap_or_else(|| self.add(string.clone()))
    }

    fn add(&mut self, string: Arc<str>) -> u64 {
        let number = self.all.len() as u64;
        self.all.push(string.clone());
        self.numbers.insert(string, number);
        number
    }
}

/// What is known while parts are written.
struct Writer<'p, W> {
    profile: &'p Profile,
    output: W,
    strings: Strings,
    /// Numbers of functions, by the strings of their names and files.
    functions: HashMap<(u64, u64), u64>,
}

impl<W: Write> Writer<'_, W> {
    /// A message within the whole.
    fn put(&mut self, field: u64, message: &Message) -> io::Result<()> {
        self.output.write_all(Message::default().bytes(field, message.as_bytes()).as_bytes())
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        Message::default().number(1, self.strings.number(name)).number(2, self.strings.number(unit))
    }

    fn types(&mut self, columns: &[Column]) -> io::Result<()> {
        for column in columns {
            for (name, unit) in [(column.objects, "count"), (column.bytes, "bytes")] {
                let value_type = self.value_type(name, unit);
                self.put(field::SAMPLE_TYPE, &value_type)?;
            }
        }
        Ok(())
    }

    fn samples(&mut self, columns: &[Column]) -> io::Result<()> {
        let (size_label, reason_label) = (self.strings.number("bytes"), self.strings.number("stack_truncated"));
        let (thread_label, thread_id_label) = (self.strings.number("thread"), self.strings.number("thread_id"));
        for (index, sample) in self.profile.samples.iter().enumerate() {
            let stack = self.profile.stack(sample.stack);
            let values = columns.iter().flat_map(|column| {
                let Sum { blocks, bytes, .. } = column.weights.samples()[index];
                [blocks, bytes]
            });
            let locations = stack.locations.iter().map(|location| u64::from(location.0) + 1);
            let size = Message::default().number(1, size_label).number(3, sample.block_size).number(4, size_label);
            let mut message = Message::default().numbers(1, locations).numbers(2, values).bytes(3, size.as_bytes());
            if let Some(Thread { name, number }) = self.profile.thread_of(sample) {
                let name = Message::default().number(1, thread_label).number(2, self.strings.shared(name));
                message = message.bytes(3, name.as_bytes());
                if let Some(number) = number {
                    let number = Message::default().number(1, thread_id_label).number(3, *number);
                    message = message.bytes(3, number.as_bytes());
                }
            }
            if let StackEnd::Truncated(truncation) = &stack.end {
                let reason = self.strings.number(truncation.reason.as_text());
                message = message.bytes(3, Message::default().number(1, reason_label).number(2, reason).as_bytes());
            }
            self.put(field::SAMPLE, &message)?;
        }
        Ok(())
    }

    fn mappings(&mut self) -> io::Result<()> {
        let mut known = vec![Known::default(); self.profile.modules.len()];
        for location in &self.profile.locations {
            if let Some(module) = location.module {
                known[module.index()].add(&location.frames);
            }
        }
        for (index, (module, known)) in self.profile.modules.iter().zip(known).enumerate() {
            if module.executable || known.is_used {
                let message = self.mapping(index as u64 + 1, module, known);
                self.put(field::MAPPING, &message)?;
            }
        }
        Ok(())
    }

    fn mapping(&mut self, number: u64, module: &Module, known: Known) -> Message {
        let mark = if module.deleted { " (deleted)" } else { "" };
        let path = self.strings.number(&format!("{}{mark}", module.path));
        let build_id = module.build_id.as_ref().map_or(0, |id| self.strings.number(&id.to_string()));
        Message::default()
            .number(1, number)
            .number(2, module.start)
            .number(3, module.end)
            .number(4, module.file_offset)
            .number(5, path)
            .number(6, build_id)
            // With these, pprof does not look for symbols by itself.
            .number(7, known.functions.into())
            .number(8, known.files.into())
            .number(9, known.lines.into())
            .number(10, known.inlined.into())
    }

    fn locations(&mut self) -> io::Result<()> {
        for (index, location) in self.profile.locations.iter().enumerate() {
            let mut message = Message::default()
                .number(1, index as u64 + 1)
                .number(2, location.module.map_or(0, |module| u64::from(module.0) + 1))
                // The format has the addresses of calls.
                .number(3, lookup_address(location.address));
            for frame in &location.frames {
                let line = Message::default().number(1, self.function(frame)?).number(2, frame.line.into());
                message = message.bytes(4, line.as_bytes());
            }
            self.put(field::LOCATION, &message)?;
        }
        Ok(())
    }

    /// The number of a function, which is written when it is met first.
    fn function(&mut self, frame: &Frame) -> io::Result<u64> {
        let name = self.strings.shared(&frame.function);
        let file = frame.file.as_ref().map_or(0, |file| self.strings.shared(file));
        let number = self.functions.len() as u64 + 1;
        if let Some(&known) = self.functions.get(&(name, file)) {
            return Ok(known);
        }
        self.functions.insert((name, file), number);
        let linker_name = self.profile.linker_names.get(&frame.function);
        let linker_name = linker_name.map_or(name, |linker_name| self.strings.shared(linker_name));
        let message = Message::default().number(1, number).number(2, name).number(3, linker_name).number(4, file);
        self.put(field::FUNCTION, &message)?;
        Ok(number)
    }

    fn facts(&mut self) -> io::Result<()> {
        let mut comments: Vec<String> = Vec::new();
        let is_own = is_own(self.profile);
        if is_own {
            comments.push(format!("{} = {}", MARK.0, MARK.1));
        }
        let others = self.profile.comments.iter().filter(|(key, _)| key != MARK.0);
        comments.extend(others.map(|(key, value)| format!("{key} = {value}")));
        let comments: Vec<u64> = comments.iter().map(|comment| self.strings.number(comment)).collect();
        let number = |key| self.profile.comment(key).and_then(|value| value.parse().ok()).unwrap_or(0);
        let (time, duration) = (number("time_nanos"), number("duration_nanos"));
        let period_type = self.value_type("space", "bytes");
        let message = Message::default()
            .number(field::DROP_FRAMES, self.strings.number(DROP_FRAMES))
            .number(field::TIME_NANOS, time)
            .number(field::DURATION_NANOS, duration)
            .bytes(field::PERIOD_TYPE, period_type.as_bytes())
            .number(field::PERIOD, self.profile.sample_rate)
            .numbers(field::COMMENT, comments)
            .number(field::DEFAULT_SAMPLE_TYPE, self.strings.number("inuse_space"));
        self.output.write_all(message.as_bytes())
    }
}

/// What is known about the locations of a mapping.
#[derive(Clone, Copy, Default)]
struct Known {
    is_used: bool,
    functions: bool,
    files: bool,
    lines: bool,
    inlined: bool,
}

impl Known {
    fn add(&mut self, frames: &[Frame]) {
        self.is_used = true;
        self.functions |= frames.iter().any(|frame| !frame.function.is_empty());
        self.files |= frames.iter().any(|frame| frame.file.is_some());
        self.lines |= frames.iter().any(|frame| frame.line != 0);
        self.inlined |= frames.iter().any(|frame| frame.inlined);
    }
}
