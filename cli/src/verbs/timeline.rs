//! `mpp timeline`: how much memory a process had while it ran.

mod svg;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mpp_profile::formats::timeline::Tick;
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count};
use serde::Serialize;

use crate::args::{CommonArgs, OutputArgs};
use crate::exit::Failure;
use crate::recording::Recording;
use crate::render::chart::{self, Point};
use crate::render::style::Style;
use crate::render::{self, Cell, Column, Report, Table};
use crate::timeline::{self, Measured, seconds};
use crate::{input, message, output};

const EXAMPLES: &str = "\
Examples:
  mpp timeline                             the newest recording below this folder
  mpp timeline mpp-app-1-2/17/timeline.bin --format csv
  mpp timeline --format svg -o app.svg     a chart
  mpp top mpp-app-1-2/17/timeline.bin      its samples as the heap profile of its end

live is what the program holds, counted by the allocator; RSS is what the kernel has given the process;
committed is what the allocator has handed out and not given back; purged is what it has given back.";

/// The flags of `mpp timeline`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TimelineArgs {
    /// A timeline.bin, a recording folder, a bundle, or `-` for standard input [default: the newest recording below this folder]
    #[arg(value_name = "INPUT")]
    input: Option<PathBuf>,
    /// The process of a recording to show [default: the one that was started]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true)]
    pid: Option<u32>,
    /// At most this many rows, spread over the whole time, 0 is all [default: 25 for people, all in JSON, CSV and SVG]
    #[arg(long, value_name = "N", env = "MPP_LIMIT", hide_env_values = true)]
    limit: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
    /// The format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", env = "MPP_FORMAT", hide_env_values = true)]
    format: TimelineFormat,
}

/// See [`TimelineArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimelineFormat {
    /// Aligned columns for people
    Text,
    /// For programs: schema, schema_version, plain integers
    Json,
    /// For spreadsheets: plain integers
    Csv,
    /// For issues and pull requests
    Md,
    /// A chart
    Svg,
}

/// Runs the verb.
///
/// # Errors
/// If there is no timeline, or it cannot be read, or the report cannot be written.
pub(crate) fn timeline(args: &TimelineArgs, common: CommonArgs) -> Result<(), Failure> {
    let nothing = "holds no timeline; `mpp run` writes one unless --no-timeline is given";
    let path = input::part(args.input.as_deref(), args.pid, Recording::timelines, nothing, common)?;
    let measured = timeline::read(&path, args.pid)?;
    for oddity in measured.oddities() {
        message::warning(common, format!("{}: {oddity}", path.display()));
    }
    let target = args.output.output.as_deref().filter(|path| *path != Path::new("-"));
    let style = if target.is_none() { Style::of(common.color, &io::stdout()) } else { Style::PLAIN };
    let result = rendered(args, &measured, &path, style)?;
    match target {
        None => Ok(output::to_stdout(&result)?),
        Some(path) => Ok(output::to_file(path, &result, || args.output.force)?),
    }
}

fn rendered(args: &TimelineArgs, measured: &Measured, path: &Path, style: Style) -> anyhow::Result<Vec<u8>> {
    let source = path.display().to_string();
    let format = match args.format {
        TimelineFormat::Svg => return Ok(svg::draw(measured, &source).into_bytes()),
        TimelineFormat::Text => render::Format::Text,
        TimelineFormat::Json => render::Format::Json,
        TimelineFormat::Csv => render::Format::Csv,
        TimelineFormat::Md => render::Format::Md,
    };
    let default = if format.is_for_programs() { 0 } else { 25 };
    let limit = args.limit.unwrap_or(default);
    let shown = spread(&measured.ticks, limit);
    let mut header = header(measured, &source);
    if format == render::Format::Text {
        header.extend(chart(measured, style));
    }
    let footer = if shown.len() < measured.ticks.len() {
        vec![format!("{} of {} measurements; --limit 0 shows all", shown.len(), count(measured.ticks.len() as u64))]
    } else {
        Vec::new()
    };
    let table = table(&shown);
    let data = Data::of(measured, &source, &shown);
    render::render(&Report { header: &header, table: &table, footer: &footer, data: &data }, format, style)
}

