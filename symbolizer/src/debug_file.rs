//! Where the debug information of a stripped file is kept.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::elf::Elf;
use crate::file::{FileData, crc32_of};
use crate::object::ObjectFile as _;
use crate::{Error, Options};

/// Where files of the profiled machine are found on this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'o> {
    options: &'o Options,
}

impl<'o> Places<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Places { options }
    }

    /// The place of `path` here: below the sysroot, if there is one. `None` for what is not an absolute path or leads
    /// out of the sysroot.
    pub(crate) fn local(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_absolute() {
            return None;
        }
        let Some(root) = &self.options.sysroot else { return Some(path.to_owned()) };
        let mut local = root.clone();
        for component in path.components() {
            match component {
                Component::Normal(name) => local.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return None,
            }
        }
        Some(local)
    }

    /// Folders laid out like `/usr/lib/debug`, in the order they are searched.
    fn debug_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let system = self.local(Path::new("/usr/lib/debug"));
        self.options.debug_dirs.iter().cloned().chain(system)
    }

    /// The separate debug file of `elf`, which was opened at `path` here and is `original` on the profiled machine:
    /// by build id, else by `.gnu_debuglink`. Files that are there but do not fit are added to `problems`.
    pub(crate) fn find_debug_file(
        &self,
        elf: &Elf<'_>,
        original: &Path,
        problems: &mut Vec<Error>,
    ) -> Option<FileData> {
        let path = elf.path();
        if let Some(id) = elf.identity() {
            let found = self.by_build_id(id, problems);
            if found.is_some() {
                return found;
            }
        }
        let (name, crc) = elf.debug_link()?;
        let candidates = self.link_candidates(path, original, name);
        candidates.into_iter().find_map(|candidate| {
            let file = self.open_if_there(&candidate, problems)?;
            let fits = self.check_link(&file, elf, crc);
            fits.map_err(|problem| problems.push(problem)).ok().map(|()| file)
        })
    }

    /// `<dir>/.build-id/ab/cdef….debug`.
    fn by_build_id(&self, id: &[u8], problems: &mut Vec<Error>) -> Option<FileData> {
        let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
        self.debug_dirs().find_map(|dir| {
            let file = self.open_if_there(&dir.join(&name), problems)?;
            let fits = check_build_id(&file, id);
            fits.map_err(|problem| problems.push(problem)).ok().map(|()| file)
        })
    }

    /// The paths at which the file of a debug link may be, in the order GDB searches them.
    fn link_candidates(&self, path: &Path, original: &Path, name: &[u8]) -> Vec<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        // Only a plain name: anything else would let a file choose what is read.
        if name.components().count() != 1 || !matches!(name.components().next(), Some(Component::Normal(_))) {
            return Vec::new();
        }
        // Folders may be reached through symbolic links (`/lib` for `/usr/lib`): both spellings are tried.
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut candidates = Vec::new();
        for dir in [path.parent(), resolved.parent()].into_iter().flatten() {
            candidates.extend([dir.join(name), dir.join(".debug").join(name)]);
        }
        let resolved_here = self.options.sysroot.is_none().then_some(resolved.as_path());
        for base in self.debug_dirs() {
            for dir in [Some(original), resolved_here].into_iter().flatten().filter_map(Path::parent) {
                candidates.push(base.join(dir.strip_prefix("/").unwrap_or(dir)).join(name));
            }
        }
        let mut seen = std::collections::HashSet::new();
        candidates.retain(|candidate| *candidate != resolved && *candidate != path && seen.insert(candidate.clone()));
        candidates
    }

    /// Whether the file a debug link led to is the one that was meant.
    fn check_link(&self, file: &FileData, elf: &Elf<'_>, wanted: u32) -> Result<(), Error> {
        let found = crc32_of(file.path(), self.options)?;
        if found != wanted {
            let (path, module) = (file.path().to_owned(), elf.path().to_owned());
            return Err(Error::WrongCrc { path, module, found, wanted });
        }
        // One of them may have been made without a build id; if both have one, they are the same.
        match (Elf::read(file)?.identity(), elf.identity()) {
            (Some(_), Some(wanted)) => check_build_id(file, wanted),
            _ => Ok(()),
        }
    }

    /// The file that `dwz` moved common parts of the debug information of `elf` to.
    pub(crate) fn find_alt_file(&self, elf: &Elf<'_>, problems: &mut Vec<Error>) -> Option<FileData> {
        let (link, id) = elf.alt_link()?;
        let link = Path::new(OsStr::from_bytes(link));
        // Relative to the folder of the real debug file, not to that of a symbolic link to it.
        let path = elf.path();
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let by_path = if link.is_absolute() { self.local(link) } else { resolved.parent().map(|dir| dir.join(link)) };
        let by_name = self.debug_dirs().filter_map(|dir| Some(dir.join(".dwz").join(link.file_name()?)));
        let candidates: Vec<PathBuf> = by_path.into_iter().chain(by_name).collect();
        let found = candidates.into_iter().find_map(|candidate| {
            let file = self.open_if_there(&candidate, problems)?;
            check_build_id(&file, id).map_err(|problem| problems.push(problem)).ok().map(|()| file)
        });
        found.or_else(|| self.by_build_id(id, problems))
    }

    /// Opens a file that need not exist.
    fn open_if_there(&self, path: &Path, problems: &mut Vec<Error>) -> Option<FileData> {
        match FileData::open(path, self.options) {
            Ok(file) => Some(file),
            Err(Error::Io { source, .. })
                if matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                None
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    }
}

/// Refuses a file with another build id, or with none.
pub(crate) fn check_build_id(file: &FileData, wanted: &[u8]) -> Result<(), Error> {
    let elf = Elf::read(file)?;
    if elf.identity() == Some(wanted) {
        return Ok(());
    }
    let found = elf.identity().map_or_else(|| "none".to_owned(), hex);
    Err(Error::WrongBuildId { path: file.path().to_owned(), found, wanted: hex(wanted) })
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
