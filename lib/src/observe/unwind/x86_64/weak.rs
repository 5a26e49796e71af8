//! Symbols that the C library may lack. The references are weak and go through the global offset table, so that the library
//! loads all the same.
//!
//! A linker writes down the version of a symbol that it sees, and the loader of an older system then refuses the library
//! even so. To run there, link against that system's C library.

use super::super::module::FindObject;
use core::arch::asm;

/// The address of a symbol, or null.
macro_rules! weak_address {
    ($name:literal) => {{
        let address: *const u8;
        // SAFETY: reads one word of this module's own offset table, which is filled before any of its code runs.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        address
    }};
}

/// The C library's look-up of modules (glibc since 2.35).
#[inline(always)]
pub(in super::super) fn find_object() -> Option<FindObject> {
    let function = weak_address!("_dl_find_object");
    // SAFETY: null is `None` for an optional function pointer; otherwise it is the function of this name and type.
    unsafe { core::mem::transmute::<*const u8, Option<FindObject>>(function) }
}

/// The end of the first thread's stack (glibc), or 0.
#[inline(always)]
pub(super) fn stack_end() -> usize {
    let variable = weak_address!("__libc_stack_end").cast::<usize>();
    // SAFETY: a word that the loader writes before any code of ours runs.
    if variable.is_null() { 0 } else { unsafe { *variable } }
}
