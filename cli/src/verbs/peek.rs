//! `mpp peek`: who calls a function, and whom it calls.

use clap::Args;
use mpp_profile::Unit;
use mpp_profile::analysis::{Neighbour, Peek, Quality, Sum, Weights};
use mpp_profile::text::escaped;
use regex::Regex;
use serde::Serialize;

use crate::args::{CommonArgs, GroupChoice, InputArgs, ReportArgs, RowArgs, SelectionArgs, SymbolArgs};
use crate::exit::{Code, Failure};
use crate::render::{Cell, Column, Report, Table};
use crate::selection::{self, Names, Selected};
use crate::{heading, output};

const EXAMPLES: &str = "\
Examples:
  mpp peek parse                  callers and callees of every function whose name matches
  mpp peek '^main$' app.heap      of one function
  mpp peek push_back --metric alloc --limit 5

The callers of a function add up to what it and all that it called allocated, and so do its callees, with what it
allocated itself.";

/// The flags of `mpp peek`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PeekArgs {
    /// Functions whose name, as it is shown or in full, matches
    #[arg(value_name = "REGEX")]
    function: Regex,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// What callers and callees are
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    group: GroupChoice,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Functions for people unless they want more.
const FUNCTIONS: usize = 10;

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, no function matches, or the report cannot be written.
pub(crate) fn peek(args: &PeekArgs, common: CommonArgs) -> Result<(), Failure> {
    if matches!(args.group, GroupChoice::Thread | GroupChoice::Size) {
        let why = "threads and sizes do not call each other; `mpp tree --group thread` has a tree for each";
        return Err(Failure::new(Code::Usage, why));
    }
    let selected = selection::load(&args.input, &args.selection, &args.symbols, args.group.group(), common)?;
    let profile = &selected.loaded.profile;
    let names = Names::new(&args.selection, args.report.format.is_for_programs(), profile);
    let wants = |name: &str, _: Option<&str>| args.function.is_match(name) || args.function.is_match(&names.of(name));
    let mut peeks = Peek::all(profile, &selected.view, wants);
    let whole = selected.whole.value(selected.view.unit);
    peeks.retain(|peek| args.rows.shows(peek.cumulative.value(selected.view.unit), whole));
    if peeks.is_empty() {
        let word = heading::metric_word(selected.view.metric);
        let why = format!("{}: no function with {word} memory matches {}", selected.loaded.source, args.function);
        return Err(Failure::new(Code::NothingCaptured, why));
    }
    let limit = args.rows.limit(args.report.format, FUNCTIONS);
    let missing = peeks.len().saturating_sub(limit);
    peeks.truncate(limit);
    let quality = Quality::of(profile, selected.view.metric);
    let header = heading::lines(&selected, Weights::of(profile, selected.view.metric).total(), &quality);
    let footer: Vec<String> =
        (missing > 0).then(|| format!("{missing} more functions match (see --limit)")).into_iter().collect();
    let report = Report {
        header: &header,
        table: &table(&peeks, &selected, names),
        footer: &footer,
        data: &Data::of(&peeks, &selected, names),
    };
    output::report(&report, &args.report, common)
}

fn table(peeks: &[Peek], selected: &Selected, names: Names<'_>) -> Table {
    let unit = selected.view.unit;
    let (key, title) = match unit {
        Unit::Bytes => ("bytes", "bytes"),
        Unit::Blocks => ("blocks", "blocks"),
    };
    let columns = vec![
        Column::for_programs("of"),
        Column::new("", "relation"),
        Column::new(title, key),
        Column::new("share", "percent"),
        Column::for_people("function"),
        Column::for_programs("function"),
        Column::new("file", "file"),
    ];
    let amount = |sum: Sum| match unit {
        Unit::Bytes => Cell::Bytes(sum.bytes),
        Unit::Blocks => Cell::Count(sum.blocks),
    };
    let mut rows = Vec::new();
    for peek in peeks {
        let own = names.of(&peek.name);
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut add = |relation: &str, sum: Sum, whole: u64, name: String, file: &str| {
            let share = Cell::Share { part: sum.value(unit), whole };
            let indent = if relation == "function" { "" } else { "  " };
            let shown = Cell::Text(format!("{indent}{name}"));
            rows.push(vec![text(&own), text(relation), amount(sum), share, shown, Cell::Text(name), text(file)]);
        };
        let whole = peek.cumulative.value(unit);
        for one in &peek.callers {
            add("caller", one.sum, whole, label(one, names, "(nobody)"), "");
        }
        let file = peek.file.as_deref().map(|file| heading::place(file, 0)).unwrap_or_default();
        add("function", peek.cumulative, selected.whole.value(unit), own.clone(), &file);
        for one in &peek.callees {
            add("callee", one.sum, whole, label(one, names, "(itself)"), "");
        }
    }
    Table { columns, rows }
}

fn label(neighbour: &Neighbour, names: Names<'_>, none: &str) -> String {
    match &neighbour.name {
        None => none.to_owned(),
        Some(name) if neighbour.named => names.of(name),
        Some(name) => name.to_string(),
    }
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Data {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    source: String,
    metric: &'static str,
    whole_bytes: u64,
    whole_blocks: u64,
    functions: Vec<DataFunction>,
}

#[derive(Debug, Serialize)]
struct DataFunction {
    name: String,
    file: Option<String>,
    flat_bytes: u64,
    flat_blocks: u64,
    cum_bytes: u64,
    cum_blocks: u64,
    callers: Vec<DataNeighbour>,
    callees: Vec<DataNeighbour>,
}

/// `name` is null where there is none: the function was the outermost, or has allocated itself.
#[derive(Debug, Serialize)]
struct DataNeighbour {
    name: Option<String>,
    bytes: u64,
    blocks: u64,
}

impl Data {
    fn of(peeks: &[Peek], selected: &Selected, names: Names<'_>) -> Data {
        let neighbours = |list: &[Neighbour]| {
            let one = |one: &Neighbour| DataNeighbour {
                name: one.name.as_ref().map(|_| label(one, names, "")),
                bytes: one.sum.bytes,
                blocks: one.sum.blocks,
            };
            list.iter().map(one).collect()
        };
        let function = |peek: &Peek| DataFunction {
            name: names.of(&peek.name),
            file: peek.file.as_deref().map(str::to_owned),
            flat_bytes: peek.flat.bytes,
            flat_blocks: peek.flat.blocks,
            cum_bytes: peek.cumulative.bytes,
            cum_blocks: peek.cumulative.blocks,
            callers: neighbours(&peek.callers),
            callees: neighbours(&peek.callees),
        };
        Data {
            schema: "mpp-peek",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            source: escaped(&selected.loaded.source).to_string(),
            metric: heading::metric_word(selected.view.metric),
            whole_bytes: selected.whole.bytes,
            whole_blocks: selected.whole.blocks,
            functions: peeks.iter().map(function).collect(),
        }
    }
}
