//! Where the files are that compilers write debug information to instead of the program: `.dwo` files, or a `.dwp` file
//! with all of them. Nothing but the numbers in them tells whether they belong to the program.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::debug_file::{DebugFile, without_dots};
use super::root::Root;
use super::{Located, Places, by_build_id};
use crate::elf::Elf;
use crate::object::ObjectFile as _;

/// The places where the split debug information of one program is looked for.
#[derive(Debug)]
pub(crate) struct SplitPlaces {
    /// What paths in the debug information are relative to.
    root: Root,
    /// Where a package may be.
    packages: Vec<(Root, PathBuf)>,
    /// Folders where files with parts may be, or the folders of a build around them.
    folders: Vec<(Root, PathBuf)>,
}

impl SplitPlaces {
    /// Nowhere: what other systems' compilers write is not split in this way.
    pub(crate) fn none() -> Self {
        SplitPlaces { root: Root::HERE, packages: Vec::new(), folders: Vec::new() }
    }
}

impl Places<'_> {
    /// The places for the program `elf`, which is the content of `located`; `debug_file` is its separate debug file, if it
    /// has one.
    pub(crate) fn split_places(&self, elf: &Elf<'_>, located: &Located, debug_file: Option<&DebugFile>) -> SplitPlaces {
        let dirs = self.debug_dirs(&located.root);
        let program = (&located.root, located.original.as_path());
        let debug = debug_file.map(|file| (&file.root, file.path.as_path()));
        let beside = [debug, Some(program)].into_iter().flatten();
        let parent = |(root, path): (&Root, &Path)| Some((Root::clone(root), path.parent()?.to_owned()));
        let folders = beside.clone().filter_map(parent).chain(dirs.iter().cloned()).collect();
        let mut packages = Vec::new();
        for (root, path) in beside {
            packages.push((root.clone(), with_dwp(path)));
            // `app.debug` is the debug file of `app`.
            if path.extension() == Some(OsStr::new("debug")) {
                packages.push((root.clone(), with_dwp(&path.with_extension(""))));
            }
        }
        let by_id = elf.identity().and_then(|id| by_build_id(id, ".dwp"));
        let original = &located.original;
        for (root, dir) in &dirs {
            let by_path = Some(with_dwp(original.strip_prefix("/").unwrap_or(original)));
            let by_name = original.file_name().map(|name| with_dwp(Path::new(name)));
            let names = [by_id.clone(), by_path, by_name].into_iter().flatten();
            packages.extend(names.map(|name| (root.clone(), dir.join(name))));
        }
        SplitPlaces { root: located.root.clone(), packages, folders }
    }
}

impl SplitPlaces {
    /// The paths here at which a package may be: beside the separate debug file and beside the program, with `.dwp`
    /// appended to the name; in each debug folder, by build id, by the program's path and by its name.
    pub(crate) fn packages(&self) -> Vec<PathBuf> {
        local(&self.packages)
    }

    /// The paths here at which the file may be that the compiler wrote to `recorded`: that one; those that end like it
    /// beside the program and in each debug folder.
    pub(crate) fn parts(&self, recorded: &Path) -> Vec<PathBuf> {
        let mut candidates = vec![(self.root.clone(), without_dots(recorded))];
        if !recorded.is_absolute() {
            candidates.clear();
        }
        // Folders of builds are moved as a whole or in part, so any end of the path may be the same there.
        for (root, folder) in &self.folders {
            candidates.extend(ends(recorded).into_iter().map(|end| (root.clone(), folder.join(end))));
        }
        local(&candidates)
    }
}

/// The path that a compiler wrote to: in the folder of the compilation, unless the name is absolute.
pub(crate) fn recorded(folder: &[u8], name: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(folder)).join(OsStr::from_bytes(name))
}

/// Where the candidates are on this machine, each once.
fn local(candidates: &[(Root, PathBuf)]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let all = candidates.iter().filter_map(|(root, path)| root.local(path));
    all.filter(|path| seen.insert(path.clone())).collect()
}

/// The ends of a path, from the longest to the name alone.
fn ends(path: &Path) -> Vec<PathBuf> {
    /// Most folders that are taken into account.
    const MAX_FOLDERS: usize = 16;
    let parts: Vec<_> = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let longest = parts.len().saturating_sub(MAX_FOLDERS + 1);
    (longest..parts.len()).map(|start| parts[start..].iter().collect()).collect()
}

fn with_dwp(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".dwp");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::{Root, SplitPlaces, recorded, with_dwp};
    use std::path::{Path, PathBuf};

    #[test]
    fn each_place_once_and_in_order() {
        let folders = ["/b", "/d", "/b"].map(|folder| (Root::HERE, PathBuf::from(folder))).into();
        let places = SplitPlaces { root: Root::HERE, packages: Vec::new(), folders };
        let at = |folder: &[u8], name: &[u8]| -> Vec<String> {
            places.parts(&recorded(folder, name)).iter().map(|path| path.display().to_string()).collect()
        };
        let expected =
            ["/src/o/a.dwo", "/b/src/o/a.dwo", "/b/o/a.dwo", "/b/a.dwo", "/d/src/o/a.dwo", "/d/o/a.dwo", "/d/a.dwo"];
        assert_eq!(at(b"/src", b"o/a.dwo"), expected);
        assert_eq!(at(b"/src/x", b"../a.dwo")[0], "/src/a.dwo");
        assert_eq!(at(b"/src", b"/o/a.dwo")[..2], ["/o/a.dwo", "/b/o/a.dwo"]);
        // A folder that is relative itself leads nowhere by itself, and none leads out of where it is looked for.
        assert_eq!(at(b".", b"../a.dwo"), ["/b/a.dwo", "/d/a.dwo"]);
        // However long the path is, few places are looked at.
        assert!(at(b"/src", &b"a/".repeat(10_000)).len() < 60);
        assert_eq!(with_dwp(Path::new("/d/app.debug")), Path::new("/d/app.debug.dwp"));
    }
}
