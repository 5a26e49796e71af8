//! The memory map of the process, as the kernel prints it.

use crate::observe::output::Failure;
use crate::observe::room::Room;
use crate::os::File;
use core::ops::Range;

const MAPS: &core::ffi::CStr = c"/proc/self/maps";
/// Bytes to read at a time, at least.
const PIECE: usize = 16 * 1024;

/// The whole map at one moment (nearly: the kernel prints some pages of it at a time).
pub(crate) struct Map(Room<u8>);

impl Map {
    /// The present map; empty where there is no `/proc` or no descriptor to read it with.
    pub(crate) fn read() -> Result<Map, Failure> {
        let mut text = Room::new();
        if let Some(file) = File::open(MAPS) {
            while text.extend_with(PIECE, |room| file.read(room).unwrap_or(0))? > 0 {}
        }
        Ok(Map(text))
    }

    /// As the kernel wrote it.
    pub(crate) fn text(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn mappings(&self) -> impl Iterator<Item = Mapping<'_>> {
        self.0.split(|&byte| byte == b'\n').filter_map(Mapping::parse)
    }

    /// The mapping that holds an address.
    pub(crate) fn range_around(&self, address: usize) -> Option<Range<usize>> {
        self.mappings().map(|mapping| mapping.range).find(|range| range.contains(&address))
    }
}

/// One line of the map.
pub(crate) struct Mapping<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) executable: bool,
    /// Where in the file it begins.
    pub(crate) offset: usize,
    /// Device and inode, which stay when the file is renamed.
    pub(crate) file: &'a [u8],
    /// As the kernel wrote it.
    pub(crate) path: &'a [u8],
}

impl Mapping<'_> {
    /// `None`: it is no such line.
    pub(crate) fn parse(line: &[u8]) -> Option<Mapping<'_>> {
        parse(line)
    }
}

fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let mut at = 0;
    let mut field = || {
        let start = at.min(line.len());
        let end = line[start..].iter().position(|&b| b == b' ').map_or(line.len(), |length| start + length);
        at = end + 1;
        start..end
    };
    let (range, permissions, offset, device, inode) = (field(), field(), field(), field(), field());
    let path = line.get(inode.end..).unwrap_or_default().trim_ascii_start();
    let range = &line[range];
    let dash = range.iter().position(|&b| b == b'-')?;
    Some(Mapping {
        range: hex(&range[..dash])?..hex(&range[dash + 1..])?,
        executable: line[permissions].get(2) == Some(&b'x'),
        offset: hex(&line[offset])?,
        file: &line[device.start..inode.end],
        path,
    })
}

fn hex(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_map() {
        let line = b"7f00a000-7f00b000 r-xp 00001000 08:01 1234      /opt/a b/lib c.so (deleted)";
        let mapping = parse(line).unwrap();
        assert_eq!(mapping.range, 0x7f00a000..0x7f00b000);
        assert!(mapping.executable);
        assert_eq!(mapping.file, b"08:01 1234");
        assert_eq!((mapping.offset, mapping.path), (0x1000, b"/opt/a b/lib c.so (deleted)".as_slice()));
        let anonymous = parse(b"7f00a000-7f00b000 rw-p 00000000 00:00 0").unwrap();
        assert_eq!((anonymous.path, anonymous.file, anonymous.executable), (&b""[..], &b"00:00 0"[..], false));
        assert_eq!(parse(b"7f00a000-7f00b000 rw-p 00000000 00:00 0 ").unwrap().path, b"");
        assert!(parse(b"").is_none() && parse(b"zz-1 r 0 0 0").is_none() && parse(b"1-2").is_none());
    }

    #[test]
    fn own_code_is_found() {
        let map = Map::read().unwrap();
        let here = own_code_is_found as fn() as usize;
        assert!(map.range_around(here).unwrap().contains(&here));
        assert_eq!(map.range_around(8), None);
        let program = std::env::current_exe().unwrap();
        let program = program.as_os_str().as_encoded_bytes();
        let of_program = map.mappings().find(|mapping| mapping.range.contains(&here)).unwrap();
        assert!(of_program.executable && of_program.path == program);
        assert!(map.text().ends_with(b"\n"));
    }
}
