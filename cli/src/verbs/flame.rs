//! `mpp flame`: the flame graph.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use mpp_profile::analysis::{Folded, Quality, Sum, Table, View, Weights};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count};
use mpp_profile::{Profile, Unit};

use crate::args::{CommonArgs, GroupChoice, InputArgs, OutputArgs, SelectionArgs, SymbolArgs};
use crate::exit::{Code, Failure};
use crate::input::Loaded;
use crate::render::flame::{self, Layout};
use crate::render::style::Style;
use crate::render::terminal;
use crate::selection::{self, Names, Selected};
use crate::{heading, message, output, slice};

const EXAMPLES: &str = "\
Examples:
  mpp flame                          flame.svg of the newest recording below this folder
  mpp flame app.heap -o app.svg
  mpp flame --inverted               who allocates, at the root; who calls them, above
  mpp flame --format term            in the terminal
  mpp flame --group thread           a tower for each thread (crate, lib, size)
  mpp flame --at 1.5s                what was live at that time of a recording
  mpp flame --format folded | head   one line for each stack, outermost function first

The width of a box is memory. Without -o the graph goes to flame.svg in this folder, and its path
to standard output. A file that exists is replaced with --force only, unless mpp flame made it.";

/// The flags of `mpp flame`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FlameArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// What a box is; threads and sizes stand at the root, with functions on top of them
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    pub(crate) group: GroupChoice,
    /// What to make: a picture, or lines of text for other tools
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "svg", env = "MPP_FLAME_FORMAT")]
    #[arg(hide_env_values = true)]
    pub(crate) format: FlameFormat,
    /// Begin with the functions that allocate, and put their callers on top of them
    #[arg(long, env = "MPP_INVERTED", hide_env_values = true)]
    pub(crate) inverted: bool,
    /// Draw the root at the top
    #[arg(long, env = "MPP_FLIP", hide_env_values = true)]
    pub(crate) flip: bool,
    /// Open the graph in a browser (with xdg-open)
    #[arg(long, env = "MPP_OPEN", hide_env_values = true)]
    pub(crate) open: bool,
}

/// See [`FlameArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameFormat {
    /// A picture for a browser, with search and zoom
    Svg,
    /// The same in the terminal: a line of boxes for each depth
    Term,
    /// Folded stacks: `main;parse;grow 4096`
    Folded,
}

/// Where the graph goes without `-o`.
const DEFAULT_FILE: &str = "flame.svg";

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, there is nothing to draw, or the graph cannot be written.
pub(crate) fn flame(args: &FlameArgs, common: CommonArgs) -> Result<(), Failure> {
    let Selected { loaded, view, whole, filtered } =
        selection::load(&args.input, &args.selection, &args.symbols, args.group.group(), common)?;
    let layout = Layout { inverted: args.inverted, flip: args.flip };
    let nameless = heading::nameless(&loaded, &Table::build(&loaded.profile, &view), view.metric);
    nameless.iter().for_each(|line| message::note(common, line));

    let folded = args.format == FlameFormat::Folded;
    let names = Names::new(&args.selection, folded, &loaded.profile);
    let lines = lines(&loaded.profile, &view, names);
    if args.format == FlameFormat::Term {
        let lines = if args.inverted { flame::reversed(&lines) } else { lines };
        let style = Style::of(common.color, &std::io::stdout());
        let width = style.width.unwrap_or(terminal::WIDTH);
        let style = if args.output.output.is_some() { Style::PLAIN } else { style };
        let selected = Selected { loaded, view, whole, filtered };
        let total = something(&selected.loaded, &selected.view)?;
        let quality = Quality::of(&selected.loaded.profile, selected.view.metric);
        let mut text = heading::lines(&selected, total, &quality).join("\n");
        text.push_str("\n\n");
        text.push_str(&terminal::draw(&lines, width, args.flip, style));
        return match args.output.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => Ok(output::to_stdout(text.as_bytes())?),
            Some(path) => Ok(output::to_file(path, text.as_bytes(), || args.output.force)?),
        };
    }
    let result = if folded {
        if args.inverted { flame::reversed(&lines) } else { lines }.concat().into_bytes()
    } else {
        draw(&loaded, &view, &lines, layout)?
    };
    let output = match (args.output.output.as_deref(), folded) {
        (Some(path), _) if path != Path::new("-") => path,
        (None, false) => Path::new(DEFAULT_FILE),
        _ => return Ok(output::to_stdout(&result)?),
    };
    output::to_file(output, &result, || args.output.force || flame::is_ours(output))?;
    output::to_stdout(format!("{}\n", output.display()).as_bytes())?;
    if args.open {
        open(output, common);
    }
    Ok(())
}

