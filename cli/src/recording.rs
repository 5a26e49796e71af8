//! A recording folder: `recording.json`, and a folder `<pid>` for every process that wrote a profile: `heap.prof` and the same as
//! `heap.pb.gz`, and the dumps that something has triggered meanwhile, `heap.NNNN.pb.gz` and `peak.NNNN.pb.gz`; or `dhat.json` if
//! every block was recorded.
//!
//! The folder is made before the target starts, under its final name, because the target has to know where to write.
//! Folders are for the user only (0700), and files too (0600): a profile tells paths and function names.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

/// The name of the index file, by which a folder is known as a recording.
pub(crate) const INDEX: &str = "recording.json";
/// The name of a profile in the folder of its process, as text.
pub(crate) const DUMP: &str = "heap.prof";
/// The name of a timeline there.
pub(crate) const TIMELINE: &str = "timeline.bin";
/// The name of a heap snapshot.
pub(crate) const SNAPSHOT: &str = "heap.snapshot";
/// The same as `profile.proto`, which tells more: threads, the peak, what was freed at once. Shown before the text.
const PACKED: &str = "heap.pb.gz";
/// The name of one in which every block was recorded. Where there are others, this one is shown.
pub(crate) const EXACT_DUMP: &str = "dhat.json";
/// What `schema` says in the index.
pub(crate) const SCHEMA: &str = "mpp-recording";
/// The version of the index format: raised when a reader of the old one would misread the new one.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The content of `recording.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Index {
    /// Always [`SCHEMA`].
    pub(crate) schema: String,
    /// [`SCHEMA_VERSION`] of the writer.
    pub(crate) schema_version: u32,
    /// The version of mpp that recorded.
    pub(crate) mpp_version: String,
    /// The command line of the target. Bytes that are not UTF-8 are replaced.
    pub(crate) command: Vec<String>,
    /// The names of the environment variables that mpp set for the target; their values may be secret.
    pub(crate) environment: Vec<String>,
    /// The folder the target was started in.
    pub(crate) cwd: String,
    /// When the target was started: RFC 3339, UTC.
    pub(crate) started: String,
    /// When it ended; missing while it runs, or if mpp was killed.
    pub(crate) ended: Option<String>,
    /// Mean bytes between two samples; 1 if every block was recorded.
    pub(crate) sample_rate: u64,
    /// Which processes were recorded: `none`, `exec` or `all`.
    pub(crate) follow: String,
    /// The process that mpp started.
    pub(crate) pid: Option<u32>,
    /// Its exit status, if it exited.
    pub(crate) exit_status: Option<u8>,
    /// The signal that ended it, if one did.
    pub(crate) exit_signal: Option<i32>,
    /// The processes that wrote a profile, by process id.
    pub(crate) processes: Vec<Process>,
}

/// One process that wrote a profile.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Process {
    /// Its process id, as it saw it itself.
    pub(crate) pid: u32,
    /// Its parent, if the profile tells it.
    pub(crate) ppid: Option<u32>,
    /// Its executable, if the profile tells it.
    pub(crate) exe: Option<String>,
    /// Its profile, relative to the folder.
    pub(crate) dump: String,
    /// Estimated live bytes in the profile; missing if it could not be read.
    pub(crate) live_bytes: Option<u64>,
    /// Dumps that something has triggered, relative to the folder, in the order of their numbers.
    #[serde(default)]
    pub(crate) numbered: Vec<String>,
}

/// A recording folder on disk.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    /// The folder as the user named it; absolute if `mpp run` made it.
    pub(crate) folder: PathBuf,
    /// Whether `create` made the folder, so that it may be removed again.
    made_here: bool,
}

