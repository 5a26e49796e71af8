//! What `mpp top --format json` prints.

use mpp_profile::Unit;
use mpp_profile::analysis::{Footprint, Row};
use serde::Serialize;

use crate::slice::Origin;

use crate::heading;
use crate::render::percent;

use super::report::Shown;

/// The report. A field keeps its name and meaning as long as `schema_version` stays.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    #[serde(flatten)]
    origin: Origin<'a>,
    format: String,
    /// Process ids, if the input is a recording.
    processes: &'a [u32],
    metric: &'static str,
    unit: &'static str,
    /// Mean bytes between two samples; 1 says that every block was recorded.
    sample_rate: u64,
    /// Recorded blocks.
    samples: u64,
    /// What percentages are of.
    whole_bytes: u64,
    whole_blocks: u64,
    /// The selected part; the flats of all rows add up to it.
    total_bytes: u64,
    total_blocks: u64,
    /// Standard errors of the totals.
    total_bytes_error: u64,
    total_blocks_error: u64,
    quality: DataQuality,
    /// Where the memory of the process was; missing if the profile does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Footprint>,
    /// Rows there are; `rows` may have fewer.
    rows_total: usize,
    rows: Vec<DataRow<'a>>,
}

/// Bytes by what is known about their stacks (three numbers) and about the function shown first (three numbers).
#[derive(Debug, Serialize)]
struct DataQuality {
    stack_complete_bytes: u64,
    stack_truncated_bytes: u64,
    stack_unknown_bytes: u64,
    with_line_bytes: u64,
    name_only_bytes: u64,
    unresolved_bytes: u64,
}

#[derive(Debug, Serialize)]
struct DataRow<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a str>,
    resolved: bool,
    flat_bytes: u64,
    flat_blocks: u64,
    cum_bytes: u64,
    cum_blocks: u64,
    flat_percent: f64,
    cum_percent: f64,
}

impl<'a> Data<'a> {
    /// The data of a report.
    pub(super) fn of(shown: &'a Shown<'a>) -> Data<'a> {
        let (profile, quality) = (&shown.selected.loaded.profile, shown.quality);
        let (total, whole) = (shown.sites.total, shown.selected.whole);
        let error = |unit| total.standard_error(unit).round() as u64;
        Data {
            schema: "mpp-top",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            origin: Origin::of(&shown.selected.loaded),
            format: profile.format.to_string(),
            processes: shown.selected.loaded.processes.as_ref().map_or(&[], |processes| &processes.shown),
            metric: heading::metric_word(shown.selected.view.metric),
            unit: if shown.selected.view.unit == Unit::Bytes { "bytes" } else { "blocks" },
            sample_rate: profile.sample_rate,
            samples: profile.recorded_blocks(shown.selected.view.metric),
            whole_bytes: whole.bytes,
            whole_blocks: whole.blocks,
            total_bytes: total.bytes,
            total_blocks: total.blocks,
            total_bytes_error: error(Unit::Bytes),
            total_blocks_error: error(Unit::Blocks),
            quality: DataQuality {
                stack_complete_bytes: quality.complete,
                stack_truncated_bytes: quality.truncated,
                stack_unknown_bytes: quality.unknown,
                with_line_bytes: quality.first_frame.lines.round() as u64,
                name_only_bytes: quality.first_frame.names.round() as u64,
                unresolved_bytes: quality.first_frame.nothing.round() as u64,
            },
            memory: Footprint::of(profile),
            rows_total: shown.sites.rows.len(),
            rows: shown.rows.iter().zip(&shown.labels).map(|(row, label)| DataRow::of(shown, row, label)).collect(),
        }
    }
}

impl<'a> DataRow<'a> {
    fn of(shown: &Shown<'_>, row: &'a Row, label: &'a str) -> DataRow<'a> {
        let unit = shown.selected.view.unit;
        // Four decimals, so that the text does not depend on the last bit of a division.
        let share = |part| (percent(part, shown.selected.whole.value(unit)) * 1e4).round() / 1e4;
        DataRow {
            name: label,
            file: row.place.as_ref().map(|(file, _)| &**file),
            line: row.place.as_ref().map(|(_, line)| *line).filter(|&line| line > 0),
            module: row.module.as_deref(),
            resolved: row.named,
            flat_bytes: row.flat.bytes,
            flat_blocks: row.flat.blocks,
            cum_bytes: row.cumulative.bytes,
            cum_blocks: row.cumulative.blocks,
            flat_percent: share(row.flat.value(unit)),
            cum_percent: share(row.cumulative.value(unit)),
        }
    }
}
