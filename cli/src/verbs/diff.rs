//! `mpp diff`: what changed from one profile to another.

mod json;
mod limit;
mod report;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mpp_profile::analysis::diff::{Compared, Difference, stacks};
use mpp_profile::text::escaped;
use mpp_profile::units::bytes;
use mpp_profile::{Profile, Unit};

use crate::args::{CommonArgs, GroupChoice, InputArgs, OutputArgs, RowArgs, SelectionArgs, SymbolArgs};
use crate::exit::{Code, Failure};
use crate::render::flame::{self, Captions, Layout};
use crate::render::style::Style;
use crate::render::{self, Format, Report, signed};
use crate::selection::{self, Names, Selected};
use crate::{heading, message, output};

use limit::Limit;
use report::Shown;

const EXAMPLES: &str = "\
Examples:
  mpp diff before.heap after.heap
  mpp diff mpp-app-1-x mpp-app-2-y --metric peak     two recordings, what was live at the peak
  mpp diff rec/7/heap.0001.pb.gz rec/7/heap.pb.gz    two moments of one run
  mpp diff a b --normalize                           what changed in composition, whatever the size
  mpp diff a b --format svg -o diff.svg              red allocates more, blue less
  mpp diff base.pb.gz now.pb.gz --fail-over 5%       exit code 10 if there is more than 5 % more

Percentages are of what the old profile has in all. Differences of sampled profiles that may well be chance (less
than two standard errors) are not told as changes; they are counted at the end, and --all-rows shows them.

Exit codes: 0 done, 10 more than --fail-over allows, 11 the estimates are too rough to tell, 12 OLD or NEW is missing.";

/// The flags of `mpp diff`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// What there was: a heap profile, a recording folder, or a bundle
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// What there is
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Compare all processes of recordings, and not only the ones that were started
    #[arg(long, env = "MPP_ALL", hide_env_values = true)]
    all: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    /// What a row is
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    group: GroupChoice,
    /// Compare what was allocated in a row and in everything called from there, not only in the row itself
    #[arg(long, env = "MPP_CUM", hide_env_values = true)]
    cum: bool,
    /// Scale the old profile to the total of the new one first
    #[arg(long, env = "MPP_NORMALIZE", hide_env_values = true)]
    normalize: bool,
    /// Also rows that are the same, or whose change may be chance
    #[arg(long, env = "MPP_ALL_ROWS", hide_env_values = true)]
    all_rows: bool,
    /// Fail if there is more than this size or percentage more than before
    #[arg(long, value_name = "SIZE|P%", env = "MPP_FAIL_OVER", hide_env_values = true)]
    fail_over: Option<Limit>,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", env = "MPP_FORMAT", hide_env_values = true)]
    format: DiffFormat,
}

/// See [`DiffArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiffFormat {
    /// Aligned columns for people
    Text,
    /// For programs: schema, schema_version, plain integers
    Json,
    /// For spreadsheets: plain integers
    Csv,
    /// For issues and pull requests
    Md,
    /// A flame graph of the new profile, coloured by what changed
    Svg,
    /// Folded stacks with two numbers, `main;parse 4096 8192`, for other tools
    Folded,
}

/// Where a picture goes without `-o`.
const DEFAULT_FILE: &str = "diff.svg";

/// Runs the verb; returns the exit status.
///
/// # Errors
/// If an input is missing or cannot be read, or the report cannot be written.
pub(crate) fn diff(args: &DiffArgs, common: CommonArgs) -> Result<u8, Failure> {
    let (old, new) = (load(args, &args.old, common)?, load(args, &args.new, common)?);
    let compared = if args.cum { Compared::Cumulative } else { Compared::Flat };
    let difference = Difference::build(&old.loaded.profile, &new.loaded.profile, &new.view, compared, args.normalize);
    let format = match args.format {
        DiffFormat::Text => Format::Text,
        DiffFormat::Json => Format::Json,
        DiffFormat::Csv => Format::Csv,
        DiffFormat::Md => Format::Md,
        DiffFormat::Svg | DiffFormat::Folded => {
            write_stacks(args, &old, &new, &difference)?;
            return verdict(args, &difference, new.view.unit, common);
        }
    };
    let names = Names::new(&args.selection, format.is_for_programs(), &new.loaded.profile);
    let old_names = Names::new(&args.selection, format.is_for_programs(), &old.loaded.profile);
    let shown = Shown::of(args, &old, &new, &difference, format, [old_names, names]);
    let (header, table, footer) = (shown.header(), shown.table(), shown.footer());
    let report = Report { header: &header, table: &table, footer: &footer, data: &json::Data::of(&shown) };
    match args.output.output.as_deref().filter(|path| *path != Path::new("-")) {
        None => output::to_stdout(&render::render(&report, format, Style::of(common.color, &io::stdout()))?)?,
        Some(path) => {
            output::to_file(path, &render::render(&report, format, Style::PLAIN)?, || args.output.force)?;
        }
    }
    verdict(args, &difference, new.view.unit, common)
}

