//! `mpp stats`: a profile in numbers.

mod report;

use clap::Args;
use mpp_profile::Metric;
use mpp_profile::analysis::{Group, ModuleShare, Quality, Table as Sites, View, Weights};

use crate::args::{CommonArgs, InputArgs, ReportArgs, RowArgs, SelectionArgs, SymbolArgs};
use crate::exit::Failure;
use crate::render::Report;
use crate::{heading, output, selection};

use report::{Data, Line, Section};

const EXAMPLES: &str = "\
Examples:
  mpp stats                        the newest recording below this folder
  mpp stats app.heap --metric alloc --limit 0
  mpp stats --format json | jq .sections.sizes

Totals are of everything that is selected; sizes, threads and libraries are of the metric (live, unless --metric says
otherwise). Libraries count with all that their code called, so they do not add up.";

/// The flags of `mpp stats`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Threads and libraries for people unless they want more.
const ROWS: usize = 8;

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, or the report cannot be written.
pub(crate) fn stats(args: &StatsArgs, common: CommonArgs) -> Result<(), Failure> {
    let selected = selection::load(&args.input, &args.selection, &args.symbols, Group::Function, common)?;
    let (profile, view) = (&selected.loaded.profile, selected.view);
    let limit = args.rows.limit(args.report.format, ROWS);
    let total = Weights::of(profile, view.metric).total();
    let grouped = |group| Sites::build(profile, &View { group, ..view });

    let told = |metric: &Metric| match metric {
        Metric::Live => true,
        Metric::Allocated | Metric::Freed => profile.has_allocated(),
        Metric::Peak => profile.has_peak(),
        Metric::Temporary => profile.has_temporary(),
    };
    let all = Weights::of(profile, if profile.has_allocated() { Metric::Allocated } else { Metric::Live }).total();
    let totals = Metric::ALL.iter().filter(|metric| told(metric)).map(|&metric| {
        Line::new(heading::metric_word(metric).to_owned(), Weights::of(profile, metric).total(), all.value(view.unit))
    });
    let whole = total.value(view.unit);
    let rows = |group: Group, in_order: bool| {
        let mut rows = grouped(group).rows;
        rows.retain(|row| row.flat.value(view.unit) > 0);
        if in_order {
            rows.sort_by_key(|row| smallest(&row.name));
        }
        let shown = if in_order { usize::MAX } else { limit };
        rows.into_iter().take(shown).map(|row| Line::new(row.name.to_string(), row.flat, whole)).collect::<Vec<_>>()
    };
    let modules = ModuleShare::all(profile, view.metric);
    let total_bytes = total.bytes;
    let module = |share: &ModuleShare| {
        let name = share.path.as_deref().map_or("(no mapping)", |path| path.rsplit('/').next().unwrap_or(path));
        Line::of_bytes(name.to_owned(), share.bytes, total_bytes)
    };
    let sections = [
        Section { title: "totals", lines: totals.collect() },
        Section { title: "sizes", lines: rows(Group::Size, true) },
        Section {
            title: "threads",
            lines: if profile.threads.is_empty() { Vec::new() } else { rows(Group::Thread, false) },
        },
        Section { title: "libraries", lines: modules.iter().take(limit).map(module).collect() },
    ];
    let quality = Quality::of(profile, view.metric);
    let header = heading::lines(&selected, total, &quality);
    let footer: Vec<String> = report::lifetime(profile).into_iter().collect();
    let report = Report {
        header: &header,
        table: &report::table(&sections, view.unit),
        footer: &footer,
        data: &Data::of(&selected, &sections, &quality),
    };
    output::report(&report, &args.report, common)
}

/// The least size of a group of sizes, as its name tells it; those without one come last.
fn smallest(name: &str) -> u64 {
    let least = name.split(" to below").next().unwrap_or(name).trim_end_matches(" and more");
    mpp_profile::units::parse_size(least).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_in_order() {
        assert_eq!(super::smallest("4.00 KiB to below 8.00 KiB"), 4096);
        assert_eq!(super::smallest("64 B to below 128 B"), 64);
        assert_eq!(super::smallest("unknown size"), u64::MAX);
    }
}
