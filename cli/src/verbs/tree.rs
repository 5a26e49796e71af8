//! `mpp tree`: the call tree.

use clap::Args;
use mpp_profile::Unit;
use mpp_profile::analysis::{Group, Node, Quality, Sum, Tree};
use serde::Serialize;

use crate::args::{CommonArgs, GroupChoice, InputArgs, ReportArgs, RowArgs, SelectionArgs, SymbolArgs};
use crate::exit::Failure;
use crate::labels::labels;
use crate::render::{Cell, Column, Report, Table, percent};
use crate::selection::{self, Names, Selected};
use crate::{heading, output};

const EXAMPLES: &str = "\
Examples:
  mpp tree                          the newest recording below this folder
  mpp tree --inverted               from the functions that allocate to their callers
  mpp tree --depth 4 --min-percent 5
  mpp tree --group thread           a tree for each thread
  mpp tree --show-from handle_request --metric alloc

A line `a > b > c` is a chain of calls in which a and b do nothing else (--full has a line for each). What is smaller than --min-percent
(1 for people) is added up in a line of its own. A function that calls itself is one line.";

/// The flags of `mpp tree`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// What a line is; threads and sizes have the functions below them
    #[arg(long, value_enum, value_name = "BY", default_value = "function", env = "MPP_GROUP", hide_env_values = true)]
    group: GroupChoice,
    #[command(flatten)]
    rows: RowArgs,
    /// From the functions that allocate to those that call them
    #[arg(long, env = "MPP_INVERTED", hide_env_values = true)]
    inverted: bool,
    /// No deeper than this many calls
    #[arg(long, value_name = "N", env = "MPP_DEPTH", hide_env_values = true)]
    depth: Option<usize>,
    /// A line for each call, also where a function does nothing but call another
    #[arg(long, env = "MPP_FULL", hide_env_values = true)]
    full: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Lines for people unless they want more.
const LINES: usize = 60;
/// Of longer chains only the ends are named.
const LONG: usize = 6;
/// Names at each end of such a chain.
const ENDS: usize = 2;
/// Lines that are deeper are drawn as if they were this deep: nobody can see the difference, and lines would be endless.
const DEEPEST: usize = 64;
/// Smaller parts are added up for people, in percent.
const SMALL: f64 = 1.0;

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, or the report cannot be written.
pub(crate) fn tree(args: &TreeArgs, common: CommonArgs) -> Result<(), Failure> {
    let selected = selection::load(&args.input, &args.selection, &args.symbols, args.group.group(), common)?;
    let tree = Tree::build(&selected.loaded.profile, &selected.view, args.inverted);
    let quality = Quality::of(&selected.loaded.profile, selected.view.metric);
    let names = Names::new(&args.selection, args.report.format.is_for_programs(), &selected.loaded.profile);
    let is_function = matches!(selected.view.group, Group::Function | Group::Line | Group::Thread | Group::Size);
    let items: Vec<(&str, bool)> =
        tree.nodes.iter().map(|node| (&*node.name, node.named && is_function && !node.name.starts_with('['))).collect();
    let labels = labels(&items, names);
    let for_people = !args.report.format.is_for_programs();
    let least = args.rows.min_percent.unwrap_or(if for_people { SMALL } else { 0.0 });
    let walk = Walk {
        tree: &tree,
        labels: &labels,
        unit: selected.view.unit,
        whole: selected.whole.value(selected.view.unit),
        least,
        depth: args.depth.unwrap_or(usize::MAX),
        chains: for_people && !args.full,
    };
    let lines = walk.lines();
    let limit = args.rows.limit(args.report.format, LINES);
    let header = heading::lines(&selected, tree.total, &quality);
    let shown = &lines[..lines.len().min(limit)];
    let table = table(shown, &walk);
    let missing = lines.len() - shown.len();
    let footer: Vec<String> = (missing > 0)
        .then(|| format!("{missing} more lines (see --limit, --min-percent, --depth)"))
        .into_iter()
        .collect();
    let data = Data::of(&selected, &walk, shown, args.inverted);
    let report = Report { header: &header, table: &table, footer: &footer, data: &data };
    output::report(&report, &args.report, common)
}

