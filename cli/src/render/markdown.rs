//! Tables for issues and pull requests, in GitHub's dialect.

use super::table::{Audience, Cell, Table};

/// The header lines as paragraphs, the table, and the footer lines. Text cells are code, because names are full of `<`, `*` and `_`.
pub(super) fn render(header: &[String], table: &Table, footer: &[String]) -> String {
    let mut text = String::new();
    for line in header {
        text.push_str(&plain(line));
        text.push_str("\n\n");
    }
    let shown = table.columns_without(Audience::Programs);
    push_row(&mut text, shown.iter().map(|&index| table.columns[index].title.to_owned()));
    push_row(&mut text, shown.iter().map(|&index| if table.is_number(index) { "---:" } else { "---" }.to_owned()));
    for row in &table.rows {
        push_row(&mut text, shown.iter().map(|&index| cell(&row[index])));
    }
    for line in footer {
        text.push('\n');
        text.push_str(&plain(line));
        text.push('\n');
    }
    text
}

fn push_row(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push('|');
    for cell in cells {
        text.push(' ');
        text.push_str(&cell);
        text.push_str(" |");
    }
    text.push('\n');
}

fn cell(cell: &Cell) -> String {
    let text = cell.for_people();
    match cell {
        Cell::Text(_) if !text.is_empty() => code(&text),
        _ => text,
    }
}

/// A code span. A `|` would end the cell even there, and a backtick would end the span.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// A line of prose in which nothing is markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#' | '|') {
            plain.push('\\');
        }
        plain.push(character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::super::table::Column;
    use super::*;

    #[test]
    fn names_do_not_become_markup() {
        let table = Table {
            columns: vec![Column::new("flat", "flat_bytes"), Column::new("function", "function")],
            rows: vec![vec![Cell::Bytes(1024), Cell::Text("operator|<T>".to_owned())]],
        };
        let expected = "in my\\_app\n\n| flat | function |\n| ---: | --- |\n| 1.00 KiB | `operator\\|<T>` |\n";
        assert_eq!(render(&["in my_app".to_owned()], &table, &[]), expected);
    }
}
