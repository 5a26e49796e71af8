//! The message as it is in the file: parts refer to each other by numbers that have not been looked up.

use std::io::Read;
use std::sync::Arc;

use super::super::Limits;
use super::super::intern::Lists;
use super::fields::{self, Fields, number, numbers};
use super::source::{Field, Source, Value};
use super::{Stop, Wrong};
use crate::hashing::{NumberMap, hash_of};
use crate::model::LocationId;

/// A type of values: numbers of the strings of its name and unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueType {
    pub(super) name: u64,
    pub(super) unit: u64,
    pub(super) offset: u64,
}

/// One sample. There are many, so it is small: where its numbers are in [`Raw::numbers`], which has fewer than 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSample {
    /// Its stack, an index into [`Raw::stacks`].
    pub(super) stack: u32,
    start: u32,
    labels: u32,
    end: u32,
    pub(super) offset: u64,
}

impl RawSample {
    pub(super) fn values<'a>(&self, raw: &'a Raw) -> &'a [u64] {
        &raw.numbers[self.start as usize..self.labels as usize]
    }

    /// Three numbers each: string of the key, string, number.
    pub(super) fn labels<'a>(&self, raw: &'a Raw) -> &'a [u64] {
        &raw.numbers[self.labels as usize..self.end as usize]
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawMapping {
    pub(super) id: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) file_offset: u64,
    pub(super) path: u64,
    pub(super) build_id: u64,
    pub(super) offset: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RawLocation {
    pub(super) id: u64,
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// Function and line, innermost first.
    pub(super) lines: Vec<(u64, u64)>,
    pub(super) offset: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawFunction {
    pub(super) id: u64,
    pub(super) name: u64,
    /// As the linker has it.
    pub(super) linker_name: u64,
    pub(super) file: u64,
    pub(super) offset: u64,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) types: Vec<ValueType>,
    pub(super) samples: Vec<RawSample>,
    pub(super) mappings: Vec<RawMapping>,
    pub(super) locations: Vec<RawLocation>,
    pub(super) functions: Vec<RawFunction>,
    pub(super) strings: Vec<Box<str>>,
    pub(super) comments: Vec<u64>,
    pub(super) period: u64,
    pub(super) period_type: ValueType,
    /// Each distinct stack once, innermost first. Locations are numbered in the order in which their ids are met first, in samples or on
    /// their own: the numbers of [`Raw::ids`].
    pub(super) stacks: Vec<Arc<[LocationId]>>,
    /// The ids of locations.
    pub(super) ids: Ids,
    lists: Lists,
    /// Samples by what makes two of them the same.
    same: Lists,
    /// Locations of all stacks.
    stack_entries: usize,
    /// Values and labels of all samples.
    pub(super) numbers: Vec<u64>,
    /// Where the data ends.
    pub(super) end: u64,
    /// Locations, values and labels of one sample.
    scratch: [Vec<u64>; 3],
    stack: Vec<LocationId>,
}

impl Raw {
    pub(super) fn read(mut source: Source<impl Read>, limits: &Limits) -> Result<Self, Stop> {
        let mut raw = Self::default();
        while let Some(field) = source.next()? {
            raw.take(&field)?;
            raw.check(limits, field.offset)?;
        }
        raw.end = source.offset();
        Ok(raw)
    }

