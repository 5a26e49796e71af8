//! `mpp leaks`: what was not freed at the end.

use std::path::PathBuf;

use clap::Args;
use mpp_profile::analysis::{Group, Quality, Row, Sum, Table as Sites, Tree};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count, parse_size};
use mpp_profile::{Metric, Unit};
use serde::Serialize;

use crate::slice::Origin;

use crate::args::{
    CommonArgs, FilterArgs, GroupChoice, InputArgs, MetricChoice, ReportArgs, RowArgs, RuntimeChoice, SelectionArgs,
    SymbolArgs, UnitChoice,
};
use crate::exit::{Code, Failure};
use crate::labels::labels;
use crate::render::{Cell, Column, Report, Table};
use crate::selection::{self, Names, Selected};
use crate::suppressions::{Suppressions, Used};
use crate::{heading, message, output};

const EXAMPLES: &str = "\
Examples:
  mpp leaks                                 the newest recording below this folder
  mpp leaks --min-bytes 64KiB --fail        exit code 10 if a function has left more than that
  mpp leaks --suppressions known.txt        without what is known
  mpp leaks --write-suppressions known.txt  all of the present ones are known from now on

What is still reachable at the end is not told from what is lost: both were not freed. Programs keep some memory on
purpose, so begin with the largest. Suppressions have LeakSanitizer's form, leak:PATTERN, matched with functions, files
and libraries of the whole stack.";

/// The flags of `mpp leaks`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LeaksArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// What a row is
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    group: GroupChoice,
    /// No rows with less
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size, env = "MPP_MIN_BYTES")]
    #[arg(hide_env_values = true)]
    min_bytes: u64,
    /// A file with leaks that are known; can be given more than once
    #[arg(long, value_name = "FILE", env = "MPP_SUPPRESSIONS", hide_env_values = true, value_delimiter = ':')]
    suppressions: Vec<PathBuf>,
    /// Write a file that suppresses all rows of this report
    #[arg(long, value_name = "FILE", conflicts_with = "fail")]
    write_suppressions: Option<PathBuf>,
    /// Fail, with exit code 10, if there is any row
    #[arg(long, env = "MPP_FAIL", hide_env_values = true)]
    fail: bool,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Rows for people unless they want more.
const ROWS: usize = 20;
/// Callers that are named.
const CALLERS: usize = 3;

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// Runs the verb; returns the exit status.
///
/// # Errors
/// If an input cannot be read, or the report cannot be written.
pub(crate) fn leaks(args: &LeaksArgs, common: CommonArgs) -> Result<u8, Failure> {
    let suppressions = Suppressions::read(&args.suppressions)?;
    let selection = SelectionArgs {
        metric: MetricChoice::Live,
        unit: UnitChoice::Bytes,
        filter: args.filter.clone(),
        runtime: RuntimeChoice::Collapse,
        no_inlines: false,
        names: None,
    };
    let mut selected = selection::load(&args.input, &selection, &args.symbols, args.group.group(), common)?;
    let before = mpp_profile::analysis::Weights::of(&selected.loaded.profile, Metric::Live).total();
    let used = suppressions.apply(&mut selected.loaded.profile);
    let profile = &selected.loaded.profile;
    let sites = Sites::build(profile, &selected.view);
    let tree = Tree::build(profile, &selected.view, true);
    let names = Names::new(&selection, args.report.format.is_for_programs(), profile);
    let found: Vec<&Row> =
        sites.rows.iter().filter(|row| row.flat.bytes > 0 && row.flat.bytes >= args.min_bytes).collect();
    let rows: Vec<&Row> = found
        .iter()
        .copied()
        .filter(|row| args.rows.shows(row.flat.bytes, sites.total.bytes))
        .take(args.rows.limit(args.report.format, ROWS))
        .collect();
    let is_function = |row: &Row| row.named && matches!(selected.view.group, Group::Function | Group::Line);
    let items: Vec<(&str, bool)> = rows.iter().map(|row| (&*row.name, is_function(row))).collect();
    let shown = Shown {
        selected: &selected,
        labels: labels(&items, names),
        callers: rows.iter().map(|row| callers(&tree, row, names)).collect(),
        rows,
        found: found.len(),
        total: sites.total,
        suppressed: before.bytes.saturating_sub(sites.total.bytes),
        used: &used,
        min_bytes: args.min_bytes,
    };
    let quality = Quality::of(profile, Metric::Live);
    let (header, table, footer) = (shown.header(&quality), shown.table(), shown.footer());
    let report = Report { header: &header, table: &table, footer: &footer, data: &Data::of(&shown) };
    output::report(&report, &args.report, common)?;
    if let Some(path) = &args.write_suppressions {
        output::to_file(path, known(&found).as_bytes(), || args.report.output.force)?;
        message::note(common, format!("{} suppressions written to {}", found.len(), path.display()));
    }
    if args.fail && !found.is_empty() {
        let first = shown.labels.first().map_or("", String::as_str);
        let why =
            format!("{} not freed in {} places; most by {}", bytes(sites.total.bytes), found.len(), escaped(first));
        return Err(Failure::new(Code::GateFailed, why));
    }
    Ok(0)
}

