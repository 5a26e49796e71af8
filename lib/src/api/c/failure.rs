//! How a call that cannot succeed ends: null, `errno`, and a word to whoever registered for errors.

use super::hooks;
use super::text::Text;
use crate::heap::allocate;
use crate::options::{self, Name};
use crate::os::libc::{EINVAL, EOVERFLOW, set_errno};
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An alignment that is none.
#[cold]
#[inline(never)]
pub(super) fn refuse() -> *mut u8 {
    failed(EINVAL, b"an alignment that is not a power of two, or cannot be had at that offset", false);
    set_errno(EINVAL);
    core::ptr::null_mut()
}

/// A count times a size is more than a size can be: null with `ENOMEM`, as the C standard wants; handlers get `EOVERFLOW`.
#[cold]
#[inline(never)]
pub fn overflow() -> *mut u8 {
    failed(EOVERFLOW, b"a number of objects times their size is more than there can be", false);
    allocate::no_memory()
}

/// Tell the program's function for errors, and people if that was asked for. False: there is no such function; then something
/// `fatal` is not told to people either, as whoever asks is going to.
#[cold]
pub(crate) fn failed(code: i32, message: &[u8], fatal: bool) -> bool {
    let known = hooks::handles_errors();
    if known || !fatal {
        show(message);
    }
    known && {
        hooks::error(code);
        true
    }
}

/// A line where `mi_register_output` says, if errors are to be shown and not too many of them were.
fn show(message: &[u8]) {
    static SHOWN: AtomicU64 = AtomicU64::new(0);
    if options::get(Name::ShowErrors) == 0 && options::get(Name::Verbose) == 0 {
        return;
    }
    // A negative bound is none.
    if u64::try_from(options::get(Name::MaxErrors)).is_ok_and(|most| SHOWN.fetch_add(1, Relaxed) >= most) {
        return;
    }
    // SAFETY: there is no function.
    let mut text = unsafe { Text::to(None, core::ptr::null_mut()) };
    let _ = writeln!(text, "mimalloc-pprof: {}", core::str::from_utf8(message).unwrap_or_default());
}
