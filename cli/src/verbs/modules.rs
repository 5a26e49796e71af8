//! `mpp modules`: of each file with code, how far its functions have names, where they come from, and what would help.

mod json;
mod report;

use clap::Args;
use mpp_profile::analysis::{ModuleShare, Quality, Weights};

use crate::args::{CommonArgs, InputArgs, MetricChoice, ReportArgs, RowArgs, SymbolArgs};
use crate::exit::Failure;
use crate::render::Report;
use crate::{input, output, selection};

use report::{Row, Shown};

const EXAMPLES: &str = "\
Examples:
  mpp modules                             the newest recording below this folder
  mpp modules app.heap --limit 0          all files, not only the 20 with most bytes
  mpp modules --debug-dir ./debug         the same with debug files from there
  mpp modules --format json | jq -r '.modules[] | select(.nothing_bytes > 0) | .build_id'

The bytes of a file are those of all stacks that go through its code, so they do not add up to the total. lines, names
and nothing say how much of that is known with file and line, by name only, and not at all.";

/// The flags of `mpp modules`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModulesArgs {
    #[command(flatten)]
    input: InputArgs,
    /// What was allocated and is still there, what was allocated in all, what was freed again, what was there when the
    /// process held most, or what was freed before its thread allocated again
    #[arg(long, value_enum, value_name = "METRIC", default_value = "live", env = "MPP_METRIC", hide_env_values = true)]
    metric: MetricChoice,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, or the report cannot be written.
pub(crate) fn modules(args: &ModulesArgs, common: CommonArgs) -> Result<(), Failure> {
    let loaded = input::load(&args.input, &args.symbols, common)?;
    let metric = selection::metric(args.metric);
    selection::check_metric(&loaded.profile, metric)?;
    let shares = ModuleShare::all(&loaded.profile, metric);
    let rows: Vec<Row<'_>> = shares.iter().map(|share| Row { share, found: loaded.symbols.found_for(share) }).collect();
    let total = Weights::of(&loaded.profile, metric).total();
    let all = rows.len();
    let heavy = rows.into_iter().filter(|row| args.rows.shows(row.share.bytes, total.bytes));
    let shown = Shown {
        loaded: &loaded,
        metric,
        total,
        quality: Quality::of(&loaded.profile, metric),
        all,
        rows: heavy.take(args.rows.limit(args.report.format, 20)).collect(),
        is_verbose: common.verbose,
    };
    let (header, table, footer) = (shown.header(), shown.table(), shown.footer());
    let report = Report { header: &header, table: &table, footer: &footer, data: &json::Data::of(&shown) };
    output::report(&report, &args.report, common)
}
