//! Cleaning of the cache: once a day, what nobody used for a week goes. Both times can be set, as in elfutils.

use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::cache::Cache;

/// Time between cleanings, unless `cache_clean_interval_s` says otherwise.
const INTERVAL: Duration = Duration::from_secs(86_400);

/// How long unused files stay, unless `max_unused_age_s` says otherwise.
const UNUSED: Duration = Duration::from_secs(604_800);

/// Most entries of a folder that are looked at in one cleaning; the next one may see others.
const MAX_ENTRIES: usize = 100_000;

impl Cache {
    /// Removes old files if it is time for that. Only files that have names like those of a cache are touched, and
    /// errors change nothing: somebody else may be cleaning, too.
    pub(super) fn clean(&self) {
        if !self.dir().is_dir() {
            return;
        }
        // When this file was changed last is when the cache was cleaned last.
        let mark = self.dir().join("cache_clean_interval_s");
        let Ok(last) = fs::metadata(&mark).and_then(|data| data.modified()) else {
            let _ = fs::write(&mark, INTERVAL.as_secs().to_string());
            return;
        };
        let interval = self.setting("cache_clean_interval_s").unwrap_or(INTERVAL);
        if age(last) < interval || File::open(&mark).and_then(|file| file.set_modified(SystemTime::now())).is_err() {
            return;
        }
        let max_age = self.setting("max_unused_age_s").unwrap_or(UNUSED);
        let Ok(entries) = fs::read_dir(self.dir()) else { return };
        for entry in entries.take(MAX_ENTRIES).flatten() {
            let is_id = entry.file_name().as_bytes().iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            // Not through symbolic links.
            if is_id && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                clean_folder(&entry.path(), max_age);
            }
        }
    }
}

/// Removes the old files of one build id, and the folder if none is left.
fn clean_folder(dir: &Path, max_age: Duration) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let name = entry.file_name();
        let is_ours =
            ["debuginfo", "executable", "source"].iter().any(|kind| name.as_bytes().starts_with(kind.as_bytes()));
        let is_old = |data: &Metadata| last_used(data).is_some_and(|time| age(time) > max_age);
        if is_ours && entry.metadata().is_ok_and(|data| data.is_file() && is_old(&data)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(dir);
}

fn last_used(data: &Metadata) -> Option<SystemTime> {
    Some(data.accessed().ok()?.max(data.modified().ok()?))
}

/// Zero for times to come.
fn age(time: SystemTime) -> Duration {
    SystemTime::now().duration_since(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Cache, INTERVAL, UNUSED};
    use std::fs::{self, File, FileTimes};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    fn set_age(path: &Path, age: Duration) {
        let time = SystemTime::now() - age;
        let times = FileTimes::new().set_modified(time).set_accessed(time);
        File::open(path).and_then(|file| file.set_times(times)).expect("times can be set");
    }

    #[test]
    fn old_files_go_when_it_is_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (old, new) = (UNUSED + Duration::from_secs(60), UNUSED - Duration::from_secs(60));
        let gone = ["aa/debuginfo", "bb/source##x.c", "bb/executable.mpp-1-2"];
        let kept = ["aa/note", "bb/debuginfo", "xx/debuginfo", "debuginfo"];
        for name in ["aa", "bb", "cc", "xx"] {
            fs::create_dir(path(name)).expect("a folder");
        }
        for name in gone.iter().chain(&kept) {
            fs::write(path(name), "x").expect("written");
            set_age(&path(name), if *name == "bb/debuginfo" { new } else { old });
        }
        let cache = Cache::new(folder.path());
        let is_there = |name: &&str| path(name).exists();
        // The first time only starts the clock; then nothing is done until it is time.
        cache.clean();
        cache.clean();
        assert!(gone.iter().all(is_there));
        set_age(&path("cache_clean_interval_s"), INTERVAL + Duration::from_secs(60));
        cache.clean();
        assert!(!gone.iter().any(is_there), "{gone:?}");
        assert!(kept.iter().all(is_there), "{kept:?}");
        assert!(!path("cc").exists());
        // Not again at once.
        fs::create_dir(path("cc")).expect("a folder");
        cache.clean();
        assert!(path("cc").exists());
    }

    #[test]
    fn the_ages_can_be_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("aa")).expect("a folder");
        for (name, text) in [("cache_clean_interval_s", "0"), ("max_unused_age_s", "100"), ("aa/debuginfo", "x")] {
            fs::write(path(name), text).expect("written");
        }
        let cache = Cache::new(folder.path());
        set_age(&path("aa/debuginfo"), Duration::from_secs(50));
        cache.clean();
        assert!(path("aa/debuginfo").exists());
        set_age(&path("aa/debuginfo"), Duration::from_secs(150));
        cache.clean();
        assert!(!path("aa").exists());
        Cache::new(Path::new("/nowhere/at/all")).clean();
    }
}
