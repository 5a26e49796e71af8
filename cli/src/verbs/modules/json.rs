//! What `mpp modules --format json` prints.

use serde::Serialize;

use crate::slice::Origin;

use crate::heading;

use super::report::{Row, Shown};

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
    /// All bytes of the metric.
    total_bytes: u64,
    /// The same by what is known about the function shown first.
    with_line_bytes: u64,
    name_only_bytes: u64,
    unresolved_bytes: u64,
    /// Files there are; `modules` may have fewer.
    modules_total: usize,
    modules: Vec<DataModule<'a>>,
}

#[derive(Debug, Serialize)]
struct DataModule<'a> {
    file: &'a str,
    /// As recorded, else that of the file that was found.
    build_id: Option<String>,
    deleted: bool,
    /// Of all stacks that go through its code.
    bytes: u64,
    lines_bytes: u64,
    names_bytes: u64,
    nothing_bytes: u64,
    /// `dwarf`, `symtab`, `profile`, `none` and the like; and the file, if it is known.
    symbols: &'static str,
    symbols_file: Option<&'a str>,
    /// `build-id`, `mapped` or `not verified`; null if no file was found.
    identity: Option<&'static str>,
    /// In order.
    looked_at: &'a [String],
    problems: &'a [String],
    /// A command, or advice in words.
    to_do: Option<String>,
}

impl<'a> Data<'a> {
    /// The data of a report.
    pub(super) fn of(shown: &'a Shown<'a>) -> Data<'a> {
        let (loaded, quality) = (shown.loaded, &shown.quality);
        Data {
            schema: "mpp-modules",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            origin: Origin::of(loaded),
            format: loaded.profile.format.to_string(),
            processes: loaded.processes.as_ref().map_or(&[], |processes| &processes.shown),
            metric: heading::metric_word(shown.metric),
            total_bytes: shown.total.bytes,
            with_line_bytes: quality.first_frame.lines.round() as u64,
            name_only_bytes: quality.first_frame.names.round() as u64,
            unresolved_bytes: quality.first_frame.nothing.round() as u64,
            modules_total: shown.all,
            modules: shown.rows.iter().map(|row| DataModule::of(row, shown.again())).collect(),
        }
    }
}

impl<'a> DataModule<'a> {
    fn of(row: &'a Row<'a>, again: Option<&str>) -> DataModule<'a> {
        let resolved = row.share.resolved;
        DataModule {
            file: row.path(),
            build_id: row.build_id(),
            deleted: row.share.deleted,
            bytes: row.share.bytes,
            lines_bytes: resolved.lines.round() as u64,
            names_bytes: resolved.names.round() as u64,
            nothing_bytes: resolved.nothing.round() as u64,
            symbols: row.source(),
            symbols_file: row.found.and_then(|found| found.source_file.as_deref()),
            identity: row.found.and_then(|found| found.identity),
            looked_at: row.found.map_or(&[], |found| &found.looked_at),
            problems: row.found.map_or(&[], |found| &found.problems),
            to_do: row.to_do(again),
        }
    }
}
