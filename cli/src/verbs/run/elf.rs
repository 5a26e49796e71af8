//! The few facts about an ELF executable that decide whether a preload works.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache};

/// The first bytes of every ELF file.
pub(crate) const MAGIC: &[u8] = b"\x7fELF";

/// What [`Elf::read`] found.
#[derive(Debug)]
pub(crate) struct Elf {
    /// The dynamic loader it asks for; `None` if it is static (a static position-independent one included).
    pub(crate) interpreter: Option<PathBuf>,
    /// Whether it defines `malloc` for everybody: then its own comes before any preloaded one.
    pub(crate) exports_malloc: bool,
    /// Whether the Go linker made it.
    pub(crate) is_go: bool,
}

impl Elf {
    /// Reads what it needs of the file, which may be larger than the memory.
    ///
    /// # Errors
    /// If the file is damaged.
    pub(crate) fn read(file: File) -> anyhow::Result<Elf> {
        let data = ReadCache::new(file);
        let class = object::ReadRef::read_bytes_at(&data, 4, 1).ok().context("the file is cut")?;
        match class {
            [1] => Self::read_class::<FileHeader32<Endianness>>(&data),
            [2] => Self::read_class::<FileHeader64<Endianness>>(&data),
            _ => anyhow::bail!("the file is of unknown ELF class {class:?}"),
        }
    }

    fn read_class<Header: FileHeader<Endian = Endianness>>(data: &ReadCache<File>) -> anyhow::Result<Elf> {
        let elf = ElfFile::<Header, _>::parse(data)?;
        let endian = elf.endian();
        let header = elf.elf_header();
        ensure!(
            [object::elf::ET_EXEC, object::elf::ET_DYN].contains(&header.e_type(endian)),
            "it is not an executable but an object or core file"
        );
        let mut interpreter = None;
        for segment in header.program_headers(endian, data)? {
            if segment.p_type(endian) == PT_INTERP {
                let bytes = segment.data(endian, data).ok().context("the name of its loader is outside the file")?;
                let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
                interpreter = Some(PathBuf::from(std::ffi::OsStr::from_bytes(name)));
            }
        }
        let exports_malloc =
            elf.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name_bytes() == Ok(b"malloc"));
        let is_go = elf
            .sections()
            .any(|section| matches!(section.name_bytes(), Ok(b".go.buildinfo" | b".note.go.buildid" | b".gopclntab")));
        Ok(Elf { interpreter, exports_malloc, is_go })
    }
}

/// The names of both architectures if the program that starts with `head` is not for that of `library`.
pub(crate) fn foreign_architecture(head: &[u8], library: &[u8]) -> Option<(String, String)> {
    let (theirs, ours) = (architecture(head)?, architecture(library)?);
    (theirs != ours).then(|| (theirs.name(), ours.name()))
}

/// Class, byte order and machine: the fields of the ELF header that must agree.
#[derive(Debug, PartialEq, Eq)]
struct Architecture {
    class: u8,
    byte_order: u8,
    machine: u16,
}

fn architecture(head: &[u8]) -> Option<Architecture> {
    let (&class, &byte_order) = (head.get(4)?, head.get(5)?);
    let machine = head.get(18..20)?.try_into().ok()?;
    let machine = if byte_order == 2 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    Some(Architecture { class, byte_order, machine })
}

impl Architecture {
    fn name(&self) -> String {
        let machine = match object::elf::Machine(self.machine) {
            object::elf::EM_X86_64 => "x86-64".to_owned(),
            object::elf::EM_AARCH64 => "aarch64".to_owned(),
            object::elf::EM_386 => "x86".to_owned(),
            object::elf::EM_ARM => "ARM".to_owned(),
            object::elf::EM_RISCV => "RISC-V".to_owned(),
            object::elf::EM_PPC64 => "POWER".to_owned(),
            object::elf::EM_S390 => "s390".to_owned(),
            other => format!("machine {}", other.0),
        };
        let bits = if self.class == 1 { 32 } else { 64 };
        let order = if self.byte_order == 2 { ", big endian" } else { "" };
        format!("{machine} ({bits} bit{order})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a header: 64-bit little endian for `machine`.
    fn head(machine: u8) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.resize(18, 0);
        head.extend([machine, 0]);
        head
    }

    #[test]
    fn names_a_foreign_architecture() {
        assert_eq!(foreign_architecture(&head(62), &head(62)), None);
        let expected = ("aarch64 (64 bit)".to_owned(), "x86-64 (64 bit)".to_owned());
        assert_eq!(foreign_architecture(&head(183), &head(62)), Some(expected));
    }

    #[test]
    fn the_shell_is_dynamic_and_has_no_allocator_of_its_own() -> anyhow::Result<()> {
        let elf = Elf::read(File::open("/bin/sh")?)?;
        assert!(elf.interpreter.is_some_and(|loader| loader.is_file()));
        assert!(!elf.exports_malloc && !elf.is_go);
        Ok(())
    }
}
