//! The chart: lines over time, and nothing that needs a script or a font from elsewhere.

use std::fmt::Write;

use mpp_profile::formats::timeline::Tick;
use mpp_profile::text::escaped;
use mpp_profile::units::bytes;

use crate::timeline::{Measured, seconds};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 40.0;

/// A line of the chart.
struct Line {
    name: &'static str,
    color: &'static str,
    value: fn(&Tick) -> u64,
}

/// Colours that people who see few of them can tell apart.
const LINES: [Line; 4] = [
    Line { name: "RSS", color: "#d55e00", value: |tick| tick.resident },
    Line { name: "committed", color: "#999999", value: |tick| tick.committed },
    Line { name: "live", color: "#0072b2", value: |tick| tick.live },
    Line { name: "purged", color: "#cc79a7", value: |tick| tick.purged },
];

/// Draws it. The same measurements give the same bytes.
pub(super) fn draw(measured: &Measured, source: &str) -> String {
    let ticks = &measured.ticks;
    let most = ticks.iter().flat_map(|tick| LINES.iter().map(|line| (line.value)(tick))).max().unwrap_or(0);
    let most = most.max(measured.curve.highest().map_or(0, |moment| moment.live));
    let top = round_up(most.max(1));
    let last = measured.latest.max(1);
    let x = |time: u64| LEFT + (WIDTH - LEFT - RIGHT) * time as f64 / last as f64;
    let y = |value: u64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value as f64 / top as f64;
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    );
    text(&mut svg, LEFT, 22.0, "start", "#000000", &format!("memory of process {}", measured.header.process));
    text(&mut svg, WIDTH - RIGHT, 22.0, "end", "#666666", source);
    for part in 0..=4 {
        let value = top / 4 * part;
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#e0e0e0\"/>",
            WIDTH - RIGHT,
            y(value),
            y(value)
        );
        text(&mut svg, LEFT - 8.0, y(value) + 4.0, "end", "#333333", &bytes(value));
        let time = last / 4 * part;
        // The last one would not fit in the middle.
        let anchor = if part == 4 { "end" } else { "middle" };
        text(&mut svg, x(time), HEIGHT - BOTTOM + 18.0, anchor, "#333333", &seconds(time));
    }
    for (time, mark) in &measured.marks {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{1}\" stroke=\"#009e73\" stroke-dasharray=\"3 3\"/>",
            x(*time),
            HEIGHT - BOTTOM
        );
        text(&mut svg, x(*time), TOP - 4.0, "middle", "#009e73", mark);
    }
    for (number, line) in LINES.iter().enumerate() {
        let points: Vec<String> =
            fewer(ticks).map(|tick| format!("{:.1},{:.1}", x(tick.time), y((line.value)(tick)))).collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>",
            line.color,
            points.join(" ")
        );
        text(&mut svg, LEFT + 110.0 * number as f64, 42.0, "start", line.color, &format!("— {}", line.name));
    }
    // What the samples tell of the time between measurements.
    let estimated: Vec<String> =
        measured.curve.moments().iter().map(|at| format!("{:.1},{:.1}", x(at.time), y(at.live))).collect();
    let color = LINES[2].color;
    let _ = writeln!(
        svg,
        "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1\" stroke-opacity=\"0.6\" points=\"{}\"/>",
        estimated.join(" ")
    );
    text(&mut svg, LEFT + 110.0 * LINES.len() as f64, 42.0, "start", color, "thin: live, from the samples");
    svg.push_str("</svg>\n");
    svg
}

/// At most a few thousand: of each stretch the tick with the highest RSS and that with the lowest.
fn fewer(ticks: &[Tick]) -> impl Iterator<Item = &Tick> {
    const MOST: usize = 2000;
    ticks.chunks(ticks.len().div_ceil(MOST).max(1)).flat_map(|stretch| {
        let highest = stretch.iter().max_by_key(|tick| tick.resident);
        let lowest = stretch.iter().min_by_key(|tick| tick.resident).filter(|_| stretch.len() > 1);
        let mut pair: Vec<&Tick> = highest.into_iter().chain(lowest).collect();
        pair.sort_by_key(|tick| tick.time);
        pair
    })
}

/// 4, 8, 12, 16, 20, 24, 32, 40, … times a power of two of 1024, so that quarters are round.
fn round_up(value: u64) -> u64 {
    let mut unit = 1;
    while value / 64 >= unit {
        unit *= 2;
    }
    value.div_ceil(unit * 4).saturating_mul(unit * 4)
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, color: &str, content: &str) {
    let mut plain = escaped(content).to_string();
    for (from, to) in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")] {
        plain = plain.replace(from, to);
    }
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{plain}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_round_and_near() {
        for value in [1, 5, 63, 64, 1000, 1 << 20, (1 << 30) + 1, 12_345_678_901] {
            let top = round_up(value);
            assert!(top >= value && top.is_multiple_of(4) && (value < 64 || top < value + value / 4), "{value}: {top}");
        }
    }
}
