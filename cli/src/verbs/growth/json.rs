//! What `mpp growth --format json` prints.

use mpp_profile::Unit;
use mpp_profile::analysis::growth::Series;
use mpp_profile::text::escaped;
use serde::Serialize;

use crate::heading;

use super::load::Snapped;
use super::report::{Shown, trend_word};

/// The report. A field keeps its name and meaning as long as `schema_version` stays.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    metric: &'static str,
    /// What all numbers are of: bytes or blocks.
    unit: &'static str,
    /// All are of one run of a process.
    one_run: bool,
    snapshots: Vec<DataSnapshot>,
    total: DataRow<'a>,
    rows_total: usize,
    rows: Vec<DataRow<'a>>,
}

#[derive(Debug, Serialize)]
struct DataSnapshot {
    source: String,
    /// Since the first, or since the start of a timeline; missing if the order is all there is.
    seconds: Option<f64>,
    total: u64,
}

#[derive(Debug, Serialize)]
struct DataRow<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    resolved: bool,
    trend: &'static str,
    /// More each second; each snapshot where those tell no time.
    slope: f64,
    change: i64,
    /// Its standard error.
    change_error: u64,
    /// Of all movement, from 0 to 1.
    upwards: Option<f64>,
    /// One for each snapshot.
    values: &'a [u64],
}

impl<'a> Data<'a> {
    pub(super) fn of(shown: &'a Shown<'a>) -> Data<'a> {
        let Snapped { growth, sources, times, one_run, last, .. } = shown.snapped;
        let snapshot = |(number, source): (usize, &String)| DataSnapshot {
            source: escaped(source).to_string(),
            seconds: times.as_ref().map(|times| times[number]),
            total: growth.total.values[number],
        };
        Data {
            schema: "mpp-growth",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            metric: heading::metric_word(last.view.metric),
            unit: if last.view.unit == Unit::Bytes { "bytes" } else { "blocks" },
            one_run: *one_run,
            snapshots: sources.iter().enumerate().map(snapshot).collect(),
            total: data_row(&growth.total, "total"),
            rows_total: shown.found,
            rows: shown.rows.iter().zip(&shown.labels).map(|(row, label)| data_row(row, label)).collect(),
        }
    }
}

fn data_row<'a>(row: &'a Series, name: &'a str) -> DataRow<'a> {
    DataRow {
        name,
        file: row.place.as_ref().map(|(file, _)| &**file),
        line: row.place.as_ref().map(|(_, line)| *line).filter(|&line| line > 0),
        resolved: row.named,
        trend: trend_word(row.trend),
        slope: row.slope,
        change: row.change(),
        change_error: row.error.round() as u64,
        upwards: row.steadiness,
        values: &row.values,
    }
}
