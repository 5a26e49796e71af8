//! What the process of a recording has left, or still has, that helps to name its functions.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mpp_profile::Profile;

use crate::args::SymbolArgs;
use crate::input::executable;

/// How far the times of a dump and of a file may be apart: file systems count in ticks of some milliseconds, and the
/// last code may be made after the last dump was begun.
const SLACK: Duration = Duration::from_secs(2);

/// The flags, and with them the process with number `pid` while it runs the program of the profile; once it has ended,
/// the perf map that it has written.
pub(crate) fn hints(pid: u32, profile: &Profile, args: &SymbolArgs) -> SymbolArgs {
    let mut args = args.clone();
    if args.sysroot.is_some() || args.proc.is_some() {
        // Of another machine, or told.
        return args;
    }
    if runs(pid, profile) {
        args.proc = Some(pid);
    } else if args.perf_map.is_none() && !Path::new(&format!("/proc/{pid}")).exists() {
        args.perf_map = perf_map(&PathBuf::from(format!("/tmp/perf-{pid}.map")), profile);
    }
    args
}

/// Whether the process runs the program of the profile, be it deleted by now.
fn runs(pid: u32, profile: &Profile) -> bool {
    let Ok(running) = fs::read_link(format!("/proc/{pid}/exe")) else { return false };
    let running = running.to_string_lossy();
    let running = running.strip_suffix(" (deleted)").unwrap_or(&running);
    executable(profile).is_some_and(|path| path == running)
}

/// The map, if it is a file of whoever asks or of root, last written while the process was being recorded. Anybody can
/// put files into `/tmp`, and numbers of processes are used again.
fn perf_map(path: &Path, profile: &Profile) -> Option<PathBuf> {
    let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let own = fs::metadata("/proc/self").ok()?.uid();
    if metadata.uid() != own && metadata.uid() != 0 {
        return None;
    }
    let nanos = |key| Some(Duration::from_nanos(profile.comment(key)?.parse().ok()?));
    let (end, length) = (nanos("time_nanos")?, nanos("duration_nanos")?);
    let written = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let is_of_then = written + SLACK >= end.saturating_sub(length) && written <= end.saturating_add(SLACK);
    is_of_then.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn profile(time: Duration, duration: Duration) -> Profile {
        let mut profile = Profile::new(mpp_profile::Format::HeapV2, 1);
        let facts = [("time_nanos", time), ("duration_nanos", duration)];
        profile.comments = facts.map(|(key, value)| (key.to_owned(), value.as_nanos().to_string())).to_vec();
        profile
    }

    #[test]
    fn maps_of_other_times_are_not_taken() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("perf-7.map");
        fs::write(&path, "1000 10 f\n")?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let minute = Duration::from_secs(60);
        assert_eq!(perf_map(&path, &profile(now, minute)).as_ref(), Some(&path));
        assert_eq!(perf_map(&path, &profile(now - minute, minute / 2)), None, "written after the end");
        assert_eq!(perf_map(&path, &profile(now + minute, minute / 2)), None, "written before the start");
        assert_eq!(perf_map(&path, &Profile::new(mpp_profile::Format::HeapV2, 1)), None, "no times");
        let link = folder.path().join("perf-8.map");
        std::os::unix::fs::symlink(&path, &link)?;
        assert_eq!(perf_map(&link, &profile(now, minute)), None, "not the file itself");
        assert_eq!(perf_map(folder.path(), &profile(now, minute)), None, "a folder");
        Ok(())
    }
}
