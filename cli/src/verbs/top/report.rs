//! What `mpp top` shows, for people and for spreadsheets: lines above, the table, lines below.

use mpp_profile::Unit;
use mpp_profile::analysis::{Group, Quality, Row, Table as Sites};
use mpp_profile::units::{count, percent};

use crate::heading;
use crate::render::{Cell, Column, Table};
use crate::selection::Selected;

/// All that is in one report.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    pub(super) selected: &'a Selected,
    /// The table of what was selected.
    pub(super) sites: &'a Sites,
    pub(super) quality: &'a Quality,
    /// The rows of `sites` to show.
    pub(super) rows: Vec<&'a Row>,
    /// Their names.
    pub(super) labels: Vec<String>,
}

impl Shown<'_> {
    /// What is shown, and how far it can be trusted.
    pub(super) fn header(&self) -> Vec<String> {
        let mut lines = heading::lines(self.selected, self.sites.total, self.quality);
        if self.rows_are_functions() {
            lines.extend(heading::nameless(&self.selected.loaded, self.sites, self.selected.view.metric));
        }
        lines
    }

    /// What is not shown.
    pub(super) fn footer(&self) -> Vec<String> {
        let unit = self.selected.view.unit;
        let mut lines = Vec::new();
        let missing = self.sites.rows.len() - self.rows.len();
        if missing > 0 {
            let shown = self.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.flat.value(unit)));
            let total = self.sites.total.value(unit);
            let share = percent(total.saturating_sub(shown) as f64, total as f64);
            let noun = if missing == 1 { "row" } else { "rows" };
            lines.push(format!("{} more {noun} with {share} of flat (see --limit)", count(missing as u64)));
        }
        lines.extend(heading::other_metric(&self.selected.loaded.profile, self.selected.view.metric));
        lines
    }

    /// One row for each of `rows`.
    pub(super) fn table(&self) -> Table {
        let rows = self.rows.iter().zip(&self.labels).map(|(row, label)| self.cells(row, label)).collect();
        Table { columns: self.columns(), rows }
    }

    fn rows_are_functions(&self) -> bool {
        matches!(self.selected.view.group, Group::Function | Group::Line)
    }

    fn columns(&self) -> Vec<Column> {
        let (flat, cumulative, other) = match self.selected.view.unit {
            Unit::Bytes => ("flat_bytes", "cum_bytes", Column::new("blocks", "flat_blocks").spare(3)),
            Unit::Blocks => ("flat_blocks", "cum_blocks", Column::new("bytes", "flat_bytes").spare(3)),
        };
        let name = match self.selected.view.group {
            Group::Function | Group::Line => Column::new("function", "function"),
            Group::File => Column::new("file", "name"),
            Group::Crate => Column::new("crate or library", "name"),
            Group::Library => Column::new("library", "name"),
            Group::Thread => Column::new("thread", "name"),
            Group::Size => Column::new("bytes of a block", "name"),
        };
        let mut columns = vec![
            Column::new("flat", flat),
            Column::new("flat%", "flat_percent"),
            Column::new("cum", cumulative).spare(1),
            Column::new("cum%", "cum_percent").spare(2),
            other,
            name,
        ];
        if self.rows_are_functions() {
            let place = [Column::for_people("file:line"), Column::for_programs("file"), Column::for_programs("line")];
            columns.extend(place);
        }
        columns
    }

    fn cells(&self, row: &Row, label: &str) -> Vec<Cell> {
        let unit = self.selected.view.unit;
        let (amount, other): (fn(u64) -> Cell, _) = match unit {
            Unit::Bytes => (Cell::Bytes, Cell::Count(row.flat.blocks)),
            Unit::Blocks => (Cell::Count, Cell::Bytes(row.flat.bytes)),
        };
        let share = |part| Cell::Share { part, whole: self.selected.whole.value(unit) };
        let (flat, cumulative) = (row.flat.value(unit), row.cumulative.value(unit));
        let name = Cell::Text(label.to_owned());
        let mut cells = vec![amount(flat), share(flat), amount(cumulative), share(cumulative), other, name];
        if self.rows_are_functions() {
            let (file, line) = row.place.as_ref().map_or(("", 0), |(file, line)| (file, *line));
            let place = Cell::Text(heading::place(file, line));
            cells.extend([place, Cell::Text(file.to_owned()), Cell::Count(u64::from(line))]);
        }
        cells
    }
}
