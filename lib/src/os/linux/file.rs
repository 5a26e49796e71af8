//! Files, by raw system calls.

use super::syscall::{
    CLOSE, FCNTL, FTRUNCATE, LSEEK, MKDIR, OPEN, PREAD64, READ, READLINK, RENAME, UNLINK, WRITE, syscall,
};
use core::ffi::CStr;

const O_WRONLY: usize = 1;
const O_CREAT: usize = 0o100;
const O_TRUNC: usize = 0o1000;
const O_NOFOLLOW: usize = 0o400_000;
const O_CLOEXEC: usize = 0o2_000_000;
/// The first descriptor that is no standard one.
const LOWEST: usize = 3;
const EINTR: isize = -4;
const EEXIST: isize = -17;
const EIO: i32 = 5;

/// An open file; closed when dropped.
pub(crate) struct File(pub(super) usize);

impl File {
    /// Open for reading.
    pub(crate) fn open(path: &CStr) -> Option<File> {
        // SAFETY: the path is a C string.
        Self::from(unsafe { syscall(OPEN, [path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0, 0]) })
    }

    /// Create or truncate for writing, readable by the user alone. Symbolic links are not followed. Or the cause as `errno` has it.
    pub(crate) fn create(path: &CStr) -> Result<File, i32> {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
        // SAFETY: the path is a C string.
        let result = unsafe { syscall(OPEN, [path.as_ptr() as usize, flags, 0o600, 0, 0, 0]) };
        Self::above_the_standard_ones(result, true)
    }

    /// What `open` has returned, for reading or for writing without an offset that counts.
    pub(super) fn from(result: isize) -> Option<File> {
        Self::above_the_standard_ones(result, false).ok()
    }

    /// A program that was started without standard descriptors, or has closed them, gets their numbers for what is opened next. Its other
    /// threads go on to read and write them meanwhile: ours must not be there.
    fn above_the_standard_ones(opened: isize, is_new: bool) -> Result<File, i32> {
        cause(opened)?;
        let low = File(opened as usize);
        Ok(if low.0 >= LOWEST { low } else { low.move_up(is_new) })
    }

    /// Stays where it is if there is no room above: a thread of ours has a table of its own, and a limit may leave it three numbers.
    #[cold]
    fn move_up(self, is_new: bool) -> File {
        const DUPFD_CLOEXEC: usize = 1030;
        // SAFETY: the descriptor is ours.
        let moved = unsafe { syscall(FCNTL, [self.0, DUPFD_CLOEXEC, LOWEST, 0, 0, 0]) };
        if moved < 0 {
            return self;
        }
        drop(self);
        let file = File(moved as usize);
        // What the program has written or read in that moment. Devices and pipes have no offset.
        // SAFETY: the file is ours, and a new one is empty but for that.
        unsafe {
            if is_new {
                syscall(FTRUNCATE, [file.0, 0, 0, 0, 0, 0]);
            }
            syscall(LSEEK, [file.0, 0, 0, 0, 0, 0]);
        }
        file
    }

    /// Its number.
    pub(super) fn number(&self) -> i32 {
        self.0 as i32
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

    /// Write everything, or tell why not. A file size limit is a cause as any other: see
    /// [`without_write_signals`](super::without_write_signals).
    pub(crate) fn write_all(&self, mut bytes: &[u8]) -> Result<(), i32> {
        while !bytes.is_empty() {
            // SAFETY: the kernel reads at most the slice's length.
            let n = unsafe { syscall(WRITE, [self.0, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
            match n {
                EINTR => {}
                1.. => bytes = &bytes[n as usize..],
                0 => return Err(EIO), // no file system does that
                _ => return cause(n),
            }
        }
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is not used again.
        unsafe { syscall(CLOSE, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// The `errno` in a result of the kernel's.
fn cause(result: isize) -> Result<(), i32> {
    if result < 0 { Err(-result as i32) } else { Ok(()) }
}

/// Make a folder for the user alone; one that is there is fine.
pub(crate) fn make_folder(path: &CStr) -> Result<(), i32> {
    // SAFETY: the path is a C string.
    match unsafe { syscall(MKDIR, [path.as_ptr() as usize, 0o700, 0, 0, 0, 0]) } {
        EEXIST => Ok(()),
        result => cause(result),
    }
}

/// Put a finished file in its place, replacing what is there, in one step.
pub(crate) fn rename(from: &CStr, to: &CStr) -> Result<(), i32> {
    // SAFETY: both paths are C strings.
    cause(unsafe { syscall(RENAME, [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0]) })
}

/// Remove an unfinished file.
pub(crate) fn remove(path: &CStr) {
    // SAFETY: the path is a C string.
    unsafe { syscall(UNLINK, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// What a link says. `None`: it cannot be read, or does not fit.
pub(crate) fn read_link<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path is a C string, and the kernel writes at most the buffer's length.
    let n = unsafe { syscall(READLINK, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) };
    usize::try_from(n).ok().filter(|&n| n < buffer.len()).map(|n| &buffer[..n])
}

#[cfg(test)]
mod tests {
    use super::super::libc::ENOENT;
    use super::*;

    #[test]
    fn causes_are_told() {
        const ENOTDIR: i32 = 20;
        assert_eq!(File::create(c"/dev/null/x").err(), Some(ENOTDIR));
        assert_eq!(rename(c"/nowhere/a", c"/nowhere/b"), Err(ENOENT));
        assert_eq!(make_folder(c"/"), Ok(()));
        let full = File(File::create(c"/dev/full").map(|file| core::mem::ManuallyDrop::new(file).0).unwrap());
        assert_eq!(full.write_all(b"x"), Err(super::super::libc::ENOSPC));
    }
}
