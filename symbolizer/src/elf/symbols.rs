//! Function names from a symbol table.
//!
//! A symbol with a size names exactly the addresses `[value, value + size)`; nothing outside ever gets its name. A
//! symbol of size 0 (hand-written assembly) names the addresses from its value up to the next symbol of any size, the
//! end of its section, or the end of a symbol with a size that it lies in; and only where no symbol with a size does.

use object::elf;

use super::{Elf, read_u16, read_u32, read_u64};
use crate::Error;

/// Longest name that is taken from a string table, in bytes; a longer one is cut. Instances of C++ templates reach a
/// few ten thousand.
const MAX_NAME: usize = 64 << 10;

/// How many names of one and the same function are compared to find the best.
const MAX_ALIASES: usize = 16;

/// Which symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// All symbols, if they have not been stripped.
    Full,
    /// What the dynamic linker needs.
    Dynamic,
}

/// The functions of a symbol table, by address.
#[derive(Debug)]
pub(crate) struct Symbols<'f> {
    /// Ordered by start, then rank.
    symbols: Vec<Symbol>,
    /// The string table.
    names: &'f [u8],
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    end: u64,
    /// Offset in the string table.
    name: u32,
    /// Higher is better: global, weak, local.
    rank: u8,
    /// The table gives a size; otherwise `end` is a guess.
    sized: bool,
}

impl<'f> Symbols<'f> {
    /// Reads the table of functions, `None` when the file has none.
    pub(crate) fn read(elf: &Elf<'f>, table: Table) -> Result<Option<Self>, Error> {
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
        let mut symbols: Vec<Symbol> = entries.filter_map(|entry| function(elf, &text, entry, names)).collect();
        symbols.sort_by_key(|s| (s.start, s.rank));
        end_at_the_next(&mut symbols);
        Ok(if symbols.is_empty() { None } else { Some(Symbols { symbols, names }) })
    }

    /// The names of the functions that contain `addresses`, which must be ascending.
    pub(crate) fn names_of(&self, addresses: &[u64]) -> Vec<Option<&'f [u8]>> {
        // Symbols that start at or before the present address and have not been seen to end before it: two stacks,
        // for those with a size and the others. What is on top started last; each symbol comes and goes once.
        let (mut sized, mut guessed): (Vec<&Symbol>, Vec<&Symbol>) = (Vec::new(), Vec::new());
        let mut coming = self.symbols.iter().peekable();
        let mut names = Vec::with_capacity(addresses.len());
        for &address in addresses {
            while let Some(symbol) = coming.next_if(|s| s.start <= address) {
                if symbol.sized { sized.push(symbol) } else { guessed.push(symbol) }
            }
            while sized.pop_if(|s| s.end <= address).is_some() {}
            while guessed.pop_if(|s| s.end <= address).is_some() {}
            names.push(self.best_name(if sized.is_empty() { &guessed } else { &sized }, address));
        }
        names
    }

    /// The name of the last of `started`, or the best name of those that are the same function by another name:
    /// global before weak before local, then the shortest, then the alphabetically first.
    fn best_name(&self, started: &[&Symbol], address: u64) -> Option<&'f [u8]> {
        let last = started.last()?;
        let same = started.iter().rev().take_while(|s| s.start == last.start && s.rank == last.rank).take(MAX_ALIASES);
        let names = same.filter(|s| address < s.end).map(|s| name_at(self.names, s.name));
        names.min_by_key(|name| (name.len(), *name))
    }
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

/// Ends each symbol without a size where the next symbol starts or an enclosing one ends. `symbols` are in order of
/// their start.
fn end_at_the_next(symbols: &mut [Symbol]) {
    let mut enclosing_end = 0;
    for symbol in symbols.iter_mut() {
        if symbol.sized {
            enclosing_end = symbol.end.max(enclosing_end);
        } else if symbol.start < enclosing_end {
            symbol.end = symbol.end.min(enclosing_end);
        }
    }
    let mut next_start = u64::MAX;
    let mut group_start = u64::MAX;
    for symbol in symbols.iter_mut().rev() {
        if symbol.start < group_start {
            next_start = group_start;
            group_start = symbol.start;
        }
        if !symbol.sized {
            symbol.end = symbol.end.min(next_start);
        }
    }
}

/// The string at `offset` of the string table, empty if there is none.
fn name_at(names: &[u8], offset: u32) -> &[u8] {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_NAME)];
    let length = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    &rest[..length]
}

#[cfg(test)]
mod tests {
    use super::{Symbol, Symbols, end_at_the_next};

    /// A table of `(start, size, name, rank)`.
    fn names(symbols: &[(u64, u64, &str, u8)], addresses: &[u64]) -> Vec<String> {
        let mut table = vec![0];
        let mut list = Vec::new();
        for &(start, size, name, rank) in symbols {
            let (offset, end) = (table.len() as u32, if size == 0 { 0x1000 } else { start + size });
            table.extend(name.as_bytes());
            table.push(0);
            list.push(Symbol { start, end, name: offset, rank, sized: size != 0 });
        }
        list.sort_by_key(|s| (s.start, s.rank));
        end_at_the_next(&mut list);
        let found = Symbols { symbols: list, names: &table }.names_of(addresses);
        found.into_iter().map(|n| n.map_or("-".into(), |n| String::from_utf8_lossy(n).into_owned())).collect()
    }

    #[test]
    fn only_addresses_inside_a_symbol_get_its_name() {
        let table = [(0x100, 0x10, "f", 2), (0x120, 8, "g", 0)];
        assert_eq!(
            names(&table, &[0, 0xff, 0x100, 0x10f, 0x110, 0x11f, 0x120, 0x127, 0x128]),
            ["-", "-", "f", "f", "-", "-", "g", "g", "-"]
        );
    }

    #[test]
    fn the_symbol_that_starts_last_wins_and_outer_ones_come_back() {
        let table = [(0x100, 0x100, "outer", 2), (0x110, 0x20, "inner", 2), (0x120, 0x20, "across", 2)];
        let addresses = [0x108, 0x110, 0x11f, 0x120, 0x13f, 0x140, 0x1ff, 0x200];
        let expected = ["outer", "inner", "inner", "across", "across", "outer", "outer", "-"];
        assert_eq!(names(&table, &addresses), expected);
    }

    #[test]
    fn the_best_of_several_names() {
        let table =
            [(0x100, 8, "__malloc", 0), (0x100, 8, "malloc", 2), (0x100, 8, "__libc_malloc", 2), (0x100, 8, "m", 1)];
        assert_eq!(names(&table, &[0x104]), ["malloc"]);
        // A better name of a shorter symbol does not reach past its end.
        assert_eq!(names(&[(0x100, 4, "ab", 2), (0x100, 8, "abc", 0)], &[0x103, 0x104]), ["ab", "abc"]);
        assert_eq!(names(&[(0x100, 4, "a", 2), (0x100, 8, "abc", 2)], &[0x103, 0x104]), ["a", "abc"]);
    }

    #[test]
    fn symbols_without_size_reach_to_the_next_symbol_and_yield_to_sized_ones() {
        let table = [(0x100, 0, "start", 2), (0x100, 0, "begin", 0), (0x140, 0x10, "f", 2), (0x148, 0, "label", 0)];
        let addresses = [0xff, 0x100, 0x13f, 0x140, 0x148, 0x14f, 0x150, 0xfff, 0x1000];
        let expected = ["-", "start", "start", "f", "f", "f", "-", "-", "-"];
        assert_eq!(names(&table, &addresses), expected);
    }
}
