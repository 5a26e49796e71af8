//! Lines of a mapping table.

use super::heap_text::scan::Scan;
use crate::model::Module;
use crate::text::excerpt;

/// What the kernel appends to the path of a file that was unlinked or replaced.
const DELETED: &str = " (deleted)";

/// Reads a line as in `/proc/PID/maps`, `start-end perms offset dev inode path`, or in the short form
/// `start-end: path` of older recorders, which only list executable mappings.
///
/// The path is the rest of the line and may hold spaces. The kernel writes a line feed in a path as `\012`; it is left so,
/// because a path may hold these four characters as well.
pub(super) fn parse_line(line: &[u8]) -> Result<Module, String> {
    parse(line)
        .ok_or_else(|| format!("expected a mapping \"START-END PERMS OFFSET DEV INODE PATH\", found {}", excerpt(line)))
}

fn parse(line: &[u8]) -> Option<Module> {
    let mut scan = Scan::new(line);
    scan.spaces();
    let start = scan.hex_digits()?;
    scan.take(b"-")?;
    let end = scan.hex_digits()?;
    if start >= end {
        return None;
    }
    if scan.take(b":").is_some() {
        scan.spaces();
        return Some(module(start, end, 0, true, scan.rest()));
    }
    scan.required_spaces()?;
    let permissions = scan.word();
    let well_formed = permissions.len() == 4 && permissions.iter().all(|byte| b"rwxsp-".contains(byte));
    if !well_formed {
        return None;
    }
    scan.required_spaces()?;
    let file_offset = scan.hex_digits()?;
    scan.required_spaces()?;
    scan.hex_digits()?;
    scan.take(b":")?;
    scan.hex_digits()?;
    scan.required_spaces()?;
    let inode = scan.word();
    if inode.is_empty() || !inode.iter().all(u8::is_ascii_digit) {
        return None;
    }
    scan.spaces();
    Some(module(start, end, file_offset, permissions[2] == b'x', scan.rest()))
}

fn module(start: u64, end: u64, file_offset: u64, executable: bool, path: &[u8]) -> Module {
    let path = String::from_utf8_lossy(path);
    let (path, deleted) = without_deleted(&path);
    Module { start, end, file_offset, path: path.to_owned(), build_id: None, executable, deleted }
}

/// The path without the kernel's mark for a deleted file, and whether it was there.
pub(super) fn without_deleted(path: &str) -> (&str, bool) {
    path.strip_suffix(DELETED).map_or((path, false), |path| (path, true))
}

/// A module as a line of `/proc/PID/maps`. Device, inode and the permissions to read and write are not known any more.
pub(super) fn format_line(module: &Module) -> String {
    let Module { start, end, file_offset, path, executable, deleted, .. } = module;
    let permissions = if *executable { "r-xp" } else { "r--p" };
    let deleted = if *deleted { DELETED } else { "" };
    let line = format!("{start:x}-{end:x} {permissions} {file_offset:08x} 00:00 0 ");
    if path.is_empty() { line } else { format!("{line:<73}{path}{deleted}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let line = b"55e55979c000-55e5597a0000 r-xp 00002000 fe:00 247857                     /usr/bin/a b (deleted)";
        let module = parse_line(line).unwrap();
        assert_eq!((module.start, module.end, module.file_offset), (0x55e55979c000, 0x55e5597a0000, 0x2000));
        assert_eq!(module.path, "/usr/bin/a b");
        assert!(module.executable && module.deleted);
        for (line, path, executable) in [
            (&b"7fff-8000 rw-p 00000000 00:00 0                          [stack]"[..], "[stack]", false),
            (b"7fff-8000 rw-p 00000000 00:00 0 ", "", false),
            (b"7fff-8000 rw-p 00000000 00:00 0", "", false),
            (b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]", "[vsyscall]", true),
            (b"  7f47a5a89000-7f47a5aad000: /lib/ld-2.15.so", "/lib/ld-2.15.so", true),
            (b"0-ffffffffffffffff rwxs 00000000 00:00 0 \xff", "\u{fffd}", true),
        ] {
            let module = parse_line(line).unwrap();
            assert_eq!((module.path.as_str(), module.executable), (path, executable));
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "x",
            "10-",
            "10-10 r-xp 0 00:00 0",
            "20-10 r-xp 0 00:00 0",
            "10-10000000000000000 r-xp 0 00:00 0",
            "10-20 r-x 0 00:00 0",
            "10-20 r?xp 0 00:00 0",
            "10-20 r-xp",
            "10-20 r-xp 0 0000 0",
            "10-20 r-xp 0 00:00 x",
            "10-20 r-xp 0 00:00",
        ] {
            let error = parse_line(line.as_bytes()).unwrap_err();
            assert!(error.contains("expected a mapping"), "{error}");
        }
    }

    #[test]
    fn a_written_line_reads_back() {
        for line in ["10-20 r-xp 00001000 00:00 0  /a b (deleted)", "10-20 rw-p 00000000 00:00 0"] {
            let module = parse_line(line.as_bytes()).unwrap();
            assert_eq!(parse_line(format_line(&module).as_bytes()).unwrap(), module);
        }
    }
}
