//! The results as Markdown.

use std::fmt::Write as _;

use super::gauge::Gauge;
use super::modes::{EXACT, FINE, MALLOCS, SAMPLED};
use super::results::Overhead;
use crate::document::Place;
use crate::performance::results::{Results, Unit};
use crate::performance::summary::{Figures, Line, geometric_mean, lines};
use crate::performance::table::number;

/// Where the tables are in a document.
pub const PLACE: Place = Place("profiling-overhead");

/// What a mode may cost: percent for each 4 GB/s that a row allocates, and no less than that.
const MAY_COST: [(&str, f64); 2] = [(SAMPLED, 1.0), (FINE, 3.0)];
/// What exact recording may cost on the row of eight million blocks, as a multiple.
const EXACT_MAY_COST: f64 = 4.0;

/// All of it.
#[must_use]
pub fn markdown(overhead: &Overhead) -> String {
    let results = &overhead.modes;
    let lines = lines(results, 0);
    let mut text = header(results);
    text.push_str(&times(results, &lines, &overhead.gauges));
    text.push_str(&peaks(results, &lines));
    text.push_str(&beyond(results, &lines, &overhead.gauges));
    if let Some(tools) = &overhead.tools {
        text.push_str(&tool_table(tools, &overhead.missing));
    }
    for results in [Some(results), overhead.tools.as_ref()].into_iter().flatten() {
        text.push_str(&problems(results));
    }
    text
}

fn header(results: &Results) -> String {
    let mut text = format!("\n{}\n\nMade by\n\n", results.machine.line());
    for command in &results.commands {
        let _ = writeln!(text, "* `{}` ({} rounds)", command.line, command.rounds);
    }
    text.push_str("\n| column | with |\n|---|---|\n");
    for peer in &results.peers {
        let _ = writeln!(text, "| {} | {} |", peer.name, peer.origin);
    }
    text.push('\n');
    text
}

fn columns(results: &Results, first: &str) -> String {
    let mut text = format!("| row | {first} |");
    results.peers[1..].iter().for_each(|peer| {
        let _ = write!(text, " {} |", peer.name);
    });
    text
}

