//! Which functions the stubs of the procedure linkage table call.
//!
//! A call to a function of another library goes through a stub that has no symbol. Disassemblers and debuggers call the
//! one for `malloc` `malloc@plt`, and so do we. `stubs` finds out which slot of the global offset table a stub jumps
//! through; here, relocations tell which function the dynamic linker puts into that slot.

mod stubs;

use std::collections::BTreeMap;

use object::{Endianness, elf};

use self::stubs::{Code, Way};
use super::{Elf, Header, read_u32, read_u64};
use crate::Error;

/// Most sections of stubs, and of relocations, that are read; linkers write up to four of the former, two of the latter.
const MAX_SECTIONS: usize = 16;

/// Largest section of stubs that is read, in bytes: four million functions of other libraries.
const MAX_STUBS: u64 = 64 << 20;

/// Longest name that is taken from a string table, in bytes.
const MAX_NAME: usize = 64 << 10;

/// Relocations that are read at once.
const AT_ONCE: u64 = 4096;

/// Bytes of an entry of a relocation table: place, symbol and kind, addend.
const RELOCATION: u64 = 24;

/// Bytes of an entry of a symbol table.
const SYMBOL: usize = 24;

/// What a stub calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'f> {
    /// The function of this name, wherever it is.
    Name(&'f [u8]),
    /// The function at this address of the file, or the one that a function there selects.
    Address(u64),
}

/// For those of `addresses` (ascending) that are in a stub: their index there, and what the stub calls.
///
/// Only for 64-bit x86 and ARM; there is nothing for other machines.
pub(crate) fn targets<'f>(elf: &Elf<'f>, addresses: &[u64]) -> Result<Vec<(usize, Target<'f>)>, Error> {
    if !elf.is_64 || ![elf::EM_X86_64, elf::EM_AARCH64].contains(&elf.machine) {
        return Ok(Vec::new());
    }
    let in_stubs = ways(elf, addresses)?;
    if in_stubs.is_empty() {
        return Ok(Vec::new());
    }
    let mut targets: BTreeMap<Way, Option<Target<'f>>> = in_stubs.iter().map(|(_, way)| (*way, None)).collect();
    let tables = elf.sections.iter().filter(|s| s.kind == elf::SHT_RELA && s.flags.contains(elf::SHF_ALLOC));
    for table in tables.take(MAX_SECTIONS) {
        read_relocations(elf, table, &mut targets)?;
    }
    let target = |(index, way)| Some((index, (*targets.get(&way)?)?));
    Ok(in_stubs.into_iter().filter_map(target).collect())
}

/// How the stubs that hold some of `addresses` find their functions. One address may be given several times, by stubs
/// that only look like some.
fn ways(elf: &Elf<'_>, addresses: &[u64]) -> Result<Vec<(usize, Way)>, Error> {
    let mut ways = Vec::new();
    let is_of_stubs = |s: &&Header<'_>| {
        let has_name = s.name.starts_with(b".plt") || s.name == b".iplt";
        has_name && s.kind == elf::SHT_PROGBITS && s.flags.contains(elf::SHF_EXECINSTR) && s.size <= MAX_STUBS
    };
    for section in elf.sections.iter().filter(is_of_stubs).take(MAX_SECTIONS) {
        let end = section.address.saturating_add(section.size);
        let from = addresses.partition_point(|&address| address < section.address);
        let to = addresses.partition_point(|&address| address < end);
        if from >= to {
            continue;
        }
        let code = Code {
            address: section.address,
            bytes: elf.content(section)?,
            entry_size: section.entry_size,
            align: section.align,
        };
        let mut index = from;
        for stub in stubs::find(elf.machine, &code) {
            // Ascending, both; stubs that overlap start together.
            while index < to && addresses[index] < stub.range.start {
                index += 1;
            }
            let inside = addresses[index..to].iter().take_while(|address| stub.range.contains(address));
            ways.extend((index..).zip(inside).map(|(index, _)| (index, stub.way)));
        }
    }
    Ok(ways)
}

/// Fills in those of `targets` that the relocations of `table` are for.
fn read_relocations<'f>(
    elf: &Elf<'f>,
    table: &Header<'f>,
    targets: &mut BTreeMap<Way, Option<Target<'f>>>,
) -> Result<(), Error> {
    let (section, symbols) = (elf.in_file(table)?, Symbols::of(elf, table)?);
    let is_of_stubs = table.name == b".rela.plt";
    let count = section.len() / RELOCATION;
    for first in (0..count).step_by(AT_ONCE as usize) {
        let last = count.min(first + AT_ONCE);
        let entries = section.bytes(first * RELOCATION..last * RELOCATION)?;
        for (number, entry) in (first..).zip(entries.chunks_exact(RELOCATION as usize)) {
            let long = |at| read_u64(entry, at, elf.endian).unwrap_or_default();
            let by_number = u32::try_from(number).ok().filter(|_| is_of_stubs).map(Way::Number);
            for way in [Some(Way::Slot(long(0))), by_number].into_iter().flatten() {
                if let Some(target @ None) = targets.get_mut(&way) {
                    *target = target_of(elf, symbols.as_ref(), long(8), long(16));
                }
            }
        }
    }
    Ok(())
}

/// What a relocation with these fields puts into its place, if that is the address of a function.
fn target_of<'f>(elf: &Elf<'f>, symbols: Option<&Symbols<'f>>, info: u64, addend: u64) -> Option<Target<'f>> {
    let (symbol, kind) = ((info >> 32) as usize, info as u32);
    if symbol != 0 {
        return symbols?.name(symbol, elf.endian).map(Target::Name);
    }
    let own = match elf.machine {
        elf::EM_X86_64 => [elf::R_X86_64_IRELATIVE, elf::R_X86_64_RELATIVE],
        _ => [elf::R_AARCH64_IRELATIVE, elf::R_AARCH64_RELATIVE],
    };
    own.map(|own| own.0).contains(&kind).then_some(Target::Address(addend))
}

/// The symbols that a table of relocations refers to.
struct Symbols<'f> {
    entries: &'f [u8],
    strings: &'f [u8],
}

impl<'f> Symbols<'f> {
    fn of(elf: &Elf<'f>, relocations: &Header<'f>) -> Result<Option<Self>, Error> {
        let symbols = elf.sections.get(relocations.link as usize);
        let symbols = symbols.filter(|s| [elf::SHT_DYNSYM, elf::SHT_SYMTAB].contains(&s.kind));
        let strings = symbols.and_then(|s| elf.sections.get(s.link as usize)).filter(|s| s.kind == elf::SHT_STRTAB);
        let (Some(symbols), Some(strings)) = (symbols, strings) else { return Ok(None) };
        Ok(Some(Symbols { entries: elf.content(symbols)?, strings: elf.content(strings)? }))
    }

    /// The name of symbol number `index`.
    fn name(&self, index: usize, endian: Endianness) -> Option<&'f [u8]> {
        let entry = self.entries.get(index.checked_mul(SYMBOL)?..)?;
        let rest = self.strings.get(read_u32(entry, 0, endian)? as usize..)?;
        let rest = &rest[..rest.len().min(MAX_NAME)];
        let name = &rest[..rest.iter().position(|&byte| byte == 0)?];
        (!name.is_empty()).then_some(name)
    }
}
