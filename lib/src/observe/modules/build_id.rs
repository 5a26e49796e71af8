//! Build ids, read from memory: a file may have been replaced since.

use crate::os::{self, File};
use core::ops::Range;

/// Longest build id that is kept, in bytes. Linkers make 8, 16, 20 or 32.
const LONGEST: usize = 64;
/// Program headers looked at, and bytes of notes: real modules have about 13 and 100.
const MOST_HEADERS: u16 = 64;
const MOST_NOTES: usize = 1024;

/// A build id; empty where there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuildId {
    length: u8,
    bytes: [u8; LONGEST],
}

impl BuildId {
    pub(crate) const NONE: BuildId = BuildId { length: 0, bytes: [0; LONGEST] };

    fn new(id: &[u8]) -> BuildId {
        let mut bytes = [0; LONGEST];
        bytes[..id.len()].copy_from_slice(id);
        BuildId { length: id.len() as u8, bytes }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }

    /// As text, in hex digits.
    pub(crate) fn hex<'a>(&self, digits: &'a mut [u8; 2 * LONGEST]) -> &'a [u8] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (byte, pair) in self.as_bytes().iter().zip(digits.chunks_exact_mut(2)) {
            pair.copy_from_slice(&[DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]);
        }
        &digits[..2 * self.length as usize]
    }
}

/// Room for the digits of a build id.
pub(crate) const DIGITS: [u8; 2 * LONGEST] = [0; 2 * LONGEST];

/// The memory of this process, read through the kernel, so that a module that is unmapped meanwhile is merely not found.
pub(crate) struct Memory(Option<File>);

impl Memory {
    /// A process that has given up rights may not open its own memory, but may still copy from it.
    pub(crate) fn open() -> Memory {
        Memory(File::open(c"/proc/self/mem"))
    }

    fn read(&self, address: usize, into: &mut [u8]) -> bool {
        match &self.0 {
            Some(file) => file.read_exact_at(into, address),
            None => os::read_own_memory(address, into),
        }
    }
}

/// The build id of the module whose ELF header lies at `start`.
pub(crate) fn build_id(memory: &Memory, start: usize) -> BuildId {
    find(memory, start).unwrap_or(BuildId::NONE)
}

fn find(memory: &Memory, start: usize) -> Option<BuildId> {
    const PT_LOAD: u64 = 1;
    const PT_NOTE: u64 = 4;
    let mut header = [0u8; 64];
    if !memory.read(start, &mut header) || header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let table = start.checked_add(number(&header[32..40]) as usize)?;
    let entry_size = number(&header[54..56]) as usize;
    let entries = (number(&header[56..58]) as u16).min(MOST_HEADERS);
    let mut first_load = None;
    let mut note = None;
    for i in 0..entries as usize {
        let mut entry = [0u8; 56];
        if entry_size < entry.len() || !memory.read(table.checked_add(i * entry_size)?, &mut entry) {
            return None;
        }
        let (kind, address, size) = (number(&entry[..4]), number(&entry[16..24]), number(&entry[32..40]));
        match kind {
            PT_LOAD if first_load.is_none() => first_load = Some(address as usize & !(os::PAGE - 1)),
            PT_NOTE if note.is_none() || size < 64 => note = Some((address as usize, size as usize)),
            _ => {}
        }
        // Modules have several note segments; the one with the build id is found by reading each.
        if let (Some(load), Some((address, size))) = (first_load, note.take()) {
            let mut notes = [0u8; MOST_NOTES];
            let notes = &mut notes[..size.min(MOST_NOTES)];
            if memory.read(start.wrapping_add(address).wrapping_sub(load), notes)
                && let Some(range) = find_build_id(notes)
            {
                return Some(BuildId::new(&notes[range]));
            }
        }
    }
    None
}

/// Where in a note segment the build id (owner GNU, type 3) is.
fn find_build_id(notes: &[u8]) -> Option<Range<usize>> {
    let mut at = 0usize;
    while let Some(header) = notes.get(at..at + 12) {
        let (name, size, kind) = (number(&header[..4]) as usize, number(&header[4..8]) as usize, number(&header[8..]));
        let content = at + 12 + name.next_multiple_of(4);
        let is_build_id = kind == 3 && notes.get(at + 12..at + 16) == Some(b"GNU\0");
        if is_build_id && content + size <= notes.len() && size <= LONGEST {
            return Some(content..content + size);
        }
        at = content.checked_add(size.next_multiple_of(4))?;
    }
    None
}

/// A little-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &byte| n << 8 | byte as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::modules::Map;

    #[test]
    fn notes() {
        let note = b"\x04\0\0\0\x02\0\0\0\x05\0\0\0GNU\0xx\0\0\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0abc\0";
        assert_eq!(find_build_id(note), Some(36..39));
        for cut in 0..note.len() - 1 {
            assert_eq!(find_build_id(&note[..cut]), None, "{cut}");
        }
        assert_eq!(find_build_id(&[0xff; 64]), None);
    }

    #[test]
    fn with_and_without_the_right_to_open_memory() {
        let map = Map::read().unwrap();
        let libc = map.mappings().find(|m| m.offset == 0 && m.path.ends_with(b"/libc.so.6")).unwrap();
        let opened = build_id(&Memory::open(), libc.range.start);
        assert_eq!(opened.as_bytes().len(), 20);
        assert!(opened == build_id(&Memory(None), libc.range.start));
        assert!(build_id(&Memory::open(), 8) == BuildId::NONE);
        let digits = &mut DIGITS.clone();
        assert_eq!(BuildId::new(b"\x00\xab\xf1").hex(digits), b"00abf1");
    }
}
