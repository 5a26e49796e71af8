//! Aligned columns for people.

use super::style::Style;
use super::table::{Audience, Cell, Table};

/// Names are not cut to fewer characters than this.
const SHORTEST: usize = 12;
/// Characters of a bar.
const BAR: usize = 10;
/// Terminals with fewer columns have no room for bars.
const WIDE: usize = 100;

/// The header lines, a blank line, the headings, the rows (unless there are none) and the footer lines. Numbers are aligned to the right, text to the left.
/// Only where the width is known lines are broken, and something is left out: columns that can be spared, then the ends of long names, which get an `…`; the last
/// column, which says where in the source, goes to a line of its own before it is cut.
pub(super) fn render(header: &[String], table: &Table, footer: &[String], style: Style) -> String {
    let mut text = String::new();
    for line in header {
        push_sentence(&mut text, line, style.width);
    }
    if !table.rows.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        Sheet::of(table, style).push_into(&mut text);
    }
    for line in footer {
        push_sentence(&mut text, line, style.width);
    }
    text
}

/// A line of words. Where the width is known it is broken between words, and what follows is indented; a word that is
/// longer than the width, as a path may be, stays whole.
fn push_sentence(text: &mut String, line: &str, limit: Option<usize>) {
    const INDENT: &str = "  ";
    let limit = limit.unwrap_or(usize::MAX);
    let mut rest = line;
    let mut indent = "";
    // Not the width of all the rest: lines may be long, as text from files is.
    while rest.chars().nth(limit.saturating_sub(indent.len())).is_some() {
        let fits = |(at, _): &(usize, &str)| indent.len() + width(&rest[..*at]) <= limit;
        // Spaces at the start are an indent of the line's own.
        let start = rest.len() - rest.trim_start().len();
        let mut spaces = rest.match_indices(' ').filter(|&(at, _)| at > start).peekable();
        let Some(&first) = spaces.peek() else { break };
        let (at, _) = spaces.take_while(fits).last().unwrap_or(first);
        text.push_str(indent);
        text.push_str(rest[..at].trim_end());
        text.push('\n');
        rest = rest[at..].trim_start();
        indent = INDENT;
    }
    if !rest.is_empty() || line.is_empty() {
        text.push_str(indent);
        text.push_str(rest);
        text.push('\n');
    }
}

/// A column as it is shown.
struct Shown<'a> {
    title: &'a str,
    right: bool,
    spare: u8,
    cells: Vec<String>,
    width: usize,
    paint: Paint,
}

/// How the cells of a column are coloured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paint {
    Plain,
    /// A place in the source.
    Place,
    /// More is bad, less is good.
    Change,
}

struct Sheet<'a> {
    columns: Vec<Shown<'a>>,
    /// The last column stands on lines of its own.
    broken: bool,
    style: Style,
}

impl<'a> Sheet<'a> {
    fn of(table: &'a Table, style: Style) -> Self {
        let mut columns: Vec<Shown<'a>> = Vec::new();
        let mut has_bar = !style.is_terminal || style.width.is_some_and(|width| width < WIDE);
        for index in table.columns_without(Audience::Programs) {
            let column = table.columns[index];
            let cells: Vec<String> = table.rows.iter().map(|row| row[index].for_people()).collect();
            let is = |wanted: fn(&Cell) -> bool| table.rows.iter().any(|row| wanted(&row[index]));
            let paint = match column.title {
                "file:line" => Paint::Place,
                _ if is(|cell| matches!(cell, Cell::BytesChange(_) | Cell::CountChange(_))) => Paint::Change,
                _ => Paint::Plain,
            };
            columns.push(Shown::new(column.title, table.is_number(index), column.spare, cells, paint));
            if !has_bar && is(|cell| matches!(cell, Cell::Share { .. })) {
                has_bar = true;
                let bars = table.rows.iter().map(|row| bar(&row[index])).collect();
                columns.push(Shown::new("", false, u8::MAX, bars, Paint::Plain));
            }
        }
        let mut sheet = Sheet { columns, broken: false, style };
        if let Some(width) = style.width {
            sheet.fit(width);
        }
        sheet
    }

    fn width(&self) -> usize {
        let columns = self.columns.len() - usize::from(self.broken);
        self.columns[..columns].iter().map(|column| column.width + 2).sum::<usize>().saturating_sub(2)
    }

