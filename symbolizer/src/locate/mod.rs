//! Which file on this machine is the one that was profiled, and where its debug information is.
//!
//! Paths in a profile are those that the profiled process saw. The files may have been deleted or replaced since, be in
//! a container, on another machine of which there is a copy, or in a folder sorted by build ids. All these places are
//! tried in turn. A recorded build id decides whether a file is the right one; without one, only a file that the
//! process has mapped right now is certain, and a file that is taken for its path alone is reported as not verified.
//!
//! - `root` follows symbolic links within another root folder, `process` reaches files through `/proc/PID`;
//! - `debug_file` finds separate debug files, `split_files` those that compilers write besides the program;
//! - `fetched` asks debuginfod for what is nowhere else;
//! - `remedy` knows what to do when something is missing.

mod debug_file;
mod fetched;
mod process;
mod remedy;
mod root;
mod split_files;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use self::process::Process;
use self::root::Root;
pub(crate) use self::split_files::{SplitPlaces, recorded};
use crate::elf::Elf;
use crate::file::FileData;
use crate::foreign::{self, Foreign};
use crate::object::ObjectFile as _;
use crate::{DebuginfodFile, Error, Identity, ModuleReport, Options, vdso};

/// What the kernel appends to the path of a mapped file that has no name any more.
const DELETED: &[u8] = b" (deleted)";

/// Starts of paths that the kernel makes up for memory without a file.
const NO_FILES: [&str; 5] = ["/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage", "//"];

/// Folders of files by build id, where distributions put them: Debian's has debug files only, Fedora's programs too.
const SYSTEM_DIRS: [&str; 2] = ["/usr/lib/debug", "/usr/lib"];

/// A file of the profiled process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'w> {
    /// As the process saw it.
    pub(crate) path: &'w Path,
    pub(crate) build_id: Option<&'w [u8]>,
    /// Start and end of where it was mapped.
    pub(crate) mappings: &'w [(u64, u64)],
}

/// A file of the profiled process that was found.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) file: FileData,
    /// Its path on the profiled machine.
    original: PathBuf,
    /// What that path is relative to.
    root: Root,
    identity: Identity,
}

/// Where files of the profiled machine are found on this one.
#[derive(Clone, Debug)]
pub(crate) struct Places<'o> {
    options: &'o Options,
    /// The root folder that paths without a process are meant below.
    base: Root,
    process: Option<Process>,
}

/// A place where a file may be.
struct Candidate {
    root: Root,
    /// Below the root.
    path: PathBuf,
    /// What makes the file certain, if it has no build id.
    identity: Option<Identity>,
    /// Whether it is news when nothing is there.
    is_expected: bool,
}

