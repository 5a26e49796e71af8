//! `mpp heapmap`: how full the slabs of a heap are, by size class, and what keeps their memory.

mod json;
mod picture;
mod svg;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mpp_profile::analysis::occupancy::{Bytes, Occupancy, PAGE, Slab};
use mpp_profile::formats::Limits;
use mpp_profile::formats::snapshot::{self, PageKind, Snapshot};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count, percent};

use crate::args::{CommonArgs, OutputArgs};
use crate::exit::{Code, Failure, OrExit};
use crate::recording::Recording;
use crate::render::style::Style;
use crate::render::{self, Cell, Column, Report, Table};
use crate::{input, message, output};

const EXAMPLES: &str = "\
Examples:
  mpp run --heap-snapshot -- ./app            record, and write a snapshot of the heap at the end
  mpp heapmap                                 its size classes, those that keep most memory first
  mpp ctl 4711 snapshot now.heap              a snapshot of a process that runs (mpp run --ctl)
  mpp heapmap now.heap --group thread         whose memory it is
  mpp heapmap now.heap --format svg -o map.svg   every page of every slab

The system takes memory back in pages of 4 KiB. live is in live blocks; pinned is free, but in pages that live blocks keep; empty is in pages without a live
block, which the allocator can give back; returned has been given back; of unused nothing was ever handed out.
In the picture a row is all pages of a class in the order of their addresses, and the height is how much of each is live; · is not in memory.";

/// The flags of `mpp heapmap`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HeapmapArgs {
    /// A heap snapshot (mi_heap_snapshot, either version), a recording with one, or `-` for standard input [default: the newest recording below this folder]
    #[arg(value_name = "INPUT")]
    input: Option<PathBuf>,
    /// The process of a recording to show [default: the one that was started]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true)]
    pid: Option<u32>,
    /// What is added up to a row
    #[arg(long, value_enum, value_name = "GROUP", default_value = "class")]
    group: By,
    /// At most this many rows, 0 is all [default: 25 for people, all in JSON and CSV]
    #[arg(long, value_name = "N", env = "MPP_LIMIT", hide_env_values = true)]
    limit: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
    /// The format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", env = "MPP_FORMAT", hide_env_values = true)]
    format: HeapmapFormat,
}

/// See [`HeapmapArgs::group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Size classes; single large blocks are by powers of two
    Class,
    /// Threads that the slabs belong to
    Thread,
    /// Heaps that the program has made
    Heap,
}

/// See [`HeapmapArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HeapmapFormat {
    /// Aligned columns for people
    Text,
    /// For programs: schema, schema_version, plain integers
    Json,
    /// For spreadsheets: plain integers
    Csv,
    /// For issues and pull requests
    Md,
    /// A picture of every page
    Svg,
}

/// What is shown.
struct Shown<'a> {
    source: &'a str,
    snapshot: &'a Snapshot,
    occupancy: &'a Occupancy,
    rows: &'a [Row<'a>],
    /// Rows there are.
    all: usize,
}

/// A row of the report.
struct Row<'a> {
    label: String,
    bytes: Bytes,
    slabs: Vec<&'a Slab>,
}

