//! The JSON of the Firefox profiler (<https://profiler.firefox.com>), in its processed form.
//!
//! One thread for each metric and unit, called `live bytes`, `allocated blocks` and so on. Of other writers, threads whose samples weigh
//! bytes are read as live memory.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Limits;
use super::lines::{Fault, Lines};
use super::named::{Builder, Named, STORED};
use crate::error::{ReadError, WriteError};
use crate::model::{Amount, Format, Frame, LocationId, Metric, Profile, Thread, ThreadId, Unit};

const PRODUCT: &str = "mimalloc-pprof";
const UNTOLD: &str = "Firefox profiles do not say whether their numbers are estimates";
/// The version of the processed form that is written: strings are in each thread.
const VERSION: u32 = 49;

pub(super) fn write(profile: &Profile, output: impl Write) -> Result<(), WriteError> {
    let named = Named::of(profile);
    let mut threads = Vec::new();
    for (_, word, weights) in &named.columns {
        for (unit, suffix, kind) in [(Unit::Bytes, "bytes", "bytes"), (Unit::Blocks, "blocks", "samples")] {
            let mut stacks = Stacks::default();
            let (mut places, mut amounts) = (Vec::new(), Vec::new());
            for (stack, sum) in named.stacks.iter().zip(weights.samples()).filter(|(_, sum)| sum.value(unit) > 0) {
                places.push(stack.iter().fold(None, |prefix, &frame| Some(stacks.number(prefix, frame))));
                amounts.push(sum.value(unit));
            }
            threads.push(thread(&named, &format!("{word} {suffix}"), &stacks, kind, &places, &amounts));
        }
    }
    let file = json!({
        "meta": {
            "interval": 1, "startTime": 0, "processType": 0, "product": PRODUCT, "stackwalk": 1, "version": 27,
            "preprocessedProfileVersion": VERSION, "symbolicated": true, "markerSchema": [], "debug": false,
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
            "importedFrom": format!("{PRODUCT} {}", env!("CARGO_PKG_VERSION")),
        },
        "libs": [],
        "pages": [],
        "threads": threads,
    });
    super::json::write(&file, output)
}

/// The tree of stacks: each is a frame and the stack of its caller.
#[derive(Default)]
struct Stacks {
    known: HashMap<(Option<u32>, u32), u32>,
    prefixes: Vec<Option<u32>>,
    frames: Vec<u32>,
}

impl Stacks {
    fn number(&mut self, prefix: Option<u32>, frame: u32) -> u32 {
        *self.known.entry((prefix, frame)).or_insert_with(|| {
            self.prefixes.push(prefix);
            self.frames.push(frame);
            self.frames.len() as u32 - 1
        })
    }
}

fn thread(named: &Named, name: &str, stacks: &Stacks, kind: &str, places: &[Option<u32>], amounts: &[u64]) -> Value {
    let mut strings: Vec<&str> = Vec::new();
    let mut known = HashMap::new();
    let mut string = |text| {
        *known.entry(text).or_insert_with(|| {
            strings.push(text);
            strings.len() - 1
        })
    };
    let count = named.frames.len();
    let functions: Vec<usize> = named.frames.iter().map(|frame| string(&*frame.function)).collect();
    let files: Vec<Option<usize>> = named.frames.iter().map(|frame| frame.file.as_deref().map(&mut string)).collect();
    let lines: Vec<Option<u32>> = named.frames.iter().map(|frame| (frame.line > 0).then_some(frame.line)).collect();
    let all = |value: Value| vec![value; count];
    let none = || all(Value::Null);
    json!({
        "name": name, "processType": "default", "processName": PRODUCT, "isMainThread": true, "pid": "0", "tid": 0,
        "processStartupTime": 0, "processShutdownTime": null, "registerTime": 0, "unregisterTime": null, "pausedRanges": [],
        "samples": {
            "stack": places, "time": (0..places.len()).collect::<Vec<_>>(), "weight": amounts, "weightType": kind,
            "length": places.len(),
        },
        "markers": {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0},
        "stackTable": {
            "frame": stacks.frames, "prefix": stacks.prefixes, "category": vec![0; stacks.frames.len()],
            "subcategory": vec![0; stacks.frames.len()], "length": stacks.frames.len(),
        },
        "frameTable": {
            "address": all((-1).into()), "inlineDepth": all(0.into()), "category": none(), "subcategory": none(),
            "func": (0..count).collect::<Vec<_>>(), "nativeSymbol": none(), "innerWindowID": none(),
            "implementation": none(), "line": lines, "column": none(), "length": count,
        },
        "funcTable": {
            "isJS": all(false.into()), "relevantForJS": all(false.into()), "name": functions, "resource": all((-1).into()),
            "fileName": files, "lineNumber": none(), "columnNumber": none(), "length": count,
        },
        "resourceTable": {"lib": [], "name": [], "host": [], "type": [], "length": 0},
        "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
        "stringArray": strings,
    })
}

