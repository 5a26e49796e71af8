//! Physical truth: what the kernel charges to the control group that the subject is in.
//!
//! A huge page of which parts were discarded is charged as a whole until it is split, so this tells what is really free, and
//! resident memory does not. Where it is allowed the subject gets a group of its own; else the group that it is in anyway is
//! read, and with it everything else that runs there.

use std::fs;
use std::path::{Path, PathBuf};

/// A group whose memory can be read.
#[derive(Debug)]
pub struct Group {
    usage: PathBuf,
    /// The folder, if the group was made here.
    own: Option<PathBuf>,
    /// What it is, for people.
    kind: &'static str,
}

/// Where the two versions of the interface keep usage, and what they are called.
const VERSIONS: [(&str, &str, &str); 2] = [
    ("memory.current", "cgroup v2, its own", "cgroup v2, shared"),
    ("memory.usage_in_bytes", "cgroup v1, its own", "cgroup v1, shared"),
];

impl Group {
    /// Makes a group with the name `name` for a subject, or else finds the one that this process is in. `None` where the
    /// kernel does not account for memory, or does not tell.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let folder = folder(&groups, &mounts)?;
        let (usage, own, shared) = VERSIONS.into_iter().find(|(usage, ..)| folder.join(usage).is_file())?;
        // In version 2 a group with processes may have no groups with controllers below it, but beside it.
        for parent in [Some(folder.as_path()), folder.parent()].into_iter().flatten() {
            let made = parent.join(name);
            if fs::create_dir(&made).is_err() {
                continue;
            }
            if made.join(usage).is_file() {
                return Some(Self { usage: made.join(usage), own: Some(made), kind: own });
            }
            let _ = fs::remove_dir(&made);
        }
        Some(Self { usage: folder.join(usage), own: None, kind: shared })
    }

    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// The file that takes the number of a process to move into the group, if it is the subject's own.
    #[must_use]
    pub fn door(&self) -> Option<PathBuf> {
        self.own.as_ref().map(|folder| folder.join("cgroup.procs"))
    }

    /// Falls back to whatever the group is without a door: the subject could not be moved.
    #[must_use]
    pub fn without_door(self) -> Option<Self> {
        let parent = self.own.as_ref()?.parent()?.join(self.usage.file_name()?);
        let kind = VERSIONS.iter().find(|(usage, ..)| parent.ends_with(usage))?.2;
        Some(Self { usage: parent, own: None, kind })
    }

    /// Bytes that are charged now.
    #[must_use]
    pub fn usage(&self) -> Option<u64> {
        fs::read_to_string(&self.usage).ok()?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(folder) = &self.own {
            // The kernel may still be busy with the last process in it.
            for _ in 0..50 {
                if fs::remove_dir(folder).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// The folder of the group that accounts for memory.
fn folder(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = |wanted: fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then(|| path.to_owned())
        })
    };
    let v1 = path(|controllers| controllers.split(',').any(|name| name == "memory"));
    if let Some((path, mount)) = v1.zip(mount(mounts, "cgroup", Some("memory"))) {
        return Some(inside(mount, &path));
    }
    path(str::is_empty).zip(mount(mounts, "cgroup2", None)).map(|(path, mount)| inside(mount, &path))
}

/// The group `path` as a folder. A container may see its own group as the root of the mount.
fn inside((root, point): (String, String), path: &str) -> PathBuf {
    let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("/");
    Path::new(&point).join(below.trim_start_matches('/'))
}

/// Root and place of a mount of this type and with this option (mountinfo in proc(5)).
fn mount(mounts: &str, kind: &str, option: Option<&str>) -> Option<(String, String)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_it = after.next() == Some(kind);
        let options = after.nth(1).unwrap_or_default();
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        (is_it && option.is_none_or(|wanted| options.split(',').any(|option| option == wanted)))
            .then(|| (root.to_owned(), point.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "30 24 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n\
                      31 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
    const V2: &str = "30 24 0:27 /box /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n";

    #[test]
    fn both_versions_are_found() {
        let groups = "9:name=systemd:/\n4:memory:/a/b\n0::/\n";
        assert_eq!(folder(groups, V1).unwrap(), Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(folder("0::/box/c\n", V2).unwrap(), Path::new("/sys/fs/cgroup/c"));
        assert_eq!(folder("0::/elsewhere\n", V2).unwrap(), Path::new("/sys/fs/cgroup"));
        assert_eq!((folder("", V1), folder("0::/\n", "")), (None, None));
    }

    #[test]
    fn a_group_that_was_made_is_gone_afterwards() {
        let name = format!("mpp-test-{}", std::process::id());
        let Some(group) = Group::find(&name) else { return };
        assert!(group.usage().is_some());
        let made = group.own.clone();
        drop(group);
        assert!(made.is_none_or(|folder| !folder.exists()));
    }
}
