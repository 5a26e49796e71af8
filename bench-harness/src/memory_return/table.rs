//! The results as Markdown: several tables, each with its own place in the document.

use std::fmt::Write as _;

use mpp_workloads::memory_return::catalogue::Group;
use mpp_workloads::memory_return::record::Record;

use super::chart;
use super::plan::{CHARTS, OFF, THREAD};
use super::results::{Cell, Results, Row};
use crate::document::Place;
use crate::peers::OURS;
use crate::performance::summary;
use crate::performance::table::number;

const MIB: f64 = 1_048_576.0;

/// Every place, with what belongs there.
#[must_use]
pub fn parts(results: &Results) -> Vec<(Place, String)> {
    vec![
        (Place("memory-return"), header(results)),
        (Place("memory-return-automatic"), shares(results, Group::Automatic) + &charts(results, &[0, 1, 2, 5])),
        (Place("memory-return-asked"), asked(results)),
        (Place("memory-return-alone"), alone(results)),
        (Place("memory-return-peaks"), peaks(results)),
        (Place("memory-return-purge"), purge(results)),
        (Place("memory-return-thread"), thread(results)),
        (Place("memory-return-speed"), speed(results)),
        (Place("memory-return-turnover"), turnover(results)),
        (Place("memory-return-latency"), latency(results)),
        (Place("memory-return-idle"), idle(results)),
        (Place("memory-return-missing"), problems(results)),
    ]
}

