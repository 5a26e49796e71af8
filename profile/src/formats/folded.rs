//! Folded stacks: `main;parse;grow 4096`, outermost first, one number for each stack.
//!
//! Read as live bytes: the format does not say what its numbers are. A last line without a line end is taken for a cut.

use std::io::{Read, Write};

use super::Limits;
use super::lines::{Fault, Line, Lines};
use super::named::{Builder, Named};
use crate::error::{ReadError, WriteError};
use crate::model::{Amount, Format, Frame, LocationId, Metric, Profile, Unit};
use crate::text::excerpt;

const UNTOLD: &str = "folded stacks do not say what their numbers are: they count as live bytes, and may be estimates";

pub(super) fn read<R: Read>(mut lines: Lines<'_, R>, limits: &Limits) -> Result<Profile, ReadError> {
    let mut builder = Builder::new(Format::Folded, limits);
    while let Some(line) = lines.next()? {
        let outcome = self::line(&line, &mut builder);
        outcome.map_err(|fault| lines.error(fault))?;
    }
    Ok(builder.finish(&[UNTOLD]))
}

fn line(line: &Line<'_>, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let text = line.text.trim_ascii();
    if text.is_empty() {
        return Ok(());
    }
    if !line.ended {
        return Err(Fault::Damaged("the file is cut off: the last line has no end".into()));
    }
    let expected = || Fault::Damaged(format!("expected frames;… and a number, found {}", excerpt(text)));
    let space = text.iter().rposition(|&byte| byte == b' ').ok_or_else(expected)?;
    let number = std::str::from_utf8(&text[space + 1..]).ok().and_then(|digits| digits.parse().ok());
    let bytes: u64 = number.ok_or_else(expected)?;
    let frames = String::from_utf8_lossy(text[..space].trim_ascii());
    let places: Vec<LocationId> =
        frames.split(';').map(|name| builder.location(Frame::named(name.trim()))).collect::<Result<_, _>>()?;
    let stack = builder.stack(&places)?;
    builder.add(stack, None, Metric::Live, Amount { objects: 0, bytes })
}

/// Writes one metric. Stacks of no weight are left out; `;` in a name becomes `,`.
pub(super) fn write(profile: &Profile, metric: Metric, unit: Unit, mut output: impl Write) -> Result<(), WriteError> {
    let named = Named::of(profile);
    let names: Vec<String> = named.frames.iter().map(|frame| frame.function.replace(';', ",")).collect();
    let weights = crate::analysis::Weights::of(profile, metric);
    let mut stacks = std::collections::BTreeMap::<Vec<&str>, u64>::new();
    for (stack, sum) in named.stacks.iter().zip(weights.samples()).filter(|(_, sum)| sum.value(unit) > 0) {
        let total = stacks.entry(stack.iter().map(|&frame| names[frame as usize].as_str()).collect()).or_default();
        *total = total.saturating_add(sum.value(unit));
    }
    for (stack, weight) in stacks {
        writeln!(output, "{} {weight}", stack.join(";"))?;
    }
    Ok(output.flush()?)
}
