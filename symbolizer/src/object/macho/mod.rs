//! What a symbolizer needs of a Mach-O file: an executable or library of macOS, or the debug information of one (dSYM).
//!
//! A "fat" file holds such files for several architectures; `fat` chooses among them. Offsets count from the start of
//! the chosen one, which is what is mapped as the start of the image.

mod fat;
mod symbols;

use std::path::Path;
use std::sync::Arc;

use super::ObjectFile;
use super::symbols::{Symbols, Table};
use crate::Error;
use crate::cursor::Cursor;
use crate::file::Source;
use crate::section::Section;

/// First bytes of a file for 32 and 64 bits, lowest byte first; the other order was PowerPC's.
const MAGIC_32: u32 = 0xfeed_face;
const MAGIC_64: u32 = 0xfeed_facf;

/// Most bytes of load commands; those of large programs take a few ten kilobytes.
const MAX_COMMANDS: u32 = 1 << 20;

/// The headers of a Mach-O file.
#[derive(Debug)]
pub(crate) struct MachO {
    file: Arc<Source>,
    /// Where in the file it starts, and its size.
    start: u64,
    size: u64,
    is_64: bool,
    uuid: Option<[u8; 16]>,
    segments: Vec<Segment>,
    sections: Vec<SectionHeader>,
    symbols: Option<SymbolTable>,
    /// Offset and size of the list of the beginnings of functions.
    starts: Option<(u32, u32)>,
}

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    offset: u64,
    file_size: u64,
    is_executable: bool,
}

/// A part of a segment.
#[derive(Debug)]
struct SectionHeader {
    name: Vec<u8>,
    address: u64,
    size: u64,
    offset: u32,
    is_code: bool,
}

#[derive(Clone, Copy, Debug)]
struct SymbolTable {
    offset: u32,
    count: u32,
    strings: u32,
    strings_size: u32,
}

impl MachO {
    /// Reads the headers, in a fat file those of the part with the UUID `wanted`; `None` if the file is not of this
    /// kind.
    pub(crate) fn read(file: &Arc<Source>, wanted: Option<&[u8]>) -> Result<Option<Self>, Error> {
        if file.len() < 28 {
            return Ok(None);
        }
        let start = file.piece(0, 8)?;
        match start.first_chunk().copied().map(u32::from_le_bytes) {
            Some(MAGIC_32 | MAGIC_64) => Self::read_at(file, 0, file.len()).map(Some),
            _ => fat::read(file, &start, wanted),
        }
    }

    /// Reads the headers of what is in `size` bytes at `start`.
    fn read_at(file: &Arc<Source>, start: u64, size: u64) -> Result<Self, Error> {
        let bad = |what: &str| Error::BadMachO { path: file.path().to_owned(), what: what.to_owned() };
        let header = file.piece(start, size.min(32))?;
        let mut cursor = Cursor::new(&header);
        let magic = cursor.u32();
        if !matches!(magic, Some(MAGIC_32 | MAGIC_64)) {
            return Err(bad(&format!("neither 32 nor 64 bits, lowest byte first, at {start:#x}")));
        }
        let is_64 = magic == Some(MAGIC_64);
        let sizes = cursor.skip(12).and_then(|()| Some((cursor.u32()?, cursor.u32()?)));
        let (count, commands_size) =
            sizes.filter(|(_, size)| *size <= MAX_COMMANDS).ok_or_else(|| bad("a damaged header"))?;
        let commands = file.piece(start + if is_64 { 32 } else { 28 }, commands_size.into())?;
        let file = Arc::clone(file);
        let (segments, sections) = (Vec::new(), Vec::new());
        let mut this = MachO { file, start, size, is_64, uuid: None, segments, sections, symbols: None, starts: None };
        let mut cursor = Cursor::new(&commands);
        for _ in 0..count {
            // What is damaged ends the list; what is after it is not known.
            if this.take_command(&mut cursor).is_none() {
                break;
            }
        }
        Ok(this)
    }

