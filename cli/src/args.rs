//! The command line: every flag is defined once, here or in the file of its verb, and help comes from the definitions.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use mpp_profile::analysis::Group;
use mpp_profile::units::parse_size;
use regex::Regex;

use crate::render::Format;
use crate::slice::SliceArgs;
use crate::verbs::bundle::BundleArgs;
use crate::verbs::check::CheckArgs;
use crate::verbs::completions::CompletionsArgs;
use crate::verbs::config::ConfigArgs;
use crate::verbs::convert::ConvertArgs;
use crate::verbs::ctl::CtlArgs;
use crate::verbs::demo::DemoArgs;
use crate::verbs::diff::DiffArgs;
use crate::verbs::doctor::DoctorArgs;
use crate::verbs::explain::ExplainArgs;
use crate::verbs::flame::FlameArgs;
use crate::verbs::growth::GrowthArgs;
use crate::verbs::heapmap::HeapmapArgs;
use crate::verbs::leaks::LeaksArgs;
use crate::verbs::list::ListArgs;
use crate::verbs::man::ManArgs;
use crate::verbs::merge::MergeArgs;
use crate::verbs::modules::ModulesArgs;
use crate::verbs::peek::PeekArgs;
use crate::verbs::run::RunArgs;
use crate::verbs::stats::StatsArgs;
use crate::verbs::symbolize::SymbolizeArgs;
use crate::verbs::timeline::TimelineArgs;
use crate::verbs::top::TopArgs;
use crate::verbs::tree::TreeArgs;

const EXAMPLES: &str = "\
Examples:
  mpp run -- ./app --flag      record a program; its output and exit status stay as they are
  mpp top                      where the memory of the newest recording below this folder is
  mpp flame -o app.svg         the same as a flame graph

Exit codes: 0 done, 1 internal or I/O error, 2 usage, 13 input unreadable or corrupt,
14 nothing captured; those of `mpp run` are in its own help.";

/// See where the memory of an unmodified program goes.
#[derive(Debug, Parser)]
#[command(name = "mpp", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a program with the allocator preloaded, and record where its memory comes from
    Run(RunArgs),
    /// Table of the functions that allocated most
    Top(TopArgs),
    /// Call tree, from the start of the program down to what allocates
    Tree(TreeArgs),
    /// Callers and callees of a function
    Peek(PeekArgs),
    /// Source code of a function, with what each line allocated
    List(ListArgs),
    /// What changed from one profile to another: grown, shrunk, new and gone
    Diff(DiffArgs),
    /// The profile in numbers: totals, sizes, threads, libraries, lifetimes
    Stats(StatsArgs),
    /// What keeps growing over many snapshots: leak suspects
    Growth(GrowthArgs),
    /// What was not freed at the end, by function, with suppressions
    Leaks(LeaksArgs),
    /// Gate for CI: limits on peak, leaks, allocations; a baseline; JUnit, SARIF, GitHub
    Check(CheckArgs),
    /// Flame graph of the call stacks that allocated
    Flame(FlameArgs),
    /// How much memory a process had while it ran
    Timeline(TimelineArgs),
    /// How full the slabs of a heap are, by size class, and what keeps their memory
    Heapmap(HeapmapArgs),
    /// Table of the files whose code allocated: how far it has names, and what would help
    Modules(ModulesArgs),
    /// Add profiles up: one out of many
    Merge(MergeArgs),
    /// Write a profile with the names of its functions in it; look up addresses of a program or library
    Symbolize(SymbolizeArgs),
    /// Write a profile in the format of another tool
    Convert(ConvertArgs),
    /// Pack a profile and the symbols that it needs into one file for another machine
    Bundle(BundleArgs),
    /// Ask a process that runs, or tell it what to do
    Ctl(CtlArgs),
    /// Will it work here, with this program or process; how good is this profile; what to change
    Doctor(DoctorArgs),
    /// A recording of a program that is inside mpp, to see what it is like
    Demo(DemoArgs),
    /// The program of the demo
    #[command(hide = true)]
    DemoProgram,
    /// What an exit code means, and what to do about it
    Explain(ExplainArgs),
    /// Which values flags have without being given (mpp.toml, environment), and where these come from
    Config(ConfigArgs),
    /// Completions for a shell
    Completions(CompletionsArgs),
    /// Manual pages
    Man(ManArgs),
}