/// Draws a loaded profile into a file: what `mpp run` does at the end.
///
/// # Errors
/// As [`flame()`].
pub(crate) fn draw_into(path: &Path, loaded: &Loaded, view: &View, names: Names<'_>) -> Result<(), Failure> {
    let lines = lines(&loaded.profile, view, names);
    let result = draw(loaded, view, &lines, Layout { inverted: false, flip: false })?;
    Ok(output::to_file(path, &result, || flame::is_ours(path))?)
}

/// The folded stacks with their names as the user wants them, one line each with its line end, in order.
fn lines(profile: &Profile, view: &View, names: Names<'_>) -> Vec<String> {
    let folded = Folded::build(profile, view);
    // Short names can make two stacks one.
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, weight) in folded.stacks() {
        let stack: Vec<String> = frames.map(|name| flame::frame_name(name, names)).collect();
        let sum = stacks.entry(stack.join(";")).or_default();
        *sum = sum.saturating_add(weight);
    }
    stacks.into_iter().map(|(stack, weight)| format!("{stack} {weight}\n")).collect()
}

fn draw(loaded: &Loaded, view: &View, lines: &[String], layout: Layout) -> Result<Vec<u8>, Failure> {
    let total = something(loaded, view)?;
    let word = heading::metric_word(view.metric);
    let time = loaded.slice.map(slice::words).unwrap_or_default();
    let title = format!("{word} heap{time}: {}", subject(loaded));
    let subtitle =
        format!("{}; {}", amount(&loaded.profile, total, view.unit), heading::basis(&loaded.profile, view.metric));
    let unit = if view.unit == Unit::Bytes { "bytes" } else { "blocks" };
    flame::draw(&flame::Captions { title, subtitle, unit }, lines, layout)
        .map_err(|why| Failure::new(Code::Input, format!("{}: {why:#}", loaded.source)))
}

/// The total.
///
/// # Errors
/// If that is nothing.
fn something(loaded: &Loaded, view: &View) -> Result<Sum, Failure> {
    let total = Weights::of(&loaded.profile, view.metric).total();
    let word = heading::metric_word(view.metric);
    if total.value(view.unit) == 0 {
        let mut why = format!("{}: nothing to draw: no {word} memory was sampled in what is selected", loaded.source);
        if let Some(advice) = heading::other_metric(&loaded.profile, view.metric) {
            why.push_str(&format!("\n{advice}"));
        }
        return Err(Failure::new(Code::NothingCaptured, why));
    }
    Ok(total)
}

fn amount(profile: &Profile, total: Sum, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{}{}", bytes(total.bytes), heading::error(profile, total)),
        Unit::Blocks => format!("{} blocks", count(total.blocks)),
    }
}

/// What the profile is of, for a title.
fn subject(loaded: &Loaded) -> String {
    match &loaded.processes {
        Some(processes) => match (&processes.executable, processes.shown.as_slice()) {
            (Some(executable), [pid]) => format!("{} (process {pid})", escaped(executable)),
            _ => format!("{} processes", processes.shown.len()),
        },
        None => escaped(&loaded.source).to_string(),
    }
}

/// Hands the file to the desktop; it is not waited for.
fn open(path: &Path, common: CommonArgs) {
    let path: PathBuf = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let opener =
        Command::new("xdg-open").arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = opener {
        message::warning(common, format!("cannot start xdg-open ({error}); open {} by hand", path.display()));
    }
}
