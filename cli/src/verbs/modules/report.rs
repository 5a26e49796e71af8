//! What `mpp modules` shows, for people and for spreadsheets.

use mpp_profile::Metric;
use mpp_profile::analysis::{ModuleShare, Quality, Sum};
use mpp_profile::text::escaped;
use mpp_profile::units::count;

use crate::heading;
use crate::input::Loaded;
use crate::render::{Cell, Column, Table};
use crate::symbols::Found;

/// Most places that are named in text; all of them are in JSON, and with `--verbose`.
const PLACES: usize = 4;
/// Most problems of a file that are named in text.
const PROBLEMS: usize = 3;

/// One file.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) share: &'a ModuleShare,
    /// What the symbolizer found; `None` if it was not asked, because the profile has the names.
    pub(super) found: Option<&'a Found>,
}

/// All that is in one report.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) metric: Metric,
    pub(super) total: Sum,
    pub(super) quality: Quality,
    /// Files there are; `rows` may have fewer.
    pub(super) all: usize,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) is_verbose: bool,
}

impl Row<'_> {
    /// What the file is called. Not escaped.
    pub(super) fn path(&self) -> &str {
        match self.share.path.as_deref() {
            None => "(no mapping)",
            Some("") => "[anon]",
            Some(path) => path,
        }
    }

    /// The build id: as recorded, else that of the file that was found.
    pub(super) fn build_id(&self) -> Option<String> {
        let recorded = self.share.build_id.as_ref().map(ToString::to_string);
        recorded.or_else(|| self.found.and_then(|found| found.build_id.clone()))
    }

    /// Where the names come from, in one word.
    pub(super) fn source(&self) -> &'static str {
        match self.found {
            Some(found) if found.source != "none" => found.source,
            _ if self.share.resolved.lines + self.share.resolved.names > 0.0 => "profile",
            _ => "none",
        }
    }

    /// Whether anything is missing that better debug information would tell, or something went wrong. Where there is
    /// DWARF, only the odd function in assembly has no line (`_start`), and nothing can be done about it.
    fn lacks_something(&self) -> bool {
        let resolved = self.share.resolved;
        let has_problems = self.found.is_some_and(|found| !found.problems.is_empty());
        resolved.nothing >= 0.5 || (resolved.names >= 0.5 && !["dwarf", "pdb"].contains(&self.source())) || has_problems
    }

    /// What would help: a command, or advice in words. `again` is how the input is named. Not escaped.
    pub(super) fn to_do(&self, again: Option<&str>) -> Option<String> {
        let remedy = self.found?.remedy.as_deref()?;
        // Flags of this verb, and of all others that read profiles.
        Some(if remedy.starts_with("--") {
            format!("mpp modules {} {remedy}", again.unwrap_or_default()).replacen("  ", " ", 1)
        } else {
            remedy.to_owned()
        })
    }

    fn text(&self, again: Option<&str>, is_verbose: bool) -> Vec<String> {
        let deleted = if self.share.deleted { " (deleted)" } else { "" };
        let mut lines = vec![String::new()];
        let Some(found) = self.found else {
            lines.push(format!("{}{deleted}: not looked for", escaped(self.path())));
            return lines;
        };
        let unsure = if found.identity == Some("not verified") {
            "; no build id tells whether it is the right file"
        } else {
            ""
        };
        lines.push(format!("{}{deleted}: {}{unsure}", escaped(self.path()), escaped(&found.source_text)));
        let most = if is_verbose { usize::MAX } else { PROBLEMS };
        lines.extend(found.problems.iter().take(most).map(|problem| format!("  {}", escaped(problem))));
        if found.problems.len() > most {
            lines.push(format!("  {} more problems (see -v)", count((found.problems.len() - most) as u64)));
        }
        if self.lacks_something() && !found.looked_at.is_empty() {
            let most = if is_verbose { usize::MAX } else { PLACES };
            let places: Vec<String> =
                found.looked_at.iter().take(most).map(|place| escaped(place).to_string()).collect();
            let more = found.looked_at.len() - places.len();
            let more = if more > 0 { format!(" and {more} more (see -v)") } else { String::new() };
            lines.push(format!("  looked at: {}{more}", places.join(", ")));
        }
        lines.extend(self.to_do(again).iter().map(|to_do| format!("  to do: {}", escaped(to_do))));
        lines
    }
}

impl Shown<'_> {
    /// What is shown, and how far all of it is known.
    pub(super) fn header(&self) -> Vec<String> {
        let mut lines = vec![heading::total(&self.loaded.profile, self.metric, self.total)];
        lines.push(heading::source(self.loaded));
        lines.extend(heading::others(self.loaded));
        lines.push(heading::quality(&self.quality));
        lines
    }

    pub(super) fn again(&self) -> Option<&str> {
        self.loaded.again.as_deref()
    }

    /// One row for each file.
    pub(super) fn table(&self) -> Table {
        let columns = vec![
            Column::new("bytes", "bytes"),
            Column::new("bytes%", "bytes_percent"),
            Column::new("lines", "lines_percent"),
            Column::new("names", "names_percent"),
            Column::new("nothing", "nothing_percent"),
            Column::new("from", "source"),
            Column::for_programs("source_file"),
            Column::new("build id", "build_id"),
            Column::new("file", "file"),
            Column::for_programs("to_do"),
        ];
        Table { columns, rows: self.rows.iter().map(|row| self.cells(row)).collect() }
    }

    fn cells(&self, row: &Row<'_>) -> Vec<Cell> {
        let share = row.share;
        let part = |part: f64| Cell::Share { part: part.round() as u64, whole: share.bytes };
        let source_file = row.found.and_then(|found| found.source_file.clone()).unwrap_or_default();
        vec![
            Cell::Bytes(share.bytes),
            Cell::Share { part: share.bytes, whole: self.total.bytes },
            part(share.resolved.lines),
            part(share.resolved.names),
            part(share.resolved.nothing),
            Cell::Text(row.source().to_owned()),
            Cell::Text(source_file),
            Cell::Text(row.build_id().unwrap_or_default()),
            Cell::Text(row.path().to_owned()),
            Cell::Text(row.to_do(self.again()).unwrap_or_default()),
        ]
    }

    /// What is not shown; then, of each file whose names or lines are not complete, why, and what to do.
    pub(super) fn footer(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let missing = self.all - self.rows.len();
        if missing > 0 {
            let noun = if missing == 1 { "file" } else { "files" };
            lines.push(format!("{} more {noun} (see --limit)", count(missing as u64)));
        }
        lines.extend(heading::other_metric(&self.loaded.profile, self.metric));
        let told = self.rows.iter().filter(|row| self.is_verbose || row.lacks_something());
        lines.extend(told.flat_map(|row| row.text(self.again(), self.is_verbose)));
        lines
    }
}
