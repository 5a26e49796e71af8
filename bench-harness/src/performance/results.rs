//! Measurements as they are kept: one JSON file that a table, or another program, is made from.

use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// The schema of the file.
pub const SCHEMA: &str = "mpp-performance";
/// Rises when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// All of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub schema_version: u32,
    /// The commands that made it.
    pub commands: Vec<Command>,
    /// What it ran on.
    pub machine: Machine,
    /// The seed of orders and operations.
    pub seed: u64,
    /// The allocators.
    pub peers: Vec<PeerState>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A command that measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// What was typed.
    pub line: String,
    /// How many rounds it went.
    pub rounds: usize,
}

impl Results {
    /// Puts the rows of two runs on one machine into one table. A row is never put together from both, for its rounds would
    /// not be the same moments.
    ///
    /// # Errors
    /// A sentence when the machine, the seed or a library differ, or both have a row.
    pub fn join(mut self, other: Self) -> Result<Self, String> {
        let machine = Machine { load: self.machine.load, ..other.machine.clone() };
        if machine != self.machine || other.seed != self.seed {
            return Err("the runs are not of one machine and one seed".to_owned());
        }
        if let Some(row) = other.rows.iter().find(|row| self.rows.iter().any(|mine| mine.name == row.name)) {
            return Err(format!("both runs have the row {}", row.name));
        }
        for peer in &other.peers {
            match self.peers.iter().find(|mine| mine.name == peer.name) {
                Some(mine) if mine.origin != peer.origin => {
                    return Err(format!("{} is not the same in both runs", peer.name));
                }
                Some(_) => {}
                None => {
                    self.peers.push(peer.clone());
                    self.rows.iter_mut().for_each(|row| row.cells.push(Cell::default()));
                }
            }
        }
        let cell = |row: &Row, name: &str| {
            let place = other.peers.iter().position(|peer| peer.name == name);
            place.map_or_else(Cell::default, |place| row.cells[place].clone())
        };
        let rows = other
            .rows
            .iter()
            .map(|row| Row { cells: self.peers.iter().map(|peer| cell(row, &peer.name)).collect(), ..row.clone() });
        self.rows.extend(rows);
        self.commands.extend(other.commands.iter().cloned());
        self.machine.load[1] = other.machine.load[1];
        Ok(self)
    }
}

/// An allocator, and whether it took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerState {
    /// Its name.
    pub name: String,
    /// Which version, and where from.
    pub origin: String,
    /// Why it was not measured, or not to the end.
    pub problem: Option<String>,
}

/// What a row's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds of processor time per operation.
    Ns,
    /// Seconds of processor time of the whole program.
    Seconds,
}

/// A row under all peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// What its values are.
    pub unit: Unit,
    /// Why it was not measured at all.
    pub problem: Option<String>,
    /// Under each peer, in the order of [`Results::peers`].
    pub cells: Vec<Cell>,
}

/// A row under one peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What was measured, by round.
    pub samples: Vec<Sample>,
    /// Why there is nothing, or not all.
    pub problem: Option<String>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The round, from 0.
    pub round: usize,
    /// Processor time in the row's unit.
    pub value: f64,
    /// Peak resident memory in bytes, if known.
    pub peak_rss: Option<u64>,
}

impl Cell {
    /// The values, if the cell is sound: a peer that failed once in a row has no figure in it.
    #[must_use]
    pub fn values(&self) -> Option<Vec<f64>> {
        (self.problem.is_none() && !self.samples.is_empty())
            .then(|| self.samples.iter().map(|sample| sample.value).collect())
    }

    /// The median of the peaks.
    #[must_use]
    pub fn peak_rss(&self) -> Option<f64> {
        let mut peaks: Vec<_> = self.samples.iter().map(|sample| sample.peak_rss).collect::<Option<_>>()?;
        peaks.sort_unstable();
        (self.problem.is_none() && !peaks.is_empty()).then(|| peaks[peaks.len() / 2] as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::example;

    #[test]
    fn runs_are_joined_row_by_row() {
        let (one, mut other) = (example(), example());
        assert!(one.clone().join(other.clone()).unwrap_err().contains("both runs have the row one"));
        other.rows.iter_mut().for_each(|row| row.name.push_str("-more"));
        other.peers.reverse();
        other.rows.iter_mut().for_each(|row| row.cells.reverse());
        other.peers[0].name = "another".to_owned();
        let joined = one.clone().join(other.clone()).unwrap();
        let names: Vec<_> = joined.peers.iter().map(|peer| peer.name.as_str()).collect();
        assert_eq!((names, joined.rows.len(), joined.commands.len()), (vec!["mimalloc3", "ours", "another"], 6, 2));
        assert!(joined.rows[0].cells[2].samples.is_empty(), "one did not have that peer");
        assert_eq!(joined.rows[3].cells[0], one.rows[0].cells[0]);
        assert_eq!(joined.rows[3].cells[2], one.rows[0].cells[1]);
        assert!(joined.rows[3].cells[1].samples.is_empty());
        other.peers[1].origin = "elsewhere".to_owned();
        assert!(one.clone().join(other.clone()).unwrap_err().contains("mimalloc3 is not the same"));
        other.seed = 2;
        assert!(one.join(other).unwrap_err().contains("one machine and one seed"));
    }
}