/// One line of the report.
struct Line {
    /// How deep it is, from 0.
    depth: usize,
    /// What is drawn before the name.
    branch: String,
    /// The nodes in it: a chain, or several small ones that were added up.
    nodes: Vec<u32>,
    sum: Sum,
    /// It adds up so many nodes that are not shown.
    small: usize,
}

/// What is walked, and how.
struct Walk<'a> {
    tree: &'a Tree,
    labels: &'a [String],
    unit: Unit,
    whole: u64,
    least: f64,
    depth: usize,
    chains: bool,
}

impl Walk<'_> {
    fn node(&self, id: u32) -> &Node {
        &self.tree.nodes[id as usize]
    }

    /// All lines in order. The stack of pending nodes is our own: the input decides how deep it is.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        // Nodes still to be told, the next one last: depth, what is drawn before, whether it is the last child, and the nodes.
        let mut pending: Vec<(usize, String, bool, Vec<u32>, usize)> = Vec::new();
        self.push_children(&mut pending, &self.tree.roots, 0, "");
        while let Some((depth, prefix, is_last, mut nodes, small)) = pending.pop() {
            let mut sum = Sum::default();
            nodes.iter().for_each(|&id| sum += self.node(id).cumulative);
            let (corner, below) = match (depth, is_last) {
                (0, _) => ("", ""),
                (_, true) => ("└─ ", "   "),
                (_, false) => ("├─ ", "│  "),
            };
            let branch = format!("{prefix}{corner}");
            if small > 0 {
                lines.push(Line { depth, branch, nodes, sum, small });
                continue;
            }
            let mut last = nodes[0];
            while self.chains
                && let [only] = self.node(last).children.as_slice()
                && self.node(last).flat.value(self.unit) == 0
                && depth + nodes.len() <= self.depth
            {
                last = *only;
                nodes.push(last);
            }
            let next = depth + nodes.len();
            lines.push(Line { depth, branch, nodes, sum, small: 0 });
            if next <= self.depth {
                let deeper = if depth < DEEPEST { format!("{prefix}{below}") } else { prefix };
                self.push_children(&mut pending, &self.node(last).children, depth + 1, &deeper);
            }
        }
        lines
    }

    /// The large ones, and one line for the others.
    fn push_children(
        &self,
        pending: &mut Vec<(usize, String, bool, Vec<u32>, usize)>,
        ids: &[u32],
        depth: usize,
        prefix: &str,
    ) {
        let is_large = |id: &&u32| percent(self.node(**id).cumulative.value(self.unit), self.whole) >= self.least;
        let large: Vec<u32> = ids.iter().filter(is_large).copied().collect();
        let small: Vec<u32> = ids.iter().filter(|id| !is_large(id)).copied().collect();
        if !small.is_empty() {
            let count = small.len();
            pending.push((depth, prefix.to_owned(), true, small, count));
        }
        let has_small = large.len() < ids.len();
        for (index, &id) in large.iter().enumerate().rev() {
            let is_last = index + 1 == large.len() && !has_small;
            pending.push((depth, prefix.to_owned(), is_last, vec![id], 0));
        }
    }

    fn label(&self, line: &Line) -> String {
        if line.small > 0 {
            let noun = if line.small == 1 { "other" } else { "others" };
            return format!("({} {noun})", line.small);
        }
        let name = |&id: &u32| {
            let mark = if self.node(id).recursive { " (calls itself)" } else { "" };
            format!("{}{mark}", self.labels[id as usize])
        };
        let mut names: Vec<String> = line.nodes.iter().map(name).collect();
        if names.len() > LONG {
            let between = names.len() - 2 * ENDS;
            names.splice(ENDS..ENDS + between, [format!("({between} calls)")]);
        }
        names.join(" > ")
    }
}

