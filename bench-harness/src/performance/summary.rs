//! From measurements to figures: minima, medians, and ratios to a reference.

use super::results::{Cell, Results, Row};
use crate::stats::{Block, Effect};
use crate::verdict::DECIDING_BLOCKS;

/// A row under one peer, as figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The least value, in the row's unit.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The least value as a multiple of the reference's.
    pub of_minima: Option<f64>,
    /// The median of the ratios to the reference within each round, with its interval.
    pub paired: Option<Effect>,
    /// Median peak memory in bytes, and as a multiple of the reference's.
    pub peak: Option<(f64, Option<f64>)>,
}

/// A row as figures.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The row.
    pub row: &'a Row,
    /// Under each peer; `None` where it was not measured.
    pub cells: Vec<Option<Figures>>,
    /// The peer with the least minimum.
    pub best: Option<usize>,
}

/// All rows against the peer number `reference`.
#[must_use]
pub fn lines(results: &Results, reference: usize) -> Vec<Line<'_>> {
    results.rows.iter().map(|row| line(row, reference, results.seed)).collect()
}

fn line(row: &Row, reference: usize, seed: u64) -> Line<'_> {
    let base = row.cells.get(reference);
    let cells: Vec<_> = row.cells.iter().map(|cell| figures(cell, base, seed)).collect();
    let measured = cells.iter().enumerate().filter_map(|(peer, cell)| Some((peer, cell.as_ref()?.min)));
    let best = measured.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(peer, _)| peer);
    Line { row, cells, best }
}

fn figures(cell: &Cell, base: Option<&Cell>, seed: u64) -> Option<Figures> {
    let values = cell.values()?;
    let base_peak = base.and_then(Cell::peak_rss);
    Some(Figures {
        min: least(&values),
        median: median(values.clone()),
        of_minima: base.and_then(Cell::values).map(|base| least(&values) / least(&base)),
        paired: base.and_then(|base| paired(cell, base, seed)),
        peak: cell.peak_rss().map(|peak| (peak, base_peak.map(|base| peak / base))),
    })
}

/// The ratio of two cells within their rounds.
#[must_use]
pub fn paired(cell: &Cell, base: &Cell, seed: u64) -> Option<Effect> {
    cell.values()?;
    base.values()?;
    let blocks: Vec<_> = cell
        .samples
        .iter()
        .filter_map(|sample| {
            let other = base.samples.iter().find(|other| other.round == sample.round)?;
            Some(Block { contender: sample.value, reference: other.value })
        })
        .collect();
    Effect::of(&blocks, seed).ok()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

/// The geometric mean; `None` of nothing.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// A row in which another peer is faster.
#[derive(Clone, Debug)]
pub struct Loss {
    /// The row's name.
    pub row: String,
    /// The fastest other peer.
    pub winner: String,
    /// The least values: the peer that is judged, the winner.
    pub minima: [f64; 2],
    /// The paired ratio to the winner.
    pub paired: Option<Effect>,
}

impl Loss {
    /// The judged peer's least value as a multiple of the winner's.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.minima[0] / self.minima[1]
    }

    /// Whether the paired ratio says so too: its interval lies above 1, and there are rounds enough for it to mean something.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.paired.is_some_and(|effect| effect.low > 1.0 && effect.blocks >= DECIDING_BLOCKS)
    }
}

/// The rows in which `judged` has not the least value, the clearest first.
#[must_use]
pub fn losses(results: &Results, lines: &[Line<'_>], judged: usize) -> Vec<Loss> {
    let mut losses: Vec<_> = lines
        .iter()
        .filter_map(|line| {
            let (own, best) = (line.cells.get(judged)?.as_ref()?, line.best.filter(|&best| best != judged)?);
            Some(Loss {
                row: line.row.name.clone(),
                winner: results.peers[best].name.clone(),
                minima: [own.min, line.cells[best]?.min],
                paired: paired(&line.row.cells[judged], &line.row.cells[best], results.seed),
            })
        })
        .collect();
    losses.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    losses
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::performance::machine::Machine;
    use crate::performance::results::{Command, PeerState, SCHEMA, Sample, Unit, VERSION};

    fn cell(values: &[f64]) -> Cell {
        let samples = values
            .iter()
            .enumerate()
            .map(|(round, &value)| Sample { round, value, peak_rss: Some((value * 1e6) as u64) })
            .collect();
        Cell { samples, problem: None }
    }

    /// Two peers and two rows, of which one has no figure under the second peer.
    pub(in crate::performance) fn example() -> Results {
        let row = |name: &str, cells| Row {
            name: name.to_owned(),
            group: "micro".to_owned(),
            unit: Unit::Ns,
            problem: None,
            cells,
        };
        let peer = |name: &str| PeerState { name: name.to_owned(), origin: "here".to_owned(), problem: None };
        Results {
            schema: SCHEMA.to_owned(),
            schema_version: VERSION,
            commands: vec![Command { line: "performance --quick".to_owned(), rounds: 3 }],
            machine: Machine { load: [1.0, 2.0], ..Machine::this() },
            seed: 1,
            peers: vec![peer("mimalloc3"), peer("ours")],
            rows: vec![
                row("one", vec![cell(&[10.0, 20.0, 40.0]), cell(&[9.0, 30.0, 44.0])]),
                row("two", vec![cell(&[4.0, 4.0, 4.0]), cell(&[5.0, 5.0, 6.0])]),
                row(
                    "three",
                    vec![cell(&[1.0]), Cell { problem: Some("killed by signal 11".to_owned()), ..cell(&[1.0]) }],
                ),
            ],
        }
    }

    #[test]
    fn minima_and_rounds_are_compared() {
        let results = example();
        let lines = lines(&results, 0);
        let ours = lines[0].cells[1].unwrap();
        assert_eq!((ours.min, ours.median, ours.of_minima), (9.0, 30.0, Some(0.9)));
        // Within the rounds: 0.9, 1.5, 1.1.
        assert!((ours.paired.unwrap().ratio - 1.1).abs() < 1e-9);
        assert_eq!(ours.peak.unwrap(), (30e6, Some(1.5)));
        assert_eq!((lines[0].best, lines[1].best, lines[2].best), (Some(1), Some(0), Some(0)));
        assert!(lines[2].cells[1].is_none(), "a peer that crashed has no figure");
    }

    #[test]
    fn rows_that_are_lost_are_named() {
        let results = example();
        let losses = losses(&results, &lines(&results, 0), 1);
        let [loss] = losses.as_slice() else { panic!("{losses:?}") };
        assert_eq!((loss.row.as_str(), loss.winner.as_str(), loss.ratio()), ("two", "mimalloc3", 1.25));
        assert!(!loss.is_certain(), "three rounds decide nothing");
        let more = Loss { paired: loss.paired.map(|effect| Effect { blocks: 6, ..effect }), ..loss.clone() };
        assert!(more.is_certain());
    }

    #[test]
    fn means_are_geometric() {
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
