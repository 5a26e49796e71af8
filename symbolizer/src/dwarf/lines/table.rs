//! The header of a line table: how its program is encoded, and the lists of folders and files.

use gimli::{DwForm, DwLnct};

use crate::dwarf::cursor::Cursor;
use crate::dwarf::encoding::Encoding;
use crate::dwarf::fuel::{Fault, Meter, Spot};
use crate::dwarf::sections::{Place, Strings, Windows};
use crate::dwarf::units::Root;
use crate::dwarf::values::{Length, Text, Value};
use crate::dwarf::window;

/// Longest list of files and folders that is read, in bytes: each byte can take ten in memory.
const MAX_HEADER: u64 = 16 << 20;

/// Longest path of a source file, in bytes, without the folder of the compilation.
const MAX_PATH: usize = 16 << 10;

/// A line table whose program is in memory.
#[derive(Debug)]
pub(in crate::dwarf) struct Table<'b> {
    pub(super) encoding: Encoding,
    /// Bytes of the shortest instruction of the machine.
    pub(super) minimum_length: u8,
    /// Operations in one instruction, on machines that pack several in one.
    pub(super) operations: u8,
    pub(super) line_base: i8,
    pub(super) line_range: u8,
    pub(super) opcode_base: u8,
    /// How many arguments each opcode below `opcode_base` has, from opcode 1 on.
    pub(super) arguments: Vec<u8>,
    folders: Vec<Text>,
    files: Vec<File>,
    pub(super) program: Cursor<'b>,
}

#[derive(Clone, Copy, Debug)]
struct File {
    name: Text,
    folder: u64,
}

impl<'b> Table<'b> {
    /// Reads the table at `offset` of `.debug_line`; `encoding` is that of the unit it belongs to.
    pub(in crate::dwarf) fn read<'s: 'b>(
        windows: &mut Windows<'s>,
        offset: u64,
        encoding: Encoding,
        buffer: &'b mut Vec<u8>,
        meter: &mut Meter<'_>,
    ) -> Result<Self, Fault> {
        let end = windows.line.read(offset, meter, |cursor, _| {
            let (length, _) = cursor.initial_length()?;
            cursor.offset().checked_add(length).ok_or_else(|| cursor.damaged("a line table without end"))
        })?;
        let bytes = window::whole(&windows.line, offset, end, buffer, meter)?;
        let spot = Spot { section: ".debug_line", offset };
        let mut cursor = Cursor::new(bytes, spot, windows.endian);
        Self::parse(&mut cursor, encoding, meter)
    }

    /// Reads a table that takes all of what `cursor` reads.
    pub(super) fn parse(cursor: &mut Cursor<'b>, unit: Encoding, meter: &mut Meter<'_>) -> Result<Self, Fault> {
        let (_, is_64) = cursor.initial_length()?;
        let version = cursor.u16()?;
        if !(2..=5).contains(&version) {
            return Err(cursor.damaged("a line table of an unknown version"));
        }
        let address_size = match version {
            5 => {
                let size = cursor.u8()?;
                // The size of segment selectors, which nobody has.
                cursor.skip(1)?;
                size
            }
            _ => unit.address_size,
        };
        let encoding = Encoding { version, address_size, is_64 };
        let header_length = cursor.word(is_64)?;
        if header_length > MAX_HEADER {
            return Err(Fault::OutOfFuel);
        }
        meter.burn(header_length)?;
        let mut program = *cursor;
        program.skip(header_length)?;
        cursor.truncate(header_length)?;
        let minimum_length = cursor.u8()?;
        let operations = if version >= 4 { cursor.u8()? } else { 1 };
        // Which rows are good places for breakpoints does not matter.
        cursor.skip(1)?;
        let line_base = cursor.u8()?.cast_signed();
        let (line_range, opcode_base) = (cursor.u8()?, cursor.u8()?);
        if line_range == 0 || opcode_base == 0 {
            return Err(cursor.damaged("a line table that cannot be run"));
        }
        let arguments = (1..opcode_base).map(|_| cursor.u8()).collect::<Result<_, _>>()?;
        let (folders, files) = if version >= 5 { lists(cursor, encoding)? } else { old_lists(cursor)? };
        Ok(Table {
            encoding,
            minimum_length,
            operations,
            line_base,
            line_range,
            opcode_base,
            arguments,
            folders,
            files,
            program,
        })
    }

