//! Which file is the perf map of the process.
//!
//! The map of process 123 is `/tmp/perf-123.map`, where 123 is what the process itself thinks its number is and `/tmp`
//! is its own: in a container both differ from what is seen outside. Anybody can write to `/tmp`, and numbers of
//! processes are used again, so a file found there must belong to the owner of the process, to whoever looks, or to
//! root, and must have been written to since the process started.

use std::fs::{self, File, Metadata};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::MAX_SIZE;
use crate::{Error, Options};

/// Most bytes of `/proc/PID/status` and `/proc/PID/stat` that are read; they have about 1,500 and 300.
const MAX_STATUS: u64 = 64 << 10;

/// How far the clock of a file and the start of a process may be apart. The latter is counted in hundredths of a second
/// since the machine started, whose own time is known to the second.
const SLACK: Duration = Duration::from_secs(2);

/// The perf map that `options` name, or that of the process they name, and its size. Every place that was tried is
/// added to `looked_at`; files that are there but are not to be trusted are added to `problems`.
pub(crate) fn find(
    options: &Options,
    looked_at: &mut Vec<PathBuf>,
    problems: &mut Vec<Error>,
) -> Option<(PathBuf, File, u64)> {
    if let Some(path) = &options.perf_map {
        // Named by the user, who may well have copied it: it is only asked to be a file.
        looked_at.push(path.clone());
        return match open(path, |path| fs::metadata(path)) {
            Ok((file, metadata)) => Some((path.clone(), file, metadata.len())),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
    }
    let pid = options.pid?;
    let process = Process::read(pid);
    let own_root = format!("/proc/{pid}/root");
    let inside = format!("{own_root}/tmp/perf-{}.map", process.number_inside);
    for path in [PathBuf::from(inside), PathBuf::from(format!("/tmp/perf-{pid}.map"))] {
        looked_at.push(path.clone());
        // Not through symbolic links, which anybody may put into `/tmp` under the names of files of others.
        match open(&path, |path| fs::symlink_metadata(path)) {
            Ok((file, metadata)) => match process.check(&path, &metadata) {
                Ok(()) => return Some((path, file, metadata.len())),
                Err(problem) => problems.push(problem),
            },
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(problem) => problems.push(problem),
        }
    }
    None
}

/// Opens the regular file at `path` if it is not too large. What `look` says about it must be true of what was opened.
fn open(path: &Path, look: fn(&Path) -> std::io::Result<Metadata>) -> Result<(File, Metadata), Error> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    let before = look(path).map_err(io_error)?;
    if !before.is_file() {
        return Err(Error::NotRegular { path: path.to_owned() });
    }
    let file = File::open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    if (before.dev(), before.ino()) != (metadata.dev(), metadata.ino()) {
        return Err(Error::NotRegular { path: path.to_owned() });
    }
    if metadata.len() > MAX_SIZE {
        return Err(Error::TooLarge { path: path.to_owned(), size: metadata.len(), limit: MAX_SIZE });
    }
    Ok((file, metadata))
}

/// What is known of the process, if it is still there.
#[derive(Debug)]
struct Process {
    number_inside: u32,
    /// Users whose files are trusted.
    owners: Vec<u32>,
    started: Option<SystemTime>,
}

impl Process {
    fn read(pid: u32) -> Self {
        let owner_of = |path: String| fs::metadata(path).ok().map(|metadata| metadata.uid());
        let owners = [Some(0), owner_of("/proc/self".into()), owner_of(format!("/proc/{pid}"))];
        let status = read_start(&format!("/proc/{pid}/status"));
        let stat = read_start(&format!("/proc/{pid}/stat"));
        Process {
            number_inside: innermost_number(&status).unwrap_or(pid),
            owners: owners.into_iter().flatten().collect(),
            started: boot_time().zip(ticks_at_start(&stat)).and_then(|(boot, ticks)| {
                // Hundredths of a second on every Linux machine, whatever the kernel counts in itself.
                boot.checked_add(Duration::from_millis(ticks.checked_mul(10)?))
            }),
        }
    }

    /// Whether the file can be the map of this process.
    fn check(&self, path: &Path, metadata: &Metadata) -> Result<(), Error> {
        let refused = |why: String| Err(Error::RefusedPerfMap { path: path.to_owned(), why });
        if !self.owners.contains(&metadata.uid()) {
            return refused(format!("it belongs to user {}, not to that of the process", metadata.uid()));
        }
        let is_older = self
            .started
            .zip(metadata.modified().ok())
            .is_some_and(|(started, modified)| modified.checked_add(SLACK).is_some_and(|modified| modified < started));
        if is_older { refused("it is older than the process".to_owned()) } else { Ok(()) }
    }
}

/// The beginning of a small file of `/proc`; empty if there is none.
fn read_start(path: &str) -> String {
    let mut text = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read before an error is as good as nothing: the words looked for are missing then.
        let _ = file.take(MAX_STATUS).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The number of the process in the innermost of its containers: the last one in the line `NSpid:`.
fn innermost_number(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// When the process started, in ticks since the machine did: the 22nd word of `/proc/PID/stat`, of which the second is
/// the name of the program in parentheses and may hold anything.
fn ticks_at_start(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// When the machine started: the line `btime` of `/proc/stat`, in seconds.
fn boot_time() -> Option<SystemTime> {
    let stat = BufReader::new(File::open("/proc/stat").ok()?.take(16 << 20));
    let line = stat.lines().map_while(Result::ok).find(|line| line.starts_with("btime "))?;
    let seconds = line.strip_prefix("btime ")?.trim().parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::{Process, boot_time, innermost_number, ticks_at_start};
    use std::time::{Duration, SystemTime};

    #[test]
    fn lines_of_the_kernel() {
        assert_eq!(innermost_number("Name:\tx\nNSpid:\t4711\t12\t1\nVmPeak: 1 kB\n"), Some(1));
        assert_eq!(innermost_number("NSpid:\t4711\n"), Some(4711));
        assert_eq!(innermost_number("Name:\tx\n"), None);
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 12345 20 21";
        assert_eq!(ticks_at_start(stat), Some(12345));
        assert_eq!(ticks_at_start("7 (a"), None);
    }

    #[test]
    fn this_process_started_after_the_machine_and_before_now() {
        let process = Process::read(std::process::id());
        let started = process.started.expect("the start of this process");
        assert!(started > boot_time().expect("the start of the machine"));
        assert!(started < SystemTime::now() + Duration::from_secs(2));
    }

    #[test]
    fn files_of_others_and_files_of_the_past_are_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let metadata = file.as_file().metadata().expect("its metadata");
        let check = |process: &Process| process.check(file.path(), &metadata).map_err(|error| error.to_string());
        let mut process = Process::read(std::process::id());
        assert_eq!(check(&process), Ok(()));
        process.started = Some(SystemTime::now() + Duration::from_secs(60));
        assert!(check(&process).is_err_and(|error| error.contains("older than the process")));
        process.started = None;
        process.owners = vec![12345];
        assert!(check(&process).is_err_and(|error| error.contains("belongs to user")));
    }
}