/// Flags of every verb.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Messages")]
pub(crate) struct CommonArgs {
    /// Print errors only
    #[arg(short, long, global = true, env = "MPP_QUIET", hide_env_values = true)]
    pub(crate) quiet: bool,
    /// Say more: where the symbols of each module came from, or why they are missing
    #[arg(short, long, global = true, env = "MPP_VERBOSE", hide_env_values = true)]
    pub(crate) verbose: bool,
    /// When to use colour (NO_COLOR and CLICOLOR_FORCE are honoured by `auto`)
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", env = "MPP_COLOR")]
    #[arg(hide_env_values = true)]
    pub(crate) color: ColorChoice,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal
    Auto,
    /// Also in a file or pipe
    Always,
    /// Nowhere
    Never,
}

/// What an analysis verb reads.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    /// A heap profile, a recording folder, a bundle, or `-` for standard input [default: the newest recording below this folder]
    #[arg(value_name = "INPUT")]
    pub(crate) input: Option<PathBuf>,
    /// The process of a recording to show [default: the one that was started]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true, conflicts_with = "all")]
    pub(crate) pid: Option<u32>,
    /// Show all processes of a recording as one
    #[arg(long, env = "MPP_ALL", hide_env_values = true)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) slice: SliceArgs,
}

/// What of the profile a report shows.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    /// What was allocated and is still there, what was allocated in all, what was freed again, what was there when the
    /// process held most, or what was freed before its thread allocated again
    #[arg(long, value_enum, value_name = "METRIC", default_value = "live", env = "MPP_METRIC", hide_env_values = true)]
    pub(crate) metric: MetricChoice,
    /// What to count and sort by
    #[arg(long, value_enum, value_name = "UNIT", default_value = "bytes", env = "MPP_UNIT", hide_env_values = true)]
    pub(crate) unit: UnitChoice,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// What becomes of frames of the allocator, of libc and of the C++ and Rust standard libraries: at the leaf they
    /// are folded into the function that called them (collapse), or all stay, or all go
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "collapse",
        env = "MPP_RUNTIME",
        hide_env_values = true
    )]
    pub(crate) runtime: RuntimeChoice,
    /// Leave out functions that the compiler inlined: their share goes to the function they were inlined into
    #[arg(long, env = "MPP_NO_INLINES", hide_env_values = true)]
    pub(crate) no_inlines: bool,
    /// How to write function names: type and function; with namespaces and template arguments; in full; or as the
    /// linker knows them [default: short for people, full in JSON, CSV and folded stacks]
    #[arg(long, value_enum, value_name = "STYLE", env = "MPP_NAMES", hide_env_values = true)]
    pub(crate) names: Option<NamesChoice>,
}

/// Which stacks and blocks count.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct FilterArgs {
    /// Only stacks with a frame whose function, file or library matches
    #[arg(long, value_name = "REGEX", env = "MPP_FOCUS", hide_env_values = true)]
    pub(crate) focus: Option<Regex>,
    /// No stacks with a frame whose function, file or library matches
    #[arg(long, value_name = "REGEX", env = "MPP_IGNORE", hide_env_values = true)]
    pub(crate) ignore: Option<Regex>,
    /// Leave out frames whose function, file or library matches; what they have allocated goes to their callers
    #[arg(long, value_name = "REGEX", env = "MPP_HIDE", hide_env_values = true)]
    pub(crate) hide: Option<Regex>,
    /// Let stacks begin at the outermost frame whose function, file or library matches; no stacks without one
    #[arg(long, value_name = "REGEX", env = "MPP_SHOW_FROM", hide_env_values = true)]
    pub(crate) show_from: Option<Regex>,
    /// Only what threads have allocated whose name matches
    #[arg(long, value_name = "REGEX", env = "MPP_THREAD", hide_env_values = true)]
    pub(crate) thread: Option<Regex>,
    /// Only blocks of such sizes: 4KiB..64KiB, 1MiB.., ..100, 48. Both ends belong to it
    #[arg(long, value_name = "MIN..MAX", env = "MPP_SIZE", hide_env_values = true)]
    pub(crate) size: Option<SizeRange>,
}

