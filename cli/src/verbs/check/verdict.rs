//! The result as one thing, from which all outputs are made.

use mpp_profile::Unit;
use mpp_profile::analysis::{Table as Sites, View};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count};
use serde::Serialize;
use serde_json::Number;

use super::baseline::Baseline;
use super::gates::{Figure, Gate, Measure, Measured, Name, Verdict};
use crate::args::{CommonArgs, ReportArgs};
use crate::exit::Failure;
use crate::render::{Cell, Column, Report, Table};
use crate::selection::{Names, Selected};
use crate::{heading, output};

/// Sites that are named of a gate that did not pass.
const SITES: usize = 5;

/// Where most of what a gate is about comes from.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Site {
    /// Escaped.
    pub(super) function: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    pub(super) bytes: u64,
    pub(super) blocks: u64,
}

/// A gate with what is to be told about it.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) gate: Gate,
    /// Empty if it passed.
    pub(super) sites: Vec<Site>,
}

/// All gates.
#[derive(Debug)]
pub(super) struct Checked {
    /// Escaped.
    pub(super) source: String,
    pub(super) gates: Vec<Told>,
    header: Vec<String>,
    /// What was not checked, or does not do what it seems to; escaped.
    pub(super) notes: Vec<String>,
}

/// The largest allowed, or the least.
fn relation(name: Name) -> &'static str {
    if name.is_least() { "at least" } else { "at most" }
}

pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Inconclusive => "inconclusive",
    }
}

pub(super) fn amount(name: Name, value: f64) -> String {
    match name.measure() {
        Measure::Bytes => bytes(value.round() as u64),
        Measure::Count => count(value.round() as u64),
        Measure::Percent => format!("{value:.1}%"),
    }
}

fn figure(name: Name, figure: Figure) -> String {
    let spread = if figure.error > 0.0 { format!(" ± {}", amount(name, figure.error)) } else { String::new() };
    format!("{}{spread}", amount(name, figure.value))
}

impl Told {
    /// `live at the peak: 120 MiB ± 2.00 MiB, allowed is at most 100 MiB (baseline 95.2 MiB)`
    pub(super) fn sentence(&self) -> String {
        let Gate { name, limit, baseline, .. } = self.gate;
        let baseline = baseline.map(|before| format!(" (baseline {})", figure(name, before))).unwrap_or_default();
        format!(
            "{}: {}, allowed is {} {}{baseline}",
            name.sentence(),
            figure(name, self.gate.figure),
            relation(name),
            amount(name, limit)
        )
    }
}

impl Checked {
    pub(super) fn of(
        selected: &Selected,
        measured: &Measured,
        baseline: Option<&Baseline>,
        gates: Vec<Gate>,
        names: Names<'_>,
    ) -> Checked {
        let told = |gate: Gate| {
            let sites =
                if gate.verdict == Verdict::Passed { Vec::new() } else { sites(selected, measured, gate, names) };
            Told { gate, sites }
        };
        Checked {
            source: escaped(&selected.loaded.source).to_string(),
            gates: gates.into_iter().map(told).collect(),
            header: vec![heading::source(&selected.loaded)],
            notes: notes(selected, measured, baseline),
        }
    }

    /// The worst of all.
    pub(super) fn verdict(&self) -> Verdict {
        self.gates.iter().map(|told| told.gate.verdict).max().unwrap_or(Verdict::Passed)
    }

    /// One line: `failed: 1 of 3 gates; live at the peak: …`.
    pub(super) fn line(&self) -> String {
        let of = |verdict| self.gates.iter().filter(|told| told.gate.verdict == verdict).count();
        let (all, worst) = (self.gates.len(), self.verdict());
        let noun = if all == 1 { "gate" } else { "gates" };
        match (worst, self.gates.iter().find(|told| told.gate.verdict == worst)) {
            (Verdict::Passed, _) => format!("passed: {all} {noun}"),
            (worst, Some(first)) => {
                format!("{}: {} of {all} {noun}; {}", verdict_word(worst), of(worst), first.sentence())
            }
            (worst, None) => verdict_word(worst).to_owned(),
        }
    }