    fn fit(&mut self, width: usize) {
        let has_room_for_names = |sheet: &Sheet<'_>| {
            let names = sheet.columns.iter().filter(|column| column.is_name()).map(|column| column.width);
            // Names can give away what they have beyond half of the line.
            names.map(|name| name.saturating_sub((width / 2).max(SHORTEST))).sum::<usize>()
        };
        while self.width().saturating_sub(has_room_for_names(self)) > width {
            let Some(spare) = self.columns.iter().map(|column| column.spare).max().filter(|&spare| spare > 0) else {
                break;
            };
            self.columns.retain(|column| column.spare != spare);
        }
        let last_is_place = self.columns.last().is_some_and(|column| column.paint == Paint::Place);
        if last_is_place && self.columns.len() > 1 && self.width().saturating_sub(has_room_for_names(self)) > width {
            self.broken = true;
        }
        // The longest name gives first.
        while self.width() > width {
            let count = self.columns.len() - usize::from(self.broken);
            let names = self.columns[..count].iter_mut().filter(|column| column.is_name());
            let Some(longest) = names.max_by_key(|column| column.width).filter(|column| column.width > SHORTEST) else {
                break;
            };
            longest.width -= 1;
        }
    }

    fn push_into(&self, text: &mut String) {
        let count = self.columns.len() - usize::from(self.broken);
        let titles = self.columns[..count].iter().map(|column| column.aligned(column.title));
        let titles = titles.collect::<Vec<_>>().join("  ");
        if !titles.trim().is_empty() {
            text.push_str(&self.style.bold(titles.trim_end()));
            text.push('\n');
        }
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        for row in 0..rows {
            let mut line = String::new();
            for (index, column) in self.columns[..count].iter().enumerate() {
                if index > 0 {
                    line.push_str("  ");
                }
                let cell = column.aligned(&column.cells[row]);
                let is_last = index + 1 == count;
                let cell = if is_last { cell.trim_end() } else { &cell };
                line.push_str(&self.painted(column.paint, cell));
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if let Some(place) = self
                .columns
                .last()
                .filter(|_| self.broken)
                .map(|last| &last.cells[row])
                .filter(|place| !place.is_empty())
            {
                text.push_str(&format!("    {}\n", self.style.dim(place)));
            }
        }
    }

    fn painted(&self, paint: Paint, cell: &str) -> String {
        match paint {
            Paint::Plain => cell.to_owned(),
            Paint::Place => self.style.dim(cell),
            Paint::Change if cell.trim_start().starts_with('+') => self.style.bad(cell),
            Paint::Change if cell.trim_start().starts_with('-') => self.style.good(cell),
            Paint::Change => cell.to_owned(),
        }
    }
}

impl<'a> Shown<'a> {
    fn new(title: &'a str, right: bool, spare: u8, cells: Vec<String>, paint: Paint) -> Self {
        let width = cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(width(title));
        Shown { title, right, spare, cells, width, paint }
    }

    /// It may be cut.
    fn is_name(&self) -> bool {
        !self.right && self.paint != Paint::Place
    }

    /// A cell as wide as the column; cut if it is longer.
    fn aligned(&self, cell: &str) -> String {
        let length = width(cell);
        if length > self.width {
            let start: String = cell.chars().take(self.width.saturating_sub(1)).collect();
            return format!("{start}…");
        }
        let padding = " ".repeat(self.width - length);
        if self.right { format!("{padding}{cell}") } else { format!("{cell}{padding}") }
    }
}

/// A share as a bar, in eighths of a character.
fn bar(cell: &Cell) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let Cell::Share { part, whole } = cell else { return String::new() };
    let eighths = (super::percent(*part, *whole).min(100.0) / 100.0 * (BAR * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
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

    fn sample() -> Table {
        let row = |name: &str, place: &str| {
            vec![
                Cell::Bytes(64 << 20),
                Cell::Share { part: 1, whole: 4 },
                Cell::Count(1),
                Cell::Text(name.into()),
                Cell::Text(place.into()),
            ]
        };
        Table {
            columns: vec![
                Column::new("flat", "flat_bytes"),
                Column::new("flat%", "percent"),
                Column::new("blocks", "blocks").spare(1),
                Column::new("function", "function"),
                Column::for_people("file:line"),
            ],
            rows: vec![row("a_function_with_a_long_name", "src/file.c:12"), row("main", "")],
        }
    }

    #[test]
    fn narrow_terminals_lose_little() {
        let render = |width| {
            let style = Style { width: Some(width), ..Style::PLAIN };
            render(&[], &sample(), &[], style)
        };
        let expected = "    flat  flat%  function\n64.0 MiB  25.0%  a_function_with_a_long_name\n    src/file.c:12\n64.0 MiB  25.0%  main\n";
        assert_eq!(render(47), expected);
        let expected =
            "    flat  flat%  function\n64.0 MiB  25.0%  a_function_wit…\n    src/file.c:12\n64.0 MiB  25.0%  main\n";
        assert_eq!(render(32), expected);
        for width in [1, 10, 40, 60, 80, 200] {
            let text = render(width);
            let longest = text.lines().map(super::width).max().unwrap_or(0);
            assert!(longest <= width.max(30), "{width}: {text}");
            assert!(text.contains("src/file.c:12"), "{text}");
        }
    }

    #[test]
    fn sentences_are_broken_between_words() {
        let broken = |line: &str, limit| {
            let mut text = String::new();
            push_sentence(&mut text, line, limit);
            text
        };
        let line = "RSS: 144 MiB = 86.6 MiB live + 45.0 MiB retained";
        assert_eq!(broken(line, None), format!("{line}\n"));
        assert_eq!(broken(line, Some(48)), format!("{line}\n"));
        assert_eq!(broken(line, Some(30)), "RSS: 144 MiB = 86.6 MiB live +\n  45.0 MiB retained\n");
        assert_eq!(broken("    469 KiB  a/long/path/of:16", Some(12)), "    469 KiB\n  a/long/path/of:16\n");
        assert_eq!(broken("", Some(1)), "\n");
        for limit in 0..60 {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let text = broken(line, Some(limit));
            assert_eq!(words(&text), words(line), "{limit}");
            assert!(text.lines().all(|line| width(line) <= limit.max(10)), "{limit}: {text}");
        }
    }

    #[test]
    fn bars_are_for_wide_terminals() {
        let style = Style { width: Some(120), is_terminal: true, ..Style::PLAIN };
        assert!(render(&[], &sample(), &[], style).contains("25.0%  ██▌  "));
        assert!(!render(&[], &sample(), &[], Style { width: Some(60), ..style }).contains('█'));
    }
}
