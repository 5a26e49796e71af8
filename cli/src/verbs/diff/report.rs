//! What `mpp diff` shows, for people and for spreadsheets.

use mpp_profile::Unit;
use mpp_profile::analysis::diff::{Change, Difference, Status};
use mpp_profile::analysis::{Group, Quality};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count, percent};

use crate::heading;
use crate::labels::labels;
use crate::render::{Cell, Column, Format, Table, signed};
use crate::selection::{Names, Selected};

use super::DiffArgs;

/// Rows for people unless they want more.
const ROWS: usize = 20;

/// All that is in one report.
pub(super) struct Shown<'a> {
    pub(super) old: &'a Selected,
    pub(super) new: &'a Selected,
    pub(super) difference: &'a Difference,
    /// The rows to show.
    pub(super) rows: Vec<&'a Change>,
    /// Their names.
    pub(super) labels: Vec<String>,
    /// Changed rows there are.
    pub(super) changed: usize,
    unit: Unit,
}

pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Grown => "grown",
        Status::Shrunk => "shrunk",
        Status::New => "new",
        Status::Gone => "gone",
        Status::Same => "same",
    }
}

impl<'a> Shown<'a> {
    pub(super) fn of(
        args: &DiffArgs,
        old: &'a Selected,
        new: &'a Selected,
        difference: &'a Difference,
        format: Format,
        names: [Names<'_>; 2],
    ) -> Shown<'a> {
        let unit = new.view.unit;
        let whole = difference.old.value(unit).max(difference.new.value(unit));
        let is_shown = |row: &&Change| {
            (args.all_rows || row.status != Status::Same) && args.rows.shows(row.change(unit).unsigned_abs(), whole)
        };
        let changed = difference.rows.iter().filter(is_shown).count();
        let rows: Vec<&Change> = difference.rows.iter().filter(is_shown).take(args.rows.limit(format, ROWS)).collect();
        let is_function = |row: &Change| row.named && matches!(new.view.group, Group::Function | Group::Line);
        let items: Vec<(&str, bool)> = rows.iter().map(|row| (&*row.name, is_function(row))).collect();
        // What is gone is known by the old profile only.
        let [of_old, of_new] = names.map(|names| labels(&items, names));
        let pairs = rows.iter().zip(of_old.into_iter().zip(of_new));
        let labels = pairs.map(|(row, (old, new))| if row.status == Status::Gone { old } else { new }).collect();
        Shown { old, new, difference, rows, labels, changed, unit }
    }

    fn print(&self) -> fn(u64) -> String {
        match self.unit {
            Unit::Bytes => bytes,
            Unit::Blocks => count,
        }
    }

    pub(super) fn header(&self) -> Vec<String> {
        let (difference, unit, print) = (self.difference, self.unit, self.print());
        let (old, new, change) = (difference.old.value(unit), difference.new.value(unit), difference.change(unit));
        let error = difference.error;
        let spread = if error > 0.0 { format!(" ± {}", print(error.round() as u64)) } else { String::new() };
        let share = match (old, change) {
            (0, 0) => String::new(),
            (0, _) => " (there was nothing)".to_owned(),
            _ => format!(" ({} of the old total)", signed_percent(change, old)),
        };
        let word = heading::metric_word(self.new.view.metric);
        let noun = if unit == Unit::Bytes { "" } else { " blocks" };
        let mut lines = vec![format!(
            "{word}: {}{spread}{noun}{share}: {} before, {} now",
            signed(change, print),
            print(old),
            print(new)
        )];
        for (name, side) in [("old", self.old), ("new", self.new)] {
            let profile = &side.loaded.profile;
            let source = heading::source(&side.loaded);
            let basis = heading::basis(profile, side.view.metric);
            lines.push(format!("{name}: {}; {basis}", source.trim_start_matches("from: ")));
        }
        if difference.scale != 1.0 {
            lines.push(format!(
                "normalized: old numbers are multiplied by {:.4}, so that totals are equal",
                difference.scale
            ));
        }
        if self.old.filtered || self.new.filtered {
            lines.push("selected: a part of both, see the flags".to_owned());
        }
        for (name, side) in [("old", self.old), ("new", self.new)] {
            let quality = heading::quality(&Quality::of(&side.loaded.profile, side.view.metric));
            lines.push(format!("{name} {quality}"));
        }
        lines
    }

