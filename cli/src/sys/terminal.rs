//! The size of a terminal.

use std::os::fd::{AsRawFd, BorrowedFd};

/// Columns of a terminal; `None` for anything else.
pub(crate) fn columns(stream: BorrowedFd<'_>) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel fills the struct that TIOCGWINSZ is about, or nothing.
    let answered = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) } == 0;
    answered.then_some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}
