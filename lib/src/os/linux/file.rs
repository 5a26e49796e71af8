//! Files, by raw system calls.

use super::syscall::{CLOSE, MKDIR, OPEN, PREAD64, READ, RENAME, UNLINK, WRITE, syscall};
use core::ffi::CStr;

const O_WRONLY: usize = 1;
const O_CREAT: usize = 0o100;
const O_TRUNC: usize = 0o1000;
const O_NOFOLLOW: usize = 0o400_000;
const O_CLOEXEC: usize = 0o2_000_000;
const EINTR: isize = -4;
const EEXIST: isize = -17;

/// An open file; closed when dropped.
pub(crate) struct File(usize);

impl File {
    /// Open for reading.
    pub(crate) fn open(path: &CStr) -> Option<File> {
        // SAFETY: the path is a C string.
        Self::from(unsafe { syscall(OPEN, [path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0, 0]) })
    }

    /// Create or truncate for writing, readable by the user alone. Symbolic links are not followed.
    pub(crate) fn create(path: &CStr) -> Option<File> {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
        // SAFETY: the path is a C string.
        Self::from(unsafe { syscall(OPEN, [path.as_ptr() as usize, flags, 0o600, 0, 0, 0]) })
    }

    pub(super) fn from(result: isize) -> Option<File> {
        (result >= 0).then_some(File(result as usize))
    }

    /// To write to while this lives.
    pub(crate) fn descriptor(&self) -> super::Descriptor {
        super::Descriptor(self.0 as i32)
    }

    /// Bytes read: 0 at the end, `None` on an error.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            // SAFETY: the kernel writes at most the buffer's length.
            let n = unsafe { syscall(READ, [self.0, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) };
            if n != EINTR {
                return usize::try_from(n).ok();
            }
        }
    }

    /// True when the whole buffer could be filled from `offset`.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: usize) -> bool {
        // SAFETY: the kernel writes at most the buffer's length.
        let n = unsafe { syscall(PREAD64, [self.0, buffer.as_mut_ptr() as usize, buffer.len(), offset, 0, 0]) };
        n == buffer.len() as isize
    }

    /// True when everything was written.
    pub(crate) fn write_all(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            // SAFETY: the kernel reads at most the slice's length.
            let n = unsafe { syscall(WRITE, [self.0, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
            match n {
                EINTR => {}
                1.. => bytes = &bytes[n as usize..],
                _ => return false,
            }
        }
        true
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is not used again.
        unsafe { syscall(CLOSE, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// Make a folder for the user alone. True when it exists afterwards.
pub(crate) fn make_folder(path: &CStr) -> bool {
    // SAFETY: the path is a C string.
    let made = unsafe { syscall(MKDIR, [path.as_ptr() as usize, 0o700, 0, 0, 0, 0]) };
    made == 0 || made == EEXIST
}

/// Put a finished file in its place, replacing what is there, in one step.
pub(crate) fn rename(from: &CStr, to: &CStr) -> bool {
    // SAFETY: both paths are C strings.
    unsafe { syscall(RENAME, [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0]) == 0 }
}

/// Remove an unfinished file.
pub(crate) fn remove(path: &CStr) {
    // SAFETY: the path is a C string.
    unsafe { syscall(UNLINK, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}