/// Runs the verb.
///
/// # Errors
/// If there is no snapshot, or it cannot be read, or the report cannot be written.
pub(crate) fn heapmap(args: &HeapmapArgs, common: CommonArgs) -> Result<(), Failure> {
    let nothing = "holds no heap snapshot; `mpp run --heap-snapshot` writes one";
    let path = input::part(args.input.as_deref(), args.pid, Recording::snapshots, nothing, common)?;
    let opened = input::open_file(&path)?;
    let name = opened.name.clone();
    let snapshot = snapshot::read_with(opened.reader(), &name, &Limits::default()).or_exit(Code::Input)?;
    let occupancy = Occupancy::of(&snapshot);
    for oddity in oddities(&snapshot, &occupancy) {
        message::warning(common, format!("{}: {oddity}", escaped(&name)));
    }
    let target = args.output.output.as_deref().filter(|path| *path != Path::new("-"));
    let style = if target.is_none() { Style::of(common.color, &io::stdout()) } else { Style::PLAIN };
    let mut rows = grouped(&occupancy, args.group);
    let all = rows.len();
    let is_for_programs = matches!(args.format, HeapmapFormat::Json | HeapmapFormat::Csv);
    match args.limit.unwrap_or(if is_for_programs { 0 } else { 25 }) {
        0 => {}
        limit => rows.truncate(limit),
    }
    let shown = Shown { source: &name, snapshot: &snapshot, occupancy: &occupancy, rows: &rows, all };
    let result = shown.rendered(args.format, style)?;
    match target {
        None => Ok(output::to_stdout(&result)?),
        Some(path) => Ok(output::to_file(path, &result, || args.output.force)?),
    }
}

fn oddities(snapshot: &Snapshot, occupancy: &Occupancy) -> Vec<String> {
    let mut lines = Vec::new();
    if !snapshot.has_blocks {
        lines.push("it has no blocks, so what is free in pages with live ones is not known".to_owned());
    }
    if occupancy.odd > 0 {
        lines.push(format!("{} slabs are larger than slabs can be and were left out", count(occupancy.odd)));
    }
    if let Some(skipped) = snapshot.more.as_ref().map(|more| more.skipped).filter(|&skipped| skipped > 0) {
        lines.push(format!("{} slabs were in use while it was taken and are not in it", count(skipped)));
    }
    lines
}

/// Those that keep most memory first.
fn grouped(occupancy: &Occupancy, by: By) -> Vec<Row<'_>> {
    let mut rows: BTreeMap<(bool, u64), Row<'_>> = BTreeMap::new();
    for slab in &occupancy.slabs {
        let is_single = slab.kind == PageKind::Single;
        let (key, label) = match by {
            By::Class if is_single => {
                let size = slab.block_size.checked_next_power_of_two().unwrap_or(u64::MAX);
                ((true, size), format!("single ≤ {}", bytes(size)))
            }
            By::Class => ((false, slab.block_size), bytes(slab.block_size)),
            By::Thread if slab.thread == 0 => ((false, 0), "no thread".to_owned()),
            By::Thread => ((false, slab.thread), format!("thread {}", slab.thread)),
            By::Heap => ((false, slab.heap), format!("heap {}", slab.heap)),
        };
        let row = rows.entry(key).or_insert_with(|| Row { label, bytes: Bytes::default(), slabs: Vec::new() });
        row.bytes.add(&slab.bytes);
        row.slabs.push(slab);
    }
    let mut rows: Vec<Row<'_>> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes.kept()));
    rows
}

