//! Whether memory is short where this process runs: in its control group, or in the machine.
//!
//! A group that reaches its limit is not told: its allocations go on until the kernel kills. So its figures are read, by who returns
//! memory, a few times a second at most.

use super::cgroup::{Folder, Path, Version, find_line, group_in, mount_in, number, some_waited, value_of};
use super::{File, process_id};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Share of a limit from which on memory is short.
const PER_CENT: u64 = 90;
/// Share of the last ten seconds in which some task waited for memory, in hundredths of a per cent.
const WAITED: u64 = 10_00;
/// The pressure of the machine, where the group has none of its own.
const MACHINE: (&[u8], &[u8]) = (b"/proc/pressure", b"memory");

/// Where the figures are; found once.
struct Places {
    version: Version,
    /// The group whose limits count.
    memory: Folder,
    has_limits: bool,
    /// The group that may have a pressure of its own: not that of `memory` where both kinds of hierarchies are in use.
    unified: Folder,
    /// Of the group, of the machine, or none.
    pressure: Option<Whose>,
}

#[derive(Clone, Copy)]
enum Whose {
    Group,
    Machine,
}

struct Shared(UnsafeCell<Places>);
// SAFETY: written by who has put its process's number into STATE, read by who has read FOUND there.
unsafe impl Sync for Shared {}

static PLACES: Shared = Shared(UnsafeCell::new(Places {
    version: Version::V2,
    memory: Folder::NONE,
    has_limits: false,
    unified: Folder::NONE,
    pressure: None,
}));
/// One of these, or the number of the process in which a thread is just finding out. A forked child does not have that thread and begins
/// anew.
static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const NOTHING: u32 = u32::MAX;
const FOUND: u32 = u32::MAX - 1;

/// The group has used nine tenths of its limit (or a group around it has), or tasks of it waited for memory for a tenth of the last ten
/// seconds. False where the system tells nothing of that; from the second call on that costs nothing.
///
/// Needs about 12 KiB of stack, and a system call or three for each file that there is.
pub(crate) fn memory_is_short() -> bool {
    match STATE.load(Acquire) {
        NOTHING => return false,
        FOUND => {}
        state => {
            let me = process_id();
            if state == me || STATE.compare_exchange(state, me, Acquire, Relaxed).is_err() {
                return false; // another thread is about to know
            }
            // SAFETY: STATE names this process, and only one thread of it could put that there.
            let found = find(unsafe { &mut *PLACES.0.get() });
            STATE.store(if found { FOUND } else { NOTHING }, Release);
            if !found {
                return false;
            }
        }
    }
    // SAFETY: FOUND was read or stored, nobody writes after it.
    let places = unsafe { &*PLACES.0.get() };
    places.has_limits && places.memory.levels().any(|level| is_full(level, places.version)) || has_waited(places)
}

#[inline(never)]
fn find(places: &mut Places) -> bool {
    places.has_limits = false;
    let mut path = Path::new();
    let unified = folder(Version::V2).unwrap_or(Folder::NONE);
    let mut has_limits = |folder: &Folder, version| {
        let (limit, _, usage) = files(version);
        folder
            .levels()
            .any(|level| read_number(level, limit, &mut path).and(read_number(level, usage, &mut path)).is_some())
    };
    // Memory is in one hierarchy only.
    if let Some(memory) = folder(Version::V1)
        && has_limits(&memory, Version::V1)
    {
        (places.version, places.memory, places.has_limits) = (Version::V1, memory, true);
    } else if has_limits(&unified, Version::V2) {
        let memory = folder(Version::V2).unwrap_or(Folder::NONE);
        (places.version, places.memory, places.has_limits) = (Version::V2, memory, true);
    }
    places.unified = unified;
    places.pressure = [Whose::Group, Whose::Machine].into_iter().find(|&whose| waited(places, whose).is_some());
    places.has_limits || places.pressure.is_some()
}

/// The folder of this process's group in a hierarchy.
#[inline(never)]
fn folder(version: Version) -> Option<Folder> {
    let mut buffer = [0; 4096];
    let mut groups = [0; 4096];
    let length = read(c"/proc/self/cgroup", &mut groups)?;
    let group = group_in(&groups[..length], version)?;
    let mounts = File::open(c"/proc/self/mountinfo")?;
    let mount = |line: &[u8]| mount_in(line, version).and_then(|(root, place)| Folder::new(root, place, group));
    find_line(&mut buffer, |room| mounts.read(room), mount)
}

/// Two limits and the usage.
fn files(version: Version) -> (&'static [u8], Option<&'static [u8]>, &'static [u8]) {
    match version {
        Version::V1 => (b"memory.limit_in_bytes", None, b"memory.usage_in_bytes"),
        // Above `high` nobody is killed, but everybody is slowed down.
        Version::V2 => (b"memory.max", Some(b"memory.high"), b"memory.current"),
    }
}

/// One group alone.
fn is_full(folder: &[u8], version: Version) -> bool {
    let mut path = Path::new();
    let (limit, lower, usage) = files(version);
    let mut read = |name| read_number(folder, name, &mut path);
    let Some(limit) = read(limit) else { return false };
    let limit = lower.and_then(&mut read).unwrap_or(u64::MAX).min(limit);
    // Without a limit one reads `max`, or the largest number of whole pages that a signed word holds.
    if limit >= i64::MAX as u64 - 0xffff {
        return false;
    }
    let Some(usage) = read(usage) else { return false };
    reaches(usage, limit) && reaches(usage.saturating_sub(idle_cache(folder, version)), limit)
}

fn reaches(usage: u64, limit: u64) -> bool {
    usage as u128 * 100 >= limit as u128 * PER_CENT as u128
}