    fn take(&mut self, field: &Field) -> Result<(), Wrong> {
        let Field { number: field_number, ref value, offset } = *field;
        match (field_number, value) {
            (1, Value::Bytes(bytes)) => self.types.push(value_type(bytes, offset)?),
            (2, Value::Bytes(bytes)) => self.sample(bytes, offset)?,
            (3, Value::Bytes(bytes)) => self.mappings.push(mapping(bytes, offset)?),
            (4, Value::Bytes(bytes)) => self.locations.push(location(bytes, offset)?),
            (5, Value::Bytes(bytes)) => self.functions.push(function(bytes, offset)?),
            (6, Value::Bytes(bytes)) => self.strings.push(String::from_utf8_lossy(bytes).into()),
            (11, Value::Bytes(bytes)) => self.period_type = value_type(bytes, offset)?,
            (12, Value::Number(period)) => self.period = *period,
            (13, Value::Number(comment)) => self.comments.push(*comment),
            (13, Value::Bytes(bytes)) => numbers(fields::Value::Bytes(bytes), offset, &mut self.comments)?,
            (1..=6 | 11..=13, _) => {
                return Err(Wrong::damaged(
                    offset,
                    format!("field {field_number} is not of the kind that it should be"),
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self, limits: &Limits, offset: u64) -> Result<(), Wrong> {
        for (count, limit, what) in [
            (self.samples.len(), limits.samples, "samples"),
            (self.stack_entries, limits.stack_entries, "locations in all stacks"),
            (self.ids.len(), limits.locations, "locations in samples"),
            (self.numbers.len(), limits.stack_entries, "numbers in all samples"),
            (self.mappings.len(), limits.modules, "mappings"),
            (self.locations.len(), limits.locations, "locations"),
            (self.functions.len(), limits.locations, "functions"),
            (self.strings.len(), limits.locations.saturating_mul(4), "strings"),
            (self.comments.len(), limits.locations, "comments"),
            (self.types.len(), 256, "types of values"),
        ] {
            if count > limit {
                return Err(Wrong::too_large(offset, format!("more than {limit} {what}")));
            }
        }
        Ok(())
    }

    /// The parts of a sample can come in any order, each in several pieces.
    fn sample(&mut self, bytes: &[u8], offset: u64) -> Result<(), Wrong> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.iter_mut().for_each(Vec::clear);
        let [locations, values, labels] = &mut scratch;
        let mut fields = Fields::new(bytes, offset);
        while let Some((field, value, offset)) = fields.next()? {
            match (field, value) {
                (1, value) => numbers(value, offset, locations)?,
                (2, value) => numbers(value, offset, values)?,
                (3, fields::Value::Bytes(bytes)) => labels.extend(label(bytes, offset)?),
                (3, _) => return Err(Wrong::damaged(offset, "expected a label")),
                _ => {}
            }
        }
        let stack = self.stack(locations);
        if self.samples.len() >= MERGED_FROM && self.absorb(stack, values, labels) {
            self.scratch = scratch;
            return Ok(());
        }
        let mut add = |more: &[u64]| {
            let start = self.numbers.len();
            self.numbers.extend_from_slice(more);
            u32::try_from(start).map_err(|_| Wrong::too_large(offset, "more than 2^32 numbers".to_owned()))
        };
        let (start, labels, end) = (add(values)?, add(labels)?, add(&[])?);
        self.scratch = scratch;
        self.samples.push(RawSample { stack, start, labels, end, offset });
        Ok(())
    }

    /// Adds values to those of a sample of the same stack and labels and of the same proportions, hence blocks of the same size; false if
    /// there is none yet.
    fn absorb(&mut self, stack: u32, values: &[u64], labels: &[u64]) -> bool {
        let (numbers, samples) = (&self.numbers, &self.samples);
        let part = |from: u32, to: u32| &numbers[from as usize..to as usize];
        let direction = |values: &[u64]| values.iter().copied().fold(0, gcd).max(1);
        if self.same.is_empty() {
            for sample in samples {
                let known = part(sample.start, sample.labels);
                let hash = hash_of_sample(sample.stack, known, direction(known), part(sample.labels, sample.end));
                self.same.add(hash);
            }
        }
        let unit = direction(values);
        let found = self.same.find(hash_of_sample(stack, values, unit, labels), |number| {
            let sample = &samples[number];
            let known = part(sample.start, sample.labels);
            let unit_of_known = direction(known);
            let has_proportions = known.len() == values.len()
                && known.iter().zip(values).all(|(known, value)| known / unit_of_known == value / unit);
            sample.stack == stack && has_proportions && part(sample.labels, sample.end) == labels
        });
        let Ok(number) = found else { return false };
        let start = samples[number].start as usize;
        let sums = self.numbers[start..].iter_mut().zip(values);
        // A sum that does not fit is refused when the sums of all samples are.
        sums.for_each(|(sum, value)| *sum = sum.saturating_add(*value));
        true
    }

    /// Gives back what is needed only while samples are read.
    pub(super) fn forget_lists(&mut self) {
        (self.lists, self.same, self.ids) = (Lists::default(), Lists::default(), Ids::default());
    }

    fn stack(&mut self, ids: &[u64]) -> u32 {
        self.stack.clear();
        self.stack.extend(ids.iter().map(|&id| self.ids.number(id)));
        let (stack, stacks) = (&self.stack, &self.stacks);
        match self.lists.find(hash_of(stack.iter().map(|id| id.0)), |known| *stacks[known] == **stack) {
            Ok(known) => known as u32,
            Err(new) => {
                self.stack_entries += self.stack.len();
                self.stacks.push(self.stack.as_slice().into());
                new as u32
            }
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn hash_of_sample(stack: u32, values: &[u64], unit: u64, labels: &[u64]) -> u64 {
    let numbers = values.iter().map(|value| value / unit).chain(labels.iter().copied());
    hash_of(std::iter::once(stack).chain(numbers.flat_map(|number| [number as u32, (number >> 32) as u32])))
}

/// From this many samples on, those that say the same of the same become one: half of what is read at most.
const MERGED_FROM: usize = 1 << 20;

/// Ids below this are looked up in a table, of 4 MiB at most.
const SMALL: u64 = 1 << 20;

/// Numbers of ids, in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Number + 1 of each id below [`SMALL`] that was met; as a rule all are.
    small: Vec<u32>,
    /// Those of the others.
    large: NumberMap<u64, u32>,
    ids: Vec<u64>,
}

impl Ids {
    pub(super) fn number(&mut self, id: u64) -> LocationId {
        let next = self.ids.len() as u32;
        let number = if id < SMALL {
            let index = id as usize;
            if self.small.len() <= index {
                self.small.resize((index + 1).next_power_of_two(), 0);
            }
            match self.small[index] {
                0 => {
                    self.small[index] = next + 1;
                    next
                }
                known => known - 1,
            }
        } else {
            *self.large.entry(id).or_insert(next)
        };
        if number == next {
            self.ids.push(id);
        }
        LocationId(number)
    }

    /// The id with a number.
    pub(super) fn id(&self, number: LocationId) -> u64 {
        self.ids[number.index()]
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Puts numbers of a message into the places for its fields; other fields are skipped.
fn fill(bytes: &[u8], offset: u64, places: &mut [(u64, &mut u64)]) -> Result<(), Wrong> {
    let mut fields = Fields::new(bytes, offset);
    while let Some((field, value, offset)) = fields.next()? {
        if let Some((_, place)) = places.iter_mut().find(|(known, _)| *known == field) {
            **place = number(value, offset)?;
        }
    }
    Ok(())
}

fn value_type(bytes: &[u8], offset: u64) -> Result<ValueType, Wrong> {
    let mut read = ValueType { offset, ..ValueType::default() };
    fill(bytes, offset, &mut [(1, &mut read.name), (2, &mut read.unit)])?;
    Ok(read)
}

fn label(bytes: &[u8], offset: u64) -> Result<[u64; 3], Wrong> {
    let [mut key, mut string, mut value] = [0; 3];
    fill(bytes, offset, &mut [(1, &mut key), (2, &mut string), (3, &mut value)])?;
    Ok([key, string, value])
}

fn mapping(bytes: &[u8], offset: u64) -> Result<RawMapping, Wrong> {
    let mut read = RawMapping { offset, ..RawMapping::default() };
    let RawMapping { id, start, end, file_offset, path, build_id, .. } = &mut read;
    fill(bytes, offset, &mut [(1, id), (2, start), (3, end), (4, file_offset), (5, path), (6, build_id)])?;
    Ok(read)
}

fn function(bytes: &[u8], offset: u64) -> Result<RawFunction, Wrong> {
    let mut read = RawFunction { offset, ..RawFunction::default() };
    let RawFunction { id, name, linker_name, file, .. } = &mut read;
    fill(bytes, offset, &mut [(1, id), (2, name), (3, linker_name), (4, file)])?;
    Ok(read)
}

fn location(bytes: &[u8], offset: u64) -> Result<RawLocation, Wrong> {
    let mut read = RawLocation { offset, ..RawLocation::default() };
    let mut fields = Fields::new(bytes, offset);
    while let Some((field, value, offset)) = fields.next()? {
        match (field, value) {
            (1, value) => read.id = number(value, offset)?,
            (2, value) => read.mapping = number(value, offset)?,
            (3, value) => read.address = number(value, offset)?,
            (4, fields::Value::Bytes(bytes)) => {
                let (mut function, mut line) = (0, 0);
                fill(bytes, offset, &mut [(1, &mut function), (2, &mut line)])?;
                read.lines.push((function, line));
            }
            (4, _) => return Err(Wrong::damaged(offset, "expected a line")),
            _ => {}
        }
    }
    Ok(read)
}
