//! Files of a process that still runs, by way of `/proc/PID`: also those that were deleted or replaced, and those that
//! only its container has.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::root::Root;
use super::without_mark;

/// The folder of a process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    folder: PathBuf,
}

impl Process {
    pub(super) fn new(pid: u32) -> Self {
        Process { folder: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// Its root folder, which is that of its container.
    pub(super) fn root(&self) -> Root {
        Root::at(&self.folder.join("root"))
    }

    /// Links of the kernel to the very file that is mapped at one of `mappings` (start and end) and was called `path`,
    /// with or without the mark of deleted files.
    ///
    /// A link that leads to anything of another name is left out: the process may have mapped something else there by
    /// now, or be another one with the same number.
    pub(super) fn mapped(&self, path: &Path, mappings: &[(u64, u64)]) -> Vec<PathBuf> {
        let of_mapping = |(start, end): &(u64, u64)| self.folder.join(format!("map_files/{start:x}-{end:x}"));
        // Of a program itself also without the right to look at its mappings.
        let links = mappings.iter().map(of_mapping).chain([self.folder.join("exe")]);
        let wanted = without_mark(path).0;
        links
            .filter(|link| link.read_link().is_ok_and(|target| without_mark(&unescaped(&target)).0 == wanted))
            .collect()
    }
}

/// Memory maps have a line feed as `\012`, links have it as it is; nothing else differs.
fn unescaped(target: &Path) -> PathBuf {
    let bytes = target.as_os_str().as_bytes();
    if !bytes.contains(&b'\n') {
        return target.to_owned();
    }
    let escaped = bytes.iter().flat_map(|byte| if *byte == b'\n' { &b"\\012"[..] } else { std::slice::from_ref(byte) });
    std::ffi::OsString::from_vec(escaped.copied().collect()).into()
}

#[cfg(test)]
mod tests {
    use super::{Process, unescaped};
    use std::path::{Path, PathBuf};

    #[test]
    fn the_program_of_this_process() {
        let process = Process::new(std::process::id());
        let path = std::env::current_exe().expect("its path");
        let links = process.mapped(&path, &[(0x1000, 0x2000)]);
        assert_eq!(links, [PathBuf::from(format!("/proc/{}/exe", std::process::id()))]);
        let deleted = PathBuf::from(format!("{} (deleted)", path.display()));
        assert_eq!(process.mapped(&deleted, &[]).len(), 1);
        assert!(process.mapped(Path::new("/bin/other"), &[]).is_empty());
        let root = Path::new("/proc").join(std::process::id().to_string()).join("root");
        assert_eq!(process.root().local(Path::new("/")), Some(root));
    }

    #[test]
    fn line_feeds() {
        assert_eq!(unescaped(Path::new("/a\nb")), Path::new("/a\\012b"));
        assert_eq!(unescaped(Path::new("/a b")), Path::new("/a b"));
    }
}
