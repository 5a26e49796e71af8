//! The only code that talks to an operating system or an architecture, but for `observe/unwind`: that folder stands alone, so that
//! `workloads/unwind-check` can compile the very same source, and so has its own system call and its own registers.
//!
//! Everything here uses raw system calls: they never touch `errno`, cannot be interposed by the program, and therefore
//! cannot call back into the allocator. The few C library functions that have no replacement are declared in
//! [`linux::libc`](self) and called only with no lock held.

pub(crate) mod child;
pub(crate) mod lock;

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
#[macro_use]
mod linux;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
pub(crate) use linux::*;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64")))]
compile_error!("mimalloc-pprof supports 64-bit Linux on x86-64 in this version");

/// Size of an operating system page in bytes.
pub(crate) const PAGE: usize = 4096;
