//! Files that grow: what is there stays, and more is put behind it.

use super::File;
use super::syscall::{FTRUNCATE, LSEEK, OPEN, PRLIMIT64, syscall};
use core::ffi::CStr;

const O_WRONLY: usize = 1;
const O_APPEND: usize = 0o2000;
const O_NOFOLLOW: usize = 0o400_000;
const O_CLOEXEC: usize = 0o2_000_000;

impl File {
    /// Open a file that is there to write behind its end. Symbolic links are not followed.
    pub(crate) fn append(path: &CStr) -> Option<File> {
        let flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
        // SAFETY: the path is a C string.
        let opened = unsafe { syscall(OPEN, [path.as_ptr() as usize, flags, 0, 0, 0, 0]) };
        (opened >= 0).then_some(File(opened as usize))
    }

    /// Bytes in it; what is read next of a file that was opened for reading is its end.
    pub(crate) fn size(&self) -> Option<u64> {
        const END: usize = 2;
        // SAFETY: a request without pointers.
        u64::try_from(unsafe { syscall(LSEEK, [self.0, 0, END, 0, 0, 0]) }).ok()
    }

    /// Cut off what is beyond so many bytes.
    pub(crate) fn truncate(&self, size: u64) -> bool {
        // SAFETY: a request without pointers.
        unsafe { syscall(FTRUNCATE, [self.0, size as usize, 0, 0, 0, 0]) == 0 }
    }
}

/// Bytes that a file may have by the limits of the process. Who writes beyond gets a signal that ends the program.
pub(crate) fn file_size_limit() -> u64 {
    const RLIMIT_FSIZE: usize = 1;
    let mut limits = [u64::MAX; 2];
    // SAFETY: the kernel writes two words.
    unsafe { syscall(PRLIMIT64, [0, RLIMIT_FSIZE, 0, limits.as_mut_ptr() as usize, 0, 0]) };
    limits[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_is_cut() {
        let name = std::format!("/tmp/mimalloc-pprof-append-{}\0", std::process::id());
        let path = CStr::from_bytes_with_nul(name.as_bytes()).unwrap();
        assert!(File::append(path).is_none());
        assert!(File::create(path).unwrap().write_all(b"one").is_ok());
        let file = File::append(path).unwrap();
        assert!(file.write_all(b"two").is_ok() && file.size() == Some(6));
        assert!(file.truncate(4) && file.write_all(b"!").is_ok());
        assert_eq!(std::fs::read(path.to_str().unwrap()).unwrap(), b"onet!");
        crate::os::remove(path);
        assert!(file_size_limit() > 0);
    }
}
