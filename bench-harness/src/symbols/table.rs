//! The measurements as Markdown.

use std::fmt::Write as _;

use super::measure::{Cell, Measured, Results};
use crate::document::Place;

/// Where the tables go in a document.
pub const PLACE: Place = Place("symbolization");

/// The tables.
#[must_use]
pub fn markdown(results: &Results) -> String {
    let mut out = format!(
        "Made by `{}` on {}. CPU seconds (user and system, median of {}) / peak resident memory in MB.\n\n",
        results.command,
        results.machine.line(),
        results.rounds
    );
    out += &costs(&results.rows);
    for name in &results.missing {
        let _ = writeln!(out, "\nNot measured, because not installed: {name}.");
    }
    out += "\nHow far the answers are the same as those of `mpp`: addresses with as many frames / with the same files and lines in \
            all frames / with the same names in all frames, spelling included.\n\n";
    out + &agreements(&results.rows)
}

fn head(rows: &[Measured], first: &str) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.row.as_str()).collect();
    format!("| {first} | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(rows.len()))
}

fn costs(rows: &[Measured]) -> String {
    let mut out = head(rows, "");
    for_each_tool(rows, |tool, cells| {
        let cells: Vec<String> = cells.iter().map(|cell| cost(cell)).collect();
        let _ = writeln!(out, "| {tool} | {} |", cells.join(" | "));
    });
    let targets: Vec<String> = rows
        .iter()
        .map(|row| match row.target {
            (None, None) => "–".to_owned(),
            (cpu, peak) => {
                let cpu = cpu.map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.3} s"));
                format!("{cpu} / {}", peak.map_or_else(|| "–".to_owned(), |peak| format!("{peak:.0} MB")))
            }
        })
        .collect();
    let _ = writeln!(out, "| *target for one thread* | {} |", targets.join(" | "));
    out
}

fn cost(cell: &Cell) -> String {
    match (cell.cpu, cell.peak, &cell.problem) {
        (_, _, Some(problem)) => problem.replace('|', "/"),
        (Some(cpu), Some(peak), None) => format!("{cpu:.3} s / {peak:.0} MB"),
        (Some(cpu), None, None) => format!("{cpu:.3} s / –"),
        _ => "–".to_owned(),
    }
}

fn agreements(rows: &[Measured]) -> String {
    let mut out = head(rows, "");
    for_each_tool(rows, |tool, cells| {
        if cells.iter().all(|cell| cell.agreement.is_none()) {
            return;
        }
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| match cell.agreement {
                Some(agreement) => format!(
                    "{} / {} / {} of {}",
                    agreement.depth, agreement.lines, agreement.names, agreement.addresses
                ),
                None => "–".to_owned(),
            })
            .collect();
        let _ = writeln!(out, "| {tool} | {} |", cells.join(" | "));
    });
    out
}

fn for_each_tool(rows: &[Measured], mut each: impl FnMut(&str, &[&Cell])) {
    let Some(first) = rows.first() else { return };
    for (index, cell) in first.cells.iter().enumerate() {
        let cells: Vec<&Cell> = rows.iter().filter_map(|row| row.cells.get(index)).collect();
        each(&cell.tool, &cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::frames::Agreement;

    #[test]
    fn a_table_with_a_figure_and_a_problem() {
        let ours = Cell { tool: "mpp".into(), cpu: Some(0.5), peak: Some(100.4), ..Cell::default() };
        let agreement = Some(Agreement { addresses: 10, depth: 10, lines: 9, names: 8 });
        let other = Cell { tool: "x".into(), problem: Some("not done after 5 s".into()), agreement, ..Cell::default() };
        let row = Measured {
            row: "one".into(),
            file_size: 1,
            count: 10,
            reference: "x".into(),
            target: (Some(0.03), None),
            cells: vec![ours, other],
        };
        let table = costs(std::slice::from_ref(&row));
        assert!(table.contains("| mpp | 0.500 s / 100 MB |\n| x | not done after 5 s |\n"), "{table}");
        assert!(table.contains("0.030 s / – |"), "{table}");
        assert_eq!(agreements(&[row]), "|  | one |\n|---|---|\n| x | 10 / 9 / 8 of 10 |\n");
    }
}
