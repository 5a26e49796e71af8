//! The modules of the process: its memory map, and the build ids read from memory (a file may have been replaced since).

use super::output::Output;
use crate::os::File;
use core::fmt::Write;
use core::ops::Range;

const MAPS: &core::ffi::CStr = c"/proc/self/maps";
/// Longer lines are cut; a path has at most 4096 bytes.
const LONGEST_LINE: usize = 4096 + 128;
/// Program headers looked at, and bytes of notes: real modules have about 13 and 100.
const MOST_HEADERS: u16 = 64;
const MOST_NOTES: usize = 1024;

/// Read the memory map line by line. The buffer must hold the longest line.
fn for_each_line(buffer: &mut [u8], mut visit: impl FnMut(&[u8])) -> bool {
    let Some(file) = File::open(MAPS) else { return false };
    let mut filled = 0;
    loop {
        let Some(n) = file.read(&mut buffer[filled..]) else { return false };
        if n == 0 {
            return true;
        }
        filled += n;
        let mut start = 0;
        while let Some(length) = buffer[start..filled].iter().position(|&b| b == b'\n') {
            visit(&buffer[start..start + length]);
            start += length + 1;
        }
        if start == 0 && filled == buffer.len() {
            visit(&buffer[..filled]);
            start = filled;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
}

/// One line of the map.
struct Mapping<'a> {
    range: Range<usize>,
    offset: usize,
    path: &'a [u8],
}

fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|&b| b == b' ').unwrap_or(rest.len());
        let field = &rest[..end];
        rest = &rest[(end + 1).min(rest.len())..];
        field
    };
    let range = field();
    let _permissions = field();
    let offset = hex(field())?;
    let (_device, _inode) = (field(), field());
    let dash = range.iter().position(|&b| b == b'-')?;
    Some(Mapping { range: hex(&range[..dash])?..hex(&range[dash + 1..])?, offset, path: rest.trim_ascii_start() })
}

fn hex(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// The mapping that holds an address.
pub(crate) fn range_around(address: usize) -> Option<Range<usize>> {
    let mut buffer = [0u8; LONGEST_LINE];
    let mut found = None;
    for_each_line(&mut buffer, |line| {
        if let Some(mapping) = parse(line).filter(|mapping| mapping.range.contains(&address)) {
            found = Some(mapping.range);
        }
    });
    found
}

/// A `# build_id HEX PATH` line for each module that has one.
pub(crate) fn write_build_ids(output: &mut Output<'_>, buffer: &mut [u8]) {
    let Some(memory) = File::open(c"/proc/self/mem") else { return };
    for_each_line(buffer, |line| {
        let Some(mapping) = parse(line) else { return };
        if mapping.offset != 0 || mapping.path.first() != Some(&b'/') {
            return;
        }
        let mut notes = [0u8; MOST_NOTES];
        if let Some(id) = build_id(&memory, mapping.range.start, &mut notes) {
            let _ = write!(output, "# build_id ");
            for byte in id {
                let _ = write!(output, "{byte:02x}");
            }
            output.bytes(b" ");
            output.bytes(mapping.path);
            output.bytes(b"\n");
        }
    });
}

/// The map as it is.
pub(crate) fn write_map(output: &mut Output<'_>, buffer: &mut [u8]) {
    for_each_line(buffer, |line| {
        output.bytes(line);
        output.bytes(b"\n");
    });
}

/// The build id of the module whose ELF header lies at `start`. Everything is read through the kernel, so that a module that
/// is unmapped meanwhile is merely not found.
fn build_id<'a>(memory: &File, start: usize, notes: &'a mut [u8; MOST_NOTES]) -> Option<&'a [u8]> {
    const PT_LOAD: u64 = 1;
    const PT_NOTE: u64 = 4;
    let mut header = [0u8; 64];
    if !memory.read_exact_at(&mut header, start) || header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let table = start.checked_add(number(&header[32..40]) as usize)?;
    let entry_size = number(&header[54..56]) as usize;
    let entries = (number(&header[56..58]) as u16).min(MOST_HEADERS);
    let mut first_load = None;
    let mut note = None;
    for i in 0..entries as usize {
        let mut entry = [0u8; 56];
        if entry_size < entry.len() || !memory.read_exact_at(&mut entry, table.checked_add(i * entry_size)?) {
            return None;
        }
        let (kind, address, size) = (number(&entry[..4]), number(&entry[16..24]), number(&entry[32..40]));
        match kind {
            PT_LOAD if first_load.is_none() => first_load = Some(address as usize & !(crate::os::PAGE - 1)),
            PT_NOTE if note.is_none() || size < 64 => note = Some((address as usize, size as usize)),
            _ => {}
        }
        // Modules have several note segments; the one with the build id is found by reading each.
        if let (Some(load), Some((address, size))) = (first_load, note.take()) {
            let notes_at = start.wrapping_add(address).wrapping_sub(load);
            let size = size.min(MOST_NOTES);
            if memory.read_exact_at(&mut notes[..size], notes_at)
                && let Some(range) = find_build_id(&notes[..size])
            {
                return Some(&notes[range]);
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
        if kind == 3 && notes.get(at + 12..at + 16) == Some(b"GNU\0") && content + size <= notes.len() && size <= 64 {
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

    #[test]
    fn lines_of_the_map() {
        let line = b"7f00a000-7f00b000 r-xp 00001000 08:01 1234      /opt/a b/lib c.so (deleted)";
        let mapping = parse(line).unwrap();
        assert_eq!(mapping.range, 0x7f00a000..0x7f00b000);
        assert_eq!((mapping.offset, mapping.path), (0x1000, b"/opt/a b/lib c.so (deleted)".as_slice()));
        assert_eq!(parse(b"7f00a000-7f00b000 rw-p 00000000 00:00 0").unwrap().path, b"");
        assert!(parse(b"").is_none() && parse(b"zz-1 r 0 0 0").is_none());
    }

    #[test]
    fn own_code_is_found() {
        let here = own_code_is_found as fn() as usize;
        assert!(range_around(here).unwrap().contains(&here));
        assert_eq!(range_around(8), None);
    }

    #[test]
    fn notes() {
        let note = b"\x04\0\0\0\x02\0\0\0\x05\0\0\0GNU\0xx\0\0\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0abc\0";
        assert_eq!(find_build_id(note), Some(36..39));
        for cut in 0..note.len() - 1 {
            assert_eq!(find_build_id(&note[..cut]), None, "{cut}");
        }
        assert_eq!(find_build_id(&[0xff; 64]), None);
    }
}