impl Recording {
    /// Makes the folder and those above it. An empty folder that exists already is taken.
    ///
    /// # Errors
    /// If it cannot be made, or exists and holds anything.
    pub(crate) fn create(folder: &Path) -> anyhow::Result<Recording> {
        let folder = std::path::absolute(folder)?;
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
        }
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => Ok(Recording { folder, made_here: true }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_empty = fs::read_dir(&folder).map(|mut entries| entries.next().is_none());
                if !is_empty.with_context(|| format!("cannot use {} as recording folder", folder.display()))? {
                    bail!("{} is not empty; name another folder with -o", folder.display());
                }
                Ok(Recording { folder, made_here: false })
            }
            Err(error) => {
                Err(error).with_context(|| format!("cannot make the recording folder {} (see -o)", folder.display()))
            }
        }
    }

    /// A recording that is there already, with or without an index; `None` if `folder` is no recording.
    pub(crate) fn open(folder: &Path) -> Option<Recording> {
        let recording = Recording { folder: folder.to_owned(), made_here: false };
        (folder.join(INDEX).is_file() || !recording.dumps().is_empty()).then_some(recording)
    }

    /// The recording below `folder` that was written last, at most two levels down. Hidden folders are left out.
    pub(crate) fn newest_below(folder: &Path) -> Option<Recording> {
        let mut newest: Option<(SystemTime, PathBuf)> = None;
        let mut pending = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = pending.pop() {
            if let Ok(modified) = fs::metadata(folder.join(INDEX)).and_then(|index| index.modified()) {
                // The name decides between two of the same time, so that the answer does not depend on the file system.
                newest = newest.max(Some((modified, folder)));
            } else if depth < 2 {
                pending.extend(visible_folders(&folder).into_iter().map(|inner| (inner, depth + 1)));
            }
        }
        newest.map(|(_, folder)| Recording { folder, made_here: false })
    }

    /// The index, if it can be read.
    ///
    /// # Errors
    /// If it is missing, is not an index, or is of a version that this mpp does not know.
    pub(crate) fn index(&self) -> anyhow::Result<Index> {
        /// An index is small: a command line and a hundred bytes for each process.
        const MAX_BYTES: u64 = 64 << 20;
        let path = self.folder.join(INDEX);
        let context = || path.display().to_string();
        let size = fs::metadata(&path).with_context(context)?.len();
        if size > MAX_BYTES {
            bail!("{}: has {size} bytes, more than an index can have", path.display());
        }
        let index: Index = serde_json::from_slice(&fs::read(&path).with_context(context)?).with_context(context)?;
        if index.schema != SCHEMA || index.schema_version > SCHEMA_VERSION {
            let found = (&index.schema, index.schema_version);
            bail!("{}: is {found:?}, expected up to {:?}", path.display(), (SCHEMA, SCHEMA_VERSION));
        }
        Ok(index)
    }

    /// Writes the index under a temporary name and renames it, so that a reader never sees half of it.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub(crate) fn write_index(&self, index: &Index) -> anyhow::Result<()> {
        let path = self.folder.join(INDEX);
        let temporary = self.folder.join("recording.json.tmp");
        let write = || -> anyhow::Result<()> {
            let mut text = serde_json::to_string_pretty(index)?;
            text.push('\n');
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            Ok(fs::rename(&temporary, &path)?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// The profiles that are there: process id and path, by process id. Read from the folder itself, because processes
    /// that outlive `mpp run` add theirs later, and because paths in an index are not to be trusted.
    pub(crate) fn dumps(&self) -> Vec<(u32, PathBuf)> {
        let mut dumps: Vec<_> =
            self.process_folders().into_iter().filter_map(|(pid, folder)| Some((pid, profile_in(&folder)?))).collect();
        dumps.sort_unstable();
        dumps
    }

    /// The other dumps of a process whose profile to show is `shown`: the same in another form, and what something has triggered.
    pub(crate) fn other_dumps(&self, pid: u32, shown: &Path) -> Vec<PathBuf> {
        let folder = self.folder.join(pid.to_string());
        let last = [EXACT_DUMP, PACKED, DUMP].into_iter().map(|name| folder.join(name)).filter(|path| path.is_file());
        last.chain(numbered_in(&folder)).filter(|path| path != shown).collect()
    }

    /// The same of timelines.
    pub(crate) fn timelines(&self) -> Vec<(u32, PathBuf)> {
        self.files(TIMELINE)
    }

    /// The same of heap snapshots.
    pub(crate) fn snapshots(&self) -> Vec<(u32, PathBuf)> {
        self.files(SNAPSHOT)
    }

    fn files(&self, name: &str) -> Vec<(u32, PathBuf)> {
        let folders = self.process_folders().into_iter();
        let mut files: Vec<_> = folders.map(|(pid, folder)| (pid, folder.join(name))).collect();
        files.retain(|(_, file)| file.is_file());
        files.sort_unstable();
        files
    }

    /// Takes away a recording in which nothing was captured. Anything unknown in it is left alone.
    pub(crate) fn remove(self) {
        for (_, folder) in self.process_folders() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                // An empty profile, or what is left of one that was never finished.
                let name = entry.file_name();
                let is_ours = is_dump(&name) || name == TIMELINE || entry.path().extension() == Some(OsStr::new("tmp"));
                if is_ours {
                    let _ = fs::remove_file(entry.path());
                }
            }
            let _ = fs::remove_dir(&folder);
        }
        let _ = fs::remove_file(self.folder.join(INDEX));
        if self.made_here {
            let _ = fs::remove_dir(&self.folder);
        }
    }

    fn process_folders(&self) -> Vec<(u32, PathBuf)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let pid = name.to_str()?.parse::<u32>().ok().filter(|pid| Some(&*pid.to_string()) == name.to_str())?;
                entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| (pid, entry.path()))
            })
            .collect()
    }
}

/// The profile to show of a process: that of its end, or its last snapshot; if there is none, the last dump that something has triggered.
fn profile_in(folder: &Path) -> Option<PathBuf> {
    let last = [EXACT_DUMP, PACKED, DUMP].into_iter().map(|name| folder.join(name)).find(|path| path.is_file());
    last.or_else(|| numbered_in(folder).pop())
}

