//! Answers that were found before, on disk: one file for each build id.
//!
//! What goes in was found in debug information, completely and without problems, in a file whose build id is known. A
//! poorer answer (from a symbol table) is not kept: it is quickly found again, and debug information that is installed
//! meanwhile must win. What comes out is used
//!
//! - if the file is here: when it is unchanged since, by its size and time. Build ids that somebody chose by hand can stay
//!   the same while the file changes, and then a cache would give names of yesterday's functions.
//! - if it is not here, or another file has taken its place: by its build id alone.
//!
//! A damaged file, or one of another version, is as good as none, and is replaced. Several processes can use the folder at
//! once: files are written under a name of their own and renamed, so that the last of two writers wins.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use super::{StoredSymbols, form};
use crate::locate::hex;

/// Shortest build id that is taken for unique, in bytes: that of the fast kind of linkers.
const LEAST_BUILD_ID: usize = 8;

/// Longest one that makes a file name.
const MOST_BUILD_ID: usize = 64;

/// Most bytes of the whole cache. It holds answers, not symbol tables: this is some ten thousand programs.
pub(crate) const MAX_TOTAL: u64 = 256 << 20;

/// How old the note may be that a file was used, before it is renewed. It decides what is thrown away first.
const USED_EVERY: Duration = Duration::from_secs(24 * 3600);

/// When a temporary file is taken for one whose writer has died.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

const EXTENSION: &str = "sym";
const TEMPORARY: &str = "tmp";

/// The folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cache<'o> {
    folder: &'o Path,
}

impl<'o> Cache<'o> {
    pub(crate) fn new(folder: &'o Path) -> Self {
        Cache { folder }
    }

    /// What is known of the file with this build id.
    pub(crate) fn load(&self, build_id: &[u8]) -> Option<StoredSymbols> {
        let path = self.file_of(build_id)?;
        let file = self.open(&path)?;
        let mut bytes = Vec::new();
        (&file).take(form::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
        let stored = StoredSymbols::from_bytes(&path, &bytes).ok()?;
        let is_ours = stored.writer == form::WRITER && stored.build_id() == Some(build_id) && stored.state.is_some();
        if is_ours {
            note_use(&file);
        }
        is_ours.then_some(stored)
    }

    /// Keeps answers, together with what is there already about the same file. Whether that works is nobody's problem.
    pub(crate) fn save(&self, stored: &StoredSymbols) -> Option<()> {
        let path = self.file_of(stored.build_id()?)?;
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder).ok()?;
        self.owner()?;
        let bytes = match self.load(stored.build_id()?).filter(|known| known.state == stored.state) {
            Some(known) => stored.with(&known).to_bytes().or_else(|_| stored.to_bytes()).ok()?,
            None => stored.to_bytes().ok()?,
        };
        write(&path, &bytes).ok()
    }

    /// Throws away what was not used for longest, if there is too much, and what dead writers have left.
    pub(crate) fn trim(&self, most: u64) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let (Ok(used), true) = (metadata.modified(), metadata.is_file()) else { continue };
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(EXTENSION) => files.push((used, metadata.len(), path)),
                Some(TEMPORARY) if used.elapsed().is_ok_and(|age| age > ABANDONED_AFTER) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        if total <= most {
            return;
        }
        files.sort_unstable();
        for (_, size, path) in files {
            // Somewhat more than needed, so that not every batch has to.
            if total <= most / 4 * 3 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }

    fn file_of(&self, build_id: &[u8]) -> Option<PathBuf> {
        let is_unique = (LEAST_BUILD_ID..=MOST_BUILD_ID).contains(&build_id.len());
        is_unique.then(|| self.folder.join(format!("{}.{EXTENSION}", hex(build_id))))
    }

    /// Opens a file that nobody but the owner of the folder can have written.
    fn open(&self, path: &Path) -> Option<File> {
        let owner = self.owner()?;
        let is_ours =
            |metadata: &fs::Metadata| metadata.is_file() && metadata.uid() == owner && metadata.mode() & 0o022 == 0;
        // Looked at before it is opened as well: opening a pipe would wait for somebody to write into it.
        if !is_ours(&fs::symlink_metadata(path).ok()?) {
            return None;
        }
        let file = File::open(path).ok()?;
        is_ours(&file.metadata().ok()?).then_some(file)
    }

    /// The owner of the folder, if others cannot write it.
    fn owner(&self) -> Option<u32> {
        let metadata = fs::metadata(self.folder).ok()?;
        (metadata.is_dir() && metadata.mode() & 0o022 == 0).then(|| metadata.uid())
    }
}

