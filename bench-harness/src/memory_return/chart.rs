//! Charts: resident memory over time, one line for each contender, as SVG.

use std::fmt::Write as _;

use mpp_workloads::memory_return::record::Record;

use super::plan::{CHARTS, PEERS};
use super::results::{Cell, Results};
use crate::peers::OURS;

/// Width and height of a chart, and the part of it between the axes: left, top, right, bottom.
const SIZE: (f64, f64) = (860.0, 400.0);
const AREA: (f64, f64, f64, f64) = (62.0, 52.0, 660.0, 352.0);
/// Height of a label.
const LABEL: f64 = 15.0;
/// How much before the drain is shown, in milliseconds.
const BEFORE: f64 = 100.0;
/// Of a long watch this much has most of the width: milliseconds, and the share.
const CLOSE: (f64, f64) = (2000.0, 0.72);
const MIB: f64 = 1_048_576.0;
/// A charge that is so many times what is resident is told: the kernel has not got back what was given.
const MORE: f64 = 1.2;
/// Colours that are told apart by most eyes, in the order of [`PEERS`], and one for everybody else.
const COLOURS: [&str; 7] = ["#b3123f", "#0072b2", "#009e73", "#d55e00", "#8a5fbf", "#8c7a00", "#444444"];
const OTHER: &str = "#999999";

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Whose it is.
    pub name: String,
    /// Somebody asked for the return.
    pub is_asked: bool,
    /// Milliseconds after the drain, and bytes.
    pub points: Vec<(f64, f64)>,
    /// Bytes that the kernel charges in the end, if it tells.
    pub charged: Option<f64>,
}

/// The charts there are figures for: file name, and content.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let chart = |&(row, asked, title): &(&str, Option<&str>, &str)| {
        let lines = lines(results, row, asked);
        (!lines.is_empty()).then(|| (file_name(row), svg(title, &lines)))
    };
    CHARTS.iter().filter_map(chart).collect()
}

/// The file of the chart of a row.
#[must_use]
pub fn file_name(row: &str) -> String {
    format!("memory-return-{row}.svg")
}

/// The lines of a row, and those of the row in which somebody asks, for those who can be asked.
fn lines(results: &Results, row: &str, asked: Option<&str>) -> Vec<Line> {
    let mut lines = Vec::new();
    for peer in results.contenders.iter().filter(|peer| !peer.name.starts_with("ours-")) {
        let line = |row: &str, is_asked| {
            let record = typical(results.cell(row, &peer.name)?)?;
            let can_be_asked = record.purge.is_some();
            let points = record.samples.iter().filter(|sample| sample.ms >= -BEFORE);
            let points = points.map(|sample| (sample.ms, sample.rss as f64)).collect();
            let charged = record.own_charge().map(|charged| charged.end as f64);
            (can_be_asked == is_asked).then(|| Line { name: peer.name.clone(), is_asked, points, charged })
        };
        lines.extend(asked.and_then(|asked| line(asked, true)));
        lines.extend(line(row, false));
    }
    lines
}

/// The record of those watched for longest in which the end is nearest to the median.
fn typical(cell: &Cell) -> Option<&Record> {
    let length = |record: &Record| record.samples.last().map_or(0.0, |sample| sample.ms);
    let longest = cell.records.iter().map(length).fold(0.0, f64::max);
    let mut long: Vec<_> = cell.records.iter().filter(|record| length(record) >= longest * 0.9).collect();
    long.sort_by_key(|record| record.rss.end);
    long.get(long.len() / 2).copied()
}

/// A step between grid lines so that there are few of them.
fn step(range: f64) -> f64 {
    let rough = range / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= rough).unwrap_or(rough)
}

/// From milliseconds and bytes to places.
#[derive(Clone, Copy, Debug)]
struct Scale {
    last: f64,
    most: f64,
}

impl Scale {
    fn of(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        Self {
            last: points().map(|point| point.0).fold(1.0, f64::max),
            most: points().map(|point| point.1).fold(MIB, f64::max) * 1.04,
        }
    }

    fn x(&self, ms: f64) -> f64 {
        let share = match CLOSE {
            (close, _) if !self.is_long() => (ms + BEFORE) / (self.last.max(close) + BEFORE),
            (close, width) if ms <= close => (ms + BEFORE) / (close + BEFORE) * width,
            (close, width) => width + (ms - close) / (self.last - close) * (1.0 - width),
        };
        AREA.0 + share * (AREA.2 - AREA.0)
    }

    /// Whether time runs faster at the end.
    fn is_long(&self) -> bool {
        self.last > 2.0 * CLOSE.0
    }

    /// Moments that have a line, in seconds.
    fn moments(&self) -> Vec<f64> {
        let last = (self.last + 20.0) / 1000.0;
        let (close, more) = if self.is_long() { (CLOSE.0 / 1000.0, 4.0) } else { (last, last) };
        let near = (0..).map(|number| f64::from(number) * 0.5).take_while(|&moment| moment <= close);
        let far = (1..).map(|number| f64::from(number) * more).take_while(|&moment| moment <= last);
        near.chain(far.filter(|&moment| moment > close)).collect()
    }

    fn y(&self, bytes: f64) -> f64 {
        AREA.3 - bytes / self.most * (AREA.3 - AREA.1)
    }
}

