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