fn header(results: &Results) -> String {
    let rounds = match results.command.rounds {
        1 => "one round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let minutes = results.seconds.div_ceil(60);
    let mut text = format!(
        "\n{}\n\nMade by `{}` ({rounds}, {minutes} minutes)\n\n| name | which |\n|---|---|\n",
        results.machine.line(),
        results.command.line
    );
    for peer in &results.contenders {
        let state = peer.problem.as_ref().map(|problem| format!("; not measured: {problem}")).unwrap_or_default();
        let _ = writeln!(text, "| {} | {}{state} |", peer.name, peer.origin);
    }
    text + "\n"
}

/// What stands in a cell.
type Figure<'a> = &'a dyn Fn(&Cell) -> Option<String>;

/// A table: what is in the first column, the others' names, and the lines.
fn table(first: &str, columns: &[&str], lines: &[(String, Vec<String>)]) -> String {
    if lines.is_empty() {
        return "\n".to_owned();
    }
    let mut text = format!("\n| {first} | {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len()));
    for (name, cells) in lines {
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text + "\n"
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// Rows × contenders.
fn by_contender(results: &Results, rows: &[&Row], cell: impl Fn(&Cell) -> Option<String>) -> String {
    let who = results.who(rows);
    let line = |row: &&Row| {
        let cells = who.iter().map(|&peer| or_dash(results.cell(&row.name, peer).and_then(&cell)));
        (row.name.clone(), cells.collect())
    };
    table("row", &who, &rows.iter().map(line).collect::<Vec<_>>())
}

/// The share of the peak that is gone one second after the drain, and later if that is more, and what the kernel says is free.
fn share(cell: &Cell) -> Option<String> {
    let end = cell.median(|record| Some(record.returned.end))?;
    let second = cell.median(|record| record.returned.after_1s.or(Some(record.returned.end)))?;
    let percent = |share: f64| format!("{:.0}", (share * 100.0).max(0.0));
    let later = if end - second > 0.02 { format!(" → {}", percent(end)) } else { String::new() };
    let free = cell
        .median(|record| record.own_charge().map(|charged| charged.returned()))
        .map(|free| format!(" ({})", percent(free)))
        .unwrap_or_default();
    Some(format!("{}{later}{free}", percent(second)))
}

fn shares(results: &Results, group: Group) -> String {
    by_contender(results, &results.group(group.name()), share)
}

fn charts(results: &Results, numbers: &[usize]) -> String {
    let mut text = String::new();
    for &(row, _, title) in numbers.iter().filter_map(|&at| CHARTS.get(at)) {
        if results.row(row).is_some() {
            let _ = writeln!(text, "![{title}](images/{})\n", chart::file_name(row));
        }
    }
    text
}

fn asked(results: &Results) -> String {
    let rows = results.group(Group::Asked.name());
    let calls = |cell: &Cell| cell.records.first()?.purge.as_ref().map(|call| format!("`{call}`"));
    let which: Vec<_> =
        rows.iter().copied().filter(|row| ["asked-asleep-4", "own-asleep-4"].contains(&&*row.name)).collect();
    let text = by_contender(results, &rows, |cell| cell.records.first()?.purge.as_ref().and_then(|_| share(cell)));
    text + &by_contender(results, &which, calls).replace("| row |", "| what is called in |")
}

fn alone(results: &Results) -> String {
    let rows: Vec<_> = results.group(Group::Alone.name()).into_iter().filter(|row| row.name != "alone-loop").collect();
    let mut text = by_contender(results, &rows, share) + &charts(results, &[3, 4]);
    if let Some(row) = results.row("alone-loop") {
        let who = results.who(&[row]);
        let off = results.cell(&row.name, OFF);
        let line = |&peer: &&str| {
            let cell = results.cell(&row.name, peer)?;
            let mean = cell.figure("cycle_cpu_ms")?;
            let peak = cell.median(|record| Some(record.rss.peak as f64))?;
            let more = off.and_then(|off| cell.ratio(off, |record| record.figures.get("cycle_cpu_ms").copied()));
            let more = or_dash(more.map(|ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0)));
            let least = cell.least(|record| record.figures.get("cycle_least_cpu_ms").copied())?;
            let figures = vec![number(mean), number(least), more, format!("{:.0}", peak / MIB)];
            Some((peer.to_owned(), figures))
        };
        let columns = ["ms a cycle", "least cycle", "more than ours-off", "peak MiB"];
        text.push_str(&table("alone-loop", &columns, &who.iter().filter_map(line).collect::<Vec<_>>()));
    }
    text
}

fn peaks(results: &Results) -> String {
    let rows = results.group(Group::Peaks.name());
    let mib = |bytes: u64| Some(bytes as f64 / MIB);
    let left = |cell: &Cell| {
        let two_seconds =
            |record: &Record| record.returned.after_2s.map(|share| record.rss.peak as f64 / MIB * (1.0 - share));
        cell.median(two_seconds).map(|left| format!("{left:.1}"))
    };
    let peak = |cell: &Cell| cell.median(|record| mib(record.rss.peak)).map(|peak| format!("{peak:.0}"));
    let who = results.who(&rows);
    let line = |(row, words, figure): (&str, &str, Figure<'_>)| {
        let cells: Vec<_> = who.iter().map(|peer| or_dash(results.cell(row, peer).and_then(figure))).collect();
        results.row(row).map(|_| (format!("{row}: {words}"), cells))
    };
    let lines: [(&str, &str, Figure<'_>); 4] = [
        ("threads-64", "peak", &peak),
        ("threads-64", "left after 2 s", &left),
        ("burst", "peak", &peak),
        ("burst", "left", &|cell| cell.median(|record| mib(record.rss.end)).map(|left| format!("{left:.0}"))),
    ];
    table("MiB", &who, &lines.into_iter().filter_map(line).collect::<Vec<_>>())
}

/// The first full purge: its price.
fn purge(results: &Results) -> String {
    let Some(row) = results.row("asked-asleep-4") else { return "\n".to_owned() };
    let line = |peer: &str| {
        let cell = results.cell(&row.name, peer)?;
        let call = cell.records.first()?.purge.as_ref()?;
        let marked = cell.calls.as_ref().and_then(|calls| calls.marked.as_ref());
        let calls = or_dash(marked.map(|calls| calls.values().sum::<u64>().to_string()));
        let times = ["purge_first_cpu_ms", "purge_first_wall_ms"];
        let [cpu, wall] = times.map(|name| or_dash(cell.figure(name).map(number)));
        let least = cell.least(|record| record.figures.get(times[0]).copied());
        Some((peer.to_owned(), vec![format!("`{call}`"), cpu, or_dash(least.map(number)), wall, calls, share(cell)?]))
    };
    let columns = ["call", "CPU ms", "least", "wall ms", "system calls", "returned %"];
    table("allocator", &columns, &results.who(&[row]).into_iter().filter_map(line).collect::<Vec<_>>())
}

/// What the thread that returns memory computes.
fn thread(results: &Results) -> String {
    let rows = [("busy-4", OURS), ("busy-long", OURS), ("same-long", OURS), ("burst", OURS), ("alone-loop", THREAD)];
    let line = |(row, contender): (&str, &str)| {
        let cell = results.cell(row, contender)?;
        let cpu = |record: &Record| Some(record.helpers.iter().map(|helper| helper.cpu_ms).sum::<f64>());
        let wall = |record: &Record| {
            let first = record.samples.first()?.ms;
            Some((record.samples.last()?.ms - first) / 1000.0)
        };
        let (cpu, wall) = (cell.median(cpu)?, cell.median(wall)?);
        let words = vec![format!("{cpu:.0}"), format!("{wall:.1}"), format!("{:.1}", cpu / wall / 10.0)];
        Some((format!("{row}, {contender}"), words))
    };
    let columns = ["CPU ms of the thread", "wall s of the program", "% of one processor"];
    table("row", &columns, &rows.into_iter().filter_map(line).collect::<Vec<_>>())
}

fn speed(results: &Results) -> String {
    let Some(speed) = &results.speed else { return "\n".to_owned() };
    let place = |name: &str| speed.peers.iter().position(|peer| peer.name == name);
    let Some((on, off)) = place(OURS).zip(place(OFF)) else { return "\n".to_owned() };
    let (mut ratios, mut lines) = (Vec::new(), Vec::new());
    for line in summary::lines(speed, off) {
        let Some((with, without)) = line.cells[on].zip(line.cells[off]) else { continue };
        let minima = with.min / without.min;
        ratios.push(minima);
        let paired =
            |effect: crate::stats::Effect| format!("{:.3} ({:.3}–{:.3})", effect.ratio, effect.low, effect.high);
        let words =
            vec![number(with.min), number(without.min), format!("{minima:.3}"), or_dash(with.paired.map(paired))];
        lines.push((line.row.name.clone(), words));
    }
    if let Some(mean) = summary::geometric_mean(&ratios) {
        let none = String::new;
        lines.push(("**geometric mean**".to_owned(), vec![none(), none(), format!("**{mean:.3}**"), none()]));
    }
    table("row", &["ns, on", "ns, off", "ratio of minima", "ratio within rounds (95 %)"], &lines)
}

fn turnover(results: &Results) -> String {
    let cell = |cell: &Cell| {
        let calls =
            or_dash(cell.calls.as_ref().and_then(super::results::Counts::above_empty).map(|calls| calls.to_string()));
        let ns = cell.least(|record| record.figures.get("pair_ns").copied())?;
        Some(format!("{calls} · {}", number(ns)))
    };
    by_contender(results, &results.group(Group::Turnover.name()), cell)
}

fn latency(results: &Results) -> String {
    let rows: Vec<_> = ["latency", "latency-purged"].iter().filter_map(|name| results.row(name)).collect();
    let figures = ["p50_ns", "p99_ns", "p99_9_ns", "p99_99_ns"];
    let mut lines = Vec::new();
    for peer in results.who(&rows) {
        for (row, words) in rows.iter().zip(["", ", purged"]) {
            let Some(cell) = results.cell(&row.name, peer) else { continue };
            let is_purged = row.name != "latency";
            if is_purged && cell.records.iter().any(|record| record.purge.is_none()) {
                continue;
            }
            let mut cells: Vec<_> = figures.iter().map(|name| or_dash(cell.figure(name).map(number))).collect();
            cells.push(or_dash(cell.figure("purge_calls").filter(|_| is_purged).map(|calls| format!("{calls:.0}"))));
            lines.push((format!("{peer}{words}"), cells));
        }
    }
    table("ns", &["50 %", "99 %", "99.9 %", "99.99 %", "purges"], &lines)
}

fn idle(results: &Results) -> String {
    let Some(row) = results.row("idle") else { return "\n".to_owned() };
    let line = |peer: &str| {
        let record = results.cell(&row.name, peer)?.records.first()?;
        let names: Vec<_> = record.helpers.iter().map(|helper| helper.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let words = vec![record.switches.voluntary.to_string(), record.switches.involuntary.to_string(), names];
        Some((peer.to_owned(), words))
    };
    let columns = ["wake-ups", "times it was interrupted", "threads of the allocator"];
    table("allocator", &columns, &results.who(&[row]).into_iter().filter_map(line).collect::<Vec<_>>())
}

/// What has no figure, and why.
fn problems(results: &Results) -> String {
    let mut text = String::new();
    for row in &results.rows {
        for (cell, peer) in row.cells.iter().zip(&results.contenders) {
            if let Some(problem) = &cell.problem {
                let _ = writeln!(text, "* {}, {}: not measured: {problem}", row.name, peer.name);
            }
        }
    }
    if text.is_empty() { "\nEverything was measured.\n\n".to_owned() } else { format!("\n{text}\n") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mpp_workloads::memory_return::process::Switches;
    use mpp_workloads::memory_return::record::{Returned, Three, Truth};

    use super::super::results::Counts;
    use super::*;
    use crate::performance::results::PeerState;

    fn record(after_1s: f64, end: f64, charged: Option<f64>) -> Record {
        Record {
            malloc_from: String::new(),
            command: String::new(),
            purge: None,
            rss: Three { start: 0, peak: 100 << 20, end: ((1.0 - end) * 1048576e2) as u64 },
            returned: Returned { after_1s: Some(after_1s), after_2s: Some(after_1s), end, ..Returned::default() },
            truth: Truth {
                group: Some("cgroup v1, its own".to_owned()),
                charged: charged.map(|share| Three { start: 0, peak: 1000, end: ((1.0 - share) * 1000.0) as u64 }),
                charged_returned: charged,
                used: Three::default(),
                used_returned: 0.0,
                huge: [None; 2],
                splits: Default::default(),
            },
            switches: Switches::default(),
            helpers: Vec::new(),
            figures: BTreeMap::from([("pair_ns".to_owned(), 5.0 + after_1s)]),
            damaged: 0,
            samples: Vec::new(),
        }
    }

    fn cell(records: Vec<Record>) -> Cell {
        Cell { records, ..Cell::default() }
    }

    fn results(rows: Vec<Row>) -> Results {
        let peer = |name: &str| PeerState { name: name.to_owned(), origin: String::new(), problem: None };
        Results { contenders: vec![peer(OURS), peer("glibc")], rows, ..Results::default() }
    }

    fn row(name: &str, group: Group, cells: [Cell; 2]) -> Row {
        Row { name: name.to_owned(), group: group.name().to_owned(), line: String::new(), cells: cells.into() }
    }

    #[test]
    fn a_share_says_when_and_whether_it_is_true() {
        let words = |records| share(&cell(records)).unwrap();
        assert_eq!(words(vec![record(0.76, 0.765, Some(0.77))]), "76 (77)");
        assert_eq!(words(vec![record(0.1, 0.7, Some(0.0))]), "10 → 70 (0)");
        assert_eq!(words(vec![record(-0.01, -0.01, None)]), "0");
        assert_eq!(words(vec![record(0.1, 0.1, None), record(0.5, 0.5, None), record(0.9, 0.9, None)]), "50");
        let mut shared = record(0.5, 0.5, Some(0.5));
        shared.truth.group = Some("cgroup v1, shared".to_owned());
        assert_eq!(words(vec![shared]), "50", "what others have a part in is no truth");
    }

    #[test]
    fn who_was_not_measured_has_a_dash_or_no_column() {
        let failed = Cell { problem: Some("hung".to_owned()), ..cell(vec![record(0.0, 0.0, None)]) };
        let busy = row("busy-4", Group::Automatic, [cell(vec![record(0.7, 0.7, None)]), failed]);
        let all =
            results(vec![busy, row("busy-1", Group::Automatic, [cell(vec![record(0.6, 0.6, None)]), Cell::default()])]);
        let text = shares(&all, Group::Automatic);
        assert!(
            text.contains("| row | ours | glibc |\n|---|---:|---:|\n| busy-4 | 70 | – |\n| busy-1 | 60 | – |"),
            "{text}"
        );
        assert!(problems(&all).contains("* busy-4, glibc: not measured: hung"));
        let alone =
            results(vec![row("busy-1", Group::Automatic, [cell(vec![record(0.6, 0.6, None)]), Cell::default()])]);
        assert!(shares(&alone, Group::Automatic).contains("| row | ours |\n"));
        assert_eq!(shares(&results(Vec::new()), Group::Automatic), "\n");
    }

    #[test]
    fn calls_are_those_above_an_empty_run() {
        let calls = |mmap: u64| BTreeMap::from([("mmap".to_owned(), mmap), ("other".to_owned(), 50)]);
        let counts = Counts { all: calls(12), empty: Some(calls(9)), marked: None };
        let measured = Cell { calls: Some(counts), ..cell(vec![record(1.0, 1.0, None), record(0.0, 0.0, None)]) };
        let text = turnover(&results(vec![row("pairs-64", Group::Turnover, [measured, Cell::default()])]));
        assert!(text.contains("| pairs-64 | 3 · 5.00 |"), "{text}");
    }

    #[test]
    fn every_part_has_its_place_once() {
        let mut names: Vec<_> = parts(&Results::default()).into_iter().map(|(place, _)| place.0).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!((names.len(), all), (12, 12));
    }
}