impl Shown<'_> {
    fn rendered(&self, format: HeapmapFormat, style: Style) -> anyhow::Result<Vec<u8>> {
        let format = match format {
            HeapmapFormat::Svg => return Ok(svg::draw(self).into_bytes()),
            HeapmapFormat::Text => render::Format::Text,
            HeapmapFormat::Json => render::Format::Json,
            HeapmapFormat::Csv => render::Format::Csv,
            HeapmapFormat::Md => render::Format::Md,
        };
        let data = json::Data::of(self);
        let (header, footer, table) = (self.header(), self.footer(), self.table());
        render::render(&Report { header: &header, table: &table, footer: &footer, data: &data }, format, style)
    }

    fn header(&self) -> Vec<String> {
        let process = self.snapshot.more.as_ref().map_or(String::new(), |more| {
            format!(" (process {}, taken in {:.1} ms)", more.pid, more.nanoseconds as f64 / 1e6)
        });
        let total = &self.occupancy.total;
        let mut lines = vec![
            format!("from: {}{process}", escaped(self.source)),
            format!(
                "{} in {} slabs and single blocks, which have {} live blocks",
                bytes(total.space),
                count(total.slabs),
                count(total.blocks)
            ),
            parts(total),
        ];
        if let Some(more) = &self.snapshot.more {
            let kinds = |wanted: u8| {
                let runs = more.runs.iter().filter(|run| run.kind == wanted);
                runs.fold(0u64, |sum, run| {
                    sum.saturating_add(u64::from(run.slices).saturating_mul(self.snapshot.slice))
                })
            };
            let absent: u64 = more.runs.iter().filter(|run| run.kind == 0).map(|run| u64::from(run.absent)).sum();
            let free = kinds(0);
            let away = absent.saturating_mul(PAGE).min(free);
            lines.push(format!(
                "besides, {} are free between slabs ({} of it not in memory), and {} change hands",
                bytes(free),
                bytes(away),
                bytes(kinds(4))
            ));
        }
        lines
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::new("class", "group"),
            Column::new("slabs", "slabs").spare(3),
            Column::new("blocks", "live_blocks").spare(2),
            Column::for_programs("room_blocks"),
            Column::new("full", "live_percent"),
            Column::for_programs("space_bytes"),
            Column::new("live", "live_bytes"),
            Column::new("pinned", "pinned_bytes"),
            Column::new("empty", "empty_bytes"),
            Column::new("returned", "returned_bytes").spare(4),
            Column::new("unused", "unused_bytes").spare(5),
            Column::for_programs("unknown_bytes"),
            Column::for_people("pages").spare(1),
        ];
        let row = |row: &Row<'_>| {
            let Bytes { space, live, pinned, empty, returned, unused, unknown, blocks, room, slabs } = row.bytes;
            vec![
                Cell::Text(row.label.clone()),
                Cell::Count(slabs),
                Cell::Count(blocks),
                Cell::Count(room),
                Cell::Share { part: live, whole: row.bytes.kept() },
                Cell::Bytes(space),
                Cell::Bytes(live),
                Cell::Bytes(pinned),
                Cell::Bytes(empty),
                Cell::Bytes(returned),
                Cell::Bytes(unused),
                Cell::Bytes(unknown),
                Cell::Text(picture::line(&row.slabs)),
            ]
        };
        Table { columns, rows: self.rows.iter().map(row).collect() }
    }

    /// What is not shown, and the slabs that few blocks keep.
    fn footer(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.rows.len() < self.all {
            lines.push(format!("{} of {} rows; --limit 0 shows all", self.rows.len(), self.all));
        }
        let kept_by_few = |slab: &&Slab| slab.bytes.pinned > slab.bytes.live.saturating_mul(4);
        let mut slabs: Vec<&Slab> = self.occupancy.slabs.iter().filter(kept_by_few).collect();
        let pinned = slabs.iter().fold(0u64, |sum, slab| sum.saturating_add(slab.bytes.pinned));
        slabs.sort_by_key(|slab| std::cmp::Reverse(slab.bytes.pinned));
        if !slabs.is_empty() {
            lines.push(String::new());
            lines.push(format!(
                "{} are pinned in {} slabs in which less than a fifth of each kept page is live; most in:",
                bytes(pinned),
                count(slabs.len() as u64)
            ));
        }
        for slab in slabs.iter().take(3) {
            lines.push(format!(
                "  {:#x}: {} blocks of {} pin {} (thread {}, heap {})",
                slab.start,
                count(slab.bytes.blocks),
                bytes(slab.block_size),
                bytes(slab.bytes.pinned),
                slab.thread,
                slab.heap
            ));
        }
        lines
    }
}

/// `live 3 MiB (60%) + pinned 1 MiB + …`: they add up.
fn parts(total: &Bytes) -> String {
    let unknown = if total.unknown > 0 { format!(" + not known {}", bytes(total.unknown)) } else { String::new() };
    format!(
        "= live {} ({} of what is kept) + pinned {} + empty {}{unknown} + returned {} + unused {}",
        bytes(total.live),
        percent(total.live as f64, total.kept() as f64),
        bytes(total.pinned),
        bytes(total.empty),
        bytes(total.returned),
        bytes(total.unused)
    )
}
