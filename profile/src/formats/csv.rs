//! Our own CSV: a row for each sample, with all metrics.
//!
//! Columns: `stack` (functions, outermost first, with `;` between them), `places` (`FILE:LINE` of each, or nothing), `thread`,
//! `thread_number`, `block_size`, `sample_rate`, then bytes and blocks of each metric that the recorder kept. In lists `\` stands before a
//! `;` or `\` that is part of a name. Amounts are estimates where `sample_rate` is above 1. No field has a line break in it.

use std::collections::HashMap;
use std::io::{Read, Write};

use super::Limits;
use super::lines::{Fault, Lines};
use super::named::{Builder, Named, STORED, amount_mut};
use crate::error::{ReadError, WriteError};
use crate::model::{Amounts, Format, Frame, LocationId, Metric, Profile, Sample, Thread, ThreadId, Unit};
use crate::text::{escaped, excerpt};

/// What the first line begins with.
pub(super) const START: &str = "stack,places,thread,thread_number,block_size,sample_rate,live_bytes,live_blocks";
const FIXED: usize = 6;

pub(super) fn write(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    let named = Named::of(profile);
    write!(output, "stack,places,thread,thread_number,block_size,sample_rate")?;
    for (_, word, _) in &named.columns {
        write!(output, ",{word}_bytes,{word}_blocks")?;
    }
    writeln!(output)?;
    for (index, (sample, stack)) in profile.samples.iter().zip(&named.stacks).enumerate() {
        let frames = || stack.iter().map(|&frame| &named.frames[frame as usize]);
        let place = |frame: &Frame| frame.file.as_ref().map_or(String::new(), |file| format!("{file}:{}", frame.line));
        let thread = profile.thread_of(sample);
        let name = thread.map_or(String::new(), |thread| escaped(&thread.name).to_string());
        let number = thread.and_then(|thread| thread.number).map_or(String::new(), |number| number.to_string());
        let functions = list(frames().map(|frame| frame.function.to_string()));
        write!(output, "{},{},{},{number}", field(&functions), field(&list(frames().map(place))), field(&name))?;
        write!(output, ",{},{}", sample.block_size, profile.sample_rate)?;
        for (_, _, weights) in &named.columns {
            let sum = weights.samples()[index];
            write!(output, ",{},{}", sum.value(Unit::Bytes), sum.value(Unit::Blocks))?;
        }
        writeln!(output)?;
    }
    Ok(output.flush()?)
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.map(|item| item.replace('\\', "\\\\").replace(';', "\\;")).collect::<Vec<_>>().join(";")
}

fn field(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

pub(super) fn read<R: Read>(mut lines: Lines<'_, R>, limits: &Limits) -> Result<Profile, ReadError> {
    let mut reader =
        Reader { builder: Builder::new(Format::Csv, limits), columns: Vec::new(), rate: None, threads: HashMap::new() };
    let mut first = true;
    while let Some(line) = lines.next()? {
        let outcome = match line.ended {
            false => Err(Fault::Damaged("the file is cut off: the last line has no end".into())),
            true if first => reader.header(line.text),
            true => reader.row(line.text),
        };
        outcome.map_err(|fault| lines.error(fault))?;
        first = false;
    }
    reader.builder.profile().sample_rate = reader.rate.unwrap_or(1);
    reader.builder.profile().amounts = Amounts::Estimated;
    Ok(reader.builder.finish(&[]))
}

struct Reader<'l> {
    builder: Builder<'l>,
    columns: Vec<(Metric, Unit)>,
    rate: Option<u64>,
    threads: HashMap<Thread, ThreadId>,
}