/// Processor time: the median of the ratios within rounds, with its interval.
fn times(results: &Results, lines: &[Line<'_>], gauges: &[Option<Gauge>]) -> String {
    let mut text = "### Processor time\n\n".to_owned();
    text.push_str(&columns(results, "off"));
    text.push_str(" GB/s |\n|---|---:|");
    text.push_str(&"---:|".repeat(results.peers.len()));
    text.push('\n');
    for (line, gauge) in lines.iter().zip(gauges) {
        let unit = if line.row.unit == Unit::Ns { "ns" } else { "s" };
        let base = line.cells[0].map_or_else(|| "–".to_owned(), |cell| format!("{} {unit}", number(cell.median)));
        let _ = write!(text, "| {} | {base} |", line.row.name);
        for cell in &line.cells[1..] {
            let _ = write!(text, " {} |", effect(cell.as_ref()));
        }
        let rate = gauge.map_or_else(|| "–".to_owned(), |gauge| format!("{:.1}", gauge.gigabytes_per_second()));
        let _ = writeln!(text, " {rate} |");
    }
    text.push_str("| **geometric mean** | |");
    for peer in 1..results.peers.len() {
        let ratios: Vec<_> = lines.iter().filter_map(|line| Some(line.cells[peer]?.paired?.ratio)).collect();
        let mean = geometric_mean(&ratios).map_or_else(|| "–".to_owned(), |mean| format!("**{mean:.3}**"));
        let _ = write!(text, " {mean} |");
    }
    text + " |\n\n"
}

/// `1.004 (0.997–1.012)`.
fn effect(cell: Option<&Figures>) -> String {
    let Some(effect) = cell.and_then(|cell| cell.paired) else { return "–".to_owned() };
    let digits = if effect.ratio < 2.0 { 3 } else { 1 };
    format!("{:.digits$} ({:.digits$}–{:.digits$})", effect.ratio, effect.low, effect.high)
}

fn peaks(results: &Results, lines: &[Line<'_>]) -> String {
    const MIB: f64 = 1_048_576.0;
    let mut text = "### Peak memory\n\n".to_owned();
    text.push_str(&columns(results, "off MiB"));
    text.push_str("\n|---|---:|");
    text.push_str(&"---:|".repeat(results.peers.len() - 1));
    text.push('\n');
    for line in lines {
        let peak = |cell: &Option<Figures>| cell.as_ref()?.peak;
        let base = peak(&line.cells[0]);
        let absolute = base.map_or_else(|| "–".to_owned(), |(peak, _)| format!("{:.1}", peak / MIB));
        let _ = write!(text, "| {} | {absolute} |", line.row.name);
        for cell in &line.cells[1..] {
            let more = peak(cell).zip(base).map(|((peak, _), (base, _))| (peak - base) / MIB);
            let _ = write!(text, " {} |", more.map_or_else(|| "–".to_owned(), |more| format!("{more:+.1}")));
        }
        text.push('\n');
    }
    text + "\n"
}

/// What may be expected and is not so.
fn beyond(results: &Results, lines: &[Line<'_>], gauges: &[Option<Gauge>]) -> String {
    let mut found = Vec::new();
    for (mode, percent) in MAY_COST {
        let Some(place) = results.peers.iter().position(|peer| peer.name == mode) else { continue };
        for (line, gauge) in lines.iter().zip(gauges) {
            let rate = gauge.map_or(0.0, |gauge| gauge.gigabytes_per_second());
            let allowed = 1.0 + percent / 100.0 * (rate / 4.0).max(1.0);
            let Some(effect) = line.cells[place].and_then(|cell| cell.paired) else { continue };
            if effect.ratio > allowed {
                let certain = if effect.low > allowed { "" } else { ", which is within the error" };
                found.push(format!("{}, {mode}: {:.3} for {allowed:.3}{certain}", line.row.name, effect.ratio));
            }
        }
    }
    let exact = results.peers.iter().position(|peer| peer.name == EXACT);
    let mallocs = lines.iter().find(|line| line.row.name == MALLOCS);
    if let Some(effect) = exact.zip(mallocs).and_then(|(place, line)| line.cells[place]?.paired)
        && effect.ratio > EXACT_MAY_COST
    {
        found.push(format!("{MALLOCS}, {EXACT}: {:.1} for {EXACT_MAY_COST}", effect.ratio));
    }
    let mut text = format!(
        "### Beyond what it may cost: {} of {}\n\n1 % (512 KiB) or 3 % (64 KiB) of processor time for each 4 GB/s that a row \
         allocates, but no less; exact recording {EXACT_MAY_COST} times the processor time of {MALLOCS}.\n\n",
        found.len(),
        lines.len() * 2 + 1
    );
    found.iter().for_each(|line| {
        let _ = writeln!(text, "* {line}");
    });
    if !found.is_empty() {
        text.push('\n');
    }
    text
}

fn tool_table(results: &Results, missing: &[String]) -> String {
    let lines = lines(results, 0);
    let reference = &results.peers[0].name;
    let rounds = results.commands.first().map_or(0, |command| command.rounds);
    let mut text = format!("### Other tools that watch every call\n\nMultiples of {reference}; {rounds} rounds.\n\n");
    text.push_str(&columns(results, reference));
    text.push_str("\n|---|---:|");
    text.push_str(&"---:|".repeat(results.peers.len() - 1));
    text.push('\n');
    for line in &lines {
        let base = line.cells[0].map_or_else(|| "–".to_owned(), |cell| format!("{} s", number(cell.median)));
        let _ = write!(text, "| {} | {base} |", line.row.name);
        for cell in &line.cells[1..] {
            let words = cell.as_ref().and_then(|cell| {
                let peak = cell.peak.and_then(|(_, ratio)| ratio).map(|ratio| format!(", memory {ratio:.1}"));
                Some(format!("{:.2}{}", cell.paired?.ratio, peak.unwrap_or_default()))
            });
            let _ = write!(text, " {} |", words.unwrap_or_else(|| "–".to_owned()));
        }
        text.push('\n');
    }
    text.push('\n');
    for peer in &results.peers {
        let _ = writeln!(text, "* {}: {}", peer.name, peer.origin);
    }
    missing.iter().for_each(|name| {
        let _ = writeln!(text, "* {name}: not installed");
    });
    text + "\n"
}

fn problems(results: &Results) -> String {
    let of_rows = results.rows.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.problem.as_ref()?)));
    let of_cells = results.rows.iter().flat_map(|row| {
        row.cells
            .iter()
            .zip(&results.peers)
            .filter_map(|(cell, peer)| Some(format!("{}, {}: {}", row.name, peer.name, cell.problem.as_ref()?)))
    });
    let all: Vec<_> = of_rows.chain(of_cells).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut text = "### Not measured\n\n".to_owned();
    all.iter().for_each(|line| {
        let _ = writeln!(text, "* {line}");
    });
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::results::{SCHEMA, VERSION};
    use super::*;
    use crate::performance::results::{Cell, Command, PeerState, Row, Sample};

    fn overhead(fine: f64) -> Overhead {
        let cell = |value: f64| Cell {
            samples: (0..9).map(|round| Sample { round, value, peak_rss: Some(1 << 20) }).collect(),
            problem: None,
        };
        let peer = |name: &str| PeerState { name: name.to_owned(), origin: "x".to_owned(), problem: None };
        let broken = Cell { samples: Vec::new(), problem: Some("it left no dhat.json".to_owned()) };
        let modes = Results {
            schema: String::new(),
            schema_version: 1,
            commands: vec![Command { line: "scripts/profiling-overhead".to_owned(), rounds: 9 }],
            machine: Default::default(),
            seed: 1,
            peers: ["off", SAMPLED, FINE, EXACT].map(peer).to_vec(),
            rows: vec![Row {
                name: MALLOCS.to_owned(),
                group: "programs".to_owned(),
                unit: Unit::Seconds,
                problem: None,
                cells: vec![cell(1.0), cell(1.015), cell(fine), broken],
            }],
        };
        let gauge = Gauge { allocated: 8_000_000_000, samples: 1, seconds: 1.0 };
        let schema = SCHEMA.to_owned();
        Overhead { schema, schema_version: VERSION, modes, gauges: vec![Some(gauge)], tools: None, missing: vec![] }
    }

    #[test]
    fn what_costs_too_much_is_named() {
        let text = markdown(&overhead(1.05));
        assert!(
            text.contains("| 8-million-mallocs | 1.00 s | 1.015 (1.015–1.015) | 1.050 (1.050–1.050) | – | 8.0 |"),
            "{text}"
        );
        // At 8 GB/s, 1.5 % and 5 % are within 2 % and 6 %.
        assert!(text.contains("Beyond what it may cost: 0 of 3"), "{text}");
        assert!(text.contains("* 8-million-mallocs, exact: it left no dhat.json"), "{text}");
        let text = markdown(&overhead(1.09));
        assert!(text.contains("* 8-million-mallocs, 64 KiB: 1.090 for 1.060\n"), "{text}");
    }
}
