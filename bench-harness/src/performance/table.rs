//! The results as Markdown.

use std::fmt::Write as _;

use super::results::{Results, Unit};
use super::summary::{Figures, Line, geometric_mean, lines, losses};
use crate::document::Place;
use crate::peers::{OURS, REFERENCE};

/// Where the tables are in a document.
pub const PLACE: Place = Place("performance");

/// A number of nanoseconds or seconds, to three digits.
pub(crate) fn number(value: f64) -> String {
    let digits = if value >= 100.0 { 0 } else { (2.0 - value.log10().floor()).clamp(0.0, 4.0) as usize };
    format!("{value:.digits$}")
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

/// All of it.
#[must_use]
pub fn markdown(results: &Results) -> String {
    let place = |name: &str| results.peers.iter().position(|peer| peer.name == name);
    let reference = place(REFERENCE).unwrap_or(0);
    let ours = place(OURS);
    let lines = lines(results, reference);
    let mut text = header(results, reference);
    let mut groups: Vec<&str> = results.rows.iter().map(|row| row.group.as_str()).collect();
    groups.dedup();
    for group in groups {
        let lines: Vec<_> = lines.iter().filter(|line| line.row.group == group).collect();
        text.push_str(&times(results, reference, ours, group, &lines));
        text.push_str(&peaks(results, reference, group, &lines));
    }
    if let Some(ours) = ours {
        text.push_str(&lost(results, &lines, ours));
    }
    text.push_str(&problems(results));
    text
}

fn header(results: &Results, reference: usize) -> String {
    let mut text = format!("\n{}\n\nMade by\n\n", results.machine.line());
    for command in &results.commands {
        let _ = writeln!(text, "* `{}` ({} rounds)", command.line, command.rounds);
    }
    text.push('\n');
    text.push_str("| allocator | which |\n|---|---|\n");
    for (place, peer) in results.peers.iter().enumerate() {
        let role = if place == reference { " (the reference)" } else { "" };
        let state = peer.problem.as_ref().map(|problem| format!("; not measured: {problem}")).unwrap_or_default();
        let _ = writeln!(text, "| {}{role} | {}{state} |", peer.name, peer.origin);
    }
    text.push('\n');
    text
}

/// Whether a peer took part.
fn took_part(results: &Results, peer: usize) -> bool {
    results.rows.iter().any(|row| !row.cells[peer].samples.is_empty())
}

/// The peers that have columns, in order.
fn columns(results: &Results, reference: usize) -> Vec<usize> {
    (0..results.peers.len()).filter(|&peer| peer != reference && took_part(results, peer)).collect()
}

/// Processor time. Each cell is the ratio of the minima, and in brackets the median of the ratios within rounds.
fn times(results: &Results, reference: usize, ours: Option<usize>, group: &str, lines: &[&Line<'_>]) -> String {
    let columns = columns(results, reference);
    let unit = match lines.first().map(|line| line.row.unit) {
        Some(Unit::Seconds) => "s",
        _ => "ns",
    };
    let name = |peer: usize| results.peers[peer].name.as_str();
    let mut text = format!("### {group}: processor time\n\n| row | {} {unit} |", name(reference));
    if let Some(ours) = ours.filter(|&ours| ours != reference) {
        let _ = write!(text, " {} {unit} |", name(ours));
    }
    columns.iter().for_each(|&peer| {
        let _ = write!(text, " {} |", name(peer));
    });
    text.push_str(" best |\n|---|");
    text.push_str(&"---:|".repeat(1 + usize::from(ours.is_some_and(|ours| ours != reference)) + columns.len()));
    text.push_str("---|\n");
    let absolute = |cell: Option<&Figures>| {
        cell.map_or_else(|| "–".to_owned(), |cell| format!("{} / {}", number(cell.min), number(cell.median)))
    };
    for line in lines {
        let cell = |peer: usize| line.cells[peer].as_ref();
        let _ = write!(text, "| {} | {} |", line.row.name, absolute(cell(reference)));
        if let Some(ours) = ours.filter(|&ours| ours != reference) {
            let _ = write!(text, " {} |", absolute(cell(ours)));
        }
        for &peer in &columns {
            let words = match cell(peer) {
                Some(cell) => format!("{} ({})", ratio(cell.of_minima), ratio(cell.paired.map(|effect| effect.ratio))),
                None => "–".to_owned(),
            };
            let mark = if line.best == Some(peer) { "**" } else { "" };
            let _ = write!(text, " {mark}{words}{mark} |");
        }
        let _ = writeln!(text, " {} |", line.best.map_or("–", name));
    }
    text.push_str("| **geometric mean** | |");
    if ours.is_some_and(|ours| ours != reference) {
        text.push_str(" |");
    }
    for &peer in &columns {
        let of = |figure: fn(&Figures) -> Option<f64>| {
            let values: Vec<_> = lines.iter().filter_map(|line| figure(line.cells[peer].as_ref()?)).collect();
            ratio(geometric_mean(&values))
        };
        let _ = write!(
            text,
            " **{} ({})** |",
            of(|cell| cell.of_minima),
            of(|cell| cell.paired.map(|effect| effect.ratio))
        );
    }
    text + " |\n\n"
}

/// Peak memory: the reference in MiB, the others as ratios.
fn peaks(results: &Results, reference: usize, group: &str, lines: &[&Line<'_>]) -> String {
    let columns = columns(results, reference);
    let name = |peer: usize| results.peers[peer].name.as_str();
    let mut text = format!("### {group}: peak memory\n\n| row | {} MiB |", name(reference));
    columns.iter().for_each(|&peer| {
        let _ = write!(text, " {} |", name(peer));
    });
    text.push_str("\n|---|---:|");
    text.push_str(&"---:|".repeat(columns.len()));
    text.push('\n');
    let peak = |line: &Line<'_>, peer: usize| line.cells[peer].and_then(|cell| cell.peak);
    for line in lines {
        let base =
            peak(line, reference).map_or_else(|| "–".to_owned(), |(bytes, _)| format!("{:.1}", bytes / 1048576.0));
        let _ = write!(text, "| {} | {base} |", line.row.name);
        for &peer in &columns {
            let _ = write!(text, " {} |", ratio(peak(line, peer).and_then(|(_, ratio)| ratio)));
        }
        text.push('\n');
    }
    text.push_str("| **geometric mean** | |");
    for &peer in &columns {
        let values: Vec<_> = lines.iter().filter_map(|line| peak(line, peer)?.1).collect();
        let _ = write!(text, " **{}** |", ratio(geometric_mean(&values)));
    }
    text + "\n\n"
}

/// The rows that are lost.
fn lost(results: &Results, lines: &[Line<'_>], ours: usize) -> String {
    let losses = losses(results, lines, ours);
    let measured = lines.iter().filter(|line| line.cells[ours].is_some()).count();
    let mut text = format!("### Rows in which another allocator is faster: {} of {measured}\n\n", losses.len());
    if losses.is_empty() {
        return text;
    }
    text.push_str("| row | ours | best | who | ratio of minima | ratio within rounds (95 %) | |\n|---|---:|---:|---|---:|---:|---|\n");
    for loss in &losses {
        let effect = loss.paired.map_or_else(
            || "–".to_owned(),
            |effect| format!("{:.2} ({:.2}–{:.2})", effect.ratio, effect.low, effect.high),
        );
        let (own, best) = (number(loss.minima[0]), number(loss.minima[1]));
        let word = if loss.is_certain() { "slower" } else { "not clear" };
        let _ = writeln!(
            text,
            "| {} | {own} | {best} | {} | {:.2} | {effect} | {word} |",
            loss.row,
            loss.winner,
            loss.ratio()
        );
    }
    text + "\n"
}

/// What has no figure, and why.
fn problems(results: &Results) -> String {
    let mut text = String::new();
    for row in &results.rows {
        if let Some(problem) = &row.problem {
            let _ = writeln!(text, "* {}: not measured: {problem}", row.name);
        }
        for (cell, peer) in row.cells.iter().zip(&results.peers) {
            if let Some(problem) = &cell.problem {
                let _ = writeln!(text, "* {}, {}: not measured: {problem}", row.name, peer.name);
            }
        }
    }
    if text.is_empty() { text } else { format!("### Not measured\n\n{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::example;
    use super::*;

    #[test]
    fn a_row_has_minima_medians_ratios_and_a_winner() {
        let text = markdown(&example());
        assert!(text.contains("| one | 10.0 / 20.0 | 9.00 / 30.0 | **0.90 (1.10)** | ours |"), "{text}");
        assert!(text.contains("| two | 4.00 / 4.00 | 5.00 / 5.00 | 1.25 (1.25) | mimalloc3 |"), "{text}");
        // The square roots of 0.9 * 1.25 and 1.1 * 1.25.
        assert!(text.contains("| **geometric mean** | | | **1.06 (1.17)** | |"), "{text}");
        assert!(text.contains("| one | 19.1 | 1.50 |"), "{text}");
    }

    #[test]
    fn what_is_lost_or_missing_is_said() {
        let text = markdown(&example());
        assert!(text.contains("another allocator is faster: 1 of 2"), "{text}");
        assert!(text.contains("| two | 5.00 | 4.00 | mimalloc3 | 1.25 | 1.25 (1.25–1.50) | not clear |"), "{text}");
        assert!(text.contains("| three | 1.00 / 1.00 | – | – | mimalloc3 |"), "{text}");
        assert!(text.contains("* three, ours: not measured: killed by signal 11"), "{text}");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.01234, 0.1234, 1.234, 12.34, 123.4, 12345.6].map(number),
            ["0.0123", "0.123", "1.23", "12.3", "123", "12346"]
        );
    }
}
