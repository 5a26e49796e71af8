//! Aligned columns for people.

use super::style::Style;
use super::table::{Audience, Table};

/// The header lines, a blank line, the headings, the rows (unless there are none) and the footer lines. Numbers are aligned to the right, text to the left, and
/// nothing is cut off: a name that does not fit is for the terminal to wrap, and for `grep` to find.
pub(super) fn render(header: &[String], table: &Table, footer: &[String], style: Style) -> String {
    let mut text = String::new();
    for line in header {
        text.push_str(line);
        text.push('\n');
    }
    if !table.rows.is_empty() {
        push_table(&mut text, table, style);
    }
    for line in footer {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn push_table(text: &mut String, table: &Table, style: Style) {
    let shown = table.columns_without(Audience::Programs);
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| shown.iter().map(|&index| row[index].for_people()).collect()).collect();
    let titles: Vec<&str> = shown.iter().map(|&index| table.columns[index].title).collect();
    let right: Vec<bool> = shown.iter().map(|&index| table.is_number(index)).collect();
    let widths: Vec<usize> = (0..shown.len())
        .map(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(width(titles[column])))
        .collect();

    if !text.is_empty() {
        text.push('\n');
    }
    let titles: Vec<String> = titles.into_iter().map(str::to_owned).collect();
    text.push_str(&style.bold(&line(&titles, &widths, &right)));
    text.push('\n');
    for row in &rows {
        text.push_str(&line(row, &widths, &right));
        text.push('\n');
    }
}

fn line(cells: &[String], widths: &[usize], right: &[bool]) -> String {
    let mut line = String::new();
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            line.push_str("  ");
        }
        let padding = " ".repeat(widths[index].saturating_sub(width(cell)));
        if right[index] {
            line.push_str(&padding);
        }
        line.push_str(cell);
        if !right[index] && index + 1 < cells.len() {
            line.push_str(&padding);
        }
    }
    line.trim_end().to_owned()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, Column};
    use super::*;

    #[test]
    fn aligns_and_escapes() {
        let table = Table {
            columns: vec![
                Column::new("flat", "flat_bytes"),
                Column::for_programs("hidden"),
                Column::new("function", "function"),
                Column::for_people("where"),
            ],
            rows: vec![
                vec![
                    Cell::Bytes(64 << 20),
                    Cell::Count(1),
                    Cell::Text("a\u{1b}[31m".into()),
                    Cell::Text("x.c:1".into()),
                ],
                vec![Cell::Bytes(7), Cell::Count(1), Cell::Text("main".into()), Cell::Text(String::new())],
            ],
        };
        let expected = "total\n\n    flat  function     where\n64.0 MiB  a\\u{1b}[31m  x.c:1\n     7 B  main\n";
        assert_eq!(render(&["total".to_owned()], &table, &[], Style::PLAIN), expected);
    }
}
