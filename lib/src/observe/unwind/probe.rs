//! Asking the kernel whether memory can be read, without a fault and without `errno`.
//!
//! There is no call for it, so one is used that reads from an address before it refuses to do anything. `rt_sigprocmask`
//! with an operation that does not exist copies the signal set in, and says `EFAULT` or `EINVAL`; it costs less than 100 ns
//! and every sandbox allows it. That it reads first is how Linux does it and not a promise, so the first use tries it on an
//! address that nobody can read. Where the trick does not work, `process_vm_readv` on the process itself is used, and where
//! that is refused too, nothing counts as readable.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Memory becomes readable and unreadable in units of at least this size, in bytes.
pub(super) const PAGE: usize = 4096;

const RT_SIGPROCMASK: usize = 14;
const GETPID: usize = 39;
const PROCESS_VM_READV: usize = 310;
const EFAULT: isize = -14;
const EINVAL: isize = -22;

/// In the kernel's half of the address space.
const UNREADABLE: usize = usize::MAX << 12;

/// The way that works here; written by whoever asks first, always with the same result.
static METHOD: AtomicU8 = AtomicU8::new(UNTRIED);
const UNTRIED: u8 = 0;
const BY_SIGNAL_MASK: u8 = 1;
const BY_COPY: u8 = 2;
const IMPOSSIBLE: u8 = 3;

/// True when the page that begins at `page` can be read now.
#[cold]
#[inline(never)]
pub(super) fn is_readable(page: usize) -> bool {
    loop {
        match METHOD.load(Relaxed) {
            UNTRIED => METHOD.store(choose(), Relaxed),
            BY_SIGNAL_MASK => return by_signal_mask(page) == EINVAL,
            BY_COPY => return by_copy(page) == 1,
            _ => return false,
        }
    }
}

fn choose() -> u8 {
    let here = (&raw const METHOD).expose_provenance() & !7;
    if by_signal_mask(here) == EINVAL && by_signal_mask(UNREADABLE) == EFAULT {
        BY_SIGNAL_MASK
    } else if by_copy(here) == 1 && by_copy(UNREADABLE) != 1 {
        BY_COPY
    } else {
        IMPOSSIBLE
    }
}

fn by_signal_mask(address: usize) -> isize {
    const NO_OPERATION: usize = usize::MAX >> 33;
    const SET_SIZE: usize = 8;
    // SAFETY: the kernel reads one signal set, checks the address itself, and refuses the operation.
    unsafe { raw_syscall(RT_SIGPROCMASK, [NO_OPERATION, address, 0, SET_SIZE, 0, 0]) }
}

pub(super) fn by_copy(address: usize) -> isize {
    let mut byte = 0u8;
    let to = [(&raw mut byte).expose_provenance(), 1];
    let from = [address, 1];
    let (to, from) = ((&raw const to).expose_provenance(), (&raw const from).expose_provenance());
    // SAFETY: the kernel writes one byte to a variable of ours, and checks the other address itself.
    unsafe {
        let this_process = raw_syscall(GETPID, [0; 6]) as usize;
        raw_syscall(PROCESS_VM_READV, [this_process, to, 1, from, 1, 0])
    }
}

/// A system call without the C library. `os` has one as well; this folder uses nothing outside itself, because
/// `workloads/unwind-check` compiles it on its own.
///
/// # Safety
/// As unsafe as the call that is made.
unsafe fn raw_syscall(number: usize, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: the registers are those of the kernel's calling convention; the caller vouches for the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}
