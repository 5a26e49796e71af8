//! Where the debug information of a stripped file is kept: in a separate file, found by build id or by the name and
//! checksum in `.gnu_debuglink`; and the parts of it that `dwz` moved to a file for several programs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::root::Root;
use super::{Located, Places, absolute, by_build_id, check_build_id, hex, identity_of, is_missing};
use crate::elf::Elf;
use crate::file::{FileData, crc32_of};
use crate::object::ObjectFile as _;
use crate::{DebuginfodFile, Error, ModuleReport};

/// Where the debug files of a system are. Names of common files begin with it, also after the folder was copied.
const SYSTEM_DIR: &str = "/usr/lib/debug";

/// A debug file that was found.
#[derive(Debug)]
pub(crate) struct DebugFile {
    pub(crate) file: FileData,
    /// What its path, and those in it, are relative to.
    pub(super) root: Root,
    /// Below the root.
    pub(super) path: PathBuf,
}

/// One search: where to look, in which order, and what was wrong with what was there.
struct Search<'s, 'o> {
    places: &'s Places<'o>,
    report: &'s mut ModuleReport,
    /// Forgotten when a file is found that fits.
    problems: Vec<Error>,
}

impl Places<'_> {
    /// The separate debug file of `elf`, which is the content of `located`: by build id, else by `.gnu_debuglink`. Files
    /// that are there but do not fit are noted in `report` when none fits.
    pub(crate) fn find_debug_file(
        &self,
        elf: &Elf<'_>,
        located: &Located,
        report: &mut ModuleReport,
    ) -> Option<DebugFile> {
        let dirs = self.debug_dirs(&located.root);
        let mut search = Search { places: self, report, problems: Vec::new() };
        let found = search.by_build_id(&dirs, elf.identity()).or_else(|| {
            let (name, wanted) = elf.debug_link()?;
            let candidates = link_candidates(&dirs, located, name);
            search.first_fitting(candidates, |file| check_link(file, elf, wanted, self))
        });
        let found = found.or_else(|| search.fetch(elf.identity()));
        search.finish(found)
    }

    /// The file that `dwz` moved common parts of the debug information of `elf` to. `debug_file` is where `elf` is from,
    /// if that is not `located` itself. That there is none is noted in `report`.
    pub(crate) fn find_alt_file(
        &self,
        elf: &Elf<'_>,
        located: &Located,
        debug_file: Option<&DebugFile>,
        report: &mut ModuleReport,
    ) -> Option<FileData> {
        let (link, id) = elf.alt_link()?;
        let link = Path::new(OsStr::from_bytes(link));
        let (root, path) =
            debug_file.map_or((&located.root, &located.original), |debug_file| (&debug_file.root, &debug_file.path));
        let dirs = self.debug_dirs(&located.root);
        let candidates = alt_candidates(&dirs, root, path, link);
        let mut search = Search { places: self, report, problems: Vec::new() };
        let found = search.first_fitting(candidates, |file| check_build_id(file, id));
        let found = found.or_else(|| search.by_build_id(&dirs, Some(id))).or_else(|| search.fetch(Some(id)));
        if found.is_none() && search.problems.is_empty() {
            let (path, link) = (elf.path().to_owned(), link.to_owned());
            search.problems.push(Error::NoAltFile { path, link, build_id: hex(id) });
        }
        search.finish(found).map(|found| found.file)
    }
}

impl Search<'_, '_> {
    /// `<dir>/.build-id/ab/cdef….debug`.
    fn by_build_id(&mut self, dirs: &[(Root, PathBuf)], id: Option<&[u8]>) -> Option<DebugFile> {
        let (id, name) = id.and_then(|id| Some((id, by_build_id(id, ".debug")?)))?;
        let candidates = dirs.iter().map(|(root, dir)| (root.clone(), dir.join(&name))).collect();
        self.first_fitting(candidates, |file| check_build_id(file, id))
    }

