//! System calls without the C library: no `errno`, no hooks, no cancellation points.

use core::arch::asm;

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const OPEN: usize = 2;
pub(super) const CLOSE: usize = 3;
pub(super) const FSTAT: usize = 5;
pub(super) const LSEEK: usize = 8;
pub(super) const MMAP: usize = 9;
pub(super) const MPROTECT: usize = 10;
pub(super) const MUNMAP: usize = 11;
pub(super) const RT_SIGPROCMASK: usize = 14;
pub(super) const PREAD64: usize = 17;
pub(super) const MREMAP: usize = 25;
pub(super) const MINCORE: usize = 27;
pub(super) const MADVISE: usize = 28;
pub(super) const GETPID: usize = 39;
pub(super) const UNAME: usize = 63;
pub(super) const FCNTL: usize = 72;
pub(super) const FTRUNCATE: usize = 77;
pub(super) const RENAME: usize = 82;
pub(super) const MKDIR: usize = 83;
pub(super) const UNLINK: usize = 87;
pub(super) const GETPPID: usize = 110;
pub(super) const READLINK: usize = 89;
pub(super) const RT_SIGPENDING: usize = 127;
pub(super) const RT_SIGTIMEDWAIT: usize = 128;
pub(super) const PRCTL: usize = 157;
pub(super) const GETTID: usize = 186;
pub(super) const FUTEX: usize = 202;
pub(super) const SCHED_GETAFFINITY: usize = 204;
pub(super) const CLOCK_GETTIME: usize = 228;
pub(super) const MBIND: usize = 237;
pub(super) const PRLIMIT64: usize = 302;
pub(super) const PROCESS_VM_READV: usize = 310;
pub(super) const GETRANDOM: usize = 318;
pub(super) const MEMBARRIER: usize = 324;
pub(super) const CLOSE_RANGE: usize = 436;
pub(super) const PROCESS_MADVISE: usize = 440;

/// The kernel's own result: negative values are `-errno`.
///
/// # Safety
/// As unsafe as the call that is made; pointers must be what that call expects.
#[inline(always)]
pub(super) unsafe fn syscall(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the registers are those of the kernel's calling convention; the caller vouches for the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}
