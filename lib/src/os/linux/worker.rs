//! Threads of our own: start, wait, end.

use super::super::PAGE;
use super::handler::set_mask;
use super::libc::{self, EINVAL};
use super::syscall::{CLOSE_RANGE, FUTEX, PRCTL, syscall};
use super::{map, unmap};
use core::ffi::CStr;
use core::ptr::{null, null_mut};
use core::sync::atomic::AtomicU32;

/// Our threads call nothing deep. Where this is too small for what libraries keep for each thread, twice as much is tried, and so on.
const SMALLEST_STACK: usize = 64 << 10;
const LARGEST_STACK: usize = 16 << 20;
/// A thread's name, with the zero at its end.
const LONGEST_NAME: usize = 16;

/// Bit `n - 1` is signal `n`. No signal of the program is handled on a thread that it does not know of. Open are those that a thread
/// gets for what it does itself, and those by which the C library reaches every thread (`setuid` waits for all to answer).
pub(super) const BLOCKED: u64 = !open_signals();

const fn open_signals() -> u64 {
    const ILL: u64 = 4;
    const TRAP: u64 = 5;
    const BUS: u64 = 7;
    const FPE: u64 = 8;
    const SEGV: u64 = 11;
    const SYS: u64 = 31;
    const LIBRARY: u64 = 32;
    /// musl has one more, which is the program's first one elsewhere.
    const LAST_OF_LIBRARY: u64 = if cfg!(target_env = "musl") { 34 } else { 33 };
    let mut open = 0;
    let mut signal = 1;
    while signal <= 64 {
        if matches!(signal, ILL | TRAP | BUS | FPE | SEGV | SYS | LIBRARY..=LAST_OF_LIBRARY) {
            open |= 1 << (signal - 1);
        }
        signal += 1;
    }
    open
}

/// Sleep while `*word == value`, at most `timeout_ns` nanoseconds. May return early for no reason.
pub(crate) fn wait_on(word: &AtomicU32, value: u32, timeout_ns: Option<u64>) {
    const WAIT_PRIVATE: usize = 128;
    let timeout = timeout_ns.map(|ns| [ns / 1_000_000_000, ns % 1_000_000_000]);
    let timeout = timeout.as_ref().map_or(null(), |timeout| timeout.as_ptr());
    // SAFETY: the kernel only reads the word and the time-out.
    unsafe { syscall(FUTEX, [word.as_ptr() as usize, WAIT_PRIVATE, value as usize, timeout as usize, 0, 0]) };
}

/// Wake all who [`wait_on`] the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    super::futex_wake_all(word.as_ptr());
}

/// What a new thread needs, on a page that it unmaps.
struct Start {
    name: [u8; LONGEST_NAME],
    run: extern "C" fn(*mut u8) -> *mut u8,
}

/// Run a function, which is given a null pointer, in a new thread of this name (15 bytes are kept). To be joined. `None`: the system has
/// no room for it, and nothing has changed.
///
/// The C library allocates for it: callers hold no lock.
pub(crate) fn start_thread(name: &CStr, run: extern "C" fn(*mut u8) -> *mut u8) -> Option<usize> {
    // Not on our stack: we would have to wait until the thread has read it.
    let page = map(PAGE);
    if page.is_null() {
        return None;
    }
    let mut start = Start { name: [0; LONGEST_NAME], run };
    let name = name.to_bytes();
    let kept = name.len().min(LONGEST_NAME - 1);
    start.name[..kept].copy_from_slice(&name[..kept]);
    // SAFETY: a fresh page of ours.
    unsafe { page.cast::<Start>().write(start) };
    let errno = libc::errno();
    // The new thread has its creator's mask from its first instruction on.
    let mask = set_mask(BLOCKED);
    let thread = create(page);
    set_mask(mask);
    libc::set_errno(errno);
    if thread.is_none() {
        unmap(page, PAGE);
    }
    thread
}

/// Wait for the end of a thread that [`start_thread`] has made, once.
pub(crate) fn join_thread(id: usize) {
    const DISABLE: i32 = 1;
    let errno = libc::errno();
    let mut before = 0;
    // SAFETY: callers join what they have started, once. A thread that the program has cancelled is not to end in here.
    unsafe {
        libc::pthread_setcancelstate(DISABLE, &raw mut before);
        libc::pthread_join(id, null_mut());
        libc::pthread_setcancelstate(before, null_mut());
    }
    libc::set_errno(errno);
}

/// Nobody joins the calling thread.
pub(crate) fn detach_this_thread() {
    // SAFETY: the thread is ours, and nobody joins it.
    unsafe { libc::pthread_detach(libc::pthread_self()) };
}

/// The calling thread, one of ours, gets a table of descriptors of its own, with nothing in it. True: what it opens from now on is not the
/// program's, which may close all that it does not know of, and open something else under the same number while we read.
///
/// Nothing stays open in it, or whoever waits for the end of a pipe would wait for ever. That goes for standard error, too: what this
/// thread has to say is lost.
pub(crate) fn leave_descriptors() -> bool {
    const UNSHARE: usize = 2;
    // SAFETY: the table that is emptied is the calling thread's alone. A copy of the program's, if others use that.
    unsafe { syscall(CLOSE_RANGE, [0, u32::MAX as usize, UNSHARE, 0, 0, 0]) == 0 }
}