#[derive(Deserialize)]
struct File {
    meta: Meta,
    threads: Vec<Part>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    product: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    name: String,
    samples: Samples,
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    #[serde(default)]
    string_array: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    #[serde(default)]
    stack: Vec<Option<u32>>,
    #[serde(default)]
    weight: Option<Vec<serde_json::Number>>,
    #[serde(default)]
    weight_type: Option<String>,
}

#[derive(Deserialize)]
struct StackTable {
    frame: Vec<u32>,
    #[serde(default)]
    prefix: Vec<Option<u32>>,
}

#[derive(Deserialize)]
struct FrameTable {
    func: Vec<u32>,
    #[serde(default)]
    line: Vec<Option<u32>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    name: Vec<u32>,
    #[serde(default)]
    file_name: Vec<Option<u32>>,
}

pub(super) fn read<R: Read>(lines: Lines<'_, R>, name: &str, limits: &Limits) -> Result<Profile, ReadError> {
    let file: File = super::json::read(BufReader::new(lines.into_rest()), name, "a Firefox profile", limits)?;
    let is_ours = file.meta.product == PRODUCT;
    let weighs_bytes = |part: &Part| part.samples.weight_type.as_deref() == Some("bytes");
    if !is_ours && !file.threads.iter().any(weighs_bytes) {
        let (what, advice) = ("a Firefox profile of something else than memory", "take a heap profile");
        return Err(ReadError::Unsupported { name: name.into(), what, advice });
    }
    let mut builder = Builder::new(Format::Firefox, limits);
    for (number, part) in file.threads.iter().enumerate().filter(|(_, part)| is_ours || weighs_bytes(part)) {
        let outcome = fill(part, is_ours, &mut builder).map_err(|fault| match fault {
            Fault::Damaged(message) => Fault::Damaged(format!("thread {number}: {message}")),
            large => large,
        });
        outcome.map_err(|fault| super::json::error(name, fault))?;
    }
    Ok(builder.finish(&[UNTOLD]))
}

fn fill(part: &Part, is_ours: bool, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let wrong = |what: &str| Fault::Damaged(format!("{what} that is not in its table"));
    let mut places: Vec<LocationId> = Vec::new();
    for (index, &function) in part.frame_table.func.iter().enumerate() {
        let function = function as usize;
        let text = |number: u32| part.string_array.get(number as usize).ok_or_else(|| wrong("a string"));
        let name = text(*part.func_table.name.get(function).ok_or_else(|| wrong("a function"))?)?;
        let file = part.func_table.file_name.get(function).copied().flatten().map(text).transpose()?;
        let line = part.frame_table.line.get(index).copied().flatten().unwrap_or(0);
        let frame = Frame::named(name.as_str());
        places.push(builder.location(match file {
            Some(file) => frame.at(file.as_str(), line),
            None => frame,
        })?);
    }
    let known = STORED.iter().find_map(|&(metric, word)| match part.name.strip_prefix(word)? {
        " bytes" => Some((metric, Unit::Bytes)),
        " blocks" => Some((metric, Unit::Blocks)),
        _ => None,
    });
    let (metric, unit) = known.filter(|_| is_ours).unwrap_or((Metric::Live, Unit::Bytes));
    let thread = (!is_ours).then(|| {
        let threads = &mut builder.profile().threads;
        threads.push(Thread { name: part.name.as_str().into(), number: None });
        ThreadId(threads.len() as u32 - 1)
    });
    let weights = part.samples.weight.as_deref().unwrap_or(&[]);
    if weights.len() != part.samples.stack.len() {
        return Err(Fault::Damaged("it has not as many samples as weights".into()));
    }
    for (stack, weight) in part.samples.stack.iter().zip(weights) {
        let mut frames = Vec::new();
        let mut next = *stack;
        while let Some(number) = next {
            let number = number as usize;
            let frame = *part.stack_table.frame.get(number).ok_or_else(|| wrong("a stack"))?;
            frames.push(*places.get(frame as usize).ok_or_else(|| wrong("a frame"))?);
            next = part.stack_table.prefix.get(number).copied().flatten();
            // Callers come first in the table, so this ends.
            if next.is_some_and(|next| next as usize >= number) {
                return Err(Fault::Damaged("a stack that comes before its caller".into()));
            }
        }
        frames.reverse();
        let stack = builder.stack(&frames)?;
        let weight = super::json::amount(weight);
        let weight = weight.ok_or_else(|| Fault::Damaged("a weight that is no amount of memory".into()))?;
        let amount = match unit {
            Unit::Bytes => Amount { objects: 0, bytes: weight },
            Unit::Blocks => Amount { objects: weight, bytes: 0 },
        };
        builder.add(stack, thread, metric, amount)?;
    }
    Ok(())
}
