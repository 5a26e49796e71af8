//! Writes DHAT's JSON, version 2, for its viewer.

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Value, json};

use crate::analysis::location_label;
use crate::error::WriteError;
use crate::model::{Amount, Location, Metric, Profile, StackEnd, lookup_address};
use crate::text::escaped;

/// Writes a profile in which every block was recorded. Accesses are not known and said to be so.
pub(in super::super) fn write(profile: &Profile, output: impl Write) -> Result<(), WriteError> {
    let mut table = Frames::default();
    let mut points = Vec::new();
    let only_live = !profile.has_allocated();
    for sample in &profile.samples {
        let live = sample.amount(Metric::Live);
        let peak = sample.amount(Metric::Peak);
        // A point never holds more than was allocated there; rounded estimates may.
        let all = [if only_live { live } else { sample.amount(Metric::Allocated) }, live, peak];
        let all = all.into_iter().fold(Amount::default(), |most, amount| Amount {
            objects: most.objects.max(amount.objects),
            bytes: most.bytes.max(amount.bytes),
        });
        if all.bytes > 0 && [all, live, peak].iter().any(|amount| amount.objects == 0 && amount.bytes > 0) {
            let reason = "it tells bytes without numbers of blocks".to_owned();
            return Err(WriteError::Inexpressible { format: "DHAT", reason });
        }
        let stack = profile.stack(sample.stack);
        let mut frames: Vec<usize> = Vec::new();
        for &id in &*stack.locations {
            texts(profile, profile.location(id)).into_iter().for_each(|text| frames.push(table.number(text)));
        }
        if let StackEnd::Truncated(truncation) = &stack.end {
            frames.push(table.number(format!("[truncated: {}]", escaped(truncation.reason.as_text()))));
        }
        if frames.is_empty() {
            frames.push(table.number("[no stack]".into()));
        }
        points.push(json!({
            "tb": all.bytes, "tbk": all.objects, "tl": sample.lived,
            // What it held at its own peak is not known; at least this.
            "mb": live.bytes.max(peak.bytes), "mbk": live.objects.max(peak.objects),
            "gb": peak.bytes, "gbk": peak.objects, "eb": live.bytes, "ebk": live.objects, "fs": frames,
        }));
    }
    let number = |key: &str| profile.comment(key).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let unit = if profile.time_unit.is_empty() { "instrs" } else { &*profile.time_unit };
    let mega = if unit == "instrs" { "Minstr" } else { "s" };
    let file = json!({
        "dhatFileVersion": 2, "mode": "heap", "verb": "Allocated", "bklt": true, "bkacc": false, "tu": unit, "Mtu": mega,
        "tuth": 500, "cmd": profile.comment("command").unwrap_or("unknown"), "pid": number("pid"), "tg": number("peak_at"),
        "te": number("ended_at"), "pps": Value::Array(points), "ftbl": table.texts,
    });
    super::super::json::write(&file, output)
}

#[derive(Default)]
struct Frames {
    known: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Frames {
    fn number(&mut self, text: String) -> usize {
        *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() - 1
        })
    }
}

/// The texts of a location, innermost first.
fn texts(profile: &Profile, location: &Location) -> Vec<String> {
    let address = location.address;
    let text = |name: &str, place: String| match address {
        // Frames at one address are taken for inlined ones.
        0 => format!("{}{place}", escaped(name)),
        _ => format!("{address:#x}: {}{place}", escaped(name)),
    };
    if location.frames.is_empty() {
        let module =
            profile.module_of(location).map_or(String::new(), |module| format!(" (in {})", escaped(&module.path)));
        let name = if lookup_address(address) == 0 { location_label(profile, location) } else { "???".to_owned() };
        return vec![text(&name, module)];
    }
    let place = |file: &Option<std::sync::Arc<str>>, line| match file {
        Some(file) => format!(" ({}:{line})", escaped(file)),
        None => String::new(),
    };
    location.frames.iter().map(|frame| text(&frame.function, place(&frame.file, frame.line))).collect()
}
