//! `mpp check`: the gate for CI. Named metrics against limits or a baseline; three verdicts.

mod baseline;
mod gates;
mod github;
mod junit;
mod sarif;
mod verdict;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use mpp_profile::units::parse_size;

use crate::args::{
    CommonArgs, FilterArgs, InputArgs, MetricChoice, ReportArgs, RuntimeChoice, SelectionArgs, SymbolArgs, UnitChoice,
};
use crate::exit::{Code, Failure};
use crate::render::Format;
use crate::selection::{self, Names};
use crate::suppressions::Suppressions;
use crate::{message, output};

use baseline::Baseline;
use gates::{Measured, Verdict};
use verdict::Checked;

const EXAMPLES: &str = "\
Examples:
  mpp check --max-peak 200MiB --max-leak 1MiB        the newest recording below this folder
  mpp check rec --write-baseline base.json           what there is now is the measure from now on
  mpp check rec --baseline base.json --tolerance 5%
  mpp check rec --max-temp 20% --junit out.xml --github --sarif out.sarif
  mpp run --then 'check --max-live-end 10MiB' -- ./tests

Limits can stand in mpp.toml, below [check]. A metric of a sampled profile is an estimate: if its limit lies within two
standard errors the gate is inconclusive, which is neither passed nor failed. What the allocator itself has counted (live
at the end, allocations) has no error.

Exit codes: 0 all gates passed, 10 one failed, 11 one is inconclusive and none failed, 12 the baseline is missing,
13 the input cannot be read, 14 nothing was captured.";

/// The flags of `mpp check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    gates: GateArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// A file with leaks that are known, for --max-leak; can be given more than once
    #[arg(long, value_name = "FILE", env = "MPP_SUPPRESSIONS", hide_env_values = true, value_delimiter = ':')]
    suppressions: Vec<PathBuf>,
    /// Write the result as JUnit XML
    #[arg(long, value_name = "FILE", env = "MPP_JUNIT", hide_env_values = true, help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Write failed gates and their sites as SARIF 2.1.0
    #[arg(long, value_name = "FILE", env = "MPP_SARIF", hide_env_values = true, help_heading = "Output")]
    sarif: Option<PathBuf>,
    /// Print GitHub's annotations, and add to the summary of the step ($GITHUB_STEP_SUMMARY)
    #[arg(long, env = "MPP_GITHUB", hide_env_values = true, help_heading = "Output")]
    github: bool,
    /// Write the result as JSON, besides the report
    #[arg(long, value_name = "FILE", env = "MPP_VERDICT", hide_env_values = true, help_heading = "Output")]
    verdict: Option<PathBuf>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

impl CheckArgs {
    /// Whether the report is JSON or the like, on standard output.
    fn prints_for_programs(&self) -> bool {
        let path = self.report.output.output.as_deref();
        self.report.format != Format::Text && path.is_none_or(|path| path == Path::new("-"))
    }
}

/// What is checked.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GateArgs {
    /// Most bytes that may ever have been live at one moment
    #[arg(long, value_name = "SIZE", value_parser = size, env = "MPP_MAX_PEAK", hide_env_values = true)]
    pub(super) max_peak: Option<u64>,
    /// Most bytes that may be live at the end
    #[arg(long, value_name = "SIZE", value_parser = size, env = "MPP_MAX_LIVE_END", hide_env_values = true)]
    pub(super) max_live_end: Option<u64>,
    /// Most bytes that may be live at the end and are in no suppression
    #[arg(long, value_name = "SIZE", value_parser = size, env = "MPP_MAX_LEAK", hide_env_values = true)]
    pub(super) max_leak: Option<u64>,
    /// Most allocations
    #[arg(long, value_name = "N", env = "MPP_MAX_ALLOCS", hide_env_values = true)]
    pub(super) max_allocs: Option<u64>,
    /// Most bytes that may be allocated in all
    #[arg(long, value_name = "SIZE", value_parser = size, env = "MPP_MAX_ALLOC_BYTES", hide_env_values = true)]
    pub(super) max_alloc_bytes: Option<u64>,
    /// Most allocations that may be temporary (freed before their thread allocates again), in percent of all
    #[arg(long, value_name = "P%", value_parser = percent, env = "MPP_MAX_TEMP", hide_env_values = true)]
    pub(super) max_temp: Option<f64>,
    /// Least share of live bytes whose function has a name
    #[arg(long, value_name = "P%", value_parser = percent, env = "MPP_MIN_SYMBOLIZED", hide_env_values = true)]
    pub(super) min_symbolized: Option<f64>,
    /// Least share of live bytes with a complete stack
    #[arg(long, value_name = "P%", value_parser = percent, env = "MPP_MIN_COMPLETE", hide_env_values = true)]
    pub(super) min_complete: Option<f64>,
    /// Compare with what `--write-baseline` wrote
    #[arg(long, value_name = "FILE", env = "MPP_BASELINE", hide_env_values = true)]
    pub(super) baseline: Option<PathBuf>,
    /// How much more than the baseline is allowed
    #[arg(long, value_name = "P%", default_value = "5%", value_parser = percent, env = "MPP_TOLERANCE")]
    #[arg(hide_env_values = true)]
    pub(super) tolerance: f64,
    /// Write what was measured, for later checks
    #[arg(long, value_name = "FILE", env = "MPP_WRITE_BASELINE", hide_env_values = true)]
    pub(super) write_baseline: Option<PathBuf>,
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a percentage such as 5%".to_owned())
}