/// A file of suppressions for rows.
fn known(rows: &[&Row]) -> String {
    let mut text = "# Memory that is kept on purpose; see mpp help leaks.\n".to_owned();
    for row in rows {
        // A line must stay one line.
        let name = escaped(&row.name).to_string();
        text.push_str(&format!("# {} in {} blocks\nleak:^{name}$\n", bytes(row.flat.bytes), count(row.flat.blocks)));
    }
    text
}

/// The heaviest way to a row: its caller, the caller's, and so on.
fn callers(tree: &Tree, row: &Row, names: Names<'_>) -> Vec<String> {
    let is_row = |id: &&u32| tree.nodes[**id as usize].name == row.name;
    let mut at = tree.roots.iter().find(is_row);
    let mut callers = Vec::new();
    while let Some(next) = at.and_then(|&id| tree.nodes[id as usize].children.first()) {
        if callers.len() == CALLERS {
            break;
        }
        let node = &tree.nodes[*next as usize];
        callers.push(if node.named && !node.name.starts_with('[') {
            names.of(&node.name)
        } else {
            node.name.to_string()
        });
        at = Some(next);
    }
    callers
}

/// All that is in one report.
struct Shown<'a> {
    selected: &'a Selected,
    rows: Vec<&'a Row>,
    labels: Vec<String>,
    callers: Vec<Vec<String>>,
    /// Rows there are.
    found: usize,
    /// What is not suppressed.
    total: Sum,
    suppressed: u64,
    used: &'a [Used],
    min_bytes: u64,
}

impl Shown<'_> {
    fn header(&self, quality: &Quality) -> Vec<String> {
        let mut lines = heading::lines(self.selected, self.total, quality);
        if self.suppressed > 0 {
            lines.insert(1, format!("suppressed: {}, not in the numbers here", bytes(self.suppressed)));
        }
        lines
    }

    fn footer(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let missing = self.found - self.rows.len();
        if missing > 0 {
            lines.push(format!("{missing} more rows (see --limit)"));
        }
        if self.found == 0 {
            let least =
                if self.min_bytes > 1 { format!(" of {} or more", bytes(self.min_bytes)) } else { String::new() };
            lines.push(format!("no leak{least} was found"));
        }
        for unused in self.used.iter().filter(|used| used.samples == 0) {
            lines.push(format!("suppresses nothing: leak:{} ({})", escaped(&unused.pattern), escaped(&unused.place)));
        }
        lines
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::new("not freed", "bytes"),
            Column::new("share", "percent"),
            Column::new("blocks", "blocks"),
            Column::new("function", "function"),
            Column::for_people("file:line"),
            Column::for_programs("file"),
            Column::for_programs("line"),
            Column::new("called by", "callers"),
        ];
        let row = |((row, label), callers): ((&&Row, &String), &Vec<String>)| {
            let (file, line) = row.place.as_ref().map_or(("", 0), |(file, line)| (&**file, *line));
            vec![
                Cell::Bytes(row.flat.bytes),
                Cell::Share { part: row.flat.bytes, whole: self.total.bytes },
                Cell::Count(row.flat.blocks),
                Cell::Text(label.clone()),
                Cell::Text(if file.is_empty() { String::new() } else { heading::place(file, line) }),
                Cell::Text(file.to_owned()),
                Cell::Count(line.into()),
                Cell::Text(callers.join(" < ")),
            ]
        };
        let rows = self.rows.iter().zip(&self.labels).zip(&self.callers).map(row).collect();
        Table { columns, rows }
    }
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    #[serde(flatten)]
    origin: Origin<'a>,
    total_bytes: u64,
    total_blocks: u64,
    total_bytes_error: u64,
    suppressed_bytes: u64,
    unused_suppressions: Vec<&'a str>,
    rows_total: usize,
    rows: Vec<DataRow<'a>>,
}

#[derive(Debug, Serialize)]
struct DataRow<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    bytes: u64,
    blocks: u64,
    callers: &'a [String],
}

impl<'a> Data<'a> {
    fn of(shown: &'a Shown<'a>) -> Data<'a> {
        let row = |((row, label), callers): ((&&'a Row, &'a String), &'a Vec<String>)| DataRow {
            name: label,
            file: row.place.as_ref().map(|(file, _)| &**file),
            line: row.place.as_ref().map(|(_, line)| *line).filter(|&line| line > 0),
            bytes: row.flat.bytes,
            blocks: row.flat.blocks,
            callers,
        };
        Data {
            schema: "mpp-leaks",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            origin: Origin::of(&shown.selected.loaded),
            total_bytes: shown.total.bytes,
            total_blocks: shown.total.blocks,
            total_bytes_error: shown.total.standard_error(Unit::Bytes).round() as u64,
            suppressed_bytes: shown.suppressed,
            unused_suppressions: shown
                .used
                .iter()
                .filter(|used| used.samples == 0)
                .map(|used| used.pattern.as_str())
                .collect(),
            rows_total: shown.found,
            rows: shown.rows.iter().zip(&shown.labels).zip(&shown.callers).map(row).collect(),
        }
    }
}
