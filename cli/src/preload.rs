//! The preload library that `mpp` carries inside itself, and its way to a place where the dynamic loader takes it from.
//!
//! It is unpacked once per version to `$XDG_CACHE_HOME/mpp/<hash>/libmimalloc_pprof.so` (or below `~/.cache`). Such a
//! file is executed by every program that `mpp run` starts, so it is used only if it belongs to this user, nobody else
//! can write it, and its content is, byte for byte, what `mpp` holds. Where the cache cannot serve, a private folder
//! below `$TMPDIR` or `/tmp` does.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::sys::files;

/// The library as the build made it.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmimalloc_pprof.so"));

/// Its file name, by which it is recognised in `/proc/PID/maps`.
pub(crate) const FILE_NAME: &str = "libmimalloc_pprof.so";

/// The bytes of the embedded library: they also tell for which architecture it is.
pub(crate) fn library() -> &'static [u8] {
    LIBRARY
}

/// Unpacks the library, if it is not there yet, and returns its absolute path.
///
/// # Errors
/// If no folder can be used; the message has one reason for each.
pub(crate) fn unpack() -> anyhow::Result<PathBuf> {
    let hash = format!("{:032x}", fnv1a_128(LIBRARY));
    let mut reasons = Vec::new();
    let shared = cache_folder().map(|cache| cache.join("mpp").join(&hash));
    let private = temporary_folders().into_iter().flat_map(|folder| private_names(&hash).map(|name| folder.join(name)));
    let shared = shared.into_iter().map(|folder| (folder, 0o755));
    for (folder, mode) in shared.chain(private.map(|folder| (folder, 0o700))) {
        match unpack_into(&folder, mode) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error:#}", folder.display())),
        }
    }
    bail!(
        "the preload library cannot be unpacked; set XDG_CACHE_HOME or TMPDIR to a folder of yours that programs \
         may be started from\n  {}",
        reasons.join("\n  ")
    )
}

/// The value of `LD_PRELOAD`: our library in front, so that its `malloc` is found first, then what was there.
pub(crate) fn ld_preload(library: &Path, existing: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    let Some(existing) = existing else { return value };
    // The dynamic loader splits the list at colons and at spaces.
    for other in existing.as_bytes().split(|&byte| byte == b':' || byte == b' ') {
        if !other.is_empty() && other != library.as_os_str().as_bytes() {
            value.push(":");
            value.push(OsString::from_vec(other.to_vec()));
        }
    }
    value
}

/// Where caches belong by the XDG base directory specification: relative paths are to be ignored.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}

fn temporary_folders() -> Vec<PathBuf> {
    let from_environment = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    from_environment.into_iter().chain(["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from)).collect()
}

/// The names hold the user, because `/tmp` is shared. The second one is for when somebody else has taken the first. The
/// folder stays: programs that outlive `mpp` may still start others with it.
fn private_names(hash: &str) -> [String; 2] {
    let short = hash.get(..12).unwrap_or(hash);
    let name = format!("mpp-preload-{}-{short}", files::ids().effective_user);
    [name.clone(), format!("{name}-{}", std::process::id())]
}

fn unpack_into(folder: &Path, mode: u32) -> anyhow::Result<PathBuf> {
    ensure!(loadable_by_name(folder), "the dynamic loader splits LD_PRELOAD at spaces and colons, and expands `$`");
    // Asked of what exists, so that nothing is left where it is of no use.
    let existing = folder.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(folder);
    ensure!(!files::mount_of(existing)?.noexec, "is mounted noexec, so no library can be loaded from there");
    DirBuilder::new().recursive(true).mode(mode).create(folder).context("cannot be made")?;
    check_owned_folder(folder)?;
    let path = folder.join(FILE_NAME);
    if holds_the_library(&path)? {
        return Ok(path);
    }
    write_atomically(&path)?;
    ensure!(holds_the_library(&path)?, "the file changed while it was being written");
    Ok(path)
}

/// Whether the dynamic loader would take the path as one name. `$` starts its own `$ORIGIN`, `$LIB` and `$PLATFORM`.
fn loadable_by_name(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'$' | b'\n'))
}