/// Runs the verb; returns the exit status.
///
/// # Errors
/// If an input is missing or cannot be read, nothing is to be checked, or a result cannot be written.
pub(crate) fn check(args: &CheckArgs, common: CommonArgs) -> Result<u8, Failure> {
    let suppressions = Suppressions::read(&args.suppressions)?;
    let baseline = args.gates.baseline.as_deref().map(Baseline::read).transpose()?;
    let selection = SelectionArgs {
        metric: MetricChoice::Live,
        unit: UnitChoice::Bytes,
        filter: args.filter.clone(),
        runtime: RuntimeChoice::Collapse,
        no_inlines: false,
        names: None,
    };
    let group = mpp_profile::analysis::Group::Function;
    let selected = selection::load(&args.input, &selection, &args.symbols, group, common)?;
    let measured = Measured::of(&selected, &suppressions);
    let gates = measured.judge(&args.gates, baseline.as_ref())?;
    if gates.is_empty() && args.gates.write_baseline.is_none() {
        let why = "nothing to check: give a limit such as --max-peak 200MiB, or a --baseline (see mpp help check)";
        return Err(Failure::new(Code::Usage, why));
    }
    if let Some(path) = &args.gates.write_baseline {
        let text = Baseline::of(&measured).text()?;
        output::to_file(path, text.as_bytes(), || args.report.output.force)?;
        message::note(common, format!("baseline written to {}", path.display()));
    }
    let names = Names::short(&selected.loaded.profile);
    let checked = Checked::of(&selected, &measured, baseline.as_ref(), gates, names);
    write_files(args, &checked)?;
    if checked.gates.is_empty() {
        return Ok(0);
    }
    if !args.github || args.report.format != Format::Text || args.report.output.output.is_some() {
        checked.print(&args.report, common)?;
    }
    match checked.verdict() {
        Verdict::Passed => Ok(0),
        Verdict::Failed => Ok(Code::GateFailed.number()),
        Verdict::Inconclusive => Ok(Code::Inconclusive.number()),
    }
}

fn write_files(args: &CheckArgs, checked: &Checked) -> Result<(), Failure> {
    // Results of the run before are what these files are for.
    let replace = || true;
    if let Some(path) = &args.junit {
        output::to_file(path, junit::text(checked).as_bytes(), replace)?;
    }
    if let Some(path) = &args.sarif {
        output::to_file(path, &sarif::text(checked)?, replace)?;
    }
    if let Some(path) = &args.verdict {
        output::to_file(path, &checked.json()?, replace)?;
    }
    if args.github {
        let annotations = github::annotations(checked);
        if args.prints_for_programs() {
            // Standard output is that of the program that reads the report; runners look at both.
            std::io::stderr().write_all(annotations.as_bytes()).context("cannot write to standard error")?;
        } else {
            output::to_stdout(annotations.as_bytes())?;
        }
        github::summarize(checked)?;
    }
    Ok(())
}