impl<'o> Places<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        let base = options.sysroot.as_deref().map_or(Root::HERE, Root::at);
        Places { options, base, process: options.pid.map(Process::new) }
    }

    /// Opens the file if it is the one that was profiled. What was looked at and what was wrong with it is noted in
    /// `report`; the latter only when no file was found.
    pub(crate) fn locate(&self, wanted: Wanted<'_>, report: &mut ModuleReport) -> Option<Located> {
        let candidates = self.candidates(wanted);
        let mut problems = Vec::new();
        if wanted.path == vdso::NAME {
            match self.own_vdso(wanted, report) {
                Ok(located) => return Some(located),
                Err(problem) => problems.push(problem),
            }
        } else if candidates.is_empty() {
            let (path, is_deleted) = without_mark(wanted.path);
            problems.push(if is_deleted && names_a_file(wanted.path) {
                Error::Deleted { path: path.to_owned() }
            } else {
                Error::NoFile { path: wanted.path.to_owned() }
            });
        }
        for candidate in candidates {
            match self.open(&candidate, wanted, report) {
                Ok(located) => return Some(located),
                Err(problem) if is_missing(&problem) && !candidate.is_expected => {}
                Err(problem) => problems.push(problem),
            }
        }
        match self.fetch_executable(wanted, report) {
            Ok(Some(located)) => return Some(located),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
        report.problems.extend(problems);
        None
    }

    /// The file from debuginfod, if the profile has a build id to ask for.
    fn fetch_executable(&self, wanted: Wanted<'_>, report: &mut ModuleReport) -> Result<Option<Located>, Error> {
        let Some(id) = wanted.build_id.filter(|_| names_a_file(wanted.path)) else { return Ok(None) };
        let Some(file) = self.fetch(id, &DebuginfodFile::Executable, report)? else { return Ok(None) };
        report.found_build_id = Some(id.to_vec());
        let original = without_mark(wanted.path).0.to_owned();
        Ok(Some(Located { file, original, root: self.home(), identity: Identity::BuildId }))
    }

    /// The file at a path on this machine, whatever it is.
    pub(crate) fn as_it_is(&self, path: &Path, report: &mut ModuleReport) -> Result<Located, Error> {
        report.looked_at.push(path.to_owned());
        let file = FileData::open(path, self.options)?;
        report.found_build_id = identity_of(&file, None)?;
        Ok(Located { file, original: path.to_owned(), root: Root::HERE, identity: Identity::NotVerified })
    }

    /// Where the file may be, the most certain places first.
    fn candidates(&self, wanted: Wanted<'_>) -> Vec<Candidate> {
        let (path, is_deleted) = without_mark(wanted.path);
        let mut list = Vec::new();
        let mut add = |root: &Root, path: PathBuf, identity, is_expected| {
            list.push(Candidate { root: root.clone(), path, identity, is_expected });
        };
        if names_a_file(wanted.path) {
            // What has the path of a deleted file is another one, unless its build id says that it was put back.
            let by_path = (!is_deleted || wanted.build_id.is_some()).then_some(Identity::NotVerified);
            if let Some(process) = &self.process {
                for link in process.mapped(wanted.path, wanted.mappings) {
                    add(&Root::HERE, link, Some(Identity::Mapped), false);
                }
                if by_path.is_some() {
                    add(&process.root(), path.to_owned(), by_path, false);
                }
            }
            if by_path.is_some() {
                add(&self.base, path.to_owned(), by_path, true);
            }
            if let Some(name) = path.file_name().filter(|_| wanted.build_id.is_some()) {
                for dir in &self.options.debug_dirs {
                    add(&Root::HERE, dir.join(path.strip_prefix("/").unwrap_or(path)), None, false);
                    add(&Root::HERE, dir.join(name), None, false);
                }
            }
        } else if wanted.path == vdso::NAME && wanted.build_id.is_some() {
            for file in self.base.local(Path::new("/")).map_or_else(Vec::new, |root| vdso::installed(&root)) {
                add(&Root::HERE, file, None, false);
            }
        } else if let Some(name) = foreign::windows_name(wanted.path).filter(|_| wanted.build_id.is_some()) {
            for (index, dir) in self.options.debug_dirs.iter().enumerate() {
                add(&Root::HERE, dir.join(&name), None, index == 0);
            }
        } else {
            return Vec::new();
        }
        if let Some(name) = wanted.build_id.and_then(|id| by_build_id(id, "")) {
            for (root, dir) in self.debug_dirs(&self.home()) {
                add(&root, dir.join(&name), None, false);
            }
        }
        list
    }

    fn open(&self, candidate: &Candidate, wanted: Wanted<'_>, report: &mut ModuleReport) -> Result<Located, Error> {
        let Candidate { root, path, identity, .. } = candidate;
        let local = root.local(path).ok_or_else(|| Error::NoFile { path: path.clone() })?;
        report.looked_at.push(local.clone());
        let file = FileData::open(&local, self.options)?;
        let found = identity_of(&file, wanted.build_id)?;
        if candidate.is_expected || found.as_deref() == wanted.build_id {
            report.found_build_id.clone_from(&found);
        }
        let identity = match wanted.build_id {
            Some(id) => check_build_id(&file, id).map(|()| Identity::BuildId)?,
            None => identity.unwrap_or_default(),
        };
        // Files by build id may be anywhere; the debug file is by the name on the profiled machine.
        let original = without_mark(wanted.path).0.to_owned();
        let root = if *root == Root::HERE { self.home() } else { root.clone() };
        Ok(Located { file, original, root, identity })
    }

    /// The root that the paths of the process are meant below.
    fn home(&self) -> Root {
        self.process.as_ref().map_or_else(|| self.base.clone(), Process::root)
    }

    /// The vDSO in the memory of the process, or of this one.
    fn own_vdso(&self, wanted: Wanted<'_>, report: &mut ModuleReport) -> Result<Located, Error> {
        let pids = [self.options.pid.map(Some), Some(None)].into_iter().flatten();
        let mut last = Error::NoFile { path: wanted.path.to_owned() };
        for pid in pids {
            let (path, content) = vdso::of_process(pid);
            report.looked_at.push(path.clone());
            let content = match content {
                Ok(content) => content,
                Err(source) => {
                    last = Error::Io { path, source };
                    continue;
                }
            };
            let size = content.len() as u64;
            let file = FileData::from_bytes(&path, content, self.options);
            report.found_build_id = identity_of(&file, None)?;
            let identity = match wanted.build_id {
                Some(id) => check_build_id(&file, id).map(|()| Identity::BuildId),
                None if pid.is_some() => Ok(Identity::Mapped),
                // Kernels whose vDSOs are of different sizes are different kernels.
                None if wanted.mappings.iter().any(|(start, end)| end.saturating_sub(*start) == size) => {
                    Ok(Identity::NotVerified)
                }
                None => Err(Error::OtherVdso { size }),
            };
            match identity {
                Ok(identity) => {
                    let (original, root) = (wanted.path.to_owned(), self.home());
                    return Ok(Located { file, original, root, identity });
                }
                Err(problem) => last = problem,
            }
        }
        Err(last)
    }

    /// Folders with files by build id, in the order they are searched: those of the user, then those of `root` and of
    /// the machine.
    fn debug_dirs(&self, root: &Root) -> Vec<(Root, PathBuf)> {
        let mut dirs: Vec<(Root, PathBuf)> =
            self.options.debug_dirs.iter().map(|dir| (Root::HERE, absolute(dir))).collect();
        for root in [root, &self.base] {
            for dir in SYSTEM_DIRS {
                let dir = (root.clone(), PathBuf::from(dir));
                if !dirs.contains(&dir) {
                    dirs.push(dir);
                }
            }
        }
        dirs
    }
}

