//! `mpp top`: the table of allocation sites.

mod json;
mod report;

use clap::{Args, ValueEnum};
use mpp_profile::analysis::{Group, Quality, Row, Table as Sites, View};

use crate::args::{CommonArgs, GroupChoice, InputArgs, ReportArgs, RowArgs, SelectionArgs, SymbolArgs};
use crate::exit::Failure;
use crate::labels::labels;
use crate::output;
use crate::render::Report;
use crate::selection::{self, Names, Selected};

use report::Shown;

const EXAMPLES: &str = "\
Examples:
  mpp top                              the newest recording below this folder
  mpp top app.heap --limit 5           the five functions with most live memory
  mpp top --unit blocks --group line   lines by their number of blocks
  mpp top --focus 'parse|decode'       only what was allocated below such functions
  mpp top --format json | jq .rows[0]

flat is what a function allocated itself; cum adds what the functions it called allocated.";

/// The flags of `mpp top`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// What a row is
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    pub(crate) group: GroupChoice,
    /// What the rows are ordered by
    #[arg(long, value_enum, value_name = "BY", default_value = "flat", env = "MPP_SORT", hide_env_values = true)]
    pub(crate) sort: SortChoice,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// See [`TopArgs::sort`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortChoice {
    /// What was allocated in the row itself
    Flat,
    /// What was allocated in the row and below
    Cum,
}

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, or the report cannot be written.
pub(crate) fn top(args: &TopArgs, common: CommonArgs) -> Result<(), Failure> {
    let selected = selection::load(&args.input, &args.selection, &args.symbols, args.group.group(), common)?;
    let Selected { loaded, view, .. } = &selected;
    // Each goes over all stacks.
    let (mut sites, quality) = std::thread::scope(|scope| {
        let quality = scope.spawn(|| Quality::of(&loaded.profile, view.metric));
        (Sites::build(&loaded.profile, view), quality.join())
    });
    // Functions of other metrics: what has been freed is not live.
    sites.rows.retain(|row| row.cumulative.value(view.unit) > 0);
    if args.sort == SortChoice::Cum {
        sites.sort_by_cumulative(view.unit);
    }
    // A panic there has ended the process.
    let quality = quality.map_err(|_| anyhow::anyhow!("the quality of the profile could not be judged"))?;
    let names = Names::new(&args.selection, args.report.format.is_for_programs(), &loaded.profile);
    let rows = chosen_rows(&sites, args, view, selected.whole.value(view.unit));
    // Files, libraries and addresses are what they are.
    let is_function = |row: &Row| row.named && matches!(view.group, Group::Function | Group::Line);
    let items: Vec<(&str, bool)> = rows.iter().map(|row| (&*row.name, is_function(row))).collect();
    let labels = labels(&items, names);
    let shown = Shown { selected: &selected, sites: &sites, quality: &quality, rows, labels };
    let (header, table, footer) = (shown.header(), shown.table(), shown.footer());
    let report = Report { header: &header, table: &table, footer: &footer, data: &json::Data::of(&shown) };
    output::report(&report, &args.report, common)
}

fn chosen_rows<'a>(sites: &'a Sites, args: &TopArgs, view: &View, whole: u64) -> Vec<&'a Row> {
    let limit = args.rows.limit(args.report.format, 20);
    let heavy = |row: &&Row| args.rows.shows(row.cumulative.value(view.unit), whole);
    sites.rows.iter().filter(heavy).take(limit).collect()
}
