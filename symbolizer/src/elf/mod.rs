//! What a symbolizer needs of an ELF file: segments, named sections, the build id, links to debug files.

pub(crate) mod crc32;
pub(crate) mod mini_debug_info;
mod notes;
pub(crate) mod plt;
pub(crate) mod segments;
mod symbols;
mod unpack;

use std::path::Path;

use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, elf};

use self::segments::Segment;
use crate::file::FileData;
use crate::object::ObjectFile;
use crate::object::symbols::{Symbols, Table};
use crate::section::Section;
use crate::{Error, Options};

/// Largest note section that is searched for the build id, in bytes, and how many such sections: real files have a
/// handful of notes of less than a hundred bytes.
const MAX_NOTES: (u64, usize) = (64 << 10, 64);

/// The headers of an ELF file, checked and copied out; contents of sections are read when asked for.
#[derive(Debug)]
pub(crate) struct Elf<'f> {
    file: &'f FileData,
    endian: Endianness,
    is_64: bool,
    machine: elf::Machine,
    segments: Vec<Segment>,
    sections: Vec<Header<'f>>,
    build_id: Option<Vec<u8>>,
    /// Largest page size of the machine the file is for.
    page: u64,
}

/// A section header.
#[derive(Clone, Copy, Debug)]
struct Header<'f> {
    name: &'f [u8],
    kind: elf::SectionType,
    flags: elf::SectionFlags,
    /// Virtual address, 0 for what is not loaded.
    address: u64,
    offset: u64,
    size: u64,
    /// Index of the section this one refers to.
    link: u32,
    align: u64,
    /// Size of an entry, for tables of entries of one size.
    entry_size: u64,
}

impl<'f> Elf<'f> {
    /// Reads the headers of `file`.
    pub(crate) fn read(file: &'f FileData) -> Result<Self, Error> {
        let ident = file.read_bytes_at(0, 16).map_err(|()| bad(file, "shorter than an ELF header"))?;
        if !ident.starts_with(&elf::ELFMAG) {
            return Err(bad(file, "not an ELF file"));
        }
        match ident[4] {
            1 => Self::read_class::<elf::FileHeader32<Endianness>>(file),
            2 => Self::read_class::<elf::FileHeader64<Endianness>>(file),
            class => Err(bad(file, &format!("ELF class {class}, expected 1 (32-bit) or 2 (64-bit)"))),
        }
    }

    fn read_class<H: FileHeader<Endian = Endianness>>(file: &'f FileData) -> Result<Self, Error> {
        let damaged = |error: object::read::Error| bad(file, &format!("damaged ELF headers: {error}"));
        let header = H::parse(file).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        let programs = header.program_headers(endian, file).map_err(damaged)?;
        let table = header.sections(endian, file).map_err(damaged)?;
        let mut segments = Vec::new();
        for program in programs.iter().filter(|p| p.p_type(endian) == elf::PT_LOAD) {
            segments.push(Segment {
                offset: program.p_offset(endian).into(),
                address: program.p_vaddr(endian).into(),
                file_size: program.p_filesz(endian).into(),
                executable: program.p_flags(endian).contains(elf::PF_X),
            });
        }
        let mut sections = Vec::with_capacity(table.len());
        for section in table.iter() {
            sections.push(Header {
                // A damaged name only makes this one section impossible to find.
                name: table.section_name(endian, section).unwrap_or_default(),
                kind: section.sh_type(endian),
                flags: section.sh_flags(endian),
                address: section.sh_addr(endian).into(),
                offset: section.sh_offset(endian).into(),
                size: section.sh_size(endian).into(),
                link: section.sh_link(endian),
                align: section.sh_addralign(endian).into(),
                entry_size: section.sh_entsize(endian).into(),
            });
        }
        let is_x86 = [elf::EM_X86_64, elf::EM_386].contains(&header.e_machine(endian));
        let mut this = Elf {
            file,
            endian,
            is_64: header.is_class_64(),
            machine: header.e_machine(endian),
            segments,
            sections,
            build_id: None,
            page: if is_x86 { 4 << 10 } else { 64 << 10 },
        };
        let mut notes: Vec<(u64, u64, u64)> = Vec::new();
        // Sections first: the program headers of a separate debug file point at contents that were left out.
        notes.extend(this.sections.iter().filter(|s| s.kind == elf::SHT_NOTE).map(|s| (s.offset, s.size, s.align)));
        if this.sections.is_empty() {
            let programs = programs.iter().filter(|p| p.p_type(endian) == elf::PT_NOTE);
            notes.extend(
                programs.map(|p| (p.p_offset(endian).into(), p.p_filesz(endian).into(), p.p_align(endian).into())),
            );
        }
        this.build_id = this.find_build_id(&notes);
        Ok(this)
    }

    fn find_build_id(&self, notes: &[(u64, u64, u64)]) -> Option<Vec<u8>> {
        let small_enough = notes.iter().filter(|(_, size, _)| *size <= MAX_NOTES.0).take(MAX_NOTES.1);
        small_enough.copied().find_map(|(offset, size, align)| {
            let content = self.file.read_bytes_at(offset, size).ok()?;
            notes::build_id(content, align, self.endian).map(<[u8]>::to_vec)
        })
    }

    /// Whether the file ends before the contents of a section do.
    pub(crate) fn is_cut_short(&self) -> bool {
        let has_content = |section: &&Header<'_>| ![elf::SHT_NOBITS, elf::SHT_NULL].contains(&section.kind);
        self.sections.iter().filter(has_content).any(|section| !self.file.source().holds(section.offset, section.size))
    }

