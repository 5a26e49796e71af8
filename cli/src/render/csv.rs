//! Comma-separated values as RFC 4180 has them, with Unix line ends.

use super::table::{Audience, Table};

/// One line of keys, then one line for each row.
pub(super) fn render(table: &Table) -> String {
    let mut text = String::new();
    let shown = table.columns_without(Audience::People);
    push_line(&mut text, shown.iter().map(|&index| table.columns[index].key.to_owned()));
    for row in &table.rows {
        push_line(&mut text, shown.iter().map(|&index| row[index].for_programs()));
    }
    text
}

fn push_line(text: &mut String, fields: impl Iterator<Item = String>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&field);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, Column};
    use super::*;

    #[test]
    fn quotes_what_needs_it() {
        let table = Table {
            columns: vec![
                Column::new("Flat", "flat_bytes"),
                Column::new("Share", "percent"),
                Column::new("F", "function"),
            ],
            rows: vec![vec![
                Cell::Bytes(65_536),
                Cell::Share { part: 1, whole: 3 },
                Cell::Text("f(int, \"x\")\n".to_owned()),
            ]],
        };
        assert_eq!(render(&table), "flat_bytes,percent,function\n65536,33.3333,\"f(int, \"\"x\"\")\n\"\n");
    }
}
