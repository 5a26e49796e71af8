//! What `/proc` says about a process and its threads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::system::number_after;
use crate::driver::memory::Memory;

/// A process, looked at from outside.
#[derive(Clone, Debug)]
pub struct Process {
    folder: PathBuf,
}

/// How often a thread stopped running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// It had to wait: each is a wake-up.
    pub voluntary: u64,
    /// Another thread was to have the processor.
    pub involuntary: u64,
}

/// A thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Processor time in nanoseconds; 0 if the kernel does not tell.
    pub cpu: u64,
    /// How often it stopped running.
    pub switches: Switches,
}

impl Switches {
    /// What was counted since `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }

    /// Both sums.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { voluntary: self.voluntary + other.voluntary, involuntary: self.involuntary + other.involuntary }
    }
}

impl Process {
    /// The process `pid`.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self { folder: Path::new("/proc").join(pid.to_string()) }
    }

    /// Resident memory; `None` when the process has ended.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        Memory::read(&self.folder.join("status")).ok()
    }

    /// Bytes of it that are in huge pages.
    #[must_use]
    pub fn huge(&self) -> Option<u64> {
        let rollup = fs::read_to_string(self.folder.join("smaps_rollup")).ok()?;
        Some(number_after(&rollup, "AnonHugePages:")? * 1024)
    }

    /// The file that is mapped at `address`; empty if none.
    #[must_use]
    pub fn file_at(&self, address: u64) -> String {
        let maps = fs::read_to_string(self.folder.join("maps")).unwrap_or_default();
        maps.lines().find_map(|line| file_in(line, address)).unwrap_or_default()
    }

    /// All threads.
    #[must_use]
    pub fn threads(&self) -> Vec<Thread> {
        let Ok(entries) = fs::read_dir(self.folder.join("task")) else { return Vec::new() };
        entries.flatten().filter_map(|entry| thread(&entry.path())).collect()
    }
}

fn thread(folder: &Path) -> Option<Thread> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let time = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
    Some(Thread {
        number: folder.file_name()?.to_str()?.parse().ok()?,
        name: status.lines().next()?.strip_prefix("Name:")?.trim().to_owned(),
        cpu: time.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0),
        switches: Switches {
            voluntary: number_after(&status, "voluntary_ctxt_switches:")?,
            involuntary: number_after(&status, "nonvoluntary_ctxt_switches:")?,
        },
    })
}

/// The file of a line of `maps`, if the line's range has `address` in it.
fn file_in(line: &str, address: u64) -> Option<String> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    // Permissions, offset, device and inode come before the name, which may have spaces in it.
    let name = || rest.splitn(5, ' ').last().unwrap_or_default().trim_start().to_owned();
    (start..end).contains(&address).then(name)
}

/// A thread that an allocator or a library started, and what it did between two looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Helper {
    /// The thread's name.
    pub name: String,
    /// Milliseconds of processor time, from the thread's start to the second look.
    pub cpu_ms: f64,
    /// How often it stopped running between the two looks.
    pub switches: Switches,
}

/// What threads did from `before` to `after`: all together, and one by one those that are not among `known`.
#[must_use]
pub fn between(before: &[Thread], after: &[Thread], known: &BTreeSet<u64>) -> (Switches, Vec<Helper>) {
    let since = |thread: &Thread| {
        let old = before.iter().find(|old| old.number == thread.number);
        thread.switches.since(old.map(|old| old.switches).unwrap_or_default())
    };
    let all = after.iter().map(since).fold(Switches::default(), Switches::and);
    let helper = |thread: &Thread| Helper {
        name: thread.name.clone(),
        cpu_ms: thread.cpu as f64 / 1e6,
        switches: since(thread),
    };
    (all, after.iter().filter(|thread| !known.contains(&thread.number)).map(helper).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let this = Process::new(std::process::id());
        assert!(this.memory().is_some());
        let threads = this.threads();
        assert!(threads.iter().any(|thread| thread.number == u64::from(std::process::id())), "{threads:?}");
        let here = this.file_at(thread as *const () as u64);
        assert_eq!(Path::new(&here), std::env::current_exe().unwrap());
        assert_eq!(this.file_at(1), "");
    }

    #[test]
    fn helpers_are_the_threads_nobody_named() {
        let thread = |number, voluntary| Thread {
            number,
            name: format!("t{number}"),
            cpu: 2_000_000,
            switches: Switches { voluntary, involuntary: 1 },
        };
        let (all, helpers) = between(&[thread(1, 5)], &[thread(1, 7), thread(2, 3)], &BTreeSet::from([1]));
        assert_eq!(all, Switches { voluntary: 5, involuntary: 1 });
        let switches = Switches { voluntary: 3, involuntary: 1 };
        assert_eq!(helpers, [Helper { name: "t2".to_owned(), cpu_ms: 2.0, switches }]);
    }
}