fn create(start: *mut u8) -> Option<usize> {
    // 56 bytes in the C libraries there are.
    let mut attributes = [0u64; 16];
    // SAFETY: room for what the call fills.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut thread = 0;
    let mut stack = SMALLEST_STACK;
    let mut result = EINVAL;
    // EINVAL: smaller than the least there may be, or than what libraries keep on it for each thread.
    while result == EINVAL && stack <= LARGEST_STACK {
        // SAFETY: the attributes were made above; `begin` takes the page over if the thread is made.
        unsafe {
            result = libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
            if result == 0 {
                result = libc::pthread_create(&raw mut thread, attributes.as_ptr(), begin, start);
            }
        }
        stack *= 2;
    }
    // SAFETY: made above, not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (result == 0).then_some(thread)
}

/// The first function of a new thread.
unsafe extern "C" fn begin(page: *mut u8) -> *mut u8 {
    const SET_NAME: usize = 15;
    // SAFETY: `start_thread` has written it there, and leaves the page to us.
    let start = unsafe { page.cast::<Start>().read() };
    unmap(page, PAGE);
    // SAFETY: the kernel reads a name that ends with a zero.
    unsafe { syscall(PRCTL, [SET_NAME, start.name.as_ptr() as usize, 0, 0, 0, 0]) };
    (start.run)(null_mut())
}

#[cfg(test)]
mod tests {
    use super::super::syscall::RT_SIGPROCMASK;
    use super::*;
    use crate::os;
    use core::sync::atomic::{AtomicU64, Ordering::*};

    fn mask() -> u64 {
        let mut mask = 0u64;
        // SAFETY: the kernel writes the mask.
        unsafe { syscall(RT_SIGPROCMASK, [0, 0, &raw mut mask as usize, 8, 0, 0]) };
        mask
    }

    #[test]
    fn starts_blocks_signals_and_ends() {
        static MASK: AtomicU64 = AtomicU64::new(0);
        static NAME: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
        static GO: AtomicU32 = AtomicU32::new(0);
        extern "C" fn run(argument: *mut u8) -> *mut u8 {
            assert!(argument.is_null());
            while GO.load(Acquire) == 0 {
                wait_on(&GO, 0, None);
            }
            MASK.store(mask(), Relaxed);
            let mut name = [0u64; 2];
            const GET_NAME: usize = 16;
            // SAFETY: the kernel writes 16 bytes.
            unsafe { syscall(PRCTL, [GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
            (0..2).for_each(|i| NAME[i].store(name[i], Relaxed));
            null_mut()
        }
        let before = mask();
        libc::set_errno(77);
        let thread = start_thread(c"0123456789abcdefgh", run).unwrap();
        assert_eq!((mask(), libc::errno()), (before, 77));
        GO.store(1, Release);
        wake_all(&GO);
        join_thread(thread);
        assert_eq!(libc::errno(), 77);
        let blocked = |signal: u32| MASK.load(Relaxed) >> (signal - 1) & 1 == 1;
        for signal in 1..=64 {
            // SIGKILL and SIGSTOP cannot be blocked.
            let open = [4, 5, 7, 8, 11, 31, 32, 33, 9, 19].contains(&signal);
            assert_eq!(blocked(signal), !open, "signal {signal}");
        }
        let name: std::vec::Vec<u8> = NAME.iter().flat_map(|half| half.load(Relaxed).to_ne_bytes()).collect();
        assert_eq!(name, b"0123456789abcde\0");
    }

    #[test]
    fn descriptors_of_its_own() {
        static LEFT: AtomicU32 = AtomicU32::new(2);
        static OPENED: AtomicU64 = AtomicU64::new(0);
        extern "C" fn run(_: *mut u8) -> *mut u8 {
            LEFT.store(leave_descriptors() as u32, Relaxed);
            // What is open: the folder itself.
            let open = std::fs::read_dir("/proc/thread-self/fd").unwrap();
            OPENED.store(open.count() as u64, Relaxed);
            null_mut()
        }
        let mine = std::fs::File::open("/dev/null").unwrap();
        join_thread(start_thread(c"table", run).unwrap());
        assert!(mine.metadata().is_ok());
        let left = LEFT.load(Relaxed) == 1;
        assert_eq!(OPENED.load(Relaxed) == 1, left, "{}", OPENED.load(Relaxed));
    }

    #[test]
    fn many_one_after_the_other() {
        static RAN: AtomicU32 = AtomicU32::new(0);
        extern "C" fn run(_: *mut u8) -> *mut u8 {
            RAN.fetch_add(1, Relaxed);
            null_mut()
        }
        (0..200).for_each(|_| join_thread(start_thread(c"short", run).unwrap()));
        assert_eq!(RAN.load(Relaxed), 200);
    }

    #[test]
    fn waiting_times_out_and_looks_first() {
        static WORD: AtomicU32 = AtomicU32::new(5);
        let start = os::now();
        while os::now() - start < 30_000_000 {
            wait_on(&WORD, 5, Some(30_000_000));
        }
        // Another value: there is nothing to wait for, however long.
        wait_on(&WORD, 4, None);
        wait_on(&WORD, 4, Some(u64::MAX));
    }
}