    pub(super) fn footer(&self) -> Vec<String> {
        let (unit, print) = (self.unit, self.print());
        let mut lines = Vec::new();
        let missing = self.changed - self.rows.len();
        if missing > 0 {
            lines.push(format!("{missing} more rows (see --limit)"));
        }
        let mut parts = Vec::new();
        for status in [Status::Grown, Status::Shrunk, Status::New, Status::Gone] {
            let of_status: Vec<&Change> = self.difference.rows.iter().filter(|row| row.status == status).collect();
            let sum = of_status.iter().fold(0_i64, |sum, row| sum.saturating_add(row.change(unit)));
            if !of_status.is_empty() {
                parts.push(format!("{} {} ({})", of_status.len(), status_word(status), signed(sum, print)));
            }
        }
        let same: Vec<&Change> = self.difference.rows.iter().filter(|row| row.status == Status::Same).collect();
        let chance: Vec<&&Change> = same.iter().filter(|row| row.change(unit) != 0).collect();
        if same.len() > chance.len() {
            parts.push(format!("{} the same", same.len() - chance.len()));
        }
        if !chance.is_empty() {
            let sum = chance.iter().fold(0_i64, |sum, row| sum.saturating_add(row.change(unit)));
            parts.push(format!("{} that may be chance ({})", chance.len(), signed(sum, print)));
        }
        let noun = heading::rows_word(self.new.view.group);
        lines.push(if parts.is_empty() {
            "nothing to compare".to_owned()
        } else {
            format!("{noun}: {}", parts.join(", "))
        });
        lines
    }

    pub(super) fn table(&self) -> Table {
        let [change, old, new] = match self.unit {
            Unit::Bytes => ["change_bytes", "old_bytes", "new_bytes"],
            Unit::Blocks => ["change_blocks", "old_blocks", "new_blocks"],
        };
        let has_error = self.rows.iter().any(|row| row.error > 0.0);
        let error = if has_error { Column::new("±", "error") } else { Column::for_programs("error") };
        let columns = vec![
            Column::new("change", change),
            error,
            Column::new("", "status"),
            Column::new("old", old),
            Column::new("new", new),
            Column::new("function", "function"),
            Column::for_people("file:line"),
            Column::for_programs("file"),
            Column::for_programs("line"),
        ];
        let rows = self.rows.iter().zip(&self.labels).map(|(row, label)| self.cells(row, label)).collect();
        Table { columns, rows }
    }

    fn cells(&self, row: &Change, label: &str) -> Vec<Cell> {
        let unit = self.unit;
        let amount = |number: u64| if unit == Unit::Bytes { Cell::Bytes(number) } else { Cell::Count(number) };
        let change =
            |number: i64| if unit == Unit::Bytes { Cell::BytesChange(number) } else { Cell::CountChange(number) };
        let (file, line) = row.place.as_ref().map_or(("", 0), |(file, line)| (&**file, *line));
        let is_there = |number: u64| if number == 0 { Cell::Nothing } else { amount(number) };
        vec![
            change(row.change(unit)),
            amount(row.error.round() as u64),
            Cell::Text(status_word(row.status).to_owned()),
            is_there(row.old.value(unit)),
            is_there(row.new.value(unit)),
            Cell::Text(label.to_owned()),
            Cell::Text(if file.is_empty() { String::new() } else { heading::place(file, line) }),
            Cell::Text(file.to_owned()),
            Cell::Count(u64::from(line)),
        ]
    }

    /// Where both come from, for programs.
    pub(super) fn sources(&self) -> [String; 2] {
        [self.old, self.new].map(|side| escaped(&side.loaded.source).to_string())
    }
}

/// `+12.5%`.
fn signed_percent(change: i64, old: u64) -> String {
    let share = percent(change as f64, old as f64);
    if change > 0 { format!("+{share}") } else { share }
}