/// Bytes of files that the kernel keeps in memory, charged to the group, because nobody else has needed the room. It fills every limit
/// with them if the program only reads enough files, and drops them before anything else: a group that is full of those is not short of
/// memory. (That it has to find new ones again and again would show in the pressure.) Read only when the usage is near the limit.
#[inline(never)]
fn idle_cache(folder: &[u8], version: Version) -> u64 {
    let mut text = [0; 8192];
    let name: &[u8] = if version == Version::V1 { b"total_inactive_file" } else { b"inactive_file" };
    let length = Path::new().of(folder, b"memory.stat").and_then(|path| read(path, &mut text)).unwrap_or(0);
    value_of(&text[..length], name).unwrap_or(0)
}

fn has_waited(places: &Places) -> bool {
    places.pressure.and_then(|whose| waited(places, whose)).is_some_and(|share| share >= WAITED)
}

fn waited(places: &Places, whose: Whose) -> Option<u64> {
    let (folder, name) = match whose {
        Whose::Group => (places.unified.levels().next()?, b"memory.pressure".as_slice()),
        Whose::Machine => MACHINE,
    };
    let mut text = [0; 256];
    let length = read(Path::new().of(folder, name)?, &mut text)?;
    some_waited(&text[..length])
}

fn read_number(folder: &[u8], name: &[u8], path: &mut Path) -> Option<u64> {
    let mut text = [0; 32];
    let length = read(path.of(folder, name)?, &mut text)?;
    number(&text[..length])
}

/// Bytes of a file that were read: all of it, or what there is room for.
fn read(path: &CStr, buffer: &mut [u8]) -> Option<usize> {
    let file = File::open(path)?;
    let mut length = 0;
    loop {
        match file.read(&mut buffer[length..])? {
            0 => return Some(length),
            got => length += got,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    #[test]
    fn it_can_be_asked() {
        // What this machine says is its own affair; that it is found out once is ours.
        memory_is_short();
        let state = STATE.load(Relaxed);
        assert!(state == FOUND || state == NOTHING);
        memory_is_short();
        assert_eq!(STATE.load(Relaxed), state);
        let told = fs::read_to_string("/proc/pressure/memory").is_ok_and(|text| text.starts_with("some "));
        assert!(state == FOUND || !told);
    }

    /// A hierarchy that is no file system of the kernel.
    struct Group(PathBuf);

    impl Group {
        fn new(name: &str) -> Group {
            let folder = std::env::temp_dir().join(std::format!("mimalloc-pprof-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Group(folder)
        }
        fn with(self, files: &[(&str, &str)]) -> Group {
            files.iter().for_each(|(name, text)| fs::write(self.0.join(name), text).unwrap());
            self
        }
        fn is_full(&self, version: Version) -> bool {
            is_full(self.0.as_os_str().as_bytes(), version)
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn limits_of_a_unified_group() {
        let group =
            Group::new("v2").with(&[("memory.max", "1000\n"), ("memory.high", "max\n"), ("memory.current", "900\n")]);
        assert!(group.is_full(Version::V2));
        let group = group.with(&[("memory.current", "899\n")]);
        assert!(!group.is_full(Version::V2));
        let group = group.with(&[("memory.high", "950\n")]);
        assert!(group.is_full(Version::V2));
        let group = group.with(&[("memory.stat", "file 500\ninactive_file 44\n")]);
        assert!(group.is_full(Version::V2));
        let group = group.with(&[("memory.stat", "file 500\ninactive_file 45\n")]);
        assert!(!group.is_full(Version::V2));
        let group = group.with(&[("memory.max", "max\n"), ("memory.high", "max\n"), ("memory.stat", "")]);
        assert!(!group.is_full(Version::V2));
        let group = group.with(&[("memory.max", "garbage"), ("memory.current", "9999999")]);
        assert!(!group.is_full(Version::V2));
        assert!(!Group::new("none").is_full(Version::V2));
    }

    #[test]
    fn limits_of_a_group_of_the_first_kind() {
        let usage = ("memory.usage_in_bytes", "960");
        let group = Group::new("v1").with(&[("memory.limit_in_bytes", "1000"), usage]);
        assert!(group.is_full(Version::V1) && !group.is_full(Version::V2));
        // Only the figure for the whole subtree is of use.
        let group = group.with(&[("memory.stat", "inactive_file 900\ntotal_inactive_file 60\n")]);
        assert!(group.is_full(Version::V1));
        let group = group.with(&[("memory.stat", "inactive_file 0\ntotal_inactive_file 61\n")]);
        assert!(!group.is_full(Version::V1));
        let group = group.with(&[
            ("memory.limit_in_bytes", "9223372036854771712"),
            ("memory.usage_in_bytes", "9223372036854771712"),
        ]);
        assert!(!group.is_full(Version::V1));
    }

    #[test]
    fn a_pressure() {
        let group = Group::new("psi");
        let mut places = Places {
            version: Version::V2,
            memory: Folder::NONE,
            has_limits: false,
            unified: Folder::new(b"/", group.0.as_os_str().as_bytes(), b"/").unwrap(),
            pressure: Some(Whose::Group),
        };
        assert!(!has_waited(&places));
        let group =
            group.with(&[("memory.pressure", "some avg10=9.99 avg60=50.00 avg300=0.00 total=1\nfull avg10=90.00\n")]);
        assert!(!has_waited(&places));
        let _group = group.with(&[("memory.pressure", "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\n")]);
        assert!(has_waited(&places));
        places.pressure = None;
        assert!(!has_waited(&places));
    }

    #[test]
    fn shares() {
        assert!(reaches(90, 100) && !reaches(89, 100) && reaches(0, 0));
        assert!(reaches(u64::MAX, u64::MAX) && !reaches(0, u64::MAX));
    }
}
