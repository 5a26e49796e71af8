//! What `mpp growth` shows, for people and for spreadsheets.

use mpp_profile::Unit;
use mpp_profile::analysis::growth::{Series, Trend};
use mpp_profile::analysis::{Group, Quality};
use mpp_profile::units::{bytes, count, percent};

use crate::heading;
use crate::labels::labels;
use crate::render::spark::spark;
use crate::render::{Cell, Column, Table, signed};
use crate::selection::Names;

use super::GrowthArgs;
use super::load::Snapped;

/// Rows for people unless they want more.
const ROWS: usize = 20;

/// All that is in one report.
pub(super) struct Shown<'a> {
    pub(super) snapped: &'a Snapped,
    /// The rows to show.
    pub(super) rows: Vec<&'a Series>,
    /// Their names.
    pub(super) labels: Vec<String>,
    /// Rows that could be shown.
    pub(super) found: usize,
    unit: Unit,
    per: Per,
}

/// What rates are told for.
#[derive(Clone, Copy)]
struct Per {
    /// Seconds, or snapshots.
    length: f64,
    title: &'static str,
    short: &'static str,
}

impl Per {
    fn of(times: Option<&[f64]>) -> Per {
        let seconds = times.and_then(|times| Some(times.last()? - times.first()?));
        match seconds {
            None => Per { length: 1.0, title: "per step", short: " per snapshot" },
            Some(seconds) if seconds <= 300.0 => Per { length: 1.0, title: "per s", short: "/s" },
            Some(seconds) if seconds <= 18_000.0 => Per { length: 60.0, title: "per min", short: "/min" },
            Some(_) => Per { length: 3600.0, title: "per h", short: "/h" },
        }
    }

    fn rate(self, series: &Series) -> i64 {
        (series.slope * self.length).round() as i64
    }
}

pub(super) fn trend_word(trend: Trend) -> &'static str {
    match trend {
        Trend::Grows => "grows",
        Trend::LevelsOff => "levels",
        Trend::Rises => "rises",
        Trend::Falls => "falls",
        Trend::Flat => "flat",
    }
}

