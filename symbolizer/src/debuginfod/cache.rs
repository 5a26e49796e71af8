//! The folder where fetched files are kept: that of elfutils' client, shared with it.
//!
//! `<dir>/<build id in hex>/debuginfo`, `…/executable`, `…/source##the##path`. An empty file means that no server had
//! it when the file was made. `cache_miss_s`, `cache_clean_interval_s` and `max_unused_age_s` in `<dir>` hold settings.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use super::file::DebuginfodFile;
use super::get::Failure;

/// Longest name that a file gets, in bytes; file systems allow 255, and names of unfinished files are longer.
pub(super) const MAX_NAME: usize = 200;

/// How long it is remembered that no server has a file, unless `cache_miss_s` says otherwise: as in elfutils.
const MISS: Duration = Duration::from_secs(600);

/// How old the time of the last use may get before it is set anew: often enough for the cleaning, which counts in
/// days, also where the file system does not keep that time.
const TOUCH: Duration = Duration::from_secs(86_400);

/// What the cache knows of a file.
#[derive(Debug)]
pub(super) enum Cached {
    /// It is there, unchecked.
    File(PathBuf),
    /// A short while ago no server had it.
    KnownMissing,
    /// Nothing.
    Unknown,
}

/// The folder.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
}

impl Cache {
    pub(super) fn new(dir: &Path) -> Self {
        Cache { dir: dir.to_owned() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where a file has its place.
    pub(super) fn path(&self, id: &str, file: &DebuginfodFile) -> PathBuf {
        self.dir.join(id).join(OsStr::from_bytes(&file.cache_name()))
    }

    pub(super) fn look_up(&self, id: &str, file: &DebuginfodFile) -> Cached {
        let path = self.path(id, file);
        match fs::metadata(&path) {
            Ok(data) if data.is_file() && data.len() > 0 => Cached::File(path),
            Ok(data) if data.is_file() => {
                let age = data.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
                let is_fresh = age.is_some_and(|age| age < self.setting("cache_miss_s").unwrap_or(MISS));
                if is_fresh { Cached::KnownMissing } else { Cached::Unknown }
            }
            _ => Cached::Unknown,
        }
    }

    /// A number of seconds in one of the files with settings.
    pub(super) fn setting(&self, name: &str) -> Option<Duration> {
        let path = self.dir.join(name);
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        File::open(&path).ok()?.take(64).read_to_string(&mut text).ok()?;
        text.trim().parse().ok().map(Duration::from_secs)
    }

    /// Notes that a file was used now.
    pub(super) fn touch(&self, path: &Path) {
        let now = SystemTime::now();
        let last = fs::metadata(path).and_then(|data| data.accessed());
        if last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age > TOUCH)) {
            // It may be somebody else's cache, only lent for reading.
            let _ = File::open(path).and_then(|file| file.set_times(FileTimes::new().set_accessed(now)));
        }
    }

    /// Lets `fill` write a file, which gets its final name when that succeeds, and is gone when it fails. Other
    /// processes may do the same at the same time: the last one's file stays.
    pub(super) fn store(
        &self,
        id: &str,
        file: &DebuginfodFile,
        fill: impl FnOnce(&mut File, &Path) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        /// Names of unfinished files differ within this process by this number.
        static NEXT: AtomicU64 = AtomicU64::new(0);

        let path = self.path(id, file);
        let mut name = file.cache_name();
        name.extend(format!(".mpp-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)).into_bytes());
        let unfinished = self.dir.join(id).join(OsStr::from_bytes(&name));
        let create = || {
            self.make_dir(id)?;
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&unfinished)
        };
        let mut target = create().map_err(|error| cannot_store(&unfinished, &error))?;
        let result = fill(&mut target, &unfinished).and_then(|()| {
            let finish = || {
                target.set_permissions(Permissions::from_mode(0o400))?;
                fs::rename(&unfinished, &path)
            };
            finish().map_err(|error| cannot_store(&path, &error))
        });
        if result.is_err() {
            let _ = fs::remove_file(&unfinished);
            // Only if it is empty.
            let _ = fs::remove_dir(self.dir.join(id));
        }
        result.map(|()| path)
    }

    /// Notes that no server has a file.
    pub(super) fn remember_missing(&self, id: &str, file: &DebuginfodFile) {
        let path = self.path(id, file);
        if fs::symlink_metadata(&path).is_ok_and(|data| data.is_file() && data.len() == 0) {
            let _ = fs::remove_file(&path);
        }
        // `create_new`: what another process has found meanwhile stays. Without this note the servers are asked again.
        let create = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let _ = self.make_dir(id).and_then(|()| create());
    }

    fn make_dir(&self, id: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.dir.join(id))
    }
}

fn cannot_store(path: &Path, error: &io::Error) -> Failure {
    Failure::CannotStore(format!("cannot write {path:?}: {error}; DEBUGINFOD_CACHE_PATH names another folder"))
}

#[cfg(test)]
mod tests {
    use super::{Cache, Cached};
    use crate::debuginfod::DebuginfodFile::{Debuginfo, Executable};
    use crate::debuginfod::get::Failure;
    use std::fs::{self, File, FileTimes};
    use std::io::Write as _;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(&folder.path().join("deep/below"));
        (folder, cache)
    }

    /// Writes a whole file.
    fn writing(text: &str) -> impl FnOnce(&mut File, &Path) -> Result<(), Failure> {
        move |file, _| {
            file.write_all(text.as_bytes()).expect("written");
            Ok(())
        }
    }

    fn set_age(cache: &Cache, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        let file = File::open(cache.path("ab", &Debuginfo)).expect("opened");
        file.set_times(FileTimes::new().set_modified(time).set_accessed(time)).expect("times");
    }

    #[test]
    fn stored_files_are_whole_or_not_there() {
        let (_folder, cache) = cache();
        let half = cache.store("ab", &Debuginfo, |file, _| {
            file.write_all(b"half").expect("written");
            Err(Failure::NotThere)
        });
        assert!(matches!(half, Err(Failure::NotThere)));
        assert!(!cache.dir().join("ab").exists());
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::Unknown));
        let path = cache.store("ab", &Debuginfo, writing("whole")).expect("stored");
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::File(found) if found == path));
        assert_eq!(fs::read_dir(cache.dir().join("ab")).expect("the folder").count(), 1);
        assert!(matches!(cache.look_up("ab", &Executable), Cached::Unknown));
    }

    #[test]
    fn missing_files_are_remembered_for_a_while() {
        let (_folder, cache) = cache();
        cache.remember_missing("ab", &Debuginfo);
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::KnownMissing));
        set_age(&cache, 599);
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::KnownMissing));
        set_age(&cache, 601);
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::Unknown));
        cache.remember_missing("ab", &Debuginfo);
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::KnownMissing));
        fs::write(cache.dir().join("cache_miss_s"), "0\n").expect("written");
        assert!(matches!(cache.look_up("ab", &Debuginfo), Cached::Unknown));
        // What was found stays.
        let path = cache.store("ab", &Debuginfo, writing("found")).expect("stored");
        cache.remember_missing("ab", &Debuginfo);
        assert_eq!(fs::read(path).expect("read"), b"found");
    }

    #[test]
    fn a_use_is_noted() {
        let (_folder, cache) = cache();
        let path = cache.store("ab", &Debuginfo, writing("x")).expect("stored");
        set_age(&cache, 100 * 86_400);
        cache.touch(&path);
        let used = fs::metadata(&path).and_then(|data| data.accessed()).expect("the time");
        assert!(SystemTime::now().duration_since(used).is_ok_and(|age| age < Duration::from_secs(3600)));
    }
}
