//! The picture: every page of every slab, a band for each row of the report, and nothing that needs a script or a font from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write;

use mpp_profile::analysis::occupancy::{PAGE, State};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count};

use super::Shown;

/// Pages in a line, and the side of a page.
const ACROSS: usize = 160;
const SIDE: f64 = 5.0;
const LEFT: f64 = 130.0;
const TOP: f64 = 76.0;
/// Lines of pages, about: where there are more, a square stands for several.
const MOST_LINES: usize = 300;

/// Colours that people who see few of them can tell apart: from light to dark the more of a page is live.
const LIVE: [&str; 5] = ["#cfe3f2", "#9ac6e6", "#5aa2d4", "#1f78b4", "#0b3c66"];
const EMPTY: &str = "#e69f00";
const AWAY: &str = "#e8e8e8";
const UNKNOWN: &str = "#999999";

/// Draws it. The same snapshot gives the same bytes.
pub(super) fn draw(shown: &Shown<'_>) -> String {
    let bands: Vec<(&str, String, Vec<State>)> = shown
        .rows
        .iter()
        .map(|row| {
            let told = format!(
                "{}: {} slabs, {} live blocks; live {}, pinned {}, empty {}, returned {}",
                row.label,
                count(row.bytes.slabs),
                count(row.bytes.blocks),
                bytes(row.bytes.live),
                bytes(row.bytes.pinned),
                bytes(row.bytes.empty),
                bytes(row.bytes.returned)
            );
            (row.label.as_str(), told, row.slabs.iter().flat_map(|slab| slab.pages.iter().copied()).collect())
        })
        .filter(|(_, _, pages): &(_, _, Vec<State>)| !pages.is_empty())
        .collect();
    let all: usize = bands.iter().map(|(_, _, pages)| pages.len()).sum();
    let each = (all / (ACROSS * MOST_LINES) + 1).next_power_of_two();
    let lines: usize = bands.iter().map(|(_, _, pages)| pages.len().div_ceil(each * ACROSS)).sum();
    let (width, height) =
        (LEFT + ACROSS as f64 * SIDE + 20.0, TOP + lines as f64 * SIDE + bands.len() as f64 * 8.0 + 12.0);
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    );
    captions(&mut svg, shown, each, width);
    let mut y = TOP;
    for (label, told, pages) in &bands {
        let _ = writeln!(svg, "<g><title>{}</title>", plain(told));
        text(&mut svg, LEFT - 8.0, y + 8.0, "end", label);
        let squares: Vec<&str> = pages.chunks(each).map(color).collect();
        push_squares(&mut svg, &squares, y);
        y += squares.len().div_ceil(ACROSS) as f64 * SIDE;
        svg.push_str("</g>\n");
        y += 8.0;
    }
    svg.push_str("</svg>\n");
    svg
}

fn captions(svg: &mut String, shown: &Shown<'_>, each: usize, width: f64) {
    let total = &shown.occupancy.total;
    text(svg, 12.0, 18.0, "start", &format!("{} in slabs and single blocks", bytes(total.space)));
    text(svg, width - 12.0, 18.0, "end", shown.source);
    let singles = shown.occupancy.slabs.iter().filter(|slab| slab.pages.is_empty());
    let (number, size) = singles.fold((0u64, 0u64), |sum, slab| (sum.0 + 1, sum.1.saturating_add(slab.bytes.space)));
    let hidden = shown.all - shown.rows.len();
    let more = if hidden > 0 { format!("; {hidden} rows are not shown (--limit)") } else { String::new() };
    let square = bytes(each as u64 * PAGE);
    let note = format!("a square is {square}; {} single blocks ({}) are not shown{more}", count(number), bytes(size));
    text(svg, 12.0, 36.0, "start", &note);
    let legend = [
        (LIVE[0], "up to 1/5 live".to_owned()),
        (LIVE[2], "about half".to_owned()),
        (LIVE[4], format!("all live ({} in all)", bytes(total.live))),
        (EMPTY, format!("empty, in memory ({})", bytes(total.empty))),
        (AWAY, format!("returned or never used ({})", bytes(total.returned.saturating_add(total.unused)))),
    ];
    for (number, (color, words)) in legend.iter().enumerate() {
        let x = 12.0 + 180.0 * number as f64;
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"48\" width=\"10\" height=\"10\" fill=\"{color}\"/>");
        text(svg, x + 14.0, 57.0, "start", words);
    }
}

/// Of pages that share a square.
fn color(pages: &[State]) -> &'static str {
    let (mut live, mut kept) = (0u64, 0u64);
    for page in pages {
        match page {
            State::Live(bytes) => (live, kept) = (live + u64::from(*bytes), kept + PAGE),
            State::Empty => kept += PAGE,
            State::Unknown => return UNKNOWN,
            State::Returned | State::Unused => {}
        }
    }
    match () {
        () if kept == 0 => AWAY,
        () if live == 0 => EMPTY,
        () => LIVE[((live as f64 / kept as f64 * 5.0).ceil() as usize).clamp(1, 5) - 1],
    }
}

/// Neighbours of one colour are one rectangle, and all of a colour are one shape.
fn push_squares(svg: &mut String, squares: &[&str], top: f64) {
    let mut shapes: BTreeMap<&str, String> = BTreeMap::new();
    for (number, line) in squares.chunks(ACROSS).enumerate() {
        let (mut x, y, height) = (LEFT, top + number as f64 * SIDE, SIDE - 0.5);
        for run in line.chunk_by(|one, other| one == other) {
            let width = run.len() as f64 * SIDE;
            let shape = shapes.entry(run[0]).or_default();
            let _ = write!(shape, "M{x} {y}h{0}v{height}h-{0}z", width - 0.5);
            x += width;
        }
    }
    for (color, shape) in shapes {
        let _ = writeln!(svg, "<path fill=\"{color}\" d=\"{shape}\"/>");
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, content: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#333333\">{}</text>",
        plain(content)
    );
}

fn plain(content: &str) -> String {
    let mut plain = escaped(content).to_string();
    for (from, to) in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")] {
        plain = plain.replace(from, to);
    }
    plain
}
