//! Measurements as they are kept: one JSON file that tables, charts, or another program are made from.

use mpp_workloads::memory_return::calls::{Calls, about_memory};
use mpp_workloads::memory_return::record::Record;
use serde::{Deserialize, Serialize};

use crate::performance::machine::Machine;
use crate::performance::results::{Command, PeerState, Results as Speed};

/// The schema of the file.
pub const SCHEMA: &str = "mpp-memory-return";
/// Rises when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// All of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub schema_version: u32,
    /// The command that made it, and how many rounds it went.
    pub command: Command,
    /// Seconds it took.
    pub seconds: u64,
    /// What it ran on.
    pub machine: Machine,
    /// The contenders.
    pub contenders: Vec<PeerState>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Rows of the performance table, with returning on and off.
    pub speed: Option<Speed>,
}

/// A row under all contenders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its table.
    pub group: String,
    /// The command line of `mpp-workload`.
    pub line: String,
    /// Under each contender, in the order of [`Results::contenders`].
    pub cells: Vec<Cell>,
}

/// A row under one contender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What was seen, by round; the first one may have been watched for longer.
    pub records: Vec<Record>,
    /// System calls, if they were counted.
    pub calls: Option<Counts>,
    /// Why there is nothing, or not all.
    pub problem: Option<String>,
}

/// System calls of a run of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Of the whole program.
    pub all: Calls,
    /// Of the same program that does nothing.
    pub empty: Option<Calls>,
    /// Of the first call that asks for memory.
    pub marked: Option<Calls>,
}

impl Counts {
    /// Calls about memory beyond those of a program that does nothing.
    #[must_use]
    pub fn above_empty(&self) -> Option<i64> {
        Some(about_memory(&self.all) as i64 - about_memory(self.empty.as_ref()?) as i64)
    }
}

impl Cell {
    /// The median of a figure over all rounds. `None` when one has none, or the cell is not sound.
    #[must_use]
    pub fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        self.values(figure).map(median)
    }

    /// The median of the ratios to another contender within each round: what disturbs one disturbs the other, too.
    #[must_use]
    pub fn ratio(&self, other: &Self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        let (mine, others) = (self.values(&figure)?, other.values(&figure)?);
        Some(median(mine.iter().zip(&others).map(|(mine, other)| mine / other).collect()))
    }

    /// The least.
    #[must_use]
    pub fn least(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        self.values(figure)?.into_iter().reduce(f64::min)
    }

    /// A figure of every round.
    fn values(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<Vec<f64>> {
        let values: Option<Vec<_>> = self.records.iter().map(figure).collect();
        values.filter(|values| self.problem.is_none() && !values.is_empty())
    }

    /// The median of something that the subject measured.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.median(|record| record.figures.get(name).copied())
    }
}

/// Of one value or more.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

impl Results {
    /// The row of this name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// A row under a contender, if it was measured.
    #[must_use]
    pub fn cell(&self, row: &str, contender: &str) -> Option<&Cell> {
        let at = self.contenders.iter().position(|peer| peer.name == contender)?;
        self.row(row)?.cells.get(at).filter(|cell| cell.problem.is_none() && !cell.records.is_empty())
    }

    /// The names of those who took part in any of these rows, in order.
    #[must_use]
    pub fn who(&self, rows: &[&Row]) -> Vec<&str> {
        let took_part =
            |at: usize| rows.iter().any(|row| row.cells.get(at).is_some_and(|cell| !cell.records.is_empty()));
        (0..self.contenders.len()).filter(|&at| took_part(at)).map(|at| self.contenders[at].name.as_str()).collect()
    }

    /// The rows of a table.
    #[must_use]
    pub fn group(&self, name: &str) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.group == name).collect()
    }
}
