//! What `mpp diff --format json` prints.

use mpp_profile::Unit;
use serde::Serialize;

use crate::heading;

use super::report::{Shown, status_word};

/// The report. A field keeps its name and meaning as long as `schema_version` stays.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    old_source: String,
    new_source: String,
    metric: &'static str,
    unit: &'static str,
    /// What old numbers were multiplied by.
    scale: f64,
    old_bytes: u64,
    old_blocks: u64,
    new_bytes: u64,
    new_blocks: u64,
    change_bytes: i64,
    change_blocks: i64,
    /// Standard error of the change of the unit.
    change_error: u64,
    rows_total: usize,
    rows: Vec<DataRow<'a>>,
}

#[derive(Debug, Serialize)]
struct DataRow<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    resolved: bool,
    status: &'static str,
    old_bytes: u64,
    old_blocks: u64,
    new_bytes: u64,
    new_blocks: u64,
    change_bytes: i64,
    change_blocks: i64,
    change_error: u64,
}

impl<'a> Data<'a> {
    pub(super) fn of(shown: &'a Shown<'a>) -> Data<'a> {
        let (difference, view) = (shown.difference, shown.new.view);
        let [old_source, new_source] = shown.sources();
        let rows = shown.rows.iter().zip(&shown.labels).map(|(row, label)| DataRow {
            name: label,
            file: row.place.as_ref().map(|(file, _)| &**file),
            line: row.place.as_ref().map(|(_, line)| *line).filter(|&line| line > 0),
            resolved: row.named,
            status: status_word(row.status),
            old_bytes: row.old.bytes,
            old_blocks: row.old.blocks,
            new_bytes: row.new.bytes,
            new_blocks: row.new.blocks,
            change_bytes: row.change(Unit::Bytes),
            change_blocks: row.change(Unit::Blocks),
            change_error: row.error.round() as u64,
        });
        Data {
            schema: "mpp-diff",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            old_source,
            new_source,
            metric: heading::metric_word(view.metric),
            unit: if view.unit == Unit::Bytes { "bytes" } else { "blocks" },
            scale: difference.scale,
            old_bytes: difference.old.bytes,
            old_blocks: difference.old.blocks,
            new_bytes: difference.new.bytes,
            new_blocks: difference.new.blocks,
            change_bytes: difference.change(Unit::Bytes),
            change_blocks: difference.change(Unit::Blocks),
            change_error: difference.error.round() as u64,
            rows_total: shown.changed,
            rows: rows.collect(),
        }
    }
}
