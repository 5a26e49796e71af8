//! The code and the lines of one inlined call, from its "binary annotations": a small program of one-byte operations
//! with packed numbers, which moves a code offset and a line and so lists rows, much as DWARF's line programs do.

use crate::cursor::Cursor;

/// Some code of an inlined call, and the line it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Offset from the start of the function.
    pub(super) start: u32,
    /// The end of the code; the start of the next row as a rule.
    pub(super) end: u32,
    /// Offset of the file in the module's list of files.
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The rows that `annotations` list for a function whose body is in the file `file` and starts at `line`. A program
/// that cannot be understood to its end gives the rows up to there.
pub(super) fn rows(annotations: &[u8], file: u32, line: u32) -> Vec<Row> {
    let mut machine = Machine { offset: 0, file, line, open: None, rows: Vec::new() };
    let mut cursor = Cursor::new(annotations);
    while machine.step(&mut cursor).is_some() {}
    // A row whose end is not told has none that could be relied on.
    machine.rows
}

struct Machine {
    /// The code offset reached.
    offset: u32,
    file: u32,
    line: u32,
    /// A row that has begun and whose end is not known yet.
    open: Option<Row>,
    rows: Vec<Row>,
}

impl Machine {
    /// Executes one operation; `None` at the end. Each takes a number, those for two things at once take two numbers or
    /// share one. Columns, kinds of ranges and ends of lines are of no use here.
    fn step(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        match number(cursor)? {
            1 => self.offset = number(cursor)?,
            // What follows is about the piece with that number of a function that was split up. Where other pieces than
            // the first are is not told here.
            2 => (number(cursor)? == 0).then_some(())?,
            // Offset by so much, and a row begins.
            3 => {
                let by = number(cursor)?;
                self.begin(by, None);
            }
            // The row is so long, and the offset moves to its end.
            4 => {
                let length = number(cursor)?;
                if let Some(row) = self.open.take() {
                    self.rows.push(Row { end: row.start.saturating_add(length), ..row });
                }
                self.offset = self.offset.wrapping_add(length);
            }
            5 => self.file = number(cursor)?,
            6 => self.line = self.line.wrapping_add_signed(signed(number(cursor)?)),
            // End of the line, kind of the range, columns.
            7..=10 | 13 => drop(number(cursor)?),
            // Line in the upper bits and offset in the lower four.
            11 => {
                let both = number(cursor)?;
                self.line = self.line.wrapping_add_signed(signed(both >> 4));
                self.begin(both & 15, None);
            }
            // Length of the row that begins after moving by the offset.
            12 => {
                let length = number(cursor)?;
                let by = number(cursor)?;
                self.begin(by, Some(length));
            }
            // 0 fills the record up; others are not known.
            _ => return None,
        }
        Some(())
    }

    /// Moves the offset, begins a row there, and with that ends the row before.
    fn begin(&mut self, by: u32, length: Option<u32>) {
        self.offset = self.offset.wrapping_add(by);
        let start = self.offset;
        if let Some(row) = self.open.take() {
            self.rows.push(Row { end: start, ..row });
        }
        let row = Row { start, end: start, file: self.file, line: self.line };
        match length {
            Some(length) => self.rows.push(Row { end: start.saturating_add(length), ..row }),
            None => self.open = Some(row),
        }
    }
}

/// A packed number: 7 bits in one byte, 14 in two or 29 in four, told apart by the first bits, the highest bits first.
fn number(cursor: &mut Cursor<'_>) -> Option<u32> {
    let first = u32::from(cursor.u8()?);
    let mut next = || cursor.u8().map(u32::from);
    match first {
        0..0x80 => Some(first),
        0x80..0xc0 => Some((first & 0x3f) << 8 | next()?),
        0xc0..0xe0 => Some((first & 0x1f) << 24 | next()? << 16 | next()? << 8 | next()?),
        _ => None,
    }
}

/// A number whose lowest bit is its sign.
fn signed(number: u32) -> i32 {
    let magnitude = (number >> 1) as i32;
    if number & 1 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::{Row, number, rows, signed};
    use crate::cursor::Cursor;

    fn row(start: u32, end: u32, file: u32, line: u32) -> Row {
        Row { start, end, file, line }
    }

    #[test]
    fn packed_numbers() {
        let unpack = |bytes: &[u8]| number(&mut Cursor::new(bytes));
        assert_eq!(unpack(&[0x7f]), Some(0x7f));
        assert_eq!(unpack(&[0x81, 0x02]), Some(0x102));
        assert_eq!(unpack(&[0xdf, 0xff, 0xff, 0xff]), Some(0x1fff_ffff));
        assert_eq!((unpack(&[0xe0, 0, 0, 0]), unpack(&[0x80]), unpack(&[])), (None, None, None));
        assert_eq!((signed(6), signed(7), signed(1)), (3, -3, 0));
    }

    #[test]
    fn rows_end_where_the_next_begins_or_after_their_length() {
        // Line +1 and offset +4; offset +300; length 6; line -1; a gap of 2; length 5.
        let program = [11, 0x24, 3, 0x81, 0x2c, 4, 6, 6, 3, 3, 2, 4, 5, 0, 0];
        let expected = [row(4, 304, 8, 11), row(304, 310, 8, 11), row(312, 317, 8, 10)];
        assert_eq!(rows(&program, 8, 10), expected);
    }

    #[test]
    fn other_files_pieces_and_lengths_given_first() {
        let program = [2, 0, 5, 24, 12, 7, 3, 1, 0x20, 11, 0x01, 4, 1, 2, 1, 3, 9, 4, 1];
        assert_eq!(rows(&program, 0, 1), [row(3, 0xa, 24, 1), row(0x21, 0x22, 24, 1)]);
    }

    #[test]
    fn programs_that_break_off_or_run_wild() {
        assert_eq!(rows(&[3, 4], 0, 1), []);
        assert_eq!(rows(&[3, 4, 99, 4, 1], 0, 1), []);
        assert_eq!(rows(&[], 0, 1), []);
        let wild = [3, 0xdf, 0xff, 0xff, 0xff, 6, 0xdf, 0xff, 0xff, 0xff].repeat(20);
        let wild =
            [&wild[..], &[12, 0xdf, 0xff, 0xff, 0xff, 0xdf, 0xff, 0xff, 0xff], &[6, 0xdf, 0xff, 0xff, 0xff]].concat();
        assert_eq!(rows(&wild, 0, 0).len(), 21);
    }
}