    /// The name and CRC-32 in `.gnu_debuglink`.
    pub(crate) fn debug_link(&self) -> Option<(&'f [u8], u32)> {
        let content = self.content(self.find(b".gnu_debuglink")?).ok()?;
        let length = content.iter().position(|&byte| byte == 0)?;
        let crc = read_u32(content, (length + 1).next_multiple_of(4), self.endian)?;
        Some((&content[..length], crc))
    }

    /// The path and build id in `.gnu_debugaltlink`.
    pub(crate) fn alt_link(&self) -> Option<(&'f [u8], &'f [u8])> {
        let content = self.content(self.find(b".gnu_debugaltlink")?).ok()?;
        let length = content.iter().position(|&byte| byte == 0)?;
        Some((&content[..length], &content[length + 1..]))
    }

    /// The ELF file that is packed into this one for its symbols, if there is one.
    pub(crate) fn mini_debug_info(&self, options: &Options) -> Result<Option<FileData>, Error> {
        let Some(section) = self.find(b".gnu_debugdata") else { return Ok(None) };
        let charge = |bytes| self.file.source().charge(bytes);
        match mini_debug_info::unpack(self.content(section)?, charge) {
            Ok(content) => Ok(Some(FileData::from_bytes(self.file.path(), content, options))),
            Err(mini_debug_info::Fault::Refused(problem)) => Err(problem),
            Err(mini_debug_info::Fault::Damaged(what)) => {
                Err(bad(self.file, &format!("section \".gnu_debugdata\" at offset {:#x}: {what}", section.offset)))
            }
        }
    }

    /// The bytes of a section as they are in the file, to be read piece by piece.
    fn in_file(&self, section: &Header<'_>) -> Result<Section, Error> {
        Section::in_file(self.file.source(), section.offset, section.size).ok_or_else(|| self.cut_short(section))
    }

    /// The first section called `name` that has content in the file.
    fn find(&self, name: &[u8]) -> Option<&Header<'f>> {
        self.called(name).next()
    }

    /// All sections called `name` that have content in the file.
    fn called(&self, name: &[u8]) -> impl Iterator<Item = &Header<'f>> {
        self.sections.iter().filter(move |s| s.name == name && s.size != 0 && s.kind != elf::SHT_NOBITS)
    }

    /// A section, unpacked if it has the flag of compressed ones.
    fn unpacked(&self, section: &Header<'f>, name: &str) -> Result<Section, Error> {
        let content = self.in_file(section)?;
        if !section.flags.contains(elf::SHF_COMPRESSED) {
            return Ok(content);
        }
        unpack::elf_section((section.offset, section.size), self.is_64, self.endian, self.file, name)
    }

    /// The bytes of a section as they are in the file.
    fn content(&self, section: &Header<'f>) -> Result<&'f [u8], Error> {
        self.file.read_bytes_at(section.offset, section.size).map_err(|()| self.cut_short(section))
    }

    fn cut_short(&self, section: &Header<'_>) -> Error {
        let name = String::from_utf8_lossy(section.name);
        let (offset, size) = (section.offset, section.size);
        bad(
            self.file,
            &format!("section {name:?}: cannot read {size} bytes at offset {offset:#x}; is the file cut short?"),
        )
    }
}

impl ObjectFile for Elf<'_> {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn endian(&self) -> gimli::RunTimeEndian {
        match self.endian {
            Endianness::Little => gimli::RunTimeEndian::Little,
            Endianness::Big => gimli::RunTimeEndian::Big,
        }
    }

    fn identity(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    fn address_of_offset(&self, offset: u64) -> Option<u64> {
        segments::address_of_offset(&self.segments, offset, self.page)
    }

    fn section(&self, name: &str) -> Result<Option<Section>, Error> {
        if let Some(section) = self.find(name.as_bytes()) {
            return self.unpacked(section, name).map(Some);
        }
        // The older way to mark compressed sections: by their name.
        let old_name = name.strip_prefix(".debug_").map(|rest| format!(".zdebug_{rest}"));
        match old_name.and_then(|name| self.find(name.as_bytes())) {
            Some(section) => {
                self.in_file(section)?;
                unpack::gnu_section((section.offset, section.size), self.file, name).map(Some)
            }
            None => Ok(None),
        }
    }

    fn sections(&self, name: &str) -> Result<Vec<Section>, Error> {
        let all: Vec<Section> =
            self.called(name.as_bytes()).map(|section| self.unpacked(section, name)).collect::<Result<_, _>>()?;
        if all.is_empty() { Ok(self.section(name)?.into_iter().collect()) } else { Ok(all) }
    }

    fn symbols(&self, table: Table) -> Result<Option<Symbols<'_>>, Error> {
        symbols::read(self, table)
    }

    fn has_dwarf(&self) -> bool {
        self.find(b".debug_info").or_else(|| self.find(b".zdebug_info")).is_some()
    }
}

/// The two bytes at `at` as a number.
fn read_u16(bytes: &[u8], at: usize, endian: Endianness) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if endian == Endianness::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
}

/// The four bytes at `at` as a number.
fn read_u32(bytes: &[u8], at: usize, endian: Endianness) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if endian == Endianness::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
}

/// The eight bytes at `at` as a number.
fn read_u64(bytes: &[u8], at: usize, endian: Endianness) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(if endian == Endianness::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
}

fn bad(file: &FileData, what: &str) -> Error {
    Error::BadElf { path: file.path().to_owned(), what: what.to_owned() }
}