    /// The file with a number: the name, the folder it is relative to if any.
    fn file(&self, number: u64) -> Option<(Text, Option<Text>)> {
        let (index, has_folder_0) =
            if self.encoding.version >= 5 { (number, true) } else { (number.checked_sub(1)?, false) };
        let file = self.files.get(usize::try_from(index).ok()?)?;
        // Folder 0 is that of the compilation, which is not in the list before version 5.
        let folder = match file.folder.checked_sub(1) {
            None => None,
            Some(before) => self.folders.get(usize::try_from(if has_folder_0 { file.folder } else { before }).ok()?),
        };
        Some((file.name, folder.copied()))
    }

    /// The path of a file: as recorded, put together from the folder of the compilation, the listed folder and the
    /// file's name.
    pub(in crate::dwarf) fn path(
        &self,
        number: u64,
        root: &Root,
        windows: &mut Windows<'_>,
        meter: &mut Meter<'_>,
    ) -> Option<String> {
        let (name, folder) = self.file(number)?;
        let mut string = |text: Text, inline| {
            let place = windows.place(text, inline, self.encoding, root.bases, meter).ok()?;
            // That of the compilation's own file would have to be looked for in another file.
            let place = Some(place).filter(|place: &Place| place.section != Strings::Supplementary)?;
            windows.string(place, meter, |bytes| bytes[..bytes.len().min(MAX_PATH)].to_vec()).ok()
        };
        let mut parts = vec![string(name, Strings::Line)?];
        parts.extend(folder.and_then(|folder| string(folder, Strings::Line)));
        let is_absolute = |part: &Vec<u8>| part.first() == Some(&b'/');
        if !parts.iter().any(is_absolute) {
            let first = self.folders.first().filter(|_| self.encoding.version >= 5);
            let of_unit = root.folder.and_then(|folder| string(folder, Strings::Info));
            parts.extend(of_unit.or_else(|| string(*first?, Strings::Line)));
        }
        // Later parts are relative to earlier ones: from the first absolute one on, none is needed.
        let used = parts.iter().position(is_absolute).map_or(parts.len(), |at| at + 1);
        let mut path = String::new();
        for part in parts[..used].iter().rev() {
            if !path.is_empty() && !path.ends_with('/') {
                path.push('/');
            }
            path += &String::from_utf8_lossy(part);
        }
        (!path.is_empty()).then_some(path)
    }
}

/// The lists before version 5: strings in place, each ended by an empty one.
fn old_lists(cursor: &mut Cursor<'_>) -> Result<(Vec<Text>, Vec<File>), Fault> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    // Some producers leave the lists out altogether.
    while !cursor.is_empty() {
        let at = cursor.offset();
        if cursor.skip_string()? == 0 {
            break;
        }
        folders.push(Text::Inline(at));
    }
    while !cursor.is_empty() {
        let at = cursor.offset();
        if cursor.skip_string()? == 0 {
            break;
        }
        let folder = cursor.uleb()?;
        // Time of the last change, and size.
        cursor.skip_leb()?;
        cursor.skip_leb()?;
        files.push(File { name: Text::Inline(at), folder });
    }
    Ok((folders, files))
}

