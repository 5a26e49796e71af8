//! What a symbolizer needs of a PE file: an executable or library of Windows.
//!
//! Its virtual addresses are those at the address that it would like to be loaded at; addresses relative to that
//! ("RVA") are what its own tables hold. A loader maps the whole of it, so what a memory map counts as an offset is an
//! offset in the image, not in the file.

mod exports;
pub(crate) mod functions;
mod symbols;

use std::path::Path;
use std::sync::Arc;

use super::ObjectFile;
use super::symbols::{Symbols, Table};
use crate::Error;
use crate::cursor::Cursor;
use crate::file::Source;
use crate::pdb::info;
use crate::section::Section;

/// Kinds of machines whose tables are understood.
const MACHINE_386: u16 = 0x014c;
const MACHINE_X86_64: u16 = 0x8664;
const MACHINE_ARM64: u16 = 0xaa64;

/// Entries of the list of tables in the header.
const EXPORTS: usize = 0;
const EXCEPTIONS: usize = 3;
const DEBUG: usize = 6;

/// Most sections. Windows loads no image with more than 96.
const MAX_SECTIONS: u16 = 1024;

/// Most entries of the table of debug information that are looked at; real files have up to a handful.
const MAX_DEBUG: usize = 64;

/// Longest path of a PDB, in bytes.
const MAX_PATH: u64 = 32 << 10;

/// The headers of a PE file.
#[derive(Debug)]
pub(crate) struct Pe {
    file: Arc<Source>,
    machine: u16,
    /// Where it would like to be loaded.
    base: u64,
    /// Size in memory.
    size: u32,
    sections: Vec<SectionHeader>,
    /// Address and size of each table that the headers point to.
    tables: Vec<(u32, u32)>,
    /// Offset and number of the symbols of object files, with their strings behind them.
    symbols: (u32, u32),
    debug: Option<CodeView>,
}

/// A section.
#[derive(Debug)]
struct SectionHeader {
    name: Vec<u8>,
    /// Address, relative to the image, and size in memory.
    address: u32,
    size: u32,
    /// Place in the file, and size there.
    offset: u32,
    file_size: u32,
    is_code: bool,
}

/// What the linker wrote about the PDB it made.
#[derive(Debug)]
pub(crate) struct CodeView {
    /// GUID and age.
    pub(crate) identity: [u8; 20],
    /// Where the PDB was when it was made.
    pub(crate) path: Vec<u8>,
}

/// Numbers in the headers.
struct Headers {
    machine: u16,
    section_count: u16,
    symbols: (u32, u32),
    base: u64,
    size: u32,
    tables: Vec<(u32, u32)>,
}

impl Pe {
    /// Reads the headers; `None` if the file is not of this kind.
    pub(crate) fn read(file: &Arc<Source>) -> Result<Option<Self>, Error> {
        if file.len() < 0x40 || !file.piece(0, 2)?.starts_with(b"MZ") {
            return Ok(None);
        }
        let bad = |what: &str| Error::BadPe { path: file.path().to_owned(), what: what.to_owned() };
        let start = file.piece(0x3c, 4)?;
        let start = u64::from(Cursor::new(&start).u32().unwrap_or_default());
        let room = file.len().saturating_sub(start);
        let bytes = file.piece(start, room.min(4096))?;
        let mut cursor = Cursor::new(&bytes);
        if cursor.take(4) != Some(b"PE\0\0") {
            return Err(bad("a DOS program, or damaged"));
        }
        let headers = headers(&mut cursor).ok_or_else(|| bad("damaged headers"))?;
        if headers.section_count > MAX_SECTIONS {
            return Err(bad(&format!("{} sections", headers.section_count)));
        }
        let at = start + cursor.at() as u64;
        let table = file.piece(at, 40 * u64::from(headers.section_count))?;
        let sections = table.chunks_exact(40).filter_map(section_header).collect();
        let Headers { machine, symbols, base, size, tables, .. } = headers;
        let mut this = Pe { file: Arc::clone(file), machine, base, size, sections, tables, symbols, debug: None };
        this.resolve_long_names();
        this.debug = this.find_debug();
        Ok(Some(this))
    }

    /// Names of more than eight bytes are in the table of strings: `/` and a decimal offset.
    fn resolve_long_names(&mut self) {
        let strings = self.strings_offset();
        let file = Arc::clone(&self.file);
        for section in &mut self.sections {
            let offset = section
                .name
                .strip_prefix(b"/")
                .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
            let Some(offset) = offset else { continue };
            let at = strings.saturating_add(u64::from(offset));
            // Names of debug sections, the only long ones there are, fit in this.
            let bytes = file.piece(at, 64.min(file.len().saturating_sub(at))).unwrap_or_default();
            if let Some(name) = Cursor::new(&bytes).string() {
                section.name = name.to_owned();
            }
        }
    }

    /// Where the table of strings is in the file.
    fn strings_offset(&self) -> u64 {
        let (offset, count) = self.symbols;
        u64::from(offset) + u64::from(count) * symbols::ENTRY as u64
    }

