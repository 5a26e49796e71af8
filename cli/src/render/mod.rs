//! Tables in the formats that reports come in. A report says what is in the table; how it looks is decided here.

pub(crate) mod chart;
mod csv;
pub(crate) mod flame;
mod json;
mod markdown;
pub(crate) mod spark;
pub(crate) mod style;
mod table;
pub(crate) mod terminal;
mod text;

pub(crate) use table::{Cell, Column, Table, percent, signed};

use clap::ValueEnum;
use serde::Serialize;

use style::Style;

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people
    Text,
    /// For programs: schema, schema_version, plain integers
    Json,
    /// For spreadsheets: plain integers
    Csv,
    /// For issues and pull requests
    Md,
}

impl Format {
    /// Whether programs read it, so that nothing may be shortened.
    pub(crate) fn is_for_programs(self) -> bool {
        matches!(self, Format::Json | Format::Csv)
    }
}

/// A report: some sentences about the whole, a table, and the same as data.
#[derive(Debug)]
pub(crate) struct Report<'a, D: Serialize> {
    /// Lines above the table, in formats for people. Text from files in them is escaped already.
    pub(crate) header: &'a [String],
    /// The table.
    pub(crate) table: &'a Table,
    /// Lines below the table, in formats for people.
    pub(crate) footer: &'a [String],
    /// What is printed as JSON.
    pub(crate) data: &'a D,
}

/// The report in this format, ready to be written.
///
/// # Errors
/// If the data cannot be made into JSON, which would be a bug.
pub(crate) fn render<D: Serialize>(report: &Report<'_, D>, format: Format, style: Style) -> anyhow::Result<Vec<u8>> {
    let text = match format {
        Format::Text => text::render(report.header, report.table, report.footer, style),
        Format::Json => json::render(report.data)?,
        Format::Csv => csv::render(report.table),
        Format::Md => markdown::render(report.header, report.table, report.footer),
    };
    Ok(text.into_bytes())
}
