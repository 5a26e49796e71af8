//! The symbol tables of ELF files: which entries are functions, and where they end.

use object::elf;

use super::{Elf, read_u16, read_u32, read_u64};
use crate::Error;
use crate::object::symbols::{Symbol, Symbols, Table};

/// Reads a table of functions, `None` when the file has none.
pub(super) fn read<'f>(elf: &Elf<'f>, table: Table) -> Result<Option<Symbols<'f>>, Error> {
    let kind = match table {
        Table::Full => elf::SHT_SYMTAB,
        Table::Dynamic => elf::SHT_DYNSYM,
    };
    let Some(section) = elf.sections.iter().find(|s| s.kind == kind && s.size != 0) else { return Ok(None) };
    let Some(strings) = elf.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_STRTAB) else {
        return Ok(None);
    };
    let (content, names) = (elf.content(section)?, elf.content(strings)?);
    let entry_size = if elf.is_64 { 24 } else { 16 };
    let text = TextSections::of(elf);
    let entries = content.chunks_exact(entry_size);
    let symbols = entries.filter_map(|entry| function(elf, &text, entry, names)).collect();
    Ok(Symbols::new(symbols, names.into()))
}

/// The sections of executable code.
struct TextSections {
    /// Start and end of each by its index in the file, `None` for a section of anything else.
    by_index: Vec<Option<(u64, u64)>>,
    /// The same in order of their start.
    by_address: Vec<(u64, u64)>,
}

impl TextSections {
    fn of(elf: &Elf<'_>) -> Self {
        let bounds = elf.sections.iter().map(|s| {
            let is_code = s.flags.contains(elf::SHF_EXECINSTR) && s.size != 0;
            is_code.then(|| (s.address, s.address.saturating_add(s.size)))
        });
        let by_index: Vec<_> = bounds.collect();
        let mut by_address: Vec<_> = by_index.iter().flatten().copied().collect();
        by_address.sort_unstable();
        TextSections { by_index, by_address }
    }

    /// The end of the section that a symbol with section index `index` and address `value` lies in.
    fn end_of(&self, index: elf::SymbolSection, value: u64) -> Option<u64> {
        let (start, end) = match index {
            // The true index is in another table, kept by files with more than 65,000 sections: the address will do.
            elf::SHN_XINDEX => {
                let after = self.by_address.partition_point(|(start, _)| *start <= value);
                *self.by_address.get(after.checked_sub(1)?)?
            }
            index if index.is_reserved() => return None,
            index => (*self.by_index.get(usize::from(index.0))?)?,
        };
        (start <= value && value < end).then_some(end)
    }
}

/// The function that the table entry describes, if it describes one. A symbol without a size ends with its section.
fn function(elf: &Elf<'_>, text: &TextSections, entry: &[u8], names: &[u8]) -> Option<Symbol> {
    let word = |at| read_u32(entry, at, elf.endian);
    let half = |at: usize| read_u16(entry, at, elf.endian);
    let long = |at| read_u64(entry, at, elf.endian);
    let name = word(0)?;
    // ELF32: name, value, size, info, other, section; ELF64: name, info, other, section, value, size.
    let (info, index, value, size) = if elf.is_64 {
        (entry[4], half(6)?, long(8)?, long(16)?)
    } else {
        (entry[12], half(14)?, u64::from(word(4)?), u64::from(word(8)?))
    };
    let kind = elf::SymbolType(info & 0xf);
    let is_label = kind == elf::STT_NOTYPE;
    if !is_label && kind != elf::STT_FUNC && kind != elf::STT_GNU_IFUNC {
        return None;
    }
    let section_end = text.end_of(elf::SymbolSection(index), value)?;
    // `$x`, `$d.7` and the like mark code and data for disassemblers; they are no names.
    let first = names.get(name as usize).copied().unwrap_or(0);
    if first == 0 || (is_label && first == b'$') {
        return None;
    }
    let rank = match elf::SymbolBind(info >> 4) {
        elf::STB_LOCAL => 0,
        elf::STB_WEAK => 1,
        _ => 2,
    };
    let end = if size == 0 { section_end } else { value.saturating_add(size) };
    Some(Symbol { start: value, end, name, rank, sized: size != 0 })
}
