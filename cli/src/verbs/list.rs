//! `mpp list`: the source code of a function, with what each line allocated.

mod source;

use std::collections::BTreeMap;

use clap::Args;
use mpp_profile::Unit;
use mpp_profile::analysis::{Group, Quality, Row, Sum, Table as Sites};
use regex::Regex;
use serde::Serialize;

use crate::slice::Origin;

use crate::args::{CommonArgs, InputArgs, ReportArgs, SelectionArgs, SymbolArgs};
use crate::exit::{Code, Failure};
use crate::render::{Cell, Column, Report, Table};
use crate::selection::{self, Names, Selected};
use crate::{heading, output};

use source::Source;

const EXAMPLES: &str = "\
Examples:
  mpp list parse                              lines of every function whose name matches
  mpp list '^app::grow$' --context 10
  mpp list parse --source-dir /build/app=.    the source is here now, not where it was compiled

flat is what a line allocated itself; cum adds what the functions it called allocated.";

/// The flags of `mpp list`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Functions whose name, as it is shown or in full, matches
    #[arg(value_name = "REGEX")]
    function: Regex,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Lines of source around each line that allocated
    #[arg(long, value_name = "N", default_value_t = 3, env = "MPP_CONTEXT", hide_env_values = true)]
    context: u32,
    /// At most this many functions, 0 is all [default: 5 for people, all in JSON and CSV]
    #[arg(long, value_name = "N", env = "MPP_LIMIT", hide_env_values = true)]
    limit: Option<usize>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Functions for people unless they want more.
const FUNCTIONS: usize = 5;

/// A function in one file.
struct Function<'a> {
    name: String,
    file: &'a str,
    flat: Sum,
    /// The largest of its lines: lines of one function can call each other.
    cumulative: Sum,
    /// By line; 0 is not known.
    lines: BTreeMap<u32, (Sum, Sum)>,
    source: Source,
}

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, no function matches, or the report cannot be written.
pub(crate) fn list(args: &ListArgs, common: CommonArgs) -> Result<(), Failure> {
    let selected = selection::load(&args.input, &args.selection, &args.symbols, Group::Line, common)?;
    let profile = &selected.loaded.profile;
    let names = Names::new(&args.selection, args.report.format.is_for_programs(), profile);
    let sites = Sites::build(profile, &selected.view);
    let mut functions = functions(&sites, &selected, args, names);
    if functions.is_empty() {
        let word = heading::metric_word(selected.view.metric);
        let why =
            format!("{}: no function with {word} memory and lines matches {}", selected.loaded.source, args.function);
        return Err(Failure::new(Code::NothingCaptured, format!("{why}\n`mpp modules` says which files lack lines")));
    }
    let all = functions.len();
    functions.truncate(match args.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None if args.report.format.is_for_programs() => usize::MAX,
        None => FUNCTIONS,
    });
    let recorded: Option<u64> = profile.comment("time_nanos").and_then(|time| time.parse().ok());
    let mut notes = Vec::new();
    for function in &mut functions {
        function.source = Source::read(function.file, recorded);
        notes.extend(function.source.note(function.file));
    }
    notes.dedup();
    let quality = Quality::of(profile, selected.view.metric);
    let header = heading::lines(&selected, sites.total, &quality);
    let missing = all - functions.len();
    if missing > 0 {
        notes.push(format!("{missing} more functions match (see --limit)"));
    }
    let table = table(&functions, selected.view.unit, args.context);
    let report = Report { header: &header, table: &table, footer: &notes, data: &Data::of(&functions, &selected) };
    output::report(&report, &args.report, common)
}

fn functions<'a>(sites: &'a Sites, selected: &Selected, args: &ListArgs, names: Names<'_>) -> Vec<Function<'a>> {
    let unit = selected.view.unit;
    let mut functions: BTreeMap<(&str, &str), Function<'a>> = BTreeMap::new();
    let wanted = |row: &&Row| {
        row.named
            && row.cumulative.value(unit) > 0
            && (args.function.is_match(&row.name) || args.function.is_match(&names.of(&row.name)))
    };
    for row in sites.rows.iter().filter(wanted) {
        let Some((file, line)) = &row.place else { continue };
        let function = functions.entry((&row.name, file)).or_insert_with(|| Function {
            name: names.of(&row.name),
            file,
            flat: Sum::default(),
            cumulative: Sum::default(),
            lines: BTreeMap::new(),
            source: Source::default(),
        });
        function.flat += row.flat;
        if row.cumulative.value(unit) > function.cumulative.value(unit) {
            function.cumulative = row.cumulative;
        }
        let (flat, cumulative) = function.lines.entry(*line).or_default();
        *flat += row.flat;
        *cumulative += row.cumulative;
    }
    let mut functions: Vec<Function<'a>> = functions.into_values().collect();
    functions.sort_by(|a, b| {
        let weight =
            |function: &Function<'_>| std::cmp::Reverse((function.flat.value(unit), function.cumulative.value(unit)));
        (weight(a), &a.name, a.file).cmp(&(weight(b), &b.name, b.file))
    });
    functions
}

