//! Paths of what is written, and the patterns that they are made from.
//!
//! In a pattern `%p` is the process id, `%t` the time as `YYYYMMDD-HHMMSS` in UTC, `%n` the number of the dump in this process
//! from 1 (four digits, with zeros in front), `%h` the host's name, `%%` a percent sign. Anything else stays as it is.

use crate::os::{self, libc};
use core::ffi::CStr;
use core::fmt;

/// Longest path, with its end.
pub(crate) const PATH: usize = 4096;

/// A path, or a pattern for one, in memory of its own.
#[derive(Clone)]
pub(crate) struct Path {
    bytes: [u8; PATH],
    length: usize,
}

impl Path {
    pub(crate) const EMPTY: Path = Path { bytes: [0; PATH], length: 0 };

    /// Append; false when it does not fit or holds a NUL.
    pub(crate) fn push(&mut self, more: &[u8]) -> bool {
        let end = self.length + more.len();
        if end >= PATH || more.contains(&0) {
            return false;
        }
        self.bytes[self.length..end].copy_from_slice(more);
        self.bytes[end] = 0;
        self.length = end;
        true
    }

    /// Append a number, in decimal and with zeros in front up to this many digits.
    pub(crate) fn push_number(&mut self, mut number: u64, least: usize) -> bool {
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        while number > 0 || digits.len() - first < least.max(1) {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.push(&digits[first..])
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Remove the file that it names.
    pub(crate) fn remove(&self) {
        os::remove(self.as_c_str());
    }

    pub(crate) fn clear(&mut self) {
        (self.length, self.bytes[0]) = (0, 0);
    }

    /// Make the folder that the path names a file in, if only the last part of it is missing. On little stack.
    pub(crate) fn make_folder(&mut self) -> bool {
        let Some(slash) = self.as_bytes().iter().rposition(|&b| b == b'/').filter(|&slash| slash > 0) else {
            return false;
        };
        self.bytes[slash] = 0;
        let made = os::make_folder(self.as_c_str()).is_ok();
        self.bytes[slash] = b'/';
        made
    }

    /// The folder that the path names a file in.
    pub(crate) fn folder(&self) -> Option<Path> {
        let slash = self.as_bytes().iter().rposition(|&b| b == b'/')?;
        let mut folder = Path::EMPTY;
        (slash > 0 && folder.push(&self.bytes[..slash])).then_some(folder)
    }
}

impl fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.push(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The path that a pattern means now, for the dump of this number. Or why not, as `errno` has it.
pub(crate) fn expand(pattern: &[u8], number: u32, into: &mut Path) -> Result<(), i32> {
    *into = Path::EMPTY;
    let mut rest = pattern;
    while let Some(percent) = rest.iter().position(|&byte| byte == b'%') {
        check(into.push(&rest[..percent]))?;
        let whole = match rest.get(percent + 1) {
            Some(b'p') => into.push_number(os::process_id() as u64, 1),
            Some(b'n') => into.push_number(number as u64, 4),
            Some(b't') => push_time(into, os::calendar_time() / 1_000_000_000),
            Some(b'h') => push_host(into),
            Some(b'%') => into.push(b"%"),
            _ => {
                check(into.push(b"%"))?;
                rest = &rest[percent + 1..];
                continue;
            }
        };
        check(whole)?;
        rest = &rest[percent + 2..];
    }
    check(into.push(rest))
}

/// Whether a pattern makes a path of its own for each number of a dump.
pub(crate) fn is_numbered(pattern: &[u8]) -> bool {
    has(pattern, b'n')
}

/// Whether a pattern makes a path of its own for each process.
pub(crate) fn tells_processes_apart(pattern: &[u8]) -> bool {
    has(pattern, b'p')
}

fn has(pattern: &[u8], letter: u8) -> bool {
    let mut rest = pattern;
    while let Some(percent) = rest.iter().position(|&byte| byte == b'%') {
        match rest.get(percent + 1) {
            Some(&found) if found == letter => return true,
            Some(b'%') => rest = &rest[percent + 2..],
            _ => rest = &rest[percent + 1..],
        }
    }
    false
}

fn check(fits: bool) -> Result<(), i32> {
    if fits { Ok(()) } else { Err(libc::ENAMETOOLONG) }
}

/// A host name may hold what a file name may not.
fn push_host(into: &mut Path) -> bool {
    let mut buffer = [0u8; os::HOST_NAME];
    os::host_name(&mut buffer)
        .iter()
        .all(|&byte| into.push(if byte == b'/' { b"_" } else { core::slice::from_ref(&byte) }))
}

/// Seconds since 1970 as `YYYYMMDD-HHMMSS`.
fn push_time(into: &mut Path, seconds: u64) -> bool {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    into.push_number(year, 4)
        && into.push_number(month, 2)
        && into.push_number(day, 2)
        && into.push(b"-")
        && into.push_number(second / 3600, 2)
        && into.push_number(second / 60 % 60, 2)
        && into.push_number(second % 60, 2)
}

/// Year, month and day of the Gregorian calendar, so many days after the beginning of 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // 400 years are 146,097 days.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn expanded(pattern: &str) -> String {
        let mut path = Path::EMPTY;
        expand(pattern.as_bytes(), 7, &mut path).unwrap();
        String::from_utf8(path.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn patterns() {
        let pid = std::process::id();
        assert_eq!(expanded("/a/%p/100%%/%x%n%"), std::format!("/a/{pid}/100%/%x0007%"));
        assert_eq!(expanded("%%p%%%p"), std::format!("%p%{pid}"));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(expanded("%h.x"), std::format!("{}.x", host.trim_end()));
        let time = expanded("%t");
        assert!(time.len() == 15 && time.starts_with("20") && time.as_bytes()[8] == b'-', "{time}");
        let mut path = Path::EMPTY;
        assert_eq!(expand(&[b'a'; PATH], 1, &mut path), Err(libc::ENAMETOOLONG));
        assert_eq!(expand(&b"%p".repeat(2000), 1, &mut path), Err(libc::ENAMETOOLONG));
        assert_eq!(expand(b"/a\0b", 1, &mut path), Err(libc::ENAMETOOLONG));
        for (pattern, numbered, apart) in
            [("/a/%p.%n", true, true), ("/a/%%p%%n", false, false), ("%%%n", true, false), ("%h%t%", false, false)]
        {
            let pattern = pattern.as_bytes();
            assert_eq!((is_numbered(pattern), tells_processes_apart(pattern)), (numbered, apart));
        }
    }

    #[test]
    fn times() {
        let text = |seconds| {
            let mut path = Path::EMPTY;
            assert!(push_time(&mut path, seconds));
            String::from_utf8(path.as_bytes().to_vec()).unwrap()
        };
        assert_eq!(text(0), "19700101-000000");
        assert_eq!(text(951_782_399), "20000228-235959");
        assert_eq!(text(951_782_400), "20000229-000000");
        assert_eq!(text(951_868_800), "20000301-000000");
        assert_eq!(text(4_107_542_399), "21000228-235959");
        assert_eq!(text(4_107_542_400), "21000301-000000");
        assert_eq!(text(1_735_689_599), "20241231-235959");
        assert_eq!(text(13574563200), "24000229-000000");
    }

    #[test]
    fn folders() {
        let mut path = Path::EMPTY;
        assert!(path.push(b"/a/b") && path.folder().unwrap().as_bytes() == b"/a");
        path = Path::EMPTY;
        assert!(path.push(b"/b") && path.folder().is_none());
    }
}
