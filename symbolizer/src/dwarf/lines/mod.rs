//! Source lines: a unit's line table, which is a list of files and a program for a small machine.

mod program;
mod table;

pub(super) use self::program::{find_rows, for_each_sequence};
pub(super) use self::table::Table;

/// A place in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Index in the table's list of files.
    pub(super) file: u64,
    /// From 1; 0 when the compiler made the instruction from no line in particular.
    pub(super) line: u32,
}