fn table(functions: &[Function<'_>], unit: Unit, context: u32) -> Table {
    let (flat, cumulative) = match unit {
        Unit::Bytes => ("flat_bytes", "cum_bytes"),
        Unit::Blocks => ("flat_blocks", "cum_blocks"),
    };
    let columns = vec![
        Column::for_programs("function"),
        Column::for_programs("file"),
        Column::new("flat", flat),
        Column::new("cum", cumulative),
        Column::new("line", "line"),
        Column::new("source", "source"),
    ];
    let amount = |sum: Option<Sum>| match sum.filter(|sum| sum.value(unit) > 0) {
        None => Cell::Nothing,
        Some(sum) if unit == Unit::Bytes => Cell::Bytes(sum.bytes),
        Some(sum) => Cell::Count(sum.blocks),
    };
    let mut rows = Vec::new();
    for function in functions {
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut add = |flat: Option<Sum>, cumulative: Option<Sum>, line: Cell, source: String| {
            rows.push(vec![
                text(&function.name),
                text(function.file),
                amount(flat),
                amount(cumulative),
                line,
                Cell::Text(source),
            ]);
        };
        let heading = format!("== {} in {}", function.name, heading::place(function.file, 0));
        add(Some(function.flat), None, Cell::Nothing, heading);
        let mut before = None;
        for line in shown_lines(function, context) {
            if before.is_some_and(|before| before + 1 < line) {
                add(None, None, Cell::Nothing, "...".to_owned());
            }
            before = Some(line);
            let sums = function.lines.get(&line);
            let number = if line == 0 { Cell::Nothing } else { Cell::Number(line.into()) };
            let source = match line {
                0 => "(line not known)".to_owned(),
                line => function.source.line(line).to_owned(),
            };
            add(sums.map(|sums| sums.0), sums.map(|sums| sums.1), number, source);
        }
    }
    Table { columns, rows }
}

/// The lines that allocated, and those around them; of a source that is not there, only the former.
fn shown_lines(function: &Function<'_>, context: u32) -> Vec<u32> {
    let mut lines: Vec<u32> = Vec::new();
    for &line in function.lines.keys() {
        let last = function.source.length();
        if line == 0 || line > last {
            lines.push(line);
            continue;
        }
        lines.extend(line.saturating_sub(context).max(1)..=line.saturating_add(context).min(last));
    }
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    #[serde(flatten)]
    origin: Origin<'a>,
    metric: &'static str,
    functions: Vec<DataFunction<'a>>,
}

#[derive(Debug, Serialize)]
struct DataFunction<'a> {
    name: &'a str,
    file: &'a str,
    source_found: bool,
    flat_bytes: u64,
    flat_blocks: u64,
    lines: Vec<DataLine<'a>>,
}

#[derive(Debug, Serialize)]
struct DataLine<'a> {
    line: Option<u32>,
    flat_bytes: u64,
    flat_blocks: u64,
    cum_bytes: u64,
    cum_blocks: u64,
    source: Option<&'a str>,
}

impl<'a> Data<'a> {
    fn of(functions: &'a [Function<'a>], selected: &'a Selected) -> Data<'a> {
        let function = |function: &'a Function<'a>| DataFunction {
            name: &function.name,
            file: function.file,
            source_found: function.source.length() > 0,
            flat_bytes: function.flat.bytes,
            flat_blocks: function.flat.blocks,
            lines: function
                .lines
                .iter()
                .map(|(&line, (flat, cumulative))| DataLine {
                    line: Some(line).filter(|&line| line > 0),
                    flat_bytes: flat.bytes,
                    flat_blocks: flat.blocks,
                    cum_bytes: cumulative.bytes,
                    cum_blocks: cumulative.blocks,
                    source: Some(function.source.line(line)).filter(|text| !text.is_empty()),
                })
                .collect(),
        };
        Data {
            schema: "mpp-list",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            origin: Origin::of(&selected.loaded),
            metric: heading::metric_word(selected.view.metric),
            functions: functions.iter().map(function).collect(),
        }
    }
}