    /// What is said of the PDB, in the first entry of its kind: characteristics, time, version, kind, size, address,
    /// offset.
    fn find_debug(&self) -> Option<CodeView> {
        const CODEVIEW: u32 = 2;
        let table = self.table(DEBUG)?;
        table.chunks_exact(28).take(MAX_DEBUG).find_map(|entry| {
            let mut cursor = Cursor::starting_at(entry, 12)?;
            let (kind, size, _address, offset) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
            if kind != CODEVIEW {
                return None;
            }
            let content = self.file.piece(offset.into(), u64::from(size).min(MAX_PATH)).ok()?;
            let mut cursor = Cursor::new(content.strip_prefix(b"RSDS")?);
            let (guid, age) = (cursor.take(16)?.try_into().ok()?, cursor.u32()?);
            let path = cursor.string().unwrap_or_default().to_owned();
            Some(CodeView { identity: info::identity(guid, age), path })
        })
    }

    /// The content of a table that the headers point to.
    fn table(&self, index: usize) -> Option<Vec<u8>> {
        let &(address, size) = self.tables.get(index).filter(|(address, size)| *address != 0 && *size != 0)?;
        self.file.charge(size.into()).ok()?;
        self.bytes(address, size)
    }

    /// What is loaded at an address relative to the image.
    fn bytes(&self, address: u32, size: u32) -> Option<Vec<u8>> {
        let section = self.section_of(address)?;
        let within = address - section.address;
        if within.checked_add(size)? > section.file_size {
            return None;
        }
        self.file.piece(u64::from(section.offset) + u64::from(within), size.into()).ok()
    }

    fn section_of(&self, address: u32) -> Option<&SectionHeader> {
        self.sections.iter().find(|s| s.address <= address && address - s.address < s.size.max(s.file_size))
    }

    /// What the linker wrote about the PDB it made.
    pub(crate) fn debug(&self) -> Option<&CodeView> {
        self.debug.as_ref()
    }

    /// Where it would like to be loaded: what its virtual addresses are relative to.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    fn find(&self, name: &str) -> Option<&SectionHeader> {
        self.sections.iter().find(|s| s.name == name.as_bytes() && s.size != 0 && s.file_size != 0)
    }
}

/// Reads the headers after the signature: of object files, then of images.
fn headers(cursor: &mut Cursor<'_>) -> Option<Headers> {
    let (machine, section_count) = (cursor.u16()?, cursor.u16()?);
    cursor.skip(4)?;
    let symbols = (cursor.u32()?, cursor.u32()?);
    let (optional_size, _flags) = (cursor.u16()?, cursor.u16()?);
    let mut optional = Cursor::new(cursor.take(optional_size.into())?);
    let is_64 = match optional.u16()? {
        0x10b => false,
        0x20b => true,
        _ => return None,
    };
    optional.skip(if is_64 { 22 } else { 26 })?;
    let base = if is_64 { optional.u64()? } else { optional.u32()?.into() };
    optional.skip(24)?;
    let size = optional.u32()?;
    // Size of the headers, checksum, subsystem, flags; four sizes of stack and heap; flags.
    optional.skip(12 + if is_64 { 32 } else { 16 } + 4)?;
    let count = optional.u32()?.min(16);
    let tables = (0..count).map_while(|_| Some((optional.u32()?, optional.u32()?))).collect();
    Some(Headers { machine, section_count, symbols, base, size, tables })
}

/// Name, size and address in memory, size and offset in the file, relocations and lines, flags.
fn section_header(header: &[u8]) -> Option<SectionHeader> {
    /// Flags: it has code, or can be executed.
    const CODE: u32 = 0x2000_0020;
    let mut cursor = Cursor::new(header);
    let name = cursor.take(8)?;
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let (size, address, file_size, offset) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
    cursor.skip(12)?;
    let is_code = cursor.u32()? & CODE != 0;
    Some(SectionHeader { name: name.get(..length)?.to_owned(), address, size, offset, file_size, is_code })
}

impl ObjectFile for Pe {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn endian(&self) -> gimli::RunTimeEndian {
        gimli::RunTimeEndian::Little
    }

    fn identity(&self) -> Option<&[u8]> {
        self.debug.as_ref().map(|debug| &debug.identity[..])
    }

    fn address_of_offset(&self, offset: u64) -> Option<u64> {
        if offset >= self.size.into() { None } else { self.base.checked_add(offset) }
    }

    fn section(&self, name: &str) -> Result<Option<Section>, Error> {
        let Some(section) = self.find(name) else { return Ok(None) };
        // In the file, sections are filled up; in memory, what is not in the file is zero.
        let size = section.size.min(section.file_size);
        let content = Section::in_file(&self.file, section.offset.into(), size.into());
        let cut_short =
            || Error::CutShort { path: self.file.path().to_owned(), offset: section.offset.into(), size: size.into() };
        content.ok_or_else(cut_short).map(Some)
    }

    fn symbols(&self, table: Table) -> Result<Option<Symbols<'_>>, Error> {
        match table {
            Table::Full => symbols::read(self),
            Table::Dynamic => Ok(exports::read(self)),
        }
    }

    fn has_dwarf(&self) -> bool {
        self.find(".debug_info").is_some()
    }
}