    pub(super) fn print(&self, args: &ReportArgs, common: CommonArgs) -> Result<(), Failure> {
        let mut header = vec![self.line()];
        header.extend(self.header.iter().cloned());
        let mut footer = Vec::new();
        if let Some(told) = self.gates.iter().find(|told| told.gate.verdict == self.verdict() && !told.sites.is_empty())
        {
            footer.push(format!("most of {}:", told.gate.name.sentence()));
            footer.extend(told.sites.iter().map(|site| format!("  {}", site_line(site, told.gate.name))));
        }
        if self.verdict() == Verdict::Inconclusive {
            footer.push(
                "to decide, sample more (mpp run --sample 64KiB) or record every block (--mode exact)".to_owned(),
            );
        }
        footer.extend(self.notes.iter().cloned());
        let report = Report { header: &header, table: &self.table(), footer: &footer, data: &self.data() };
        output::report(&report, args, common)
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::new("", "verdict"),
            Column::for_programs("gate"),
            Column::for_people("gate"),
            Column::for_people("found"),
            Column::for_people("allowed"),
            Column::for_programs("value"),
            Column::for_programs("error"),
            Column::for_programs("limit"),
        ];
        let row = |told: &Told| {
            let Gate { name, figure: found, limit, .. } = told.gate;
            let allowed = format!("{} {}", relation(name), amount(name, limit));
            let texts = [verdict_word(told.gate.verdict), name.text(), name.sentence()].map(str::to_owned);
            let shown = [figure(name, found), allowed];
            let text = |value| name.number(value).map(|number| number.to_string()).unwrap_or_default();
            let numbers = [found.value, found.error, limit].map(text);
            texts.into_iter().chain(shown).chain(numbers).map(Cell::Text).collect()
        };
        Table { columns, rows: self.gates.iter().map(row).collect() }
    }

    fn data(&self) -> Data<'_> {
        let gate = |told: &Told| DataGate {
            gate: told.gate.name.text(),
            verdict: verdict_word(told.gate.verdict),
            value: told.gate.name.number(told.gate.figure.value),
            error: told.gate.name.number(told.gate.figure.error),
            limit: told.gate.name.number(told.gate.limit),
            baseline: told.gate.baseline.and_then(|before| told.gate.name.number(before.value)),
            sites: told.sites.clone(),
        };
        Data {
            schema: "mpp-check",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            source: &self.source,
            verdict: verdict_word(self.verdict()),
            gates: self.gates.iter().map(gate).collect(),
            notes: &self.notes,
        }
    }

    pub(super) fn json(&self) -> anyhow::Result<Vec<u8>> {
        Ok((serde_json::to_string_pretty(&self.data())? + "\n").into_bytes())
    }
}

/// What a reader of the verdict has to know besides.
fn notes(selected: &Selected, measured: &Measured, baseline: Option<&Baseline>) -> Vec<String> {
    let unused = measured.used.iter().filter(|used| used.samples == 0);
    let mut notes: Vec<String> =
        unused.map(|used| format!("suppresses nothing: leak:{} ({})", used.pattern, used.place)).collect();
    if measured.filtered && selected.loaded.profile.samples.is_empty() {
        notes.push("nothing of the profile is selected: does the pattern still fit?".to_owned());
    }
    if let Some(baseline) = baseline {
        notes.extend(measured.not_compared(baseline));
        if baseline.filtered != measured.filtered {
            let of = |filtered| if filtered { "a part of the program" } else { "the whole program" };
            notes.push(format!("the baseline is of {}, this of {}", of(baseline.filtered), of(measured.filtered)));
        }
    }
    notes.iter().map(|note| escaped(note).to_string()).collect()
}

/// `62.5 MiB  leak_exact  src/main.c:12`
pub(super) fn site_line(site: &Site, name: Name) -> String {
    let amount = if name.unit() == Unit::Bytes { bytes(site.bytes) } else { format!("{} blocks", count(site.blocks)) };
    let place = match (&site.file, site.line) {
        (Some(file), Some(line)) => format!("  {}:{line}", escaped(file)),
        (Some(file), None) => format!("  {}", escaped(file)),
        _ => String::new(),
    };
    format!("{amount:>10}  {}{place}", site.function)
}

fn sites(selected: &Selected, measured: &Measured, gate: Gate, names: Names<'_>) -> Vec<Site> {
    let profile = if gate.name == Name::Leak { &measured.rest } else { &selected.loaded.profile };
    let view = View { metric: gate.name.metric(), unit: gate.name.unit(), ..selected.view };
    let sites = Sites::build(profile, &view);
    let heavy = sites.rows.iter().filter(|row| row.flat.value(view.unit) > 0);
    let site = |row: &mpp_profile::analysis::Row| Site {
        function: escaped(&if row.named { names.of(&row.name) } else { row.name.to_string() }).to_string(),
        file: row.place.as_ref().map(|(file, _)| heading::place(file, 0)),
        line: row.place.as_ref().map(|(_, line)| *line).filter(|&line| line > 0),
        bytes: row.flat.bytes,
        blocks: row.flat.blocks,
    };
    heavy.take(SITES).map(site).collect()
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    source: &'a str,
    verdict: &'static str,
    gates: Vec<DataGate>,
    notes: &'a [String],
}

/// Bytes, allocations or percent, see `gate`.
#[derive(Debug, Serialize)]
struct DataGate {
    gate: &'static str,
    verdict: &'static str,
    value: Option<Number>,
    error: Option<Number>,
    limit: Option<Number>,
    baseline: Option<Number>,
    sites: Vec<Site>,
}