fn svg(title: &str, lines: &[Line]) -> String {
    let scale = Scale::of(lines);
    let (width, height) = SIZE;
    let dashed = lines.iter().any(|line| line.is_asked);
    let words = if dashed { "; dashed: with the allocator's own call after the drain" } else { "" };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{}\" y=\"22\" font-size=\"15\" font-weight=\"600\">{title}</text>\n\
         <text x=\"{}\" y=\"40\" fill=\"#555\">resident memory in MiB{words}; in brackets: what the kernel charges, if more</text>\n",
        AREA.0, AREA.0
    );
    grid(&mut text, scale);
    lines.iter().for_each(|line| curve(&mut text, scale, line));
    labels(&mut text, scale, lines);
    text + "</svg>\n"
}

fn grid(text: &mut String, scale: Scale) {
    let each = step(scale.most / MIB);
    let mut mib = 0.0;
    while mib * MIB <= scale.most {
        let y = scale.y(mib * MIB);
        let _ = writeln!(
            text,
            "<line x1=\"{}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" stroke=\"#e3e3e3\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{mib:.0}</text>",
            AREA.0,
            AREA.2,
            AREA.0 - 8.0,
            y + 4.0
        );
        mib += each;
    }
    for seconds in scale.moments() {
        let x = scale.x(seconds * 1000.0);
        let word = if seconds == 0.0 { "drain".to_owned() } else { format!("{seconds} s") };
        let is_seam = scale.is_long() && seconds * 1000.0 == CLOSE.0;
        let colour = if seconds == 0.0 || is_seam { "#888" } else { "#e3e3e3" };
        let dashes = if is_seam { " stroke-dasharray=\"2 3\"" } else { "" };
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"{colour}\"{dashes}/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{word}</text>",
            AREA.1,
            AREA.3,
            AREA.3 + 18.0
        );
    }
}

fn colour(name: &str) -> &'static str {
    PEERS.iter().position(|&peer| peer == name).and_then(|at| COLOURS.get(at).copied()).unwrap_or(OTHER)
}

fn curve(text: &mut String, scale: Scale, line: &Line) {
    let points: Vec<_> =
        line.points.iter().map(|&(ms, bytes)| format!("{:.1},{:.1}", scale.x(ms), scale.y(bytes))).collect();
    let width = if line.name == OURS { 3.0 } else { 1.6 };
    let dashes = if line.is_asked { " stroke-dasharray=\"5 4\"" } else { "" };
    let _ = writeln!(
        text,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dashes}/>",
        points.join(" "),
        colour(&line.name)
    );
}

/// A name and a figure at the end of each line, moved apart where lines end close to each other.
fn labels(text: &mut String, scale: Scale, lines: &[Line]) {
    let end = |line: &Line| line.points.last().copied().unwrap_or_default();
    let mut order: Vec<_> = lines.iter().collect();
    order.sort_by(|a, b| end(b).1.total_cmp(&end(a).1));
    let wanted: Vec<_> = order.iter().map(|line| scale.y(end(line).1)).collect();
    for (line, (y, from)) in order.iter().zip(apart(&wanted).into_iter().zip(&wanted)) {
        let (ms, bytes) = end(line);
        let (colour, x) = (colour(&line.name), scale.x(ms));
        let asked = if line.is_asked { ", asked" } else { "" };
        let charged = line.charged.filter(|charged| *charged > bytes * MORE).map(|charged| charged / MIB);
        let charged = charged.map(|charged| format!(" ({charged:.0})")).unwrap_or_default();
        let weight = if line.name == OURS { " font-weight=\"700\"" } else { "" };
        let _ = writeln!(
            text,
            "<polyline points=\"{x:.1},{from:.1} {:.1},{y:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"0.7\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\"{weight}>{}{asked}: {:.0}{charged}</text>",
            AREA.2 + 18.0,
            AREA.2 + 22.0,
            y + 4.0,
            line.name,
            bytes / MIB
        );
    }
}

/// Heights from top to bottom, with room for a label each.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + LABEL);
    }
    // What has been pushed out at the bottom pushes upwards.
    let mut limit = SIZE.1 - LABEL;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LABEL;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_room() {
        let places = apart(&[60.0, 61.0, 62.0, 380.0, 384.0, 384.0]);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL - 1e-9), "{places:?}");
        assert!(places[0] >= 60.0 && places[5] <= SIZE.1 - LABEL, "{places:?}");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([12.0, 280.0, 2.0, 0.9].map(step), [2.0, 50.0, 0.5, 0.2]);
    }

    #[test]
    fn time_runs_faster_at_the_end_of_a_long_watch() {
        let scale = |last| Scale { last, most: MIB };
        assert_eq!(scale(2000.0).moments(), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(scale(12_000.0).moments(), [0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 12.0]);
        for last in [500.0, 2000.0, 3000.0, 12_000.0] {
            let places: Vec<_> = (0..=24).map(|part| scale(last).x(last * f64::from(part) / 24.0)).collect();
            assert!(places.windows(2).all(|pair| pair[0] < pair[1]) && places[24] <= AREA.2 + 1e-9, "{places:?}");
        }
    }

    #[test]
    fn a_chart_has_a_line_and_a_label_for_each() {
        let line = |name: &str, is_asked| Line {
            name: name.to_owned(),
            is_asked,
            points: vec![(-50.0, 280.0 * MIB), (0.0, 280.0 * MIB), (2000.0, 70.0 * MIB)],
            charged: Some(if is_asked { 280.0 } else { 75.0 } * MIB),
        };
        let text = svg("a title", &[line(OURS, false), line("glibc", true), line("unheard-of", false)]);
        assert!(text.contains(">ours: 70</text>") && text.contains(">glibc, asked: 70 (280)</text>"), "{text}");
        assert_eq!((text.matches("stroke-dasharray").count(), text.matches(OTHER).count()), (1, 3));
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
    }
}
