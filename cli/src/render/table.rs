//! A table before it has a format.

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// The heading for people.
    pub(crate) title: &'static str,
    /// The heading for programs; stays the same over versions.
    pub(crate) key: &'static str,
    /// Which formats show it.
    pub(crate) audience: Audience,
    /// Where there is no room for all, columns with larger numbers go first; 0 always stays.
    pub(crate) spare: u8,
}

/// Who sees a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Every format shows it.
    All,
    /// Text and Markdown show it.
    People,
    /// CSV shows it.
    Programs,
}

impl Column {
    /// A column that every format shows.
    pub(crate) const fn new(title: &'static str, key: &'static str) -> Column {
        Column { title, key, audience: Audience::All, spare: 0 }
    }

    /// A column for people only.
    pub(crate) const fn for_people(title: &'static str) -> Column {
        Column { title, key: "", audience: Audience::People, spare: 0 }
    }

    /// A column for programs only.
    pub(crate) const fn for_programs(key: &'static str) -> Column {
        Column { title: "", key, audience: Audience::Programs, spare: 0 }
    }
}

impl Column {
    /// The same, to be left out where there is no room; larger numbers first.
    pub(crate) const fn spare(self, spare: u8) -> Column {
        Column { spare, ..self }
    }
}

/// A cell. Each format has its own way to write it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// A number of bytes.
    Bytes(u64),
    /// A count.
    Count(u64),
    /// A part of a whole, both in the same unit.
    Share {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// Text, not escaped.
    Text(String),
    /// More or fewer bytes.
    BytesChange(i64),
    /// A larger or smaller count.
    CountChange(i64),
    /// A number that counts nothing, such as that of a line.
    Number(u64),
    /// No number.
    Nothing,
}

impl Cell {
    /// As people write it. Text is escaped, so it can go to a terminal.
    pub(crate) fn for_people(&self) -> String {
        match self {
            Cell::Bytes(bytes) => mpp_profile::units::bytes(*bytes),
            Cell::Count(count) => mpp_profile::units::count(*count),
            Cell::Share { part, whole } => mpp_profile::units::percent(*part as f64, *whole as f64),
            Cell::Text(text) => mpp_profile::text::escaped(text).to_string(),
            Cell::BytesChange(change) => signed(*change, mpp_profile::units::bytes),
            Cell::CountChange(change) => signed(*change, mpp_profile::units::count),
            Cell::Number(number) => number.to_string(),
            Cell::Nothing => String::new(),
        }
    }

    /// As programs read it: numbers without units or grouping, percentages with four decimals, text as it is.
    pub(crate) fn for_programs(&self) -> String {
        match self {
            Cell::BytesChange(change) | Cell::CountChange(change) => change.to_string(),
            Cell::Bytes(number) | Cell::Count(number) | Cell::Number(number) => number.to_string(),
            Cell::Share { part, whole } => format!("{:.4}", percent(*part, *whole)),
            Cell::Text(text) => text.clone(),
            Cell::Nothing => String::new(),
        }
    }
}

/// With a sign unless it is nothing.
pub(crate) fn signed(change: i64, print: fn(u64) -> String) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", print(change.unsigned_abs()))
}

/// 100 times the share; 0 of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Rows of cells under columns; every row has a cell for each column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The columns, in order.
    pub(crate) columns: Vec<Column>,
    /// The rows, in order.
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The numbers of the columns that a format for people (or for programs) shows.
    pub(super) fn columns_without(&self, hidden: Audience) -> Vec<usize> {
        (0..self.columns.len()).filter(|&index| self.columns[index].audience != hidden).collect()
    }

    /// Whether the column is aligned to the right.
    pub(super) fn is_number(&self, column: usize) -> bool {
        let known = self.rows.iter().map(|row| &row[column]).find(|cell| **cell != Cell::Nothing);
        known.is_some_and(|cell| !matches!(cell, Cell::Text(_)))
    }
}