impl Located {
    /// How sure it is that the file is the one that was profiled.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}

/// The path without the kernel's mark for deleted files, and whether it was there.
fn without_mark(path: &Path) -> (&Path, bool) {
    match path.as_os_str().as_bytes().strip_suffix(DELETED) {
        Some(path) => (Path::new(OsStr::from_bytes(path)), true),
        None => (path, false),
    }
}

/// Whether a path of a memory map can be that of a file with code, and is not anonymous memory or a name that the
/// kernel made up.
pub(crate) fn names_a_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    path.is_absolute() && bytes.len() > 1 && !NO_FILES.iter().any(|start| bytes.starts_with(start.as_bytes()))
}

/// `.build-id/ab/cdef…` and the suffix; `None` for a build id that is too short for that.
fn by_build_id(id: &[u8], suffix: &str) -> Option<PathBuf> {
    let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    Some(format!(".build-id/{first:02x}/{}{suffix}", hex(rest)).into())
}

/// A folder of the user's, wherever this process is.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether there is just nothing at that place, or nothing that this user may see of another's process.
pub(crate) fn is_missing(problem: &Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match problem {
        Error::Io { path, source } => match source.kind() {
            NotFound | NotADirectory => true,
            PermissionDenied => path.starts_with("/proc"),
            _ => false,
        },
        Error::NoFile { .. } => true,
        _ => false,
    }
}

/// What identifies a file of any kind, if the linker wrote that. Of a file for several processors that of the part with
/// the identity `wanted`, if there is one.
fn identity_of(file: &FileData, wanted: Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> {
    let identity = match Foreign::read(file, wanted)? {
        Some(foreign) => foreign.object().identity().map(<[u8]>::to_vec),
        None => Elf::read(file)?.identity().map(<[u8]>::to_vec),
    };
    Ok(identity)
}

/// Refuses a file with another build id, or with none.
fn check_build_id(file: &FileData, wanted: &[u8]) -> Result<(), Error> {
    let found = identity_of(file, Some(wanted))?;
    if found.as_deref() == Some(wanted) {
        return Ok(());
    }
    let found = found.map_or_else(|| "none".to_owned(), |id| hex(&id));
    Err(Error::WrongBuildId { path: file.path().to_owned(), found, wanted: hex(wanted) })
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{by_build_id, names_a_file, without_mark};
    use std::path::Path;

    #[test]
    fn paths_of_files_and_of_memory() {
        for path in ["/usr/bin/a", "/tmp/x (deleted)", "/dev/shmx"] {
            assert!(names_a_file(Path::new(path)), "{path}");
        }
        for path in ["", "/", "[heap]", "[vdso]", "//anon", "/memfd:jit (deleted)", "/dev/zero (deleted)", "a/b"] {
            assert!(!names_a_file(Path::new(path)), "{path}");
        }
        assert_eq!(without_mark(Path::new("/a b (deleted)")), (Path::new("/a b"), true));
        assert_eq!(without_mark(Path::new("/a(deleted)")), (Path::new("/a(deleted)"), false));
    }

    #[test]
    fn places_by_build_id() {
        assert_eq!(by_build_id(&[0xab, 1, 2], ".debug"), Some(".build-id/ab/0102.debug".into()));
        assert_eq!(by_build_id(&[0xab], ""), None);
    }
}
