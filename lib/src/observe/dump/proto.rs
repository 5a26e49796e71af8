//! `profile.proto`, the format of pprof. Field numbers are those of its definition.
//!
//! Values are estimates. A sample is a line of the text form: one stack, one block size, one thread. Its labels tell the last two, and
//! why a stack is not whole. Addresses are those of the calls, one byte before the return addresses, as the format wants them.

use super::collect::{COLUMNS, Collected, Line, truncation};
use super::estimates::Column;
use super::locations::Locations;
use super::protobuf::Message;
use super::strings::Strings;
use crate::observe::modules::{DIGITS, Module};
use crate::observe::output::{Failure, Output};
use crate::observe::path::{PATH, Path};
use crate::observe::room::Room;
use crate::observe::sampler::threads;
use crate::os;
use core::fmt::Write;

/// Fields of the whole.
mod profile {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const STRING: u64 = 6;
    pub(super) const DROP_FRAMES: u64 = 7;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// Strings whose numbers are known: the types in the order of the columns, then the rest.
const TYPES: [&[u8]; COLUMNS] = [
    b"alloc_objects",
    b"alloc_space",
    b"inuse_objects",
    b"inuse_space",
    b"peak_objects",
    b"peak_space",
    b"temp_objects",
    b"temp_space",
];
const FIXED: [&[u8]; 8] =
    [b"count", b"bytes", b"space", b"thread", b"thread_id", b"stack_truncated", DROP_FRAMES, b"inuse_space"];
const COUNT: u64 = COLUMNS as u64 + 1;
const BYTES: u64 = COUNT + 1;
const SPACE: u64 = COUNT + 2;
const THREAD: u64 = COUNT + 3;
const THREAD_ID: u64 = COUNT + 4;
const STACK_TRUNCATED: u64 = COUNT + 5;
const DROPPED: u64 = COUNT + 6;
/// The type that is shown first.
const DEFAULT: u64 = 4;

/// Functions that only bring others to the allocator: they and what they call is not shown.
const DROP_FRAMES: &[u8] =
    b"(_*(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc)|mi_.*\
|operator new.*|__rust_(alloc|alloc_zeroed|realloc)|_R.*__rust_.*alloc.*|.*mimalloc_pprof::.*)";

/// Room for one sample: the deepest stack takes 5 KiB.
const SCRATCH: usize = 64 * 1024;

/// What is known while samples are written.
struct Writer<'a> {
    collected: &'a Collected,
    strings: Strings,
    locations: Locations,
    columns: [Column; COLUMNS],
    scratch: Room<u8>,
    /// Numbers of the locations of a stack.
    stack: Room<u64>,
    /// By number of the thread: the string of its name, plus one; 0 = not looked up. And its id.
    threads: Room<[u64; 2]>,
}

pub(super) fn write(collected: &Collected, output: &mut Output<'_>) -> Result<(), Failure> {
    let mut strings = Strings::new()?;
    for string in TYPES.iter().chain(&FIXED) {
        strings.add(string)?;
    }
    let columns = [Column::default(); COLUMNS];
    // SAFETY: bytes may be zero.
    let scratch = unsafe { Room::zeroed(SCRATCH) }?;
    let (locations, stack, threads) = (Locations::new()?, Room::new(), Room::new());
    let mut writer = Writer { collected, strings, locations, columns, scratch, stack, threads };
    for number in 1..=COLUMNS as u64 {
        let unit = if number % 2 == 1 { COUNT } else { BYTES };
        writer.field(output, |message, _| {
            message.message(profile::SAMPLE_TYPE, |value_type| {
                value_type.number(1, number);
                value_type.number(2, unit);
            });
        })?;
    }
    for line in collected.lines.iter() {
        writer.sample(output, line)?;
    }
    writer.modules(output)?;
    writer.write_locations(output)?;
    writer.facts(output)?;
    writer.strings.write(profile::STRING, output);
    Ok(())
}

