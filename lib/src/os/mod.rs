//! The only code that talks to an operating system or an architecture, but for `observe/unwind`: that folder stands alone, so that
//! `workloads/unwind-check` can compile the very same source, and so has its own system call and its own registers.
//!
//! Everything here uses raw system calls: they never touch `errno`, cannot be interposed by the program, and therefore
//! cannot call back into the allocator. The few C library functions that have no replacement are declared in
//! [`linux::libc`](self) and called only with no lock held.

pub(crate) mod child;
pub(crate) mod lock;
pub(crate) mod users;

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
#[macro_use]
mod linux;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
pub(crate) use linux::*;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64")))]
compile_error!("mimalloc-pprof supports 64-bit Linux on x86-64 in this version");

/// Size of an operating system page in bytes.
pub(crate) const PAGE: usize = 4096;

/// What every slow path reads, at a place where the program's blocks do not drive it out of the cache: they begin at the starts of pages
/// more often than not, and all lines there compete for the same few places. (Measured: 22 instead of 15.8 ns for a block of 32 KiB
/// that is touched, when a word was there.)
#[repr(C, align(4096))]
pub(crate) struct OffPageStart<T> {
    front: [u8; PLACE_IN_PAGE],
    value: T,
}

/// Bytes from the start of a page to what is [`OffPageStart`].
pub(crate) const PLACE_IN_PAGE: usize = 0x5c0;

impl<T> OffPageStart<T> {
    pub(crate) const fn new(value: T) -> Self {
        OffPageStart { front: [0; PLACE_IN_PAGE], value }
    }
}

impl<T> core::ops::Deref for OffPageStart<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}
