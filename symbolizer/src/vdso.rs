//! The vDSO: a small library that the kernel maps into every process and that no folder holds.
//!
//! It is the same in all processes of one kernel (and width), so that of the process that reads is as good as that of
//! the profiled one, as long as the build id is the same. It is read from `/proc/PID/mem`, which needs no `unsafe`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The name by which memory maps call it.
pub(crate) const NAME: &str = "[vdso]";

/// Largest mapping that is taken for a vDSO, in bytes. Kernels have some of 4 to 32 KiB.
const MAX_SIZE: u64 = 1 << 20;

/// Most bytes of `/proc/PID/maps` that are searched. A process may have 65,530 mappings, of about 100 bytes each.
const MAX_MAPS: u64 = 64 << 20;

/// Most versions of the kernel whose folders are looked into.
const MAX_KERNELS: usize = 64;

/// The vDSO of a process, this one if `pid` is `None`; and where it was read from.
pub(crate) fn of_process(pid: Option<u32>) -> (PathBuf, io::Result<Vec<u8>>) {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let memory = PathBuf::from(format!("/proc/{process}/mem"));
    let content = read(Path::new(&format!("/proc/{process}/maps")), &memory);
    (memory, content)
}

fn read(maps: &Path, memory: &Path) -> io::Result<Vec<u8>> {
    let maps = BufReader::new(File::open(maps)?.take(MAX_MAPS));
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no [vdso] of acceptable size in the memory map");
    let (start, size) = find(maps).ok_or_else(missing)?;
    // Not more than MAX_SIZE: that was looked at.
    let mut content = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    File::open(memory)?.read_exact_at(&mut content, start)?;
    Ok(content)
}

/// Start and size of the vDSO in the text of a memory map.
fn find(maps: impl BufRead) -> Option<(u64, u64)> {
    for line in maps.split(b'\n').map_while(Result::ok) {
        let Some(range) = line.strip_suffix(NAME.as_bytes()) else { continue };
        let range = str::from_utf8(range).ok()?;
        let (start, end) = range.split_whitespace().next()?.split_once('-')?;
        let number = |word| u64::from_str_radix(word, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        return end.checked_sub(start).filter(|size| (1..=MAX_SIZE).contains(size)).map(|size| (start, size));
    }
    None
}

/// Files that kernels install for debuggers, below the root folder `root`: `lib/modules/VERSION/vdso/*.so`.
pub(crate) fn installed(root: &Path) -> Vec<PathBuf> {
    let Ok(versions) = std::fs::read_dir(root.join("lib/modules")) else { return Vec::new() };
    let mut versions: Vec<PathBuf> = versions.flatten().take(MAX_KERNELS).map(|entry| entry.path()).collect();
    versions.sort_unstable();
    let names = ["vdso64.so", "vdso32.so", "vdsox32.so", "vdso.so"];
    versions.iter().flat_map(|version| names.map(|name| version.join("vdso").join(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::{find, installed, of_process};

    #[test]
    fn found_in_a_memory_map() {
        let map = |line: &str| find(format!("1000-2000 r-xp 00000000 00:00 0  /a/[vdso]x\n{line}").as_bytes());
        let line = "7ffe3000-7ffe5000 r-xp 00000000 00:00 0                          [vdso]\n";
        assert_eq!(map(line), Some((0x7ffe_3000, 0x2000)));
        for bad in ["", "x[vdso]", "5-4 [vdso]", "4-4 [vdso]", "0-ffffffffffffffff [vdso]", "\u{fffd}-4 [vdso]"] {
            assert_eq!(map(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_one_of_this_process_is_an_elf_file() {
        for pid in [None, Some(std::process::id())] {
            let (_, content) = of_process(pid);
            assert!(content.expect("this machine has a vDSO").starts_with(b"\x7fELF"));
        }
        assert!(of_process(Some(u32::MAX)).1.is_err());
    }

    #[test]
    fn files_of_installed_kernels() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(installed(root.path()).is_empty());
        let version = root.path().join("lib/modules/6.1.0/vdso");
        std::fs::create_dir_all(&version).expect("a folder");
        assert_eq!(installed(root.path())[0], version.join("vdso64.so"));
    }
}
