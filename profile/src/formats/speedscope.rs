//! speedscope's JSON, as <https://www.speedscope.app/file-format-schema.json> defines it.
//!
//! One sampled profile for each metric and unit, called `live bytes`, `allocated blocks` and so on. Of other writers, sampled profiles in bytes are
//! read as live memory, each as a thread.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};

use serde::{Deserialize, Serialize};

use super::Limits;
use super::json;
use super::lines::{Fault, Lines};
use super::named::{Builder, Named, STORED};
use crate::error::{ReadError, WriteError};
use crate::model::{Amount, Format, Frame, LocationId, Metric, Profile, Thread, ThreadId, Unit};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
const UNTOLD: &str = "speedscope profiles do not say whether their numbers are estimates";

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(rename = "$schema", default)]
    schema: String,
    shared: Shared,
    profiles: Vec<Entry>,
    #[serde(default)]
    exporter: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Shared {
    frames: Vec<Place>,
}

#[derive(Serialize, Deserialize)]
struct Place {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    unit: String,
    #[serde(default)]
    start_value: serde_json::Value,
    #[serde(default)]
    end_value: serde_json::Value,
    #[serde(default)]
    samples: Vec<Vec<u32>>,
    #[serde(default)]
    weights: Vec<serde_json::Number>,
}

pub(super) fn write(profile: &Profile, output: impl Write) -> Result<(), WriteError> {
    let named = Named::of(profile);
    let frames = named.frames.iter().map(|frame| Place {
        name: frame.function.to_string(),
        file: frame.file.as_ref().map(ToString::to_string),
        line: (frame.line > 0).then_some(frame.line),
    });
    let mut profiles = Vec::new();
    for (_, word, weights) in &named.columns {
        for (unit, suffix, kind) in [(Unit::Bytes, "bytes", "bytes"), (Unit::Blocks, "blocks", "none")] {
            let mut stacks: BTreeMap<&[u32], u64> = BTreeMap::new();
            let weighed = named.stacks.iter().zip(weights.samples()).filter(|(_, sum)| sum.value(unit) > 0);
            weighed.for_each(|(stack, sum)| *stacks.entry(stack).or_default() += sum.value(unit));
            profiles.push(Entry {
                kind: "sampled".into(),
                name: format!("{word} {suffix}"),
                unit: kind.into(),
                start_value: 0.into(),
                end_value: weights.total().value(unit).into(),
                samples: stacks.keys().map(|stack| stack.to_vec()).collect(),
                weights: stacks.values().map(|&weight| weight.into()).collect(),
            });
        }
    }
    let exporter = Some(format!("mimalloc-pprof {}", env!("CARGO_PKG_VERSION")));
    json::write(
        &File { schema: SCHEMA.into(), shared: Shared { frames: frames.collect() }, profiles, exporter },
        output,
    )
}

pub(super) fn read<R: Read>(lines: Lines<'_, R>, name: &str, limits: &Limits) -> Result<Profile, ReadError> {
    let file: File = json::read(BufReader::new(lines.into_rest()), name, "a speedscope profile", limits)?;
    let is_ours = file.exporter.as_deref().is_some_and(|exporter| exporter.starts_with("mimalloc-pprof"));
    let is_used = |entry: &&Entry| is_ours || entry.unit == "bytes";
    if !file.profiles.iter().any(|entry| is_used(&entry)) {
        let (what, advice) = ("a speedscope profile of something else than memory", "take a heap profile");
        return Err(ReadError::Unsupported { name: name.into(), what, advice });
    }
    let mut builder = Builder::new(Format::Speedscope, limits);
    fill(&file, is_ours, &mut builder).map_err(|fault| json::error(name, fault))?;
    Ok(builder.finish(&[UNTOLD]))
}

fn fill(file: &File, is_ours: bool, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let place = |place: &Place| match &place.file {
        Some(path) => Frame::named(place.name.as_str()).at(path.as_str(), place.line.unwrap_or(0)),
        None => Frame::named(place.name.as_str()),
    };
    let places: Vec<LocationId> =
        file.shared.frames.iter().map(|frame| builder.location(place(frame))).collect::<Result<_, _>>()?;
    for (number, entry) in file.profiles.iter().enumerate().filter(|(_, entry)| is_ours || entry.unit == "bytes") {
        let at = |message: &str| Fault::Damaged(format!("profile {number}: {message}"));
        if entry.kind != "sampled" {
            return Err(at("it has events instead of samples, which are not read"));
        }
        if entry.samples.len() != entry.weights.len() {
            return Err(at("it has not as many samples as weights"));
        }
        let (metric, unit) = column(&entry.name).filter(|_| is_ours).unwrap_or((Metric::Live, Unit::Bytes));
        let thread = (!is_ours).then(|| {
            let threads = &mut builder.profile().threads;
            threads.push(Thread { name: entry.name.as_str().into(), number: None });
            ThreadId(threads.len() as u32 - 1)
        });
        for (sample, weight) in entry.samples.iter().zip(&entry.weights) {
            let known = |&frame: &u32| places.get(frame as usize).copied();
            let stack: Option<Vec<LocationId>> = sample.iter().map(known).collect();
            let stack = builder.stack(&stack.ok_or_else(|| at("a frame that is not in the list"))?)?;
            let weight = json::amount(weight).ok_or_else(|| at("a weight that is no amount of memory"))?;
            let amount = match unit {
                Unit::Bytes => Amount { objects: 0, bytes: weight },
                Unit::Blocks => Amount { objects: weight, bytes: 0 },
            };
            builder.add(stack, thread, metric, amount)?;
        }
    }
    Ok(())
}

/// The metric and unit of one of our own profiles.
fn column(name: &str) -> Option<(Metric, Unit)> {
    let (word, unit) = name.split_once(' ')?;
    let &(metric, _) = STORED.iter().find(|(_, known)| *known == word)?;
    Some((metric, if unit == "blocks" { Unit::Blocks } else { Unit::Bytes }))
}