impl<'a> Shown<'a> {
    pub(super) fn of(args: &GrowthArgs, snapped: &'a Snapped, names: Names<'_>) -> Shown<'a> {
        let view = snapped.last.view;
        let whole = snapped.growth.total.values.iter().copied().max().unwrap_or(0);
        let is_shown = |row: &&Series| {
            let goes_up = matches!(row.trend, Trend::Grows | Trend::LevelsOff | Trend::Rises);
            (args.all_rows || goes_up) && args.rows.shows(row.change().unsigned_abs(), whole)
        };
        let found: Vec<&Series> = snapped.growth.rows.iter().filter(is_shown).collect();
        let rows: Vec<&Series> = found.iter().copied().take(args.rows.limit(args.report.format, ROWS)).collect();
        let is_function = |row: &Series| row.named && matches!(view.group, Group::Function | Group::Line);
        let items: Vec<(&str, bool)> = rows.iter().map(|row| (&*row.name, is_function(row))).collect();
        let labels = labels(&items, names);
        let per = Per::of(snapped.times.as_deref());
        Shown { snapped, rows, labels, found: found.len(), unit: view.unit, per }
    }

    fn print(&self) -> fn(u64) -> String {
        match self.unit {
            Unit::Bytes => bytes,
            Unit::Blocks => count,
        }
    }

    pub(super) fn header(&self) -> Vec<String> {
        let Snapped { growth, from, times, one_run, last, .. } = self.snapped;
        let (total, print) = (&growth.total, self.print());
        let end = |value: Option<&u64>| print(value.copied().unwrap_or(0));
        let spread =
            if total.error > 0.0 { format!(" ± {}", print(total.error.round() as u64)) } else { String::new() };
        let noun = if self.unit == Unit::Bytes { "" } else { " blocks" };
        let length = times.as_deref().and_then(|times| Some(times.last()? - times.first()?));
        let during = length.map(|length| format!(" in {}", duration(length))).unwrap_or_default();
        let mut lines = vec![format!(
            "{}: {}{spread}{noun}{during}, {}{}: {} at first, {} at last",
            heading::metric_word(last.view.metric),
            signed(total.change(), print),
            signed(self.per.rate(total), print),
            self.per.short,
            end(total.values.first()),
            end(total.values.last()),
        )];
        let basis = heading::basis(&last.loaded.profile, last.view.metric);
        lines.push(format!("from: {from}; the last: {basis}"));
        if !one_run && last.loaded.profile.is_sampled() {
            lines.push(
                "the snapshots are of several runs, or do not tell: each of them is subject to chance of its own"
                    .to_owned(),
            );
        }
        if last.filtered {
            lines.push("selected: a part of each, see the flags".to_owned());
        }
        lines.push(heading::quality(&Quality::of(&last.loaded.profile, last.view.metric)));
        lines
    }

    pub(super) fn footer(&self) -> Vec<String> {
        let print = self.print();
        let mut lines = Vec::new();
        let missing = self.found - self.rows.len();
        if missing > 0 {
            lines.push(format!("{missing} more {} (see --limit)", if missing == 1 { "row" } else { "rows" }));
        }
        let mut parts = Vec::new();
        for trend in [Trend::Grows, Trend::LevelsOff, Trend::Rises, Trend::Falls, Trend::Flat] {
            let rows = self.snapped.growth.rows.iter().filter(|row| row.trend == trend);
            let (number, sum) =
                rows.fold((0_u64, 0_i64), |(number, sum), row| (number + 1, sum.saturating_add(row.change())));
            let word = match (trend, number) {
                (Trend::Grows, 1) => "keeps growing",
                (Trend::Grows, _) => "keep growing",
                (Trend::LevelsOff, 1) => "levels off",
                (Trend::LevelsOff, _) => "level off",
                (Trend::Rises, 1) => "rises",
                (Trend::Rises, _) => "rise",
                (Trend::Falls, 1) => "falls",
                (Trend::Falls, _) => "fall",
                (Trend::Flat, _) => "flat",
            };
            if number > 0 {
                parts.push(format!("{} {word} ({})", count(number), signed(sum, print)));
            }
        }
        let noun = heading::rows_word(self.snapped.last.view.group);
        let text = if parts.is_empty() { "nothing was there at any time".to_owned() } else { parts.join(", ") };
        lines.push(format!("{noun}: {text}"));
        lines
    }

    pub(super) fn table(&self) -> Table {
        let [change, first, last] = match self.unit {
            Unit::Bytes => ["change_bytes", "first_bytes", "last_bytes"],
            Unit::Blocks => ["change_blocks", "first_blocks", "last_blocks"],
        };
        let has_error = self.rows.iter().any(|row| row.error > 0.0);
        let error = if has_error { Column::new("±", "error") } else { Column::for_programs("error") };
        let columns = vec![
            Column::new("", "trend"),
            Column::for_people(self.per.title),
            Column::for_programs("slope"),
            Column::new("change", change),
            error.spare(3),
            Column::new("first", first).spare(4),
            Column::new("last", last).spare(2),
            Column::for_people("upwards").spare(5),
            Column::for_programs("upwards"),
            Column::for_people("over time").spare(1),
            Column::new(heading_of(self.snapped.last.view.group), "name"),
            Column::for_people("file:line"),
            Column::for_programs("file"),
            Column::for_programs("line"),
            Column::for_programs("values"),
        ];
        let rows = self.rows.iter().zip(&self.labels).map(|(row, label)| self.cells(row, label)).collect();
        Table { columns, rows }
    }

    fn cells(&self, row: &Series, label: &str) -> Vec<Cell> {
        let unit = self.unit;
        let amount = |number: u64| if unit == Unit::Bytes { Cell::Bytes(number) } else { Cell::Count(number) };
        let change =
            |number: i64| if unit == Unit::Bytes { Cell::BytesChange(number) } else { Cell::CountChange(number) };
        let (file, line) = row.place.as_ref().map_or(("", 0), |(file, line)| (&**file, *line));
        let end = |value: Option<&u64>| amount(value.copied().unwrap_or(0));
        let values: Vec<String> = row.values.iter().map(u64::to_string).collect();
        vec![
            Cell::Text(trend_word(row.trend).to_owned()),
            change(self.per.rate(row)),
            Cell::Text(format!("{:.3}", row.slope)),
            change(row.change()),
            amount(row.error.round() as u64),
            end(row.values.first()),
            end(row.values.last()),
            Cell::Text(row.steadiness.map(|share| percent(share, 1.0)).unwrap_or_default()),
            Cell::Text(row.steadiness.map(|share| format!("{share:.4}")).unwrap_or_default()),
            Cell::Text(spark(&row.values)),
            Cell::Text(label.to_owned()),
            Cell::Text(if file.is_empty() { String::new() } else { heading::place(file, line) }),
            Cell::Text(file.to_owned()),
            Cell::Number(u64::from(line)),
            Cell::Text(values.join(" ")),
        ]
    }
}

fn heading_of(group: Group) -> &'static str {
    match group {
        Group::Function | Group::Line => "function",
        Group::File => "file",
        Group::Crate => "crate or library",
        Group::Library => "library",
        Group::Thread => "thread",
        Group::Size => "bytes of a block",
    }
}

/// `45.0 s`, `12.5 min`, `3.2 h`.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.1} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