/// The lists of version 5: each says first what its entries are made of.
fn lists(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<(Vec<Text>, Vec<File>), Fault> {
    let folders = list(cursor, encoding)?.into_iter().map(|file| file.name).collect();
    Ok((folders, list(cursor, encoding)?))
}

fn list(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<Vec<File>, Fault> {
    let mut columns = Vec::new();
    for _ in 0..cursor.u8()? {
        let (content, form) = (cursor.uleb()?, cursor.uleb()?);
        let form = DwForm(u16::try_from(form).unwrap_or(0));
        let length = Length::of(form, encoding).ok_or_else(|| cursor.damaged("an unknown form"))?;
        columns.push((DwLnct(u16::try_from(content).unwrap_or(0)), form, length));
    }
    let count = cursor.uleb()?;
    if count > cursor.left() as u64 {
        return Err(cursor.damaged("a list longer than the line table"));
    }
    let mut files = Vec::new();
    for _ in 0..count {
        let (mut file, before) = (File { name: Text::Inline(0), folder: 0 }, cursor.position());
        for &(content, form, length) in &columns {
            let value = Value::read(cursor, form, length, 0, encoding)?;
            match (content, value) {
                (gimli::DW_LNCT_path, Value::Text(name)) => file.name = name,
                (gimli::DW_LNCT_directory_index, Value::Number(folder)) => file.folder = folder,
                _ => {}
            }
        }
        if cursor.position() == before {
            return Err(cursor.damaged("a list of nothing"));
        }
        files.push(file);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::dwarf::encoding::Encoding;
    use crate::dwarf::fuel::{Fault, Fuel};
    use crate::dwarf::sections::Windows;
    use crate::dwarf::testing::{bytes, sections, with_length};
    use crate::dwarf::units::Root;
    use crate::dwarf::values::Text;

    const UNIT: Encoding = Encoding { version: 4, address_size: 8, is_64: false };

    /// A table with these lists, and no program.
    fn table(version: u64, lists: &[u8]) -> Vec<u8> {
        let mut header = bytes(&[(1, 1)]);
        header.extend(if version >= 4 { vec![1] } else { vec![] });
        header.extend(bytes(&[(1, 1), (1, 1), (14, 1), (10, 1)]));
        header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1]);
        header.extend(lists);
        let mut content = bytes(&[(version, 2)]);
        content.extend(if version >= 5 { vec![8, 0] } else { vec![] });
        content.extend((header.len() as u32).to_le_bytes());
        content.extend(header);
        with_length(&content)
    }

    /// The paths of the files with the first numbers, in a unit compiled in `/unit`.
    fn paths(table: Vec<u8>) -> Result<Vec<Option<String>>, Fault> {
        let line_str = b"/list\0sub\0/abs\0a.c\0b.h\0".to_vec();
        let sections =
            sections(&[(".debug_line", table), (".debug_line_str", line_str), (".debug_str", b"/unit\0".to_vec())]);
        let (mut windows, fuel) = (Windows::new(&sections), Fuel::for_size(0));
        let meter = &mut fuel.meter();
        let mut buffer = Vec::new();
        let table = Table::read(&mut windows, 0, UNIT, &mut buffer, meter)?;
        let root = Root { folder: Some(Text::Str(0)), ..Root::default() };
        Ok((0..4).map(|number| table.path(number, &root, &mut windows, meter)).collect())
    }

    fn some(paths: &[Option<&str>]) -> Vec<Option<String>> {
        paths.iter().map(|path| path.map(str::to_owned)).collect()
    }

    #[test]
    fn lists_before_version_5_count_from_one() {
        let lists = b"sub\0/abs\0\0a.c\0\0\0\0b.h\0\x01\0\0c.h\0\x02\0\0\0";
        let expected = some(&[None, Some("/unit/a.c"), Some("/unit/sub/b.h"), Some("/abs/c.h")]);
        for version in 2..=4 {
            assert_eq!(paths(table(version, lists)), Ok(expected.clone()), "version {version}");
        }
        // A folder that is not in the list is left out; lists may be missing or unfinished.
        assert_eq!(paths(table(4, b"\0a.c\0\x07\0\0\0")), Ok(some(&[None, Some("/unit/a.c"), None, None])));
        assert_eq!(paths(table(4, b"")), Ok(some(&[None; 4])));
        assert!(paths(table(4, b"sub")).is_err());
    }

    #[test]
    fn lists_of_version_5_count_from_zero_and_say_what_they_hold() {
        let folders = bytes(&[(1, 1), (1, 0), (0x1f, 0), (3, 0), (0, 4), (6, 4), (10, 4)]);
        // Path, a checksum that is skipped, folder.
        let files = bytes(&[(3, 1), (1, 0), (0x1f, 0), (5, 0), (0x1e, 0), (2, 0), (0x0b, 0), (3, 0)]);
        let file = |name, folder| bytes(&[(name, 4), (0, 8), (0, 8), (folder, 1)]);
        let lists = [folders, files, file(15, 0), file(19, 1), file(15, 2)].concat();
        let expected = some(&[Some("/unit/a.c"), Some("/unit/sub/b.h"), Some("/abs/a.c"), None]);
        assert_eq!(paths(table(5, &lists)), Ok(expected));
    }

    #[test]
    fn lists_longer_than_the_table_or_of_nothing() {
        let nothing = bytes(&[(0, 1), (0, 0), (0, 1), (100, 0)]);
        let empty_entries = bytes(&[(1, 1), (1, 0), (0x19, 0), (3, 0), (0, 8)]);
        let long = bytes(&[(1, 1), (1, 0), (0x0b, 0), (1 << 40, 0)]);
        for lists in [nothing, empty_entries, long] {
            assert!(matches!(paths(table(5, &lists)), Err(Fault::Damaged(..))), "{lists:x?}");
        }
        assert!(matches!(paths(table(6, &[])), Err(Fault::Damaged(..))));
        let mut unfinished = table(4, b"\0\0");
        unfinished.truncate(12);
        assert!(paths(unfinished).is_err());
    }
}