/// The time of a file is that of its last use.
fn note_use(file: &File) {
    let used = file.metadata().and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > USED_EVERY)) {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let temporary = path.with_extension(format!("{}-{number}.{TEMPORARY}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::{FileState, StoredAnswer};
    use super::*;
    use crate::{Frame, Name, SymbolSource};

    const ID: [u8; 20] = [0xab; 20];

    fn stored(build_id: &[u8], offsets: &[u64], name: &str) -> StoredSymbols {
        let frame = Frame { function: Some(Name::from_raw(name.as_bytes())), ..Frame::default() };
        let answer = |&offset| StoredAnswer { offset, file_address: offset, frames: vec![frame.clone()] };
        let source = SymbolSource::Dwarf { file: "/a".into() };
        let mut stored = StoredSymbols::new("/a".into(), Some(build_id.to_vec()), source, offsets.iter().map(answer));
        stored.state = Some(FileState { size: 1, modified: 2 });
        stored
    }

    fn offsets(stored: &StoredSymbols) -> Vec<u64> {
        stored.answers().map(|answer| answer.offset).collect()
    }

    #[test]
    fn answers_add_up_while_the_file_is_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("mpp/symbols");
        let cache = Cache::new(&inner);
        assert!(cache.load(&ID).is_none(), "nothing is there yet");
        cache.save(&stored(&ID, &[1, 2], "old")).expect("the folder can be made");
        cache.save(&stored(&ID, &[2, 3], "new")).expect("it can be replaced");
        let known = cache.load(&ID).expect("it is there");
        assert_eq!(offsets(&known), [1, 2, 3]);
        assert_eq!(
            &*known.answers().nth(1).expect("it is known").frames[0].function.as_ref().expect("a name").raw,
            "new"
        );

        let mut changed = stored(&ID, &[9], "other");
        changed.state = Some(FileState { size: 1, modified: 3 });
        cache.save(&changed).expect("it can be replaced");
        assert_eq!(offsets(&cache.load(&ID).expect("it is there")), [9]);
        let mode = |path: &Path| fs::metadata(path).expect("it exists").mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&cache.file_of(&ID).expect("a path")), 0o600);
        assert_eq!(fs::read_dir(&inner).expect("the folder").count(), 1, "no temporary file stays");
    }

    #[test]
    fn what_is_damaged_foreign_or_unsafe_counts_as_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
        let cache = Cache::new(folder.path());
        assert!(cache.save(&stored(&[1; 7], &[1], "a")).is_none(), "a short id is not unique");
        cache.save(&stored(&ID, &[1], "a")).expect("it can be written");
        let path = cache.file_of(&ID).expect("a path");
        let good = fs::read(&path).expect("it is there");

        let other = cache.file_of(&[1; 20]).expect("a path");
        fs::copy(&path, &other).expect("a copy");
        assert!(cache.load(&[1; 20]).is_none(), "it is about another file");

        let mut later = stored(&ID, &[1], "a");
        later.writer = "mpp-symbolizer 99.0.0/1".to_owned();
        fs::write(&path, later.to_bytes().expect("it is small")).expect("it can be written");
        assert!(cache.load(&ID).is_none(), "another version may have known less");

        fs::write(&path, &good[..good.len() - 1]).expect("it can be written");
        assert!(cache.load(&ID).is_none(), "it is cut off");
        cache.save(&stored(&ID, &[1], "a")).expect("it is replaced");
        assert!(cache.load(&ID).is_some());

        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("it is ours");
        assert!(cache.load(&ID).is_none(), "others can write it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(cache.load(&ID).is_none(), "others can replace it");
        assert!(cache.save(&stored(&ID, &[1], "a")).is_none());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");

        fs::remove_file(&path).expect("it is ours");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
        assert!(cache.load(&ID).is_none(), "a pipe is not waited for");
        fs::remove_file(&path).expect("it is ours");
        std::os::unix::fs::symlink(&other, &path).expect("a link");
        assert!(cache.load(&ID).is_none(), "links are not followed");
    }

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path());
        let now = SystemTime::now();
        for number in 0..8u8 {
            cache.save(&stored(&[number; 20], &[1], "a")).expect("it can be written");
            let file = File::open(cache.file_of(&[number; 20]).expect("a path")).expect("it is there");
            file.set_modified(now - Duration::from_secs(1_000_000 - 1000 * u64::from(number))).expect("it is ours");
        }
        let size = fs::metadata(cache.file_of(&ID.map(|_| 0)).expect("a path")).expect("it is there").len();
        let (fresh, old) = (folder.path().join("a.1-0.tmp"), folder.path().join("b.1-0.tmp"));
        fs::write(&fresh, "half").expect("it can be written");
        fs::write(&old, "half").expect("it can be written");
        File::open(&old).and_then(|file| file.set_modified(now - Duration::from_secs(7200))).expect("it is ours");
        fs::write(folder.path().join("precious"), "not ours").expect("it can be written");

        assert!(cache.load(&[0; 20]).is_some(), "this is a use");
        cache.trim(8 * size);
        assert_eq!((0..8).filter(|&n| cache.load(&[n; 20]).is_some()).count(), 8, "all of it may stay");
        assert!(fresh.exists() && !old.exists());

        for number in 1..8u8 {
            let file = File::open(cache.file_of(&[number; 20]).expect("a path")).expect("it is there");
            file.set_modified(now - Duration::from_secs(1_000_000 - 1000 * u64::from(number))).expect("it is ours");
        }
        cache.trim(4 * size);
        let left: Vec<u8> = (0..8).filter(|&n| cache.file_of(&[n; 20]).expect("a path").exists()).collect();
        assert_eq!(left, [0, 6, 7]);
        assert!(folder.path().join("precious").exists());
    }

    #[test]
    fn several_writers_at_once_leave_a_whole_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path());
        std::thread::scope(|scope| {
            for number in 0..4u64 {
                scope.spawn(move || {
                    for round in 0..50 {
                        cache.save(&stored(&ID, &[number * 100 + round], "a")).expect("it can be written");
                        assert!(cache.load(&ID).is_some(), "there is always a whole one");
                    }
                });
            }
        });
        // How many answers are in it depends on who overtook whom: a writer that was overtaken takes back what came between.
        assert!(!cache.load(&ID).expect("it is there").is_empty());
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }
}
