//! The numbers as a table and as data.

use std::collections::BTreeMap;

use mpp_profile::analysis::{Footprint, Quality, Sum, Weights};
use mpp_profile::text::escaped;
use mpp_profile::units::{count, duration};
use mpp_profile::{Metric, Profile, Unit};
use serde::Serialize;

use crate::slice::Origin;

use crate::heading;
use crate::render::{Cell, Column, Table, percent};
use crate::selection::Selected;

/// Some lines about one thing.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) lines: Vec<Line>,
}

/// A line.
#[derive(Debug)]
pub(super) struct Line {
    /// Not escaped.
    name: String,
    bytes: u64,
    /// Not known of libraries.
    blocks: Option<u64>,
    whole: u64,
    in_bytes: bool,
}

impl Line {
    /// Of which `whole` is in the unit of the report.
    pub(super) fn new(name: String, sum: Sum, whole: u64) -> Line {
        Line { name, bytes: sum.bytes, blocks: Some(sum.blocks), whole, in_bytes: false }
    }

    /// Of bytes only.
    pub(super) fn of_bytes(name: String, bytes: u64, whole: u64) -> Line {
        Line { name, bytes, blocks: None, whole, in_bytes: true }
    }

    fn part(&self, unit: Unit) -> u64 {
        match (unit, self.blocks) {
            (Unit::Blocks, Some(blocks)) if !self.in_bytes => blocks,
            _ => self.bytes,
        }
    }
}

pub(super) fn table(sections: &[Section], unit: Unit) -> Table {
    let columns = vec![
        Column::for_programs("section"),
        Column::for_people(""),
        Column::new("", "name"),
        Column::new("bytes", "bytes"),
        Column::new("share", "percent"),
        Column::new("blocks", "blocks"),
    ];
    let mut rows = Vec::new();
    for section in sections {
        for (index, line) in section.lines.iter().enumerate() {
            let title = if index == 0 { section.title } else { "" };
            rows.push(vec![
                Cell::Text(section.title.to_owned()),
                Cell::Text(title.to_owned()),
                Cell::Text(line.name.clone()),
                Cell::Bytes(line.bytes),
                Cell::Share { part: line.part(unit), whole: line.whole },
                line.blocks.map_or(Cell::Nothing, Cell::Count),
            ]);
        }
    }
    Table { columns, rows }
}

/// `mean lifetime of a block: 12.3 ms`; `None` if the profile does not tell times.
pub(super) fn lifetime(profile: &Profile) -> Option<String> {
    let mean = mean_lifetime(profile)?;
    let unit = &*profile.time_unit;
    let text = match unit {
        "µs" => duration(std::time::Duration::from_micros(mean as u64)),
        "ms" => duration(std::time::Duration::from_millis(mean as u64)),
        unit => format!("{} {}", count(mean as u64), escaped(unit)),
    };
    Some(format!("mean lifetime of a block: {text} (those that are live count up to the end)"))
}

/// Of all blocks, not of those that were sampled, which are rather the large ones.
fn mean_lifetime(profile: &Profile) -> Option<f64> {
    let weights = Weights::of(profile, Metric::Allocated);
    let (mut lived, mut blocks) = (0.0, 0.0);
    for (sample, sum) in profile.samples.iter().zip(weights.samples()) {
        let stands_for = sum.blocks as f64 / (sample.allocated.objects as f64).max(1.0);
        lived += sample.lived as f64 * stands_for;
        blocks += sum.blocks as f64;
    }
    (blocks > 0.0 && lived > 0.0 && !profile.time_unit.is_empty()).then(|| lived / blocks)
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    #[serde(flatten)]
    origin: Origin<'a>,
    metric: &'static str,
    unit: &'static str,
    sample_rate: u64,
    sections: BTreeMap<&'static str, Vec<DataLine<'a>>>,
    /// In `time_unit`; null if the profile does not tell it.
    mean_lifetime: Option<f64>,
    time_unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Footprint>,
    stack_complete_bytes: u64,
    stack_truncated_bytes: u64,
    stack_unknown_bytes: u64,
    with_line_bytes: u64,
    name_only_bytes: u64,
    unresolved_bytes: u64,
}

#[derive(Debug, Serialize)]
struct DataLine<'a> {
    name: &'a str,
    bytes: u64,
    blocks: Option<u64>,
    percent: f64,
}

impl<'a> Data<'a> {
    pub(super) fn of(selected: &'a Selected, sections: &'a [Section], quality: &Quality) -> Data<'a> {
        let (profile, unit) = (&selected.loaded.profile, selected.view.unit);
        let line = |line: &'a Line| DataLine {
            name: &line.name,
            bytes: line.bytes,
            blocks: line.blocks,
            percent: (percent(line.part(unit), line.whole) * 1e4).round() / 1e4,
        };
        let section = |section: &'a Section| (section.title, section.lines.iter().map(line).collect());
        Data {
            schema: "mpp-stats",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            origin: Origin::of(&selected.loaded),
            metric: heading::metric_word(selected.view.metric),
            unit: if unit == Unit::Bytes { "bytes" } else { "blocks" },
            sample_rate: profile.sample_rate,
            sections: sections.iter().map(section).collect(),
            mean_lifetime: mean_lifetime(profile),
            time_unit: &profile.time_unit,
            memory: Footprint::of(profile),
            stack_complete_bytes: quality.complete,
            stack_truncated_bytes: quality.truncated,
            stack_unknown_bytes: quality.unknown,
            with_line_bytes: quality.first_frame.lines.round() as u64,
            name_only_bytes: quality.first_frame.names.round() as u64,
            unresolved_bytes: quality.first_frame.nothing.round() as u64,
        }
    }
}
