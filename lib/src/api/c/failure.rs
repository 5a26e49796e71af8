//! How a call that cannot succeed ends: null, `errno`, and a word to whoever registered for errors.

use super::hooks;
use crate::heap::allocate;
use crate::options::{self, Name};
use crate::os::{
    self,
    libc::{EINVAL, set_errno},
};

/// What handlers are told when a count times a size is no size. `errno` then is `ENOMEM`, as the C standard wants.
const EOVERFLOW: i32 = 75;

/// An alignment that is none.
#[cold]
#[inline(never)]
pub(super) fn refuse() -> *mut u8 {
    report(EINVAL, b"an alignment that is not a power of two, or cannot be had at that offset");
    set_errno(EINVAL);
    core::ptr::null_mut()
}

/// A count times a size is more than a size can be: null with `ENOMEM`.
#[cold]
#[inline(never)]
pub fn overflow() -> *mut u8 {
    report(EOVERFLOW, b"a number of objects times their size is more than there can be");
    allocate::out_of_memory()
}

/// Tell the program's handler; on standard error too if that was asked for.
fn report(code: i32, what: &[u8]) {
    if options::get(Name::ShowErrors) != 0 {
        os::complain(what);
    }
    hooks::error(code);
}
