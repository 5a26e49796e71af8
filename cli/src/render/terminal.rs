//! Flame graphs in a terminal: a line for each depth, boxes as wide as their share, with as much of the name as fits.

use std::collections::BTreeMap;

use super::style::Style;

/// Columns where the width is not known.
pub(crate) const WIDTH: usize = 100;
/// Deeper boxes are not drawn; a line says so.
const DEEPEST: usize = 60;

/// A box and those on top of it, by name.
#[derive(Default)]
struct Box {
    weight: u64,
    above: BTreeMap<String, usize>,
}

/// A box on a line: where it begins and ends, in columns.
struct Placed {
    id: usize,
    name: String,
    start: usize,
    end: usize,
}

/// Draws folded stacks, `main;parse 4096`, the root at the bottom unless it is to be at the top. Boxes that are narrower than a column are left out.
pub(crate) fn draw(lines: &[String], width: usize, root_at_top: bool, style: Style) -> String {
    let boxes = boxes(lines);
    let mut rows = Vec::new();
    let mut row = vec![Placed { id: 0, name: "all".to_owned(), start: 0, end: width.max(1) }];
    let mut is_deeper = false;
    while !row.is_empty() {
        if rows.len() == DEEPEST {
            is_deeper = true;
            break;
        }
        let next = row.iter().flat_map(|placed| above(&boxes, placed)).collect();
        rows.push(text(&row, rows.len(), style));
        row = next;
    }
    if is_deeper {
        rows.push("(deeper calls are not drawn)".to_owned());
    }
    if !root_at_top {
        rows.reverse();
    }
    rows.join("\n") + "\n"
}

fn boxes(lines: &[String]) -> Vec<Box> {
    let mut boxes = vec![Box::default()];
    for line in lines {
        let Some((stack, weight)) = line.trim_end().rsplit_once(' ') else { continue };
        let weight: u64 = weight.parse().unwrap_or(0);
        let mut at = 0;
        boxes[0].weight = boxes[0].weight.saturating_add(weight);
        for name in stack.split(';').take(DEEPEST + 1) {
            let next = boxes.len();
            let id = *boxes[at].above.entry(name.to_owned()).or_insert(next);
            if id == next {
                boxes.push(Box::default());
            }
            boxes[id].weight = boxes[id].weight.saturating_add(weight);
            at = id;
        }
    }
    boxes
}

/// The boxes on top of one, side by side; edges are rounded to columns, so none is off by more than one.
fn above(boxes: &[Box], below: &Placed) -> Vec<Placed> {
    let of = &boxes[below.id];
    let room = (below.end - below.start) as f64;
    let column = |weight: u64| below.start + (room * weight as f64 / of.weight.max(1) as f64).round() as usize;
    let mut sum = 0_u64;
    let mut placed = Vec::new();
    for (name, &id) in &of.above {
        let start = column(sum);
        sum = sum.saturating_add(boxes[id].weight);
        let end = column(sum).min(below.end);
        if end > start {
            placed.push(Placed { id, name: name.clone(), start, end });
        }
    }
    placed
}

fn text(row: &[Placed], depth: usize, style: Style) -> String {
    let mut line = String::new();
    let mut at = 0;
    for (index, placed) in row.iter().enumerate() {
        line.push_str(&" ".repeat(placed.start.saturating_sub(at)));
        at = placed.end;
        let width = placed.end - placed.start;
        let name: String = match placed.name.chars().count() < width {
            true => placed.name.clone(),
            false => placed.name.chars().take(width.saturating_sub(2)).chain((width > 2).then_some('…')).collect(),
        };
        // An edge on the left tells boxes apart where there is no colour.
        let inside = width - 1;
        let label = format!("▏{name}{}", " ".repeat(inside.saturating_sub(name.chars().count())));
        line.push_str(&style.boxed(&label, index + depth));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn boxes_are_as_wide_as_their_share() {
        let drawn = draw(&lines(&["main;a 50", "main;b;c 25", "main 25"]), 20, true, Style::PLAIN);
        assert_eq!(drawn, "▏all\n▏main\n▏a        ▏b\n          ▏c\n");
        let turned = draw(&lines(&["main;a 50", "main;b;c 25", "main 25"]), 20, false, Style::PLAIN);
        assert_eq!(turned.lines().rev().collect::<Vec<_>>(), drawn.lines().collect::<Vec<_>>());
    }

    #[test]
    fn long_names_and_deep_stacks_stay_within_the_width() {
        let deep = vec!["function_with_a_long_name"; 500].join(";");
        for width in [1, 2, 3, 40, 200] {
            let drawn = draw(&lines(&[&format!("{deep} 7")]), width, true, Style::PLAIN);
            assert!(drawn.lines().count() == DEEPEST + 1, "{drawn}");
            assert!(drawn.lines().take(DEEPEST).all(|line| line.chars().count() <= width), "{drawn}");
        }
        assert_eq!(draw(&[], 10, true, Style::PLAIN), "▏all\n");
    }
}