/// The dumps that something has triggered: those of peaks, then the others, each in the order of their numbers.
pub(crate) fn numbered_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut numbered: Vec<_> = entries.filter_map(|path| Some((number_of(path.file_name()?)?, path))).collect();
    numbered.sort_unstable();
    numbered.into_iter().map(|(_, path)| path).collect()
}

/// Whether the file of this path is a dump that something has triggered.
pub(crate) fn is_numbered(path: &str) -> bool {
    Path::new(path).file_name().is_some_and(|name| number_of(name).is_some())
}

/// Whether it is one of `heap`, and its number.
fn number_of(name: &OsStr) -> Option<(bool, u64)> {
    let stem = name.to_str()?.strip_suffix(".pb.gz")?;
    let (kind, number) = stem.split_once('.')?;
    let number = number.parse().ok().filter(|_| number.len() >= 4)?;
    ["peak", "heap"].contains(&kind).then_some((kind == "heap", number))
}

fn is_dump(name: &OsStr) -> bool {
    name == DUMP || name == PACKED || name == EXACT_DUMP || number_of(name).is_some()
}

/// The folder of a recording that starts now: `mpp-<name>-<pid>-<time>`. The process id is that of this `mpp`, since
/// that of the target is not known before it starts, and by then it must know the folder.
pub(crate) fn default_folder(program: &Path, time: crate::clock::Timestamp) -> PathBuf {
    const LONGEST_NAME: usize = 64;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let plain = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '+' | '-' => character,
        _ => '_',
    };
    let name: String = name.chars().take(LONGEST_NAME).map(plain).collect();
    PathBuf::from(format!("mpp-{name}-{}-{}", std::process::id(), time.compact()))
}

fn visible_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        Index {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            mpp_version: "0.1.0".to_owned(),
            command: vec!["app".to_owned()],
            environment: vec!["LD_PRELOAD".to_owned()],
            cwd: "/".to_owned(),
            started: "2026-11-30T10:14:33.120Z".to_owned(),
            ended: None,
            sample_rate: 524_288,
            follow: "exec".to_owned(),
            pid: Some(7),
            exit_status: None,
            exit_signal: None,
            processes: Vec::new(),
        }
    }

    #[test]
    fn index_survives_the_disk() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        let recording = Recording::create(&parent.path().join("deep/recording"))?;
        recording.write_index(&index())?;
        assert_eq!(recording.index()?, index());
        assert_eq!(Recording::open(&recording.folder).map(|found| found.folder), Some(recording.folder));
        Ok(())
    }

    #[test]
    fn index_of_the_future_is_refused() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        let recording = Recording::create(&parent.path().join("recording"))?;
        recording.write_index(&Index { schema_version: 2, ..index() })?;
        assert!(recording.index().is_err_and(|error| error.to_string().contains("expected up to")));
        Ok(())
    }

    #[test]
    fn full_folder_is_not_taken() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        assert!(Recording::create(folder.path()).is_ok(), "an empty one is");
        fs::write(folder.path().join("precious"), "")?;
        assert!(Recording::create(folder.path()).is_err());
        Ok(())
    }

    #[test]
    fn removal_leaves_what_is_not_ours() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        let recording = Recording::create(&parent.path().join("recording"))?;
        recording.write_index(&index())?;
        fs::create_dir_all(recording.folder.join("12"))?;
        fs::write(recording.folder.join("12/heap.prof.tmp"), "half")?;
        let folder = recording.folder.clone();
        recording.remove();
        assert!(!folder.exists());

        let recording = Recording::create(&folder)?;
        fs::write(folder.join("precious"), "")?;
        recording.remove();
        assert!(folder.join("precious").exists());
        Ok(())
    }

    #[test]
    fn the_profile_of_a_process() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let name = |folder: &Path| Some(profile_in(folder)?.file_name()?.to_string_lossy().into_owned());
        assert_eq!(name(folder.path()), None);
        let expected = [
            ("odd.pb.gz", None),
            ("peak.0002.pb.gz", Some("peak.0002.pb.gz")),
            ("heap.0009.pb.gz", Some("heap.0009.pb.gz")),
            ("heap.10000.pb.gz", Some("heap.10000.pb.gz")),
            ("heap.prof", Some("heap.prof")),
            ("heap.pb.gz", Some("heap.pb.gz")),
        ];
        for (file, shown) in expected {
            fs::write(folder.path().join(file), "")?;
            assert_eq!(name(folder.path()).as_deref(), shown);
        }
        assert_eq!(numbered_in(folder.path()).len(), 3);
        Ok(())
    }

    #[test]
    fn names_are_plain() {
        let name = default_folder(Path::new("/x/my app;\u{1b}"), crate::clock::Timestamp::now());
        let name = name.to_string_lossy().into_owned();
        assert!(name.starts_with(&format!("mpp-my_app__-{}-2", std::process::id())), "{name}");
    }
}
