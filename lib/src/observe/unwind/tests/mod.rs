//! Tests of the unwinder. What needs real programs is in the `unwind-check` package.

#[allow(unused_extern_crates, reason = "needed in a crate without the standard library")]
extern crate std;

mod cache;
mod calls;
mod capture;
mod rules;
mod stacks;
mod tables;
mod trails;
mod written;

use core::ffi::c_int;
use core::ptr::null_mut;

/// A small generator (xorshift64*), so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

unsafe extern "C" {
    fn mmap(at: *mut u8, length: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut u8;
    fn mprotect(at: *mut u8, length: usize, protection: c_int) -> c_int;
    fn munmap(at: *mut u8, length: usize) -> c_int;
}

const PAGE: usize = 4096;

/// Memory with an unreadable page on both sides: reading outside it kills the test.
struct Guarded {
    start: *mut u8,
    length: usize,
}

impl Guarded {
    fn new(pages: usize) -> Guarded {
        let length = pages * PAGE;
        // SAFETY: a new private mapping (PROT_NONE), of which the inner pages are made readable and writable.
        unsafe {
            let all = mmap(null_mut(), length + 2 * PAGE, 0, 0x22, -1, 0);
            assert_ne!(all as isize, -1);
            let start = all.add(PAGE);
            assert_eq!(mprotect(start, length, 3), 0);
            Guarded { start, length }
        }
    }

    fn start(&self) -> usize {
        self.start.expose_provenance()
    }

    fn end(&self) -> usize {
        self.start() + self.length
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: our own mapping, borrowed for as long as the slice lives.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made.
        unsafe { munmap(self.start.sub(PAGE), self.length + 2 * PAGE) };
    }
}