fn table(lines: &[Line], walk: &Walk<'_>) -> Table {
    let unit = walk.unit;
    let (cumulative, flat) = match unit {
        Unit::Bytes => ("cum_bytes", "flat_bytes"),
        Unit::Blocks => ("cum_blocks", "flat_blocks"),
    };
    let columns = vec![
        Column::for_programs("depth"),
        Column::new("cum", cumulative),
        Column::new("cum%", "cum_percent"),
        Column::new("flat", flat),
        Column::for_people("call tree"),
        Column::for_programs("function"),
        Column::for_people("file:line"),
        Column::for_programs("file"),
        Column::for_programs("line"),
    ];
    let amount = |sum: Sum| match unit {
        Unit::Bytes => Cell::Bytes(sum.bytes),
        Unit::Blocks => Cell::Count(sum.blocks),
    };
    let row = |line: &Line| {
        let last = line.nodes.last().map(|&id| walk.node(id)).filter(|_| line.small == 0);
        let flat = last.map(|node| node.flat).filter(|flat| flat.value(unit) > 0);
        let (file, number) = last.and_then(|node| node.place.as_ref()).map_or(("", 0), |(file, line)| (&**file, *line));
        let label = walk.label(line);
        vec![
            Cell::Count(line.depth as u64),
            amount(line.sum),
            Cell::Share { part: line.sum.value(unit), whole: walk.whole },
            flat.map_or(Cell::Nothing, amount),
            Cell::Text(format!("{}{label}", line.branch)),
            Cell::Text(label),
            Cell::Text(if file.is_empty() { String::new() } else { heading::place(file, number) }),
            Cell::Text(file.to_owned()),
            Cell::Count(u64::from(number)),
        ]
    };
    Table { columns, rows: lines.iter().map(row).collect() }
}

/// What is printed as JSON. Nodes are a list, each after its parent: nested objects could be too deep for readers.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    source: &'a str,
    metric: &'static str,
    unit: &'static str,
    inverted: bool,
    whole_bytes: u64,
    whole_blocks: u64,
    total_bytes: u64,
    total_blocks: u64,
    nodes: Vec<DataNode<'a>>,
}

#[derive(Debug, Serialize)]
struct DataNode<'a> {
    depth: usize,
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    resolved: bool,
    recursive: bool,
    flat_bytes: u64,
    flat_blocks: u64,
    cum_bytes: u64,
    cum_blocks: u64,
    cum_percent: f64,
    /// It stands for so many nodes that are smaller than `--min-percent`; 0 for a node of its own.
    others: usize,
}

impl<'a> Data<'a> {
    fn of(selected: &'a Selected, walk: &'a Walk<'_>, lines: &[Line], inverted: bool) -> Data<'a> {
        let node = |line: &Line| {
            let last = line.nodes.last().map(|&id| (id, walk.node(id))).filter(|_| line.small == 0);
            let place = last.and_then(|(_, node)| node.place.as_ref());
            DataNode {
                depth: line.depth,
                name: last.map_or("", |(id, _)| &walk.labels[id as usize]),
                file: place.map(|(file, _)| &**file),
                line: place.map(|(_, line)| *line).filter(|&line| line > 0),
                resolved: last.is_some_and(|(_, node)| node.named),
                recursive: last.is_some_and(|(_, node)| node.recursive),
                flat_bytes: last.map_or(0, |(_, node)| node.flat.bytes),
                flat_blocks: last.map_or(0, |(_, node)| node.flat.blocks),
                cum_bytes: line.sum.bytes,
                cum_blocks: line.sum.blocks,
                cum_percent: (percent(line.sum.value(walk.unit), walk.whole) * 1e4).round() / 1e4,
                others: line.small,
            }
        };
        Data {
            schema: "mpp-tree",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            source: &selected.loaded.source,
            metric: heading::metric_word(selected.view.metric),
            unit: if walk.unit == Unit::Bytes { "bytes" } else { "blocks" },
            inverted,
            whole_bytes: selected.whole.bytes,
            whole_blocks: selected.whole.blocks,
            total_bytes: walk.tree.total.bytes,
            total_blocks: walk.tree.total.blocks,
            nodes: lines.iter().map(node).collect(),
        }
    }
}