/// Which rows a report has.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Selection")]
pub(crate) struct RowArgs {
    /// At most this many rows, 0 is all [default: a screenful for people, all in JSON and CSV]
    #[arg(long, value_name = "N", env = "MPP_LIMIT", hide_env_values = true)]
    pub(crate) limit: Option<usize>,
    /// Only rows with at least this share of the total, with what they call
    #[arg(long, value_name = "P", value_parser = percent, env = "MPP_MIN_PERCENT", hide_env_values = true)]
    pub(crate) min_percent: Option<f64>,
}

impl RowArgs {
    /// How many rows to show; `for_people` unless the user or a program wants more.
    pub(crate) fn limit(&self, format: Format, for_people: usize) -> usize {
        match self.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if format.is_for_programs() => usize::MAX,
            None => for_people,
        }
    }

    /// Whether a part of the whole is large enough.
    pub(crate) fn shows(&self, part: u64, whole: u64) -> bool {
        self.min_percent.is_none_or(|least| crate::render::percent(part, whole) >= least)
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    number.ok().filter(|number| number.is_finite()).ok_or_else(|| "expected a number such as 0.5".to_owned())
}

/// What makes two frames or samples one row of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupChoice {
    /// A function
    Function,
    /// A line of a function
    Line,
    /// A source file
    File,
    /// A Rust crate; of functions in other languages, the library or executable
    Crate,
    /// A library or executable
    Lib,
    /// The thread that has allocated
    Thread,
    /// Sizes of blocks, by powers of two
    Size,
}

impl GroupChoice {
    /// The same in the terms of the analysis.
    pub(crate) fn group(self) -> Group {
        match self {
            GroupChoice::Function => Group::Function,
            GroupChoice::Line => Group::Line,
            GroupChoice::File => Group::File,
            GroupChoice::Crate => Group::Crate,
            GroupChoice::Lib => Group::Library,
            GroupChoice::Thread => Group::Thread,
            GroupChoice::Size => Group::Size,
        }
    }
}

/// See [`SelectionArgs::metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricChoice {
    /// Not freed yet
    Live,
    /// Allocated since recording began
    Alloc,
    /// Allocated and freed again
    Freed,
    /// What was live when the process held most
    Peak,
    /// Freed by its thread before that allocated again: often avoidable
    Temp,
}

/// See [`SelectionArgs::unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitChoice {
    /// Usable bytes of the blocks
    Bytes,
    /// Blocks
    Blocks,
}

/// See [`SelectionArgs::runtime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuntimeChoice {
    /// Fold at the leaf
    Collapse,
    /// Keep all
    Show,
    /// Remove all
    Hide,
}

/// See [`SelectionArgs::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamesChoice {
    /// Type and function: `vector::push_back`
    Short,
    /// The path with template arguments that are not the default: `std::vector<int>::push_back`
    Normal,
    /// With everything: `std::vector<int, std::allocator<int> >::push_back(int&&)`
    Full,
    /// Mangled: `_ZNSt6vectorIiSaIiEE9push_backEOi`
    Raw,
}

