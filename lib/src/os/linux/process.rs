//! What the kernel knows of this process: times, memory, faults. And its standard error.

use super::File;
use super::syscall::{CLOCK_GETTIME, PROCESS_VM_READV, UNAME, WRITE, syscall};
use core::ffi::{CStr, c_char, c_int};

unsafe extern "C" {
    /// The path that a path leads to, in a buffer of [`PATH_MAX`] bytes; null and `errno`.
    pub(crate) fn realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char;
    /// Write a C string to a stream of the program's; negative when that fails.
    pub(crate) fn fputs(text: *const c_char, stream: *mut u8) -> c_int;
}

/// Room that `realpath` needs, in bytes.
pub(crate) const PATH_MAX: usize = 4096;

/// Room for a host name with its end, in bytes.
pub(crate) const HOST_NAME: usize = 65;

const GETRUSAGE: usize = 98;
const CLOCK_BOOTTIME: usize = 7;
/// Ticks of a second in `/proc`, the same on every Linux.
const TICKS: u64 = 100;

/// Times in milliseconds, memory in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Usage {
    /// Since the process was started; 0 without `/proc`.
    pub(crate) elapsed: u64,
    pub(crate) user: u64,
    pub(crate) system: u64,
    /// In memory now; 0 without `/proc`.
    pub(crate) resident: u64,
    /// The most that ever was in memory.
    pub(crate) peak_resident: u64,
    /// Private memory that may be written, whether it was touched or not; 0 without `/proc`.
    pub(crate) committed: u64,
    /// Page faults that had to wait for a disk.
    pub(crate) major_faults: u64,
}

/// The process up to now.
pub(crate) fn usage() -> Usage {
    let mut raw = [0i64; 18];
    // SAFETY: the kernel fills a `struct rusage`, which is 18 words; 0 is the process itself.
    unsafe { syscall(GETRUSAGE, [0, raw.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    // Two times of seconds and microseconds, then the peak in KiB; the major faults are the sixth of the counts.
    let milliseconds = |at: usize| (raw[at] * 1000 + raw[at + 1] / 1000) as u64;
    let (resident, committed) = pages_in_use();
    Usage {
        elapsed: elapsed(),
        user: milliseconds(0),
        system: milliseconds(2),
        resident,
        peak_resident: (raw[4] as u64 * 1024).max(resident),
        committed,
        major_faults: raw[9] as u64,
    }
}

/// Bytes of the process that are in memory now (0 without `/proc`), and the most that ever were.
pub(crate) fn resident() -> (u64, u64) {
    let (resident, _) = pages_in_use();
    (resident, peak_resident().max(resident))
}

fn peak_resident() -> u64 {
    let mut raw = [0u64; 18];
    // SAFETY: as in `usage`.
    unsafe { syscall(GETRUSAGE, [0, raw.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    raw[4] * 1024
}

/// Resident bytes, and bytes of data and stack, from `/proc/self/statm`.
fn pages_in_use() -> (u64, u64) {
    let mut buffer = [0u8; 256];
    let text = read(c"/proc/self/statm", &mut buffer);
    let page = super::super::PAGE as u64;
    (field(text, 1).unwrap_or(0) * page, field(text, 5).unwrap_or(0) * page)
}

fn elapsed() -> u64 {
    let mut buffer = [0u8; 1024];
    let text = read(c"/proc/self/stat", &mut buffer);
    // The second field is the program's name in parentheses, and may hold anything.
    let after_name = text.iter().rposition(|&byte| byte == b')').map_or(text.len(), |at| at + 1);
    let Some(started) = field(&text[after_name..], 19) else { return 0 };
    let mut now = [0u64; 2];
    // SAFETY: the kernel writes two words.
    unsafe { syscall(CLOCK_GETTIME, [CLOCK_BOOTTIME, now.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    (now[0] * 1000 + now[1] / 1_000_000).saturating_sub(started * (1000 / TICKS))
}

fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let length = File::open(path).and_then(|file| file.read(buffer)).unwrap_or(0);
    &buffer[..length]
}

/// The number in a field between blanks.
fn field(text: &[u8], number: usize) -> Option<u64> {
    let mut fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    core::str::from_utf8(fields.nth(number)?).ok()?.parse().ok()
}

/// End the process with all its threads.
pub(crate) fn exit_process(status: i32) -> ! {
    const EXIT_GROUP: usize = 231;
    loop {
        // SAFETY: does not return.
        unsafe { syscall(EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Copy memory of this process that may vanish meanwhile. False: not all of it is there.
pub(crate) fn read_own_memory(address: usize, into: &mut [u8]) -> bool {
    let local = [into.as_mut_ptr() as usize, into.len()];
    let remote = [address, into.len()];
    let own = super::process_id() as usize;
    // SAFETY: the kernel writes at most the slice's length, and reads only what is mapped.
    let n = unsafe { syscall(PROCESS_VM_READV, [own, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0]) };
    n == into.len() as isize
}

/// The machine's name on the network.
pub(crate) fn host_name(buffer: &mut [u8; HOST_NAME]) -> &[u8] {
    // Six fields of this size; the name is the second.
    let mut names = [0u8; 6 * HOST_NAME];
    // SAFETY: the kernel fills the structure, which is of this size.
    unsafe { syscall(UNAME, [names.as_mut_ptr() as usize, 0, 0, 0, 0, 0]) };
    buffer.copy_from_slice(&names[HOST_NAME..2 * HOST_NAME]);
    let length = buffer.iter().position(|&byte| byte == 0).unwrap_or(HOST_NAME);
    &buffer[..length]
}

/// Write to standard error; errors have nowhere to go.
pub(crate) fn write_error(mut bytes: &[u8]) {
    const EINTR: isize = -4;
    while !bytes.is_empty() {
        // SAFETY: the kernel reads at most the slice's length.
        match unsafe { syscall(WRITE, [2, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) } {
            EINTR => {}
            written if written > 0 => bytes = &bytes[written as usize..],
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process() {
        let before = usage();
        let block = std::hint::black_box(std::vec![1u8; 64 << 20]);
        let with = usage();
        drop(block);
        // The kernel keeps these counts per processor and adds them up now and then.
        let about = 60 << 20;
        assert!(with.resident > about && with.committed > about && with.peak_resident >= with.resident, "{with:?}");
        assert!(usage().peak_resident > about);
        assert!(with.elapsed >= before.elapsed && with.elapsed < 3_600_000, "{with:?}");
        while usage().user + usage().system == before.user + before.system {}
    }

    #[test]
    fn memory_that_may_not_be_there() {
        let there = [7u8; 10];
        let mut copy = [0u8; 10];
        assert!(read_own_memory(there.as_ptr() as usize, &mut copy) && copy == there);
        assert!(!read_own_memory(8, &mut copy));
    }

    #[test]
    fn the_host() {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(host_name(&mut [0; HOST_NAME]), name.trim_end().as_bytes());
    }

    #[test]
    fn fields() {
        assert_eq!(field(b"12 34  5\n", 1), Some(34));
        assert_eq!(field(b"12 34 5", 3), None);
        assert_eq!(field(b"12 x", 1), None);
    }
}
