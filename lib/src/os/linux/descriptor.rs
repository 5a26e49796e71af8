//! Writing to what the program has opened, or names, without being killed or held for ever by it.

use super::File;
use super::syscall::{FSTAT, WRITE, syscall};
use core::ffi::CStr;

const OPEN: usize = 2;
const POLL: usize = 7;

const EINTR: isize = -4;
const EAGAIN: isize = -11;
const EIO: i32 = 5;
const POLLOUT: u64 = 4;
/// How long a descriptor that does not block may take nothing, in milliseconds.
const PATIENCE: usize = 10_000;

/// A descriptor of the program's. Not closed.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor(pub(crate) i32);

impl Descriptor {
    /// Write everything, or tell why not, as `errno` has it. Waits as the descriptor does; one that does not block is waited for, for ten
    /// seconds without progress.
    pub(crate) fn write_all(self, mut bytes: &[u8]) -> Result<(), i32> {
        while !bytes.is_empty() {
            // SAFETY: the kernel reads at most the slice's length.
            let n = unsafe { syscall(WRITE, [self.0 as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
            match n {
                EINTR => {}
                EAGAIN if self.has_room() => {}
                1.. => bytes = &bytes[n as usize..],
                0 => return Err(EIO),
                _ => return Err(-n as i32),
            }
        }
        Ok(())
    }

    /// Wait until something can be written. False: that takes too long.
    fn has_room(self) -> bool {
        let mut poll = self.0 as u32 as u64 | POLLOUT << 32;
        loop {
            // SAFETY: the kernel reads and writes eight bytes.
            match unsafe { syscall(POLL, [&raw mut poll as usize, 1, PATIENCE, 0, 0, 0]) } {
                EINTR => {}
                ready => return ready > 0,
            }
        }
    }
}

/// What is at a path if it is no regular file (a terminal, a pipe, a device): to be written to, not to be replaced. `waits`: for
/// somebody who reads a pipe; else it is an error, as `errno` has it, if nobody does.
pub(crate) fn open_special(path: &CStr, waits: bool) -> Result<Option<(File, Descriptor)>, i32> {
    const O_WRONLY: usize = 1;
    const O_CLOEXEC: usize = 0o2_000_000;
    const O_NOCTTY: usize = 0o400;
    const O_NONBLOCK: usize = 0o4000;
    const NOBODY_READS: i32 = 6;
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    /// `st_mode` in `struct stat`, which has 144 bytes.
    const MODE: usize = 24 / 4;
    // SAFETY: the path is a C string; the kernel fills the structure.
    unsafe {
        let flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | if waits { 0 } else { O_NONBLOCK };
        let opened = syscall(OPEN, [path.as_ptr() as usize, flags, 0, 0, 0, 0]);
        if opened == -(NOBODY_READS as isize) {
            return Err(NOBODY_READS);
        }
        let Some(file) = File::from(opened) else { return Ok(None) };
        let mut stat = [0u32; 144 / 4];
        let told = syscall(FSTAT, [file.number() as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) == 0;
        let descriptor = Descriptor(file.number());
        Ok((told && stat[MODE] & KIND != REGULAR).then_some((file, descriptor)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::without_write_signals;
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_closed_pipe_is_an_error_and_no_end() {
        const EPIPE: i32 = 32;
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // The runtime of Rust ignores the signal; the kernel forgets it then. What is tested through C programs is the rest.
        let written = without_write_signals(|| Descriptor(writer.as_raw_fd()).write_all(b"x"));
        assert_eq!(written, Err(EPIPE));
        const EBADF: i32 = 9;
        assert_eq!(Descriptor(-1).write_all(b"x"), Err(EBADF));
        assert_eq!(Descriptor(-1).write_all(b""), Ok(()));
    }

    #[test]
    fn a_slow_reader_is_waited_for() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        const FCNTL: usize = 72;
        const F_SETFL: usize = 4;
        const O_NONBLOCK: usize = 0o4000;
        // SAFETY: a descriptor of this test's.
        unsafe { syscall(FCNTL, [writer.as_raw_fd() as usize, F_SETFL, O_NONBLOCK, 0, 0, 0]) };
        let slow = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let mut read = std::vec::Vec::new();
            reader.read_to_end(&mut read).unwrap();
            read.len()
        });
        assert_eq!(Descriptor(writer.as_raw_fd()).write_all(&[7; 300_000]), Ok(()));
        drop(writer);
        assert_eq!(slow.join().unwrap(), 300_000);
    }

    #[test]
    fn devices_are_written_to() {
        const ENOSPC: i32 = 28;
        let (_file, full) = open_special(c"/dev/full", true).unwrap().unwrap();
        assert_eq!(full.write_all(b"x"), Err(ENOSPC));
        assert!(open_special(c"/proc/self/nothing", true).unwrap().is_none());
        let own = std::ffi::CString::new(std::env::current_exe().unwrap().to_str().unwrap()).unwrap();
        assert!(open_special(&own, false).unwrap().is_none());
    }
}
