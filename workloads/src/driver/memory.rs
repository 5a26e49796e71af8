//! Resident memory as Linux reports it in `/proc/<pid>/status` (proc_pid_status(5)).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A status file is under 2 KiB; a list of very many groups may make it longer, but the `Vm` lines come before most of it.
const STATUS_BYTES: usize = 16 * 1024;

/// Resident memory of a process at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `VmRSS`: pages in memory now.
    pub rss: u64,
    /// `VmHWM`: the highest `VmRSS` so far.
    pub peak_rss: u64,
}

impl Memory {
    /// The figures of the calling process. Allocates nothing, so a workload may ask in the middle of a measurement.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn of_self() -> io::Result<Self> {
        Self::read(Path::new("/proc/self/status"))
    }

    /// The figures in the status file `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or (as [`io::ErrorKind::InvalidData`]) has no such lines: a zombie and a kernel
    /// thread have no memory of their own.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut text = [0u8; STATUS_BYTES];
        let mut file = File::open(path)?;
        let mut length = 0;
        while length < text.len() {
            match file.read(&mut text[length..]) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Self::parse(&text[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Finds the two figures in the text of a status file. `None` if either is missing or no number of kB.
    #[must_use]
    pub fn parse(status: &[u8]) -> Option<Self> {
        Some(Self { rss: bytes_after(status, b"VmRSS:")?, peak_rss: bytes_after(status, b"VmHWM:")? })
    }
}

fn bytes_after(status: &[u8], key: &[u8]) -> Option<u64> {
    let value = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(key))?;
    let kib = std::str::from_utf8(value).ok()?.trim().strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_both_lines() {
        let status = b"Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t     1024 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(Memory::parse(status), Some(Memory { rss: 1 << 20, peak_rss: 2 << 20 }));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for wrong in [
            "",
            "VmRSS: 1 kB",
            "VmHWM: 1 kB\nVmRSS: 1 MB",
            "VmHWM: 1 kB\nVmRSS: x kB",
            "VmHWM: 1 kB\nVmRSS: 99999999999999999999 kB",
            "VmHWM: 1 kB\nVmRSS: 18446744073709551615 kB",
        ] {
            assert_eq!(Memory::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Memory::read(Path::new("/dev/null")).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(status in "(VmRSS:|VmHWM:|[0-9 \tkBx]|\n|\\PC)*") {
            let _ = Memory::parse(status.as_bytes());
        }

        #[test]
        fn any_figures_are_found(rss in 0u64..1 << 50, more in 0u64..1 << 50, before in "[a-zA-Z:0-9 \n]*") {
            let status = format!("{before}\nVmHWM: {} kB\nVmRSS:\t{rss} kB", rss + more);
            let expected = Memory { rss: rss * 1024, peak_rss: (rss + more) * 1024 };
            proptest::prop_assert_eq!(Memory::parse(status.as_bytes()), Some(expected));
        }
    }

    #[test]
    fn sees_memory_that_was_touched() {
        let before = Memory::of_self().unwrap();
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = Memory::of_self().unwrap();
        assert!(after.rss >= before.rss + (48 << 20), "{before:?} {after:?}");
        assert!(after.peak_rss >= after.rss - (1 << 20), "{after:?}");
        drop(touched);
    }
}
