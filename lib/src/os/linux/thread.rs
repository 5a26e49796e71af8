//! Threads: identity, one fast thread-local word, waiting, ending the process.

use super::libc;
use super::syscall::{
    CLOCK_GETTIME, FUTEX, GETPID, GETPPID, GETRANDOM, GETTID, MEMBARRIER, PRCTL, SCHED_GETAFFINITY, WRITE, syscall,
};
use core::arch::asm;

const FUTEX_WAIT_PRIVATE: usize = 128;
const FUTEX_WAKE_PRIVATE: usize = 128 | 1;
/// Longest sleep in a lock. A sleeper may have been missed by who gave the lock back, and a `clone` without handlers, made by a
/// signal handler in the moment before the wait, leaves a child that would wait for a thread it does not have: both look again
/// after this long.
const LONGEST_WAIT_NS: u64 = 250_000;

/// Address of the thread control block: unique among living threads, no set-up, the same in a forked child (a kernel
/// thread id is not), and even.
#[inline(always)]
pub(crate) fn thread_id() -> u64 {
    let id: u64;
    // SAFETY: reads the word that the ABI puts at fs:0.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) id, options(pure, readonly, nostack, preserves_flags)) };
    id
}

/// A thread-local machine word with the initial-exec model: two instructions to read, a static initial value, no set-up.
///
/// `thread_local!` in a shared library costs a call; the initial-exec model can be had on stable Rust only like this.
/// Static TLS is scarce for a library that is brought in late by `dlopen`: everything else hangs behind these words.
macro_rules! thread_word {
    ($(#[$doc:meta])* $read:ident, $write:ident, $symbol:literal, $($initial:tt)+) => {
        core::arch::global_asm!(
            ".pushsection .tdata.mimalloc_pprof,\"awT\",@progbits",
            ".balign 8",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8"),
            concat!($symbol, ":"),
            ".quad {initial}",
            ".popsection",
            initial = $($initial)+,
        );

        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $read() -> usize {
            let value: usize;
            // SAFETY: reads this thread's own word; its offset is fixed when the module is loaded.
            unsafe {
                core::arch::asm!(
                    concat!("mov {value}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "mov {value}, qword ptr fs:[{value}]",
                    value = out(reg) value,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            value
        }

        /// Out of line, so that no read is moved across it.
        #[inline(never)]
        pub(crate) fn $write(value: usize) {
            // SAFETY: writes this thread's own word.
            unsafe {
                core::arch::asm!(
                    concat!("mov {offset}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "mov qword ptr fs:[{offset}], {value}",
                    offset = out(reg) _,
                    value = in(reg) value,
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}

/// A machine word of the process that every crate we are inlined into reaches by one instruction.
///
/// A Rust static is reached through the global offset table from another crate, which would cost `free` a load.
macro_rules! global_word {
    ($(#[$doc:meta])* $read:ident, $write:ident, $symbol:literal, $initial:literal) => {
        core::arch::global_asm!(
            ".pushsection .data.mimalloc_pprof,\"aw\",@progbits",
            // Not at the start of a page: see `OffPageStart`.
            ".balign 4096",
            ".skip {place}",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8"),
            concat!($symbol, ":"),
            concat!(".quad ", $initial),
            ".popsection",
            place = const crate::os::PLACE_IN_PAGE,
        );

        $(#[$doc])*
        #[inline(always)]
        fn $read() -> usize {
            let value: usize;
            // SAFETY: an aligned load of a word that is only ever written by an aligned store.
            unsafe {
                core::arch::asm!(
                    concat!("mov {value}, qword ptr [rip + ", $symbol, "]"),
                    value = out(reg) value,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            value
        }

        #[inline(never)]
        fn $write(value: usize) {
            // SAFETY: as above; on x86-64 every store releases.
            unsafe {
                core::arch::asm!(
                    concat!("mov qword ptr [rip + ", $symbol, "], {value}"),
                    value = in(reg) value,
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}

/// Ask to be allowed [`fence_process`]. False: the kernel cannot, or may not (seccomp).
pub(crate) fn prepare_fence() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: usize = 16;
    // SAFETY: a request without pointers.
    unsafe { syscall(MEMBARRIER, [REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) == 0 }
}

/// A full memory barrier in every running thread of the process. False: it did not happen.
pub(crate) fn fence_process() -> bool {
    const PRIVATE_EXPEDITED: usize = 8;
    // SAFETY: a request without pointers.
    unsafe { syscall(MEMBARRIER, [PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) == 0 }
}

/// Add to a word of this thread in one instruction, so that a signal handler sees it before or after, never in between.
#[inline(always)]
pub(crate) fn add_at_once(word: &core::sync::atomic::AtomicUsize, amount: usize) {
    // SAFETY: an aligned word; other threads only read it, and a plain add is one store to them.
    unsafe { asm!("add qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) amount, options(nostack)) };
}

/// Store `value` in a word that is 0, in one instruction, which no signal handler of this thread can divide. False: it was not 0. Other
/// threads may only make it 0.
#[inline(always)]
pub(crate) fn fill_at_once(word: &core::sync::atomic::AtomicUsize, value: usize) -> bool {
    let before: usize;
    // SAFETY: an aligned word. Not locked: another thread's store of 0 changes nothing in a word that is 0.
    unsafe {
        asm!("cmpxchg qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) value, inout("rax") 0usize => before, options(nostack));
    }
    before == 0
}

/// Sleep while `*word == value`, at most a quarter of a millisecond.
pub(crate) fn futex_wait(word: *const u32, value: u32) {
    let timeout = [0u64, LONGEST_WAIT_NS];
    // SAFETY: the kernel only reads the word and the time-out.
    unsafe { syscall(FUTEX, [word as usize, FUTEX_WAIT_PRIVATE, value as usize, timeout.as_ptr() as usize, 0, 0]) };
}

/// Wake all sleepers.
pub(crate) fn futex_wake_all(word: *const u32) {
    // SAFETY: the kernel takes the address as a key only.
    unsafe { syscall(FUTEX, [word as usize, FUTEX_WAKE_PRIVATE, i32::MAX as usize, 0, 0, 0]) };
}

/// Where the program's own module begins to run.
pub(crate) fn program_entry() -> usize {
    libc::getauxval(libc::AT_ENTRY)
}

/// Processors that this thread may run on; 4 when the kernel does not tell.
pub(crate) fn processors() -> usize {
    let mut mask = [0u64; 128];
    // SAFETY: the kernel writes at most the size of the mask.
    let n = unsafe { syscall(SCHED_GETAFFINITY, [0, size_of_val(&mask), mask.as_mut_ptr() as usize, 0, 0, 0]) };
    let count: u32 = mask.iter().map(|word| word.count_ones()).sum();
    if n > 0 && count > 0 { count as usize } else { 4 }
}

pub(crate) fn process_id() -> u32 {
    // SAFETY: no arguments, no effect.
    unsafe { syscall(GETPID, [0; 6]) as u32 }
}

/// The kernel's id of the calling thread.
pub(crate) fn kernel_thread_id() -> u32 {
    // SAFETY: no arguments, no effect.
    unsafe { syscall(GETTID, [0; 6]) as u32 }
}

/// The name of the calling thread, with zeros at its end.
pub(crate) fn thread_name() -> [u8; 16] {
    const GET_NAME: usize = 16;
    let mut name = [0; 16];
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { syscall(PRCTL, [GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    name
}

pub(crate) fn parent_id() -> u32 {
    // SAFETY: no arguments, no effect.
    unsafe { syscall(GETPPID, [0; 6]) as u32 }
}

/// A number that differs from process to process. Not for secrets: falls back to the clock and the stack address.
pub(crate) fn random_seed() -> u64 {
    const GRND_NONBLOCK: usize = 1;
    let mut seed = 0u64;
    // SAFETY: the kernel writes at most the eight bytes of `seed`.
    let got = unsafe { syscall(GETRANDOM, [&raw mut seed as usize, 8, GRND_NONBLOCK, 0, 0, 0]) };
    if got != 8 {
        let mut time = [0u64; 2];
        // SAFETY: the kernel writes two words.
        unsafe { syscall(CLOCK_GETTIME, [1, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
        seed = time[0] ^ time[1] << 20 ^ (process_id() as u64) << 40 ^ &raw const seed as u64;
    }
    seed
}

/// One line on standard error, in one write, with the library's name in front; nothing if that was closed, and maybe is a file of the
/// program's now.
pub(crate) fn complain(message: &[u8]) {
    complain_about(message, b"");
}

/// [`complain`] with the line in two parts.
pub(crate) fn complain_about(message: &[u8], detail: &[u8]) {
    complain_parts(&[message, detail]);
}

/// [`complain`] with the line in parts. What is more than fits is left out.
pub(crate) fn complain_parts(parts: &[&[u8]]) {
    let mut line = [0u8; 512];
    let mut length = 0;
    for part in [b"mimalloc-pprof: ".as_slice()].iter().chain(parts).chain(&[b"\n".as_slice()]) {
        let room = line.len() - length;
        let part = &part[..part.len().min(room)];
        line[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    if super::is_standard_error() {
        // SAFETY: writes from a buffer of ours.
        unsafe { syscall(WRITE, [2, line.as_ptr() as usize, length, 0, 0, 0]) };
    }
}

/// The program has misused the allocator, or the allocator is broken: to go on would corrupt memory.
#[cold]
#[inline(never)]
pub(crate) fn fatal(message: &[u8]) -> ! {
    complain(message);
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
