//! Where the socket is: `mpp-<process id>.sock` in the user's runtime folder, or in one of our own below `/tmp`.

use super::super::path::Path;
use crate::os;
use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering::*};

/// Folders that are tried, in this order: that of the environment, that of the system, our own.
pub(super) const CANDIDATES: usize = 3;

struct Shared(UnsafeCell<Path>);
// SAFETY: see the two statics.
unsafe impl Sync for Shared {}

/// The folder that the environment names. Written once, before there is a thread that reads it.
static RUNTIME: Shared = Shared(UnsafeCell::new(Path::EMPTY));
/// The socket that is open, written by the thread that opens it while `OPEN` is false.
static SOCKET: Shared = Shared(UnsafeCell::new(Path::EMPTY));
static OPEN: AtomicBool = AtomicBool::new(false);

/// Remember what the environment says.
pub(super) fn remember() {
    if let Some(folder) = os::variable(b"XDG_RUNTIME_DIR").filter(|folder| folder.starts_with(b"/")) {
        // SAFETY: nobody reads yet.
        let path = unsafe { &mut *RUNTIME.0.get() };
        if !path.push(folder) {
            *path = Path::EMPTY;
        }
    }
}

/// `open` the socket in one of the folders; `None` if that is not there, or not this user's alone.
pub(super) fn choose<R>(candidate: usize, open: impl FnOnce(&core::ffi::CStr) -> R) -> Option<R> {
    let user = os::effective_user();
    // SAFETY: OPEN is false, and there is one thread of this kind.
    let path = unsafe { &mut *SOCKET.0.get() };
    *path = Path::EMPTY;
    let mut text = Text(path, true);
    let _ = match candidate {
        // SAFETY: not written any more.
        0 => unsafe {
            text.1 = text.0.push((*RUNTIME.0.get()).as_bytes());
            Ok(())
        },
        1 => write!(text, "/run/user/{user}"),
        _ => write!(text, "/tmp/mpp-{user}"),
    };
    if !text.1 || path.as_bytes().is_empty() {
        return None;
    }
    if candidate == CANDIDATES - 1 {
        let _ = os::make_folder(path.as_c_str());
    }
    if !os::is_own_folder(path.as_c_str(), user) {
        return None;
    }
    let mut text = Text(path, true);
    let _ = write!(text, "/mpp-{}.sock", os::process_id());
    if !text.1 {
        return None;
    }
    let opened = open(path.as_c_str());
    OPEN.store(true, Release);
    Some(opened)
}

/// Take away the socket, if there is one.
pub(super) fn remove() {
    if OPEN.swap(false, AcqRel) {
        // SAFETY: written before OPEN was true.
        unsafe { (*SOCKET.0.get()).remove() };
    }
}

/// In a forked child: that socket is its parent's.
pub(super) fn forked() {
    OPEN.store(false, Relaxed);
}

struct Text<'a>(&'a mut Path, bool);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.1 = self.1 && self.0.push(text.as_bytes());
        Ok(())
    }
}
