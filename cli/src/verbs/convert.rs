//! `mpp convert`: a profile in the format of another tool.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mpp_profile::formats::{self, Options, Target};
use mpp_profile::{Metric, Unit};

use crate::args::{CommonArgs, FilterArgs, InputArgs, MetricChoice, OutputArgs, SymbolArgs, UnitChoice};
use crate::exit::{Failure, OrExit};
use crate::{input, message, output, selection};

const EXAMPLES: &str = "\
Examples:
  mpp convert app.heap --to speedscope -o app.speedscope.json     for https://www.speedscope.app
  mpp convert --to firefox -o app.json        the newest recording, for https://profiler.firefox.com
  mpp convert dhat.json --to proto-gz -o app.pb.gz                for pprof
  mpp convert app.heap --to folded --metric alloc | sort -k2 -n
  mpp convert app.heap --to callgrind -o callgrind.out.app && callgrind_annotate callgrind.out.app

All metrics that the format has a place for are written; folded stacks hold one, see --metric. What
the format has no place for is told on standard error. The result goes to standard output unless -o
names a file.

Exit codes: 0 done, 1 I/O error, 2 usage, 13 input unreadable, or the format cannot express it.";

/// The flags of `mpp convert`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// A heap profile, a recording folder, a bundle, or `-` for standard input [default: the newest recording below this folder]
    #[arg(value_name = "INPUT")]
    input: Option<PathBuf>,
    /// The process of a recording [default: the one that was started]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true, conflicts_with = "all")]
    pid: Option<u32>,
    /// All processes of a recording as one
    #[arg(long, env = "MPP_ALL", hide_env_values = true)]
    all: bool,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT", env = "MPP_TO", hide_env_values = true)]
    to: To,
    /// In folded stacks: which metric
    #[arg(long, value_enum, value_name = "METRIC", default_value = "live", env = "MPP_METRIC", hide_env_values = true)]
    metric: MetricChoice,
    /// In folded stacks: what to count
    #[arg(long, value_enum, value_name = "UNIT", default_value = "bytes", env = "MPP_UNIT", hide_env_values = true)]
    unit: UnitChoice,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// See [`ConvertArgs::to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// pprof's profile.proto
    Proto,
    /// The same packed with gzip, as pprof has it
    ProtoGz,
    /// heap_v2 text of this project; addresses, no names
    HeapV2,
    /// gperftools' heap profile text; addresses, no names
    Gperftools,
    /// jemalloc's heap_v2 text; addresses, no names
    Jemalloc,
    /// JSON for Valgrind's dh_view.html
    Dhat,
    /// A line for each stack: `main;parse;grow 4096`
    Folded,
    /// JSON for speedscope
    Speedscope,
    /// JSON for the Firefox profiler
    Firefox,
    /// A row for each sample, with all metrics
    Csv,
    /// Callgrind's text for KCachegrind and callgrind_annotate
    Callgrind,
}

impl To {
    fn target(self) -> Target {
        match self {
            To::Proto => Target::Proto,
            To::ProtoGz => Target::ProtoGz,
            To::HeapV2 => Target::HeapV2,
            To::Gperftools => Target::Gperftools,
            To::Jemalloc => Target::Jemalloc,
            To::Dhat => Target::Dhat,
            To::Folded => Target::Folded,
            To::Speedscope => Target::Speedscope,
            To::Firefox => Target::Firefox,
            To::Csv => Target::Csv,
            To::Callgrind => Target::Callgrind,
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, the format cannot express it, or the result cannot be written.
pub(crate) fn convert(args: &ConvertArgs, common: CommonArgs) -> Result<(), Failure> {
    // Not those for a stretch of time: `--to` is the format here.
    let input = InputArgs { input: args.input.clone(), pid: args.pid, all: args.all, ..InputArgs::default() };
    let mut loaded = input::load(&input, &args.symbols, common)?;
    let target = args.to.target();
    let metric = if target == Target::Folded { selection::metric(args.metric) } else { Metric::Live };
    selection::check_metric(&loaded.profile, metric)?;
    selection::filter(&mut loaded.profile, &args.filter);
    let unit = if args.unit == UnitChoice::Blocks { Unit::Blocks } else { Unit::Bytes };
    let mut content = Vec::new();
    let written = formats::write(&loaded.profile, target, Options { metric, unit }, &mut content);
    let losses = written.or_exit(crate::exit::Code::Input)?;
    for loss in losses {
        message::note(common, format!("not in this format: {loss}"));
    }
    match args.output.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => Ok(output::to_file(path, &content, || args.output.force)?),
        None => Ok(output::to_stdout(&content)?),
    }
}
