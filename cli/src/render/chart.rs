//! Two numbers over time as an area of characters, for terminals and text.

use mpp_profile::units::bytes;

/// Lines of the area.
const HEIGHT: usize = 10;
/// Columns that the scale at the left may take.
const SCALE: usize = 10;
/// Columns in all, if nobody knows how many there are.
const WIDTH: usize = 80;
/// Columns of the area, at most: more say nothing more.
const WIDEST: usize = 120;

/// One moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Point {
    /// Any unit, as long as it never falls.
    pub(crate) time: u64,
    /// The area that is filled, in bytes.
    pub(crate) inner: u64,
    /// The area around it, in bytes.
    pub(crate) outer: u64,
}

/// The lines of the picture, at most `width` columns wide: `█` up to the inner number, `░` from there to the outer one. Each column is the stretch
/// of time that falls on it, with the highest numbers in it; one in which nothing was measured has the latest before it. `start` and `end` are written below. Empty
/// without two moments, or where there is no room.
pub(crate) fn area(points: &[Point], width: Option<usize>, start: &str, end: &str) -> Vec<String> {
    let columns = width.unwrap_or(WIDTH).saturating_sub(SCALE + 2).min(WIDEST);
    let most = points.iter().map(|point| point.inner.max(point.outer)).max().unwrap_or(0);
    if points.len() < 2 || columns < 16 || most == 0 {
        return Vec::new();
    }
    let stretches = stretches(points, columns);
    let mut lines = Vec::with_capacity(HEIGHT + 1);
    for row in (0..HEIGHT).rev() {
        // A cell is full if half of it is.
        let reaches = |value: u64| value as f64 / most as f64 * HEIGHT as f64 >= row as f64 + 0.5;
        let cells: String = stretches
            .iter()
            .map(|point| match () {
                () if reaches(point.inner) => '█',
                () if reaches(point.outer) => '░',
                () => ' ',
            })
            .collect();
        let scale = match row {
            _ if row == HEIGHT - 1 => bytes(most),
            _ if row == HEIGHT / 2 => bytes(most / 2),
            0 => bytes(0),
            _ => String::new(),
        };
        lines.push(format!("{scale:>SCALE$} ┤{cells}").trim_end().to_owned());
    }
    let room = columns.saturating_sub(start.chars().count());
    lines.push(format!("{:SCALE$}  {start}{end:>room$}", ""));
    lines
}

fn stretches(points: &[Point], columns: usize) -> Vec<Point> {
    let first = points.first().map_or(0, |point| point.time);
    let length = points.last().map_or(0, |point| point.time.saturating_sub(first)).max(1);
    let place = |point: &Point| {
        let part = point.time.saturating_sub(first) as f64 / length as f64;
        ((part * columns as f64) as usize).min(columns - 1)
    };
    let mut points = points.iter().peekable();
    let mut latest = Point::default();
    (0..columns)
        .map(|column| {
            let mut highest: Option<Point> = None;
            while let Some(point) = points.next_if(|point| place(point) <= column) {
                let most = highest.get_or_insert(*point);
                (most.inner, most.outer) = (most.inner.max(point.inner), most.outer.max(point.outer));
                latest = *point;
            }
            highest.unwrap_or(latest)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area() {
        let points: Vec<Point> =
            (0..40).map(|time| Point { time, inner: 10 * time.min(20), outer: 10 * time }).collect();
        let lines = area(&points, Some(32), "0 s", "39 s");
        assert_eq!(lines.len(), HEIGHT + 1);
        assert!(lines.iter().all(|line| line.chars().count() <= 32), "{lines:#?}");
        // Half of it is filled, to half of the height.
        assert_eq!(lines[0].trim_start(), "390 B ┤                   ░");
        assert_eq!(lines[4].trim_start(), "195 B ┤           ░░░░░░░░░");
        assert_eq!(lines[9].trim_start(), "0 B ┤ ███████████████████");
        assert_eq!(lines[10].trim(), "0 s             39 s");
    }

    #[test]
    fn what_cannot_be_drawn() {
        let point = |time| Point { time, inner: 1, outer: 1 };
        assert!(area(&[], None, "", "").is_empty());
        assert!(area(&[point(1)], None, "", "").is_empty());
        assert!(area(&[point(1), point(2)], Some(20), "", "").is_empty(), "no room");
        assert!(area(&[Point::default(), Point::default()], None, "", "").is_empty(), "nothing");
        let backwards = area(&[point(u64::MAX), point(0)], None, "a", "b");
        assert_eq!(backwards.len(), HEIGHT + 1);
    }

    /// A pause is no time without memory.
    #[test]
    fn pauses_are_filled() {
        let points = [0, 1, 99, 100].map(|time| Point { time, inner: 4, outer: 8 });
        let lines = area(&points, None, "", "");
        assert!(lines[0].ends_with(&"░".repeat(WIDTH - SCALE - 2)), "{}", lines[0]);
        // What was freed before the pause is not there in it.
        let points = [(0, 8), (1, 0), (100, 0)].map(|(time, inner)| Point { time, inner, outer: 0 });
        assert_eq!(area(&points, None, "", "")[9].trim(), "0 B ┤█");
    }
}
