//! The lines of a module (C13 form): which code is from which line of which file, which files there are, and where
//! the functions begin that were inlined.

use std::collections::HashMap;

use super::Fault;
use super::dbi::Sections;
use crate::cursor::Cursor;
use crate::dwarf::fuel::Meter;

/// Kinds of parts; the highest bit marks those to be ignored.
const LINES: u32 = 0xf2;
const FILES: u32 = 0xf4;
const INLINEES: u32 = 0xf6;

/// Line numbers that tell debuggers to step over or into code that has no source.
const NO_SOURCE: [u32; 2] = [0x00fe_efee, 0x00f0_0f00];

/// A place in the source: offset of the file in the module's list of files, line from 1 or 0 when unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The parts of a module's line information.
#[derive(Debug, Default)]
pub(super) struct Parts<'b> {
    /// One for each function, or a few.
    lines: Vec<&'b [u8]>,
    files: &'b [u8],
    /// Where functions that were inlined begin, by their number.
    pub(super) inlinees: HashMap<u32, Source>,
}

impl<'b> Parts<'b> {
    /// Splits the information up. What is damaged ends it.
    pub(super) fn split(bytes: &'b [u8], meter: &mut Meter<'_>) -> (Self, Result<(), Fault>) {
        let mut parts = Parts::default();
        let mut cursor = Cursor::new(bytes);
        let mut result = Ok(());
        while result.is_ok() && cursor.left() >= 8 {
            result = parts.take_one(&mut cursor, meter);
        }
        (parts, result)
    }

    fn take_one(&mut self, cursor: &mut Cursor<'b>, meter: &mut Meter<'_>) -> Result<(), Fault> {
        meter.burn(1)?;
        let at = cursor.at();
        let kind = cursor.u32().unwrap_or_default();
        let part = cursor.u32().and_then(|length| cursor.take(length as usize));
        let part = part.ok_or_else(|| Fault::Damaged(format!("lines, offset {at:#x}: a part past their end")))?;
        cursor.align(4);
        match kind {
            LINES => self.lines.push(part),
            FILES => self.files = part,
            INLINEES => {
                meter.burn((part.len() / 12) as u64)?;
                self.take_inlinees(part);
            }
            _ => {}
        }
        Ok(())
    }

    /// Number, file and line of each; in the form numbered 1, more files may follow each.
    fn take_inlinees(&mut self, part: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(part);
        let has_more_files = cursor.u32()? == 1;
        loop {
            let inlinee = cursor.u32()?;
            let source = Source { file: cursor.u32()?, line: cursor.u32()? };
            self.inlinees.insert(inlinee, source);
            if has_more_files {
                let more = cursor.u32()? as usize;
                cursor.skip(more.checked_mul(4)?)?;
            }
        }
    }

    /// Where the path of a file is in the stream of strings.
    pub(super) fn path(&self, file: u32) -> Option<u32> {
        Cursor::starting_at(self.files, file as usize)?.u32()
    }

    /// The source of each of `addresses`, which must be ascending.
    pub(super) fn find(
        &self,
        sections: &Sections,
        addresses: &[u32],
        meter: &mut Meter<'_>,
    ) -> (Vec<Option<Source>>, Result<(), Fault>) {
        let mut found = vec![None; addresses.len()];
        for part in &self.lines {
            let result = meter.burn(1).map_err(Fault::from).and_then(|()| {
                let mut cursor = Cursor::new(part);
                find_in(&mut cursor, sections, addresses, &mut found, meter)
            });
            if result.is_err() {
                return (found, result);
            }
        }
        (found, Ok(()))
    }
}

/// Fills in what one part knows: where its code is, then for each file: its offset, the number of lines, the size of
/// all that; offset from the start and line of each; columns, if there are any.
fn find_in(
    cursor: &mut Cursor<'_>,
    sections: &Sections,
    addresses: &[u32],
    found: &mut [Option<Source>],
    meter: &mut Meter<'_>,
) -> Result<(), Fault> {
    let header = (|| Some((cursor.u32()?, cursor.u16()?, cursor.u16()?, cursor.u32()?)))();
    let Some((offset, section, _flags, size)) = header else { return Ok(()) };
    let Some(start) = sections.address(section, offset) else { return Ok(()) };
    let from = addresses.partition_point(|&address| address < start);
    let wanted = addresses.iter().skip(from).take_while(|&&address| address - start < size).count();
    if wanted == 0 {
        return Ok(());
    }
    let mut rows: Vec<(u32, Source)> = Vec::new();
    while let Some((file, lines)) = next_file(cursor) {
        meter.burn((lines.len() / 8) as u64)?;
        for row in lines.as_chunks::<8>().0 {
            let [a, b, c, d, line @ ..] = *row;
            let line = u32::from_le_bytes(line) & 0x00ff_ffff;
            let line = if NO_SOURCE.contains(&line) { 0 } else { line };
            rows.push((u32::from_le_bytes([a, b, c, d]), Source { file, line }));
        }
    }
    // Files take turns where one function is from several. Of rows for the same code, the last counts.
    rows.sort_by_key(|(offset, _)| *offset);
    meter.burn(rows.len() as u64 + wanted as u64)?;
    for (slot, &address) in found.iter_mut().zip(addresses).skip(from).take(wanted) {
        let after = rows.partition_point(|(offset, _)| *offset <= address - start);
        let row = after.checked_sub(1).and_then(|index| rows.get(index));
        *slot = slot.or(row.map(|(_, source)| *source));
    }
    Ok(())
}

/// The next file's offset and its rows of eight bytes.
fn next_file<'b>(cursor: &mut Cursor<'b>) -> Option<(u32, &'b [u8])> {
    let (file, count, size) = (cursor.u32()?, cursor.u32()? as usize, cursor.u32()? as usize);
    let mut block = Cursor::new(cursor.take(size.checked_sub(12)?)?);
    Some((file, block.take(count.checked_mul(8)?)?))
}
