//! A folder that is the root folder of another machine or container.
//!
//! Symbolic links in it were made for there: an absolute one starts at that root, and no number of `..` leads out of
//! it. Opening `ROOT/usr/bin/app` just like that would follow links into the root folder of *this* machine, and find
//! files that have nothing to do with those that were profiled.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Most symbolic links on the way to one file; the kernel gives up at 40, too.
const MAX_LINKS: usize = 40;

/// The root folder below which paths are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Root {
    /// `None` for that of this machine.
    folder: Option<PathBuf>,
}

impl Root {
    /// The root folder of this machine.
    pub(crate) const HERE: Root = Root { folder: None };

    /// The folder `folder` on this machine.
    pub(crate) fn at(folder: &Path) -> Self {
        Root { folder: Some(folder.to_owned()) }
    }

    /// Where on this machine the file is that is called `path` below the root. `None` for what is not an absolute path
    /// without `..`, as those of the kernel are, or leads through too many links. The file need not exist.
    pub(crate) fn local(&self, path: &Path) -> Option<PathBuf> {
        let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !path.is_absolute() || !is_plain {
            return None;
        }
        match &self.folder {
            // As the caller knows it.
            None => Some(path.to_owned()),
            Some(folder) => Some(folder.join(resolve(folder, path)?)),
        }
    }

    /// The path below the root without symbolic links, `path` itself if it cannot be had.
    pub(crate) fn canonical(&self, path: &Path) -> PathBuf {
        let canonical = match &self.folder {
            None => path.canonicalize().ok(),
            Some(folder) => resolve(folder, path).map(|path| Path::new("/").join(path)),
        };
        canonical.unwrap_or_else(|| path.to_owned())
    }
}

/// `path` without symbolic links, relative to `root`. What does not exist is left as it is.
fn resolve(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut coming: VecDeque<OsString> = parts(path).collect();
    let (mut done, mut links) = (PathBuf::new(), 0);
    while let Some(part) = coming.pop_front() {
        if part == ".." {
            // At the root it stays there.
            done.pop();
            continue;
        }
        let next = done.join(&part);
        let here = root.join(&next);
        let is_link = here.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        match is_link.then(|| here.read_link()) {
            Some(Ok(target)) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.is_absolute() {
                    done = PathBuf::new();
                }
                parts(&target).rev().for_each(|part| coming.push_front(part));
            }
            _ => done = next,
        }
    }
    Some(done)
}

/// The names in a path, and its `..`.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::Root;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    #[test]
    fn links_stay_below_the_root() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("usr/lib/a")).expect("folders");
        for (target, link) in [
            ("usr/lib", "lib"),
            ("/usr/lib/a", "abs"),
            ("../../../../../etc", "usr/out"),
            ("/lib/a/../b", "usr/lib/through"),
            ("loop", "loop"),
            ("/nowhere/x", "dangling"),
        ] {
            symlink(target, root.join(link)).expect("a link");
        }
        let local = |path: &str| Root::at(root).local(Path::new(path));
        let at = |path: &str| Some(root.join(path));
        assert_eq!(local("/lib/x"), at("usr/lib/x"));
        assert_eq!(local("/abs/x"), at("usr/lib/a/x"));
        assert_eq!(local("/usr/out/passwd"), at("etc/passwd"));
        assert_eq!(local("/usr/lib/through/c"), at("usr/lib/b/c"));
        assert_eq!(local("/dangling/y"), at("nowhere/x/y"));
        assert_eq!(local("/loop"), None);
        for bad in ["relative", "", "/a/../b", "[vdso]"] {
            assert_eq!((local(bad), Root::HERE.local(Path::new(bad))), (None, None), "{bad}");
        }
        assert_eq!(Root::at(root).canonical(Path::new("/abs/x")), PathBuf::from("/usr/lib/a/x"));
        assert_eq!(Root::HERE.local(Path::new("/loop")), Some("/loop".into()));
    }
}
