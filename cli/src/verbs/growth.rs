//! `mpp growth`: what keeps growing over many snapshots.

mod json;
mod load;
mod report;

use std::path::PathBuf;

use clap::Args;

use crate::args::{CommonArgs, GroupChoice, ReportArgs, RowArgs, SelectionArgs, SymbolArgs};
use crate::exit::Failure;
use crate::output;
use crate::render::Report;
use crate::selection::Names;

use report::Shown;

const EXAMPLES: &str = "\
Examples:
  mpp growth                           the newest recording below this folder
  mpp growth mpp-app-1-2 --slices 50   its timeline, at 50 times instead of 16
  mpp growth mon.heap tue.heap wed.heap thu.heap   snapshots from anywhere, in this order
  mpp growth --all-rows --format csv   every function at every time

A recording with numbered dumps (mpp run --interval 30s) is compared dump by dump; others, and those with fewer than
three, by their timeline. What the program frees while it ends is left out of both.

  grows   keeps growing, also in the second half: look here first for leaks and for caches without a limit
  levels  has grown, and then no more
  rises   there is more than at first, after ups and downs or a jump
  falls   there is less than at first
  flat    no change, or one that may be chance

upwards is how much of all movement was growth: 100% never shrinks. Changes of less than two standard errors may be
chance and count as none.";

/// The flags of `mpp growth`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GrowthArgs {
    /// A recording folder, a timeline.bin, a bundle, or three or more heap profiles [default: the newest recording below this folder]
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The process of a recording to show [default: the one that was started]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true)]
    pid: Option<u32>,
    /// Look at the timeline at so many times, evenly spread, even if there are dumps [default: 16]
    #[arg(long, value_name = "N", env = "MPP_SLICES", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(3..=1000))]
    slices: Option<u32>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// What a row is
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    group: GroupChoice,
    /// Also rows that fall or stay as they are
    #[arg(long, env = "MPP_ALL_ROWS", hide_env_values = true)]
    all_rows: bool,
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
/// If there are too few snapshots, one cannot be read, or the report cannot be written.
pub(crate) fn growth(args: &GrowthArgs, common: CommonArgs) -> Result<(), Failure> {
    let loaded = load::load(args, common)?;
    let names = Names::new(&args.selection, args.report.format.is_for_programs(), &loaded.last.loaded.profile);
    let shown = Shown::of(args, &loaded, names);
    let (header, table, footer) = (shown.header(), shown.table(), shown.footer());
    let report = Report { header: &header, table: &table, footer: &footer, data: &json::Data::of(&shown) };
    output::report(&report, &args.report, common)
}