impl Reader<'_> {
    fn header(&mut self, text: &[u8]) -> Result<(), Fault> {
        for name in String::from_utf8_lossy(text).split(',').skip(FIXED) {
            let column = STORED.iter().find_map(|&(metric, word)| match name.strip_prefix(word)? {
                "_bytes" => Some((metric, Unit::Bytes)),
                "_blocks" => Some((metric, Unit::Blocks)),
                _ => None,
            });
            let known = column.filter(|column| !self.columns.contains(column));
            let unknown =
                || Fault::Damaged(format!("a column {} that is not known or twice", excerpt(name.as_bytes())));
            self.columns.push(known.ok_or_else(unknown)?);
        }
        Ok(())
    }

    fn row(&mut self, text: &[u8]) -> Result<(), Fault> {
        let text = std::str::from_utf8(text).map_err(|_| Fault::Damaged("the line is not UTF-8".into()))?;
        let fields = fields(text)?;
        let expected = FIXED + self.columns.len();
        if fields.len() != expected {
            return Err(Fault::Damaged(format!("expected {expected} fields, found {}", fields.len())));
        }
        let number = |text: &str| -> Result<u64, Fault> {
            text.parse().map_err(|_| Fault::Damaged(format!("expected a number, found {}", excerpt(text.as_bytes()))))
        };
        let rate = number(&fields[5])?;
        if rate == 0 || self.rate.is_some_and(|known| known != rate) {
            return Err(Fault::Damaged(format!(
                "the sampling rate is {rate}; expected the same in all rows, at least 1"
            )));
        }
        self.rate = Some(rate);
        let (functions, places) = (items(&fields[0]), items(&fields[1]));
        if functions.len() != places.len() {
            return Err(Fault::Damaged(format!("{} functions and {} places", functions.len(), places.len())));
        }
        let mut stack: Vec<LocationId> = Vec::new();
        for (function, place) in functions.into_iter().zip(&places) {
            let frame = match place.rsplit_once(':') {
                _ if place.is_empty() => Frame::named(function),
                Some((file, line)) => {
                    let line = u32::try_from(number(line)?).map_err(|_| Fault::Damaged("a line beyond 2^32".into()))?;
                    Frame::named(function).at(file, line)
                }
                None => return Err(Fault::Damaged("expected FILE:LINE in places".into())),
            };
            stack.push(self.builder.location(frame)?);
        }
        let stack = self.builder.stack(&stack)?;
        let mut sample = Sample { thread: self.thread(&fields)?, ..Sample::new(stack, number(&fields[4])?) };
        for (&(metric, unit), text) in self.columns.iter().zip(&fields[FIXED..]) {
            let amount = amount_mut(&mut sample, metric);
            match unit {
                Unit::Bytes => amount.bytes = number(text)?,
                Unit::Blocks => amount.objects = number(text)?,
            }
        }
        self.builder.sample(sample)
    }

    fn thread(&mut self, fields: &[String]) -> Result<Option<ThreadId>, Fault> {
        let (name, number) = (fields[2].as_str(), fields[3].as_str());
        let number = match number {
            "" if name.is_empty() => return Ok(None),
            "" => None,
            digits => Some(digits.parse().map_err(|_| Fault::Damaged("expected a number of a thread".into()))?),
        };
        let thread = Thread { name: name.into(), number };
        let profile = self.builder.profile();
        Ok(Some(*self.threads.entry(thread).or_insert_with_key(|thread| {
            profile.threads.push(thread.clone());
            ThreadId(profile.threads.len() as u32 - 1)
        })))
    }
}

/// The fields of a row.
fn fields(text: &str) -> Result<Vec<String>, Fault> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let mut value = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            rest = loop {
                let wrong = || Fault::Damaged("a quoted field does not end".into());
                let (part, after) = quoted.split_once('"').ok_or_else(wrong)?;
                value.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => quoted = more,
                    None => break after,
                }
                value.push('"');
            };
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            value.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        fields.push(value);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(fields),
            None => return Err(Fault::Damaged("expected a comma after a quoted field".into())),
        }
    }
}

/// The items of a list.
fn items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ';' => items.push(String::new()),
            '\\' => items.last_mut().expect("never empty").extend(characters.next()),
            other => items.last_mut().expect("never empty").push(other),
        }
    }
    items
}