    /// Kind, size, content.
    fn take_command(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (kind, size) = (cursor.u32()?, cursor.u32()? as usize);
        let mut content = Cursor::new(cursor.take(size.checked_sub(8)?)?);
        match kind {
            0x1 => drop(self.take_segment(&mut content, false)),
            0x19 => drop(self.take_segment(&mut content, true)),
            0x2 => {
                let mut next = || content.u32();
                let (offset, count, strings, strings_size) = (next()?, next()?, next()?, next()?);
                self.symbols = Some(SymbolTable { offset, count, strings, strings_size });
            }
            0x1b => self.uuid = content.take(16).and_then(|uuid| uuid.try_into().ok()),
            0x26 => self.starts = Some((content.u32()?, content.u32()?)),
            _ => {}
        }
        Some(())
    }

    /// Name; address, size, offset, size in the file; rights at most and at first; number of sections, flags.
    fn take_segment(&mut self, content: &mut Cursor<'_>, is_64: bool) -> Option<()> {
        const EXECUTE: u32 = 4;
        content.skip(16)?;
        let long = |content: &mut Cursor<'_>| if is_64 { content.u64() } else { content.u32().map(u64::from) };
        let (address, _size, offset, file_size) = (long(content)?, long(content)?, long(content)?, long(content)?);
        let (_most, rights, count, _flags) = (content.u32()?, content.u32()?, content.u32()?, content.u32()?);
        self.segments.push(Segment { address, offset, file_size, is_executable: rights & EXECUTE != 0 });
        for _ in 0..count {
            self.take_section(content, is_64)?;
        }
        Some(())
    }

    /// Name, name of the segment; address, size; offset, alignment, relocations, flags, more.
    fn take_section(&mut self, content: &mut Cursor<'_>, is_64: bool) -> Option<()> {
        /// Flags: there are instructions, or nothing but instructions.
        const CODE: u32 = 0x8000_0400;
        let name = content.take(16)?;
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let name = name.get(..length)?.to_owned();
        content.skip(16)?;
        let (address, size) =
            if is_64 { (content.u64()?, content.u64()?) } else { (content.u32()?.into(), content.u32()?.into()) };
        let offset = content.u32()?;
        content.skip(12)?;
        let flags = content.u32()?;
        content.skip(if is_64 { 12 } else { 8 })?;
        self.sections.push(SectionHeader { name, address, size, offset, is_code: flags & CODE != 0 });
        Some(())
    }

    /// The bytes at `offset`, counted from the start of this one.
    fn piece(&self, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= self.size);
        if !is_inside {
            return Err(Error::CutShort { path: self.file.path().to_owned(), offset, size });
        }
        self.file.piece(self.start + offset, size)
    }

    /// The section called `__` and `name`, of which 16 characters are stored.
    fn find(&self, name: &str) -> Option<&SectionHeader> {
        let wanted = format!("__{name}");
        let wanted = wanted.as_bytes().get(..16).unwrap_or(wanted.as_bytes());
        self.sections.iter().find(|section| section.name == wanted && section.size != 0 && section.offset != 0)
    }

    fn content(&self, section: &SectionHeader) -> Result<Section, Error> {
        let (offset, size) = (u64::from(section.offset), section.size);
        let end = offset.checked_add(size).filter(|&end| end <= self.size);
        let content = end.and_then(|_| Section::in_file(&self.file, self.start + offset, size));
        content.ok_or_else(|| Error::CutShort { path: self.file.path().to_owned(), offset, size })
    }
}

impl ObjectFile for MachO {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn endian(&self) -> gimli::RunTimeEndian {
        gimli::RunTimeEndian::Little
    }

    fn identity(&self) -> Option<&[u8]> {
        self.uuid.as_ref().map(|uuid| &uuid[..])
    }

    fn address_of_offset(&self, offset: u64) -> Option<u64> {
        let holds = |s: &&Segment| s.offset <= offset && offset - s.offset < s.file_size;
        let mut holding = self.segments.iter().filter(holds);
        let segment = holding.clone().find(|segment| segment.is_executable).or_else(|| holding.next())?;
        segment.address.checked_add(offset - segment.offset)
    }

    fn section(&self, name: &str) -> Result<Option<Section>, Error> {
        let section = self.find(name.trim_start_matches('.'));
        section.map(|section| self.content(section)).transpose()
    }

    fn symbols(&self, table: Table) -> Result<Option<Symbols<'_>>, Error> {
        match table {
            Table::Full => symbols::read(self),
            Table::Dynamic => Ok(None),
        }
    }

    fn has_dwarf(&self) -> bool {
        self.find("debug_info").is_some()
    }
}
