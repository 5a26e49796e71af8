//! Function names from a symbol table.
//!
//! A symbol with a size names exactly the addresses `[value, value + size)`; nothing outside ever gets its name. A
//! symbol of size 0 (hand-written assembly) names the addresses from its value up to the next symbol of any size, the
//! end of its section, or the end of a symbol with a size that it lies in; and only where no symbol with a size does.

use std::borrow::Cow;

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
    names: Cow<'f, [u8]>,
}

/// One function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    /// Its first virtual address.
    pub(crate) start: u64,
    /// The address after it; without a size, the end of its section.
    pub(crate) end: u64,
    /// Offset of its name in the string table.
    pub(crate) name: u32,
    /// Higher is better: 2 global, 1 weak, 0 local.
    pub(crate) rank: u8,
    /// The table gives a size; otherwise `end` is a guess, and is cut at the next symbol.
    pub(crate) sized: bool,
}

impl<'f> Symbols<'f> {
    /// The table of `symbols`, whose names are in `names`; `None` when there is none.
    pub(crate) fn new(mut symbols: Vec<Symbol>, names: Cow<'f, [u8]>) -> Option<Self> {
        symbols.sort_by_key(|s| (s.start, s.rank));
        end_at_the_next(&mut symbols);
        (!symbols.is_empty()).then_some(Symbols { symbols, names })
    }

    /// This table and another one of the same file, as one.
    pub(crate) fn with(self, other: Symbols<'f>) -> Self {
        let mut names = self.names.into_owned();
        // A name that ran to the end of its table ends there still.
        names.push(0);
        let mut symbols = self.symbols;
        symbols.extend(other.symbols.into_iter().filter_map(|symbol| {
            let name = u32::try_from(names.len()).ok()?.checked_add(symbol.name)?;
            Some(Symbol { name, ..symbol })
        }));
        names.extend_from_slice(&other.names);
        symbols.sort_by_key(|s| (s.start, s.rank));
        end_at_the_next(&mut symbols);
        Symbols { symbols, names: names.into() }
    }

    /// The names of the functions that contain `addresses`, which must be ascending.
    pub(crate) fn names_of(&self, addresses: &[u64]) -> Vec<Option<&[u8]>> {
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
    fn best_name(&self, started: &[&Symbol], address: u64) -> Option<&[u8]> {
        let last = started.last()?;
        let same = started.iter().rev().take_while(|s| s.start == last.start && s.rank == last.rank).take(MAX_ALIASES);
        let names = same.filter(|s| address < s.end).map(|s| name_at(&self.names, s.name));
        names.min_by_key(|name| (name.len(), *name))
    }
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
    use super::{Symbol, Symbols};

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
        let symbols = Symbols::new(list, table.into()).expect("symbols");
        let found = symbols.names_of(addresses);
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
    fn two_tables_as_one() {
        let table = |name: &str, start, sized| {
            let symbol = Symbol { start, end: 0x200, name: 1, rank: 0, sized };
            let names = format!("\0{name}").into_bytes();
            Symbols::new(vec![symbol], names.into()).expect("a symbol")
        };
        // A symbol without size in one table ends where one of the other starts.
        for (first, second) in [("guess", "real"), ("real", "guess")] {
            let one = |name| table(name, if name == "guess" { 0x100 } else { 0x180 }, name == "real");
            let both = one(first).with(one(second));
            let names: Vec<_> = both.names_of(&[0x17f, 0x180, 0x1ff, 0x200]);
            assert_eq!(names, [Some(&b"guess"[..]), Some(b"real"), Some(b"real"), None]);
        }
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