fn load(args: &DiffArgs, path: &Path, common: CommonArgs) -> Result<Selected, Failure> {
    if path != Path::new("-") && !path.exists() {
        return Err(Failure::new(Code::NoPartner, format!("{}: no such file or folder to compare", path.display())));
    }
    let input = InputArgs { input: Some(path.to_owned()), all: args.all, ..InputArgs::default() };
    selection::load(&input, &args.selection, &args.symbols, args.group.group(), common)
}

/// The names of a stack as the user wants them. Frames of the old profile have its names.
fn shown_stacks(
    args: &DiffArgs,
    old: &Profile,
    new: &Profile,
    view: &mpp_profile::analysis::View,
    scale: f64,
    for_programs: bool,
) -> Vec<(String, u64, u64)> {
    let names = Names::new(&args.selection, for_programs, new);
    let named =
        |frames: Vec<String>| frames.iter().map(|name| flame::frame_name(name, names)).collect::<Vec<_>>().join(";");
    // Short names can make two stacks one.
    let mut sums: std::collections::BTreeMap<String, (u64, u64)> = std::collections::BTreeMap::new();
    for (frames, old, new) in stacks(old, new, view, scale) {
        let sum = sums.entry(named(frames)).or_default();
        *sum = (sum.0.saturating_add(old), sum.1.saturating_add(new));
    }
    sums.into_iter().map(|(stack, (old, new))| (stack, old, new)).collect()
}

fn write_stacks(args: &DiffArgs, old: &Selected, new: &Selected, difference: &Difference) -> Result<(), Failure> {
    let is_picture = args.format == DiffFormat::Svg;
    let stacks = shown_stacks(args, &old.loaded.profile, &new.loaded.profile, &new.view, difference.scale, !is_picture);
    if !is_picture {
        let lines: String = stacks.iter().map(|(stack, old, new)| format!("{stack} {old} {new}\n")).collect();
        return match args.output.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => Ok(output::to_stdout(lines.as_bytes())?),
            Some(path) => Ok(output::to_file(path, lines.as_bytes(), || args.output.force)?),
        };
    }
    if difference.new.value(new.view.unit) == 0 {
        let why = format!("{}: nothing to draw: no such memory in it", new.loaded.source);
        return Err(Failure::new(Code::NothingCaptured, why));
    }
    let unit = new.view.unit;
    let gone = stacks.iter().filter(|stack| stack.2 == 0).fold(0_u64, |sum, stack| sum.saturating_add(stack.1));
    let amount = |number: u64| match unit {
        Unit::Bytes => bytes(number),
        Unit::Blocks => format!("{} blocks", mpp_profile::units::count(number)),
    };
    let print: fn(u64) -> String = if unit == Unit::Bytes { bytes } else { mpp_profile::units::count };
    let word = heading::metric_word(new.view.metric);
    let change = signed(difference.change(unit), print);
    let captions = Captions {
        title: format!("{word} heap: from {} to {}", escaped(&old.loaded.source), escaped(&new.loaded.source)),
        subtitle: format!(
            "{change}, from {} to {}. Red allocates more itself, blue less, white the same; {} of stacks that are gone have no width",
            amount(difference.old.value(unit)),
            amount(difference.new.value(unit)),
            amount(gone)
        ),
        unit: if unit == Unit::Bytes { "bytes" } else { "blocks" },
    };
    let svg = flame::draw_difference(&captions, &stacks, Layout { inverted: false, flip: false })
        .map_err(|why| Failure::new(Code::Input, format!("{}: {why:#}", new.loaded.source)))?;
    match args.output.output.as_deref() {
        Some(path) if path == Path::new("-") => Ok(output::to_stdout(&svg)?),
        path => {
            let path = path.unwrap_or(Path::new(DEFAULT_FILE));
            output::to_file(path, &svg, || args.output.force || flame::is_ours(path))?;
            Ok(output::to_stdout(format!("{}\n", path.display()).as_bytes())?)
        }
    }
}

/// What `--fail-over` says.
fn verdict(args: &DiffArgs, difference: &Difference, unit: Unit, common: CommonArgs) -> Result<u8, Failure> {
    let Some(limit) = args.fail_over else { return Ok(0) };
    let (verdict, text) = limit.judge(difference, unit);
    match verdict {
        None => message::note(common, text),
        Some(code) => return Err(Failure::new(code, text)),
    }
    Ok(0)
}
