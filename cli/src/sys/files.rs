//! Questions about files: may I execute it, does its file system forbid code, does the kernel grant it privileges.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The user and group ids of this process: real and effective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    /// The user who started `mpp`.
    pub(crate) real_user: u32,
    /// The user whose rights `mpp` has.
    pub(crate) effective_user: u32,
    /// The group of the user who started `mpp`.
    pub(crate) real_group: u32,
}

/// The ids of this process.
pub(crate) fn ids() -> Ids {
    // SAFETY: these calls take no arguments, cannot fail and have no side effect.
    unsafe { Ids { real_user: libc::getuid(), effective_user: libc::geteuid(), real_group: libc::getgid() } }
}

/// Whether this process may execute `path` (with its effective ids, as `execve` would judge it).
pub(crate) fn may_execute(path: &Path) -> bool {
    let Ok(path) = c_path(path) else { return false };
    // SAFETY: `path` is a NUL-terminated string that lives during the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

/// How the file system that holds a file was mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mount {
    /// No code of it may be mapped: a library there cannot be loaded.
    pub(crate) noexec: bool,
    /// Set-user-id bits and file capabilities on it have no effect.
    pub(crate) nosuid: bool,
}

/// The mount flags of the file system that holds `path`, which must exist.
pub(crate) fn mount_of(path: &Path) -> io::Result<Mount> {
    let path = c_path(path)?;
    let mut stat = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` is NUL-terminated and `stat` is writable memory of the right type; both live during the call.
    if unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the structure was zeroed, which is a valid value of it, and then filled by the call.
    let flags = unsafe { stat.assume_init() }.f_flag;
    Ok(Mount { noexec: flags & libc::ST_NOEXEC != 0, nosuid: flags & libc::ST_NOSUID != 0 })
}

/// Whether the file carries capabilities of its own (`setcap`).
pub(crate) fn has_file_capabilities(path: &Path) -> bool {
    let Ok(path) = c_path(path) else { return false };
    // SAFETY: both strings are NUL-terminated; a null buffer of size 0 asks for the length of the attribute only.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_can_be_executed() {
        assert!(may_execute(Path::new("/bin/sh")));
        assert!(!may_execute(Path::new("/etc/passwd")));
        assert!(!may_execute(Path::new("/does/not/exist")));
    }

    #[test]
    fn reads_mount_flags() {
        assert!(mount_of(Path::new("/bin/sh")).is_ok_and(|mount| !mount.noexec), "the shell can be executed");
        assert!(mount_of(Path::new("/does/not/exist")).is_err());
    }
}