/// At most so many, evenly spread, with the first and the last; and always those where something is highest, in the place of the nearest.
fn spread(ticks: &[Tick], limit: usize) -> Vec<Tick> {
    if limit == 0 || ticks.len() <= limit {
        return ticks.to_vec();
    }
    let steps = limit.max(2) - 1;
    let mut chosen: Vec<usize> = (0..=steps).map(|step| step * (ticks.len() - 1) / steps).collect();
    let columns: [fn(&Tick) -> u64; 2] = [|tick| tick.resident, |tick| tick.live];
    for column in columns {
        let highest = (0..ticks.len()).rev().max_by_key(|&at| column(&ticks[at])).unwrap_or(0);
        if let Some(nearest) = chosen[1..steps].iter_mut().min_by_key(|at| at.abs_diff(highest)) {
            *nearest = highest;
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|at| ticks[at]).collect()
}

fn header(measured: &Measured, source: &str) -> Vec<String> {
    let Measured { header, ticks, events, latest, .. } = measured;
    let mut lines = vec![
        format!("from: {} (process {})", escaped(source), header.process),
        format!("{} measurements and {} events in {}", count(ticks.len() as u64), count(*events), seconds(*latest)),
    ];
    lines.extend(measured.peaks());
    if let Some(last) = ticks.last() {
        lines.push(format!("at the end: RSS {}, live {}", bytes(last.resident), bytes(last.live)));
    }
    let marks = measured.marks.iter().map(|(time, text)| format!("mark at {}: {}", seconds(*time), escaped(text)));
    lines.extend(marks);
    lines
}

/// RSS is known at ticks only, live memory also between them.
fn chart(measured: &Measured, style: Style) -> Vec<String> {
    let mut points: Vec<Point> =
        measured.ticks.iter().map(|tick| Point { time: tick.time, inner: tick.live, outer: tick.resident }).collect();
    let mut ticks = measured.ticks.iter().peekable();
    let mut resident = 0;
    for moment in measured.curve.moments() {
        while let Some(tick) = ticks.next_if(|tick| tick.time <= moment.time) {
            resident = tick.resident;
        }
        points.push(Point { time: moment.time, inner: moment.live, outer: resident });
    }
    points.sort_by_key(|point| point.time);
    let (first, last) = (points.first().map_or(0, |point| point.time), points.last().map_or(0, |point| point.time));
    let mut lines = chart::area(&points, style.width, &seconds(first), &seconds(last));
    if !lines.is_empty() {
        lines.insert(0, String::new());
        lines.push("█ live (between measurements: estimated from the samples)   ░ RSS beyond it".to_owned());
    }
    lines
}

fn table(ticks: &[Tick]) -> Table {
    let columns = vec![
        Column::for_people("time"),
        Column::for_programs("time_us"),
        Column::new("live", "live_bytes"),
        Column::new("blocks", "live_blocks"),
        Column::new("RSS", "resident_bytes"),
        Column::new("committed", "committed_bytes"),
        Column::new("purged", "purged_bytes"),
        Column::new("allocated", "allocated_bytes"),
        Column::for_programs("peak_resident_bytes"),
        Column::for_programs("purged_total_bytes"),
    ];
    let row = |tick: &Tick| {
        vec![
            Cell::Text(seconds(tick.time)),
            Cell::Count(tick.time),
            Cell::Bytes(tick.live),
            Cell::Count(tick.live_blocks),
            Cell::Bytes(tick.resident),
            Cell::Bytes(tick.committed),
            Cell::Bytes(tick.purged),
            Cell::Bytes(tick.allocated),
            Cell::Bytes(tick.peak_resident),
            Cell::Bytes(tick.purged_total),
        ]
    };
    Table { columns, rows: ticks.iter().map(row).collect() }
}

/// What `--format json` prints. A field keeps its name and meaning as long as `schema_version` stays.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    source: &'a str,
    process: u32,
    /// The start in nanoseconds since 1970.
    start_ns: u64,
    /// Microseconds since then, as all times.
    end_us: u64,
    /// The recording ends with its process, or was stopped; else the process was killed or still runs.
    is_complete: bool,
    /// Events that could not be kept.
    lost_events: u64,
    events: u64,
    allocations: u64,
    /// How many samples each event stands for.
    weight: u64,
    /// Ticks there are; `ticks` may have fewer.
    ticks_total: usize,
    ticks: Vec<DataTick>,
    /// Where the samples tell of clearly more live memory than was ever measured.
    unseen_peak: Option<DataMoment>,
    marks: Vec<DataMark<'a>>,
}

#[derive(Debug, Serialize)]
struct DataMoment {
    time_us: u64,
    live_bytes_estimated: u64,
}

#[derive(Debug, Serialize)]
struct DataTick {
    time_us: u64,
    live_bytes: u64,
    live_blocks: u64,
    resident_bytes: u64,
    peak_resident_bytes: u64,
    committed_bytes: u64,
    purged_bytes: u64,
    purged_total_bytes: u64,
    allocated_bytes: u64,
}

#[derive(Debug, Serialize)]
struct DataMark<'a> {
    time_us: u64,
    text: &'a str,
}

impl<'a> Data<'a> {
    fn of(measured: &'a Measured, source: &'a str, shown: &[Tick]) -> Data<'a> {
        use mpp_profile::formats::timeline::Ending;
        let tick = |tick: &Tick| DataTick {
            time_us: tick.time,
            live_bytes: tick.live,
            live_blocks: tick.live_blocks,
            resident_bytes: tick.resident,
            peak_resident_bytes: tick.peak_resident,
            committed_bytes: tick.committed,
            purged_bytes: tick.purged,
            purged_total_bytes: tick.purged_total,
            allocated_bytes: tick.allocated,
        };
        Data {
            schema: "mpp-timeline",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            source,
            process: measured.header.process,
            start_ns: measured.header.wall_start,
            end_us: measured.latest,
            is_complete: matches!(measured.ending, Ending::Exit | Ending::Stopped),
            lost_events: measured.lost,
            events: measured.events,
            allocations: measured.allocations,
            weight: measured.header.weight(),
            ticks_total: measured.ticks.len(),
            ticks: shown.iter().map(tick).collect(),
            unseen_peak: measured
                .unseen_peak()
                .map(|moment| DataMoment { time_us: moment.time, live_bytes_estimated: moment.live }),
            marks: measured.marks.iter().map(|(time, text)| DataMark { time_us: *time, text }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_the_ends_and_the_peak() {
        let ticks: Vec<Tick> = (0..1000)
            .map(|time| Tick { time, resident: if time == 333 { 9 } else { 1 }, live: time, ..Tick::default() })
            .collect();
        let shown = spread(&ticks, 10);
        let times: Vec<u64> = shown.iter().map(|tick| tick.time).collect();
        assert!(times.len() <= 10 && times[0] == 0 && times[times.len() - 1] == 999, "{times:?}");
        assert!(times.contains(&333) && times.is_sorted(), "{times:?}");
        assert_eq!(spread(&ticks, 0).len(), 1000);
        assert_eq!(spread(&ticks[..3], 10).len(), 3);
        assert_eq!(spread(&ticks, 1).len(), 2);
    }
}