/// Where to find symbols.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// Folder with separate debug files, laid out like /usr/lib/debug; can be given more than once
    #[arg(long, value_name = "DIR", env = "MPP_DEBUG_DIR", hide_env_values = true, value_delimiter = ':')]
    #[arg(action = ArgAction::Append)]
    pub(crate) debug_dir: Vec<PathBuf>,
    /// Copy of the root folder of the machine that the profile comes from
    #[arg(long, value_name = "DIR", env = "MPP_SYSROOT", hide_env_values = true)]
    pub(crate) sysroot: Option<PathBuf>,
    /// The process that was profiled, if it still runs: its files are read through /proc, also those of its container and
    /// deleted ones; so is its perf map [default: the process of a recording, while it runs the program of the profile]
    #[arg(long, value_name = "PID", env = "MPP_PROC", hide_env_values = true)]
    pub(crate) proc: Option<u32>,
    /// Read debug information again, and do not keep what is found below $XDG_CACHE_HOME/mpp/symbols
    #[arg(long, env = "MPP_NO_SYMBOL_CACHE", hide_env_values = true)]
    pub(crate) no_symbol_cache: bool,
    /// Names of code that was made at run time, as compilers write them for perf [default: /tmp/perf-PID.map, if the
    /// process of a recording has written it]
    #[arg(long, value_name = "FILE", env = "MPP_PERF_MAP", hide_env_values = true)]
    pub(crate) perf_map: Option<PathBuf>,
    /// Whether debuginfod may help: use what its cache has already (cache), ask the servers in DEBUGINFOD_URLS as well,
    /// which tells them which programs you look at (on), or neither (off)
    #[arg(long, value_enum, value_name = "WHEN", default_value = "cache", env = "MPP_DEBUGINFOD")]
    #[arg(hide_env_values = true)]
    pub(crate) debuginfod: DebuginfodChoice,
    /// Take symbols from a bundle that `mpp bundle` has made, before all else; can be given more than once
    #[arg(long, value_name = "FILE", env = "MPP_BUNDLE", hide_env_values = true, value_delimiter = ':')]
    #[arg(action = ArgAction::Append)]
    pub(crate) bundle: Vec<PathBuf>,
    /// Show source files that were in folder FROM as if they were in TO; can be given more than once, the first that
    /// fits counts
    #[arg(long, value_name = "FROM=TO", env = "MPP_SOURCE_DIR", hide_env_values = true, value_delimiter = ':')]
    #[arg(action = ArgAction::Append)]
    pub(crate) source_dir: Vec<SourceDir>,
}

/// See [`SymbolArgs::debuginfod`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DebuginfodChoice {
    /// Neither servers nor cache
    Off,
    /// Only what was fetched before, also by GDB and others
    Cache,
    /// Ask servers
    On,
}

/// See [`SymbolArgs::source_dir`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceDir {
    /// The folder that the debug information tells.
    pub(crate) from: String,
    /// Where it is now.
    pub(crate) to: String,
}

impl SourceDir {
    /// As it stands on the command line.
    pub(crate) fn typed(&self) -> std::ffi::OsString {
        format!("{}={}", self.from, self.to).into()
    }
}

impl std::str::FromStr for SourceDir {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => {
                Ok(SourceDir { from: from.to_owned(), to: to.to_owned() })
            }
            _ => Err("expected two folders with `=` between them, such as /build/app=/home/me/app".to_owned()),
        }
    }
}

/// Sizes of blocks in bytes, from the first to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeRange(pub(crate) u64, pub(crate) u64);

impl std::str::FromStr for SizeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let end = |text: &str, default| match text.trim() {
            "" => Ok(default),
            text => parse_size(text).map_err(|error| error.to_string()),
        };
        let (least, most) = match text.split_once("..") {
            Some(("", "")) => return Err("expected sizes such as 4KiB..64KiB, 1MiB.. or ..100".to_owned()),
            Some((least, most)) => (end(least, 0)?, end(most.trim_start_matches('='), u64::MAX)?),
            None => (end(text, 0)?, end(text, 0)?),
        };
        if least <= most { Ok(SizeRange(least, most)) } else { Err(format!("{least} is more than {most}")) }
    }
}

/// Where a report goes, and in which format.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", env = "MPP_FORMAT", hide_env_values = true)]
    pub(crate) format: Format,
}

/// Where a result goes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write to this file, `-` is standard output; a file that exists is not replaced
    #[arg(short, long, value_name = "FILE", env = "MPP_OUTPUT", hide_env_values = true)]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, env = "MPP_FORCE", hide_env_values = true)]
    pub(crate) force: bool,
}