impl Writer<'_> {
    /// Write what `fill` puts into a message.
    fn field(
        &mut self,
        output: &mut Output<'_>,
        fill: impl FnOnce(&mut Message<'_>, &Collected),
    ) -> Result<(), Failure> {
        let mut message = Message::new(&mut self.scratch);
        fill(&mut message, self.collected);
        output.bytes(message.as_bytes().ok_or(Failure::NO_MEMORY)?);
        Ok(())
    }

    fn sample(&mut self, output: &mut Output<'_>, line: &Line) -> Result<(), Failure> {
        self.stack.clear();
        for frame in line.frames(&self.collected.modules) {
            self.stack.push(self.locations.number(frame)?)?;
        }
        let estimates = line.estimates(self.collected.rate);
        let mut values = [0; COLUMNS];
        for ((value, column), estimate) in values.iter_mut().zip(&mut self.columns).zip(estimates) {
            *value = column.next(estimate);
        }
        let reason = match truncation(line.end()) {
            Some(reason) => self.strings.find_or_add(COUNT, reason.as_bytes())?,
            None => 0,
        };
        let [thread, thread_id] = self.thread(line.thread())?;
        let mut message = Message::new(&mut self.scratch);
        message.numbers(1, self.stack.iter().copied());
        message.numbers(2, values.into_iter());
        message.message(3, |label| {
            label.number(1, BYTES);
            label.number(3, line.block_size());
            label.number(4, BYTES);
        });
        for (key, string) in
            [(THREAD, thread), (STACK_TRUNCATED, reason)].into_iter().filter(|&(_, string)| string != 0)
        {
            message.message(3, |label| {
                label.number(1, key);
                label.number(2, string);
            });
        }
        if thread_id != 0 {
            message.message(3, |label| {
                label.number(1, THREAD_ID);
                label.number(3, thread_id);
            });
        }
        let sample = message.as_bytes().ok_or(Failure::NO_MEMORY)?;
        let mut head = [0; 24];
        let mut head = Message::new(&mut head);
        head.head(profile::SAMPLE, sample.len());
        output.bytes(head.as_bytes().unwrap_or_default());
        output.bytes(sample);
        Ok(())
    }

    /// The string of a thread's name, and its id; zeros where it is not known. A number that threads share has a name, but no id.
    fn thread(&mut self, number: u32) -> Result<[u64; 2], Failure> {
        while self.threads.len() <= number as usize {
            self.threads.push([0; 2])?;
        }
        if self.threads[number as usize][0] == 0 {
            let found = threads::thread(number);
            let name = match &found {
                Some(thread) if !thread.name().is_empty() => self.strings.find_or_add(COUNT, thread.name())?,
                _ => 0,
            };
            let id = found.filter(|thread| !thread.is_shared).map_or(0, |thread| thread.tid as u64);
            self.threads[number as usize] = [name + 1, id];
        }
        let [name, id] = self.threads[number as usize];
        Ok([name - 1, id])
    }

    /// All executable mappings. That of the program is first, by which readers know it; so numbers are not in the order of addresses.
    fn modules(&mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        let modules = &self.collected.modules;
        let program = modules.find(os::program_entry()).filter(|&number| number < modules.all().len());
        let others = (0..modules.all().len()).filter(|&number| Some(number) != program);
        for number in program.into_iter().chain(others) {
            self.module(output, number, &modules.all()[number])?;
        }
        modules.gone().try_for_each(|(number, module)| self.module(output, number, module))
    }

    fn module(&mut self, output: &mut Output<'_>, number: usize, module: &Module) -> Result<(), Failure> {
        let mut path = [0; PATH];
        let path = self.collected.modules.file(module, &mut path);
        let name = self.strings.add(path)?;
        let build_id = match module.build_id.hex(&mut { DIGITS }) {
            b"" => 0,
            digits => self.strings.add(digits)?,
        };
        self.field(output, |message, _| {
            message.message(profile::MAPPING, |mapping| {
                mapping.number(1, number as u64 + 1);
                mapping.number(2, module.start as u64);
                mapping.number(3, module.end as u64);
                mapping.number(4, module.offset as u64);
                mapping.number(5, name);
                mapping.number(6, build_id);
            });
        })
    }

    fn write_locations(&mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        for index in 0..self.locations.all().len() {
            // A return address is the one after the call.
            let address = self.locations.all()[index].saturating_sub(1);
            let module = self.collected.modules.find(address).map_or(0, |index| index as u64 + 1);
            self.field(output, |message, _| {
                message.message(profile::LOCATION, |location| {
                    location.number(1, index as u64 + 1);
                    location.number(2, module);
                    location.number(3, address as u64);
                });
            })?;
        }
        Ok(())
    }

    fn facts(&mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        let first = self.strings.count();
        let mut told = Ok(());
        let collected = self.collected;
        collected.for_each_fact(|key, value| {
            if told.is_ok() {
                told = self.comment(key, value);
            }
        });
        told?;
        let comments = first..self.strings.count();
        self.field(output, |message, collected| {
            message.number(profile::DROP_FRAMES, DROPPED);
            message.number(profile::TIME_NANOS, collected.time);
            message.number(profile::DURATION_NANOS, collected.duration);
            message.message(profile::PERIOD_TYPE, |value_type| {
                value_type.number(1, SPACE);
                value_type.number(2, BYTES);
            });
            message.number(profile::PERIOD, collected.rate);
            message.numbers(profile::COMMENT, comments);
            message.number(profile::DEFAULT_SAMPLE_TYPE, DEFAULT);
        })
    }

    /// A string as the comments of the text form.
    fn comment(&mut self, key: &str, value: core::fmt::Arguments<'_>) -> Result<(), Failure> {
        let mut text = Path::EMPTY;
        let _ = write!(text, "{key} = {value}");
        self.strings.add(text.as_bytes()).map(|_| ())
    }
}