fn check_owned_folder(folder: &Path) -> anyhow::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    ensure!(metadata.is_dir(), "is not a folder");
    check_owner(&metadata)
}

fn check_owner(metadata: &fs::Metadata) -> anyhow::Result<()> {
    ensure!(metadata.uid() == files::ids().effective_user, "belongs to user {}, not to you", metadata.uid());
    ensure!(metadata.mode() & 0o022 == 0, "can be written by other users");
    Ok(())
}

/// Whether the file is there with the right content. A file of ours with other content (cut by a full disk) is `false`
/// and will be replaced.
///
/// # Errors
/// If the file is not ours, or cannot be read.
fn holds_the_library(path: &Path) -> anyhow::Result<bool> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).context("the library there cannot be read"),
    };
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "the library there is not a file");
    check_owner(&metadata).context("the library there")?;
    if metadata.len() != LIBRARY.len() as u64 {
        return Ok(false);
    }
    let mut content = Vec::with_capacity(LIBRARY.len());
    file.take(LIBRARY.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == LIBRARY)
}

/// Several `mpp` may do this at once: each writes a file of its own, and the last rename wins with the same content.
fn write_atomically(path: &Path) -> anyhow::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(LIBRARY)?;
        file.set_permissions(Permissions::from_mode(0o755))?;
        fs::rename(&temporary, path)
    };
    // A leftover of a killed process that had our process id.
    let _ = fs::remove_file(&temporary);
    write().inspect_err(|_| drop(fs::remove_file(&temporary))).context("cannot be written")
}

/// FNV-1a with 128 bits: names the content. Not a safeguard; the content itself is compared.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_the_published_vectors() {
        assert_eq!(fnv1a_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn keeps_what_was_preloaded_before() {
        let ours = Path::new("/c/ours.so");
        let value = |existing: &str| ld_preload(ours, Some(OsStr::new(existing)));
        assert_eq!(ld_preload(ours, None), "/c/ours.so");
        assert_eq!(value("/x/a.so /x/b.so"), "/c/ours.so:/x/a.so:/x/b.so");
        assert_eq!(value(""), "/c/ours.so");
        assert_eq!(value("/x/a.so:/c/ours.so"), "/c/ours.so:/x/a.so", "a nested mpp run adds it once");
    }

    #[test]
    fn unpacks_once_and_repairs() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        let folder = parent.path().join("cache");
        let path = unpack_into(&folder, 0o755)?;
        assert_eq!(fs::read(&path)?, LIBRARY);
        let first = fs::metadata(&path)?.ino();
        assert_eq!(fs::metadata(unpack_into(&folder, 0o755)?)?.ino(), first, "the second call finds it");

        fs::write(&path, b"cut")?;
        unpack_into(&folder, 0o755)?;
        assert_eq!(fs::read(&path)?, LIBRARY, "a damaged file is replaced");
        assert_eq!(fs::read_dir(&folder)?.count(), 1, "no temporary file stays");
        Ok(())
    }

    #[test]
    fn refuses_what_others_can_change() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        let folder = parent.path().join("cache");
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
        let refusal = unpack_into(&folder, 0o755).expect_err("a folder for everybody").to_string();
        assert!(refusal.contains("other users"), "{refusal}");
        for name in ["a b", "a:b", "a$LIB"] {
            assert!(unpack_into(&parent.path().join(name), 0o700).is_err(), "{name}");
            assert!(!parent.path().join(name).exists(), "{name} was made");
        }
        Ok(())
    }

    #[test]
    fn refuses_a_link_in_place_of_the_library() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, LIBRARY)?;
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(FILE_NAME))?;
        assert!(unpack_into(folder.path(), 0o700).is_err());
        Ok(())
    }
}