    /// From debuginfod. Paths in such a file are not those of this machine, so they count below the root folder.
    fn fetch(&mut self, id: Option<&[u8]>) -> Option<DebugFile> {
        match self.places.fetch(id?, &DebuginfodFile::Debuginfo, self.report) {
            Ok(file) => file.map(|file| DebugFile { path: file.path().to_owned(), file, root: self.places.home() }),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn first_fitting(
        &mut self,
        candidates: Vec<(Root, PathBuf)>,
        check: impl Fn(&FileData) -> Result<(), Error>,
    ) -> Option<DebugFile> {
        for (root, path) in candidates {
            let Some(local) = root.local(&path) else { continue };
            if !self.report.looked_at.contains(&local) {
                self.report.looked_at.push(local.clone());
            }
            let opened = FileData::open(&local, self.places.options);
            match opened.and_then(|file| check(&file).map(|()| file)) {
                Ok(file) => return Some(DebugFile { file, root, path }),
                Err(problem) if is_missing(&problem) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
        None
    }

    fn finish(self, found: Option<DebugFile>) -> Option<DebugFile> {
        if found.is_none() {
            self.report.problems.extend(self.problems);
        }
        found
    }
}

/// The paths at which the file of a debug link may be, in the order GDB searches them, then right in the folders of the
/// user.
fn link_candidates(dirs: &[(Root, PathBuf)], located: &Located, name: &[u8]) -> Vec<(Root, PathBuf)> {
    let name = Path::new(OsStr::from_bytes(name));
    // Only a plain name: anything else would let a file choose what is read.
    if name.components().count() != 1 || !matches!(name.components().next(), Some(Component::Normal(_))) {
        return Vec::new();
    }
    let Located { root, original, .. } = located;
    // Folders may be reached through symbolic links (`/lib` for `/usr/lib`): both spellings are tried.
    let canonical = root.canonical(original);
    let folders = [original.parent(), canonical.parent()].map(|folder| folder.unwrap_or(Path::new("/")));
    let mut candidates = Vec::new();
    for folder in folders {
        candidates.extend([(root.clone(), folder.join(name)), (root.clone(), folder.join(".debug").join(name))]);
    }
    for (base, dir) in dirs {
        for folder in folders {
            candidates.push((base.clone(), dir.join(folder.strip_prefix("/").unwrap_or(folder)).join(name)));
        }
        candidates.push((base.clone(), dir.join(name)));
    }
    let mut seen = HashSet::new();
    candidates.retain(|(base, path)| {
        let is_itself = base == root && (path == original || *path == canonical);
        !is_itself && seen.insert(base.local(path))
    });
    candidates
}

/// Whether the file that a debug link of `elf` led to is the one that was meant.
fn check_link(file: &FileData, elf: &Elf<'_>, wanted: u32, places: &Places<'_>) -> Result<(), Error> {
    let found = crc32_of(file.path(), places.options)?;
    if found != wanted {
        let (path, module) = (file.path().to_owned(), elf.path().to_owned());
        return Err(Error::WrongCrc { path, module, found, wanted });
    }
    // One of them may have been made without a build id; if both have one, they are the same.
    match (identity_of(file, elf.identity())?, elf.identity()) {
        (Some(_), Some(wanted)) => check_build_id(file, wanted),
        _ => Ok(()),
    }
}

/// The paths at which the file of an alternate link in the debug file `path` may be.
fn alt_candidates(dirs: &[(Root, PathBuf)], root: &Root, path: &Path, link: &Path) -> Vec<(Root, PathBuf)> {
    let mut candidates = Vec::new();
    if link.is_absolute() {
        candidates.push((root.clone(), link.to_owned()));
    } else {
        // Relative to the folder of the real debug file, not to that of a symbolic link to it. `..` is common here:
        // folders of debug files are searched by name only, so it may be taken away together with the folder before it.
        let canonical = root.canonical(path);
        let folder = canonical.parent().unwrap_or(Path::new("/"));
        candidates.push((root.clone(), without_dots(&folder.join(link))));
    }
    for (base, dir) in dirs {
        if let Ok(rest) = link.strip_prefix(SYSTEM_DIR) {
            candidates.push((base.clone(), without_dots(&absolute(dir).join(rest))));
        }
        if let Some(name) = link.file_name() {
            candidates.push((base.clone(), dir.join(".dwz").join(name)));
        }
    }
    let mut seen = HashSet::new();
    candidates.retain(|(base, path)| seen.insert(base.local(path)));
    candidates
}

/// An absolute path with each `..` and the folder before it taken away.
pub(super) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Root, alt_candidates, without_dots};
    use std::path::{Path, PathBuf};

    #[test]
    fn places_of_common_files() {
        let dirs = [(Root::HERE, PathBuf::from("/copy/debug"))];
        let at = |link: &str| -> Vec<PathBuf> {
            let candidates = alt_candidates(&dirs, &Root::HERE, Path::new("/d/.build-id/ab/c.debug"), Path::new(link));
            candidates.into_iter().map(|(_, path)| path).collect()
        };
        let absolute = "/usr/lib/debug/.dwz/x86_64-linux-gnu/libc6.debug";
        let expected = [absolute, "/copy/debug/.dwz/x86_64-linux-gnu/libc6.debug", "/copy/debug/.dwz/libc6.debug"];
        assert_eq!(at(absolute), expected.map(PathBuf::from));
        assert_eq!(at("../../.dwz/a")[0], Path::new("/d/.dwz/a"));
        assert_eq!(without_dots(Path::new("/../../a/./b/../c")), Path::new("/a/c"));
    }
}
