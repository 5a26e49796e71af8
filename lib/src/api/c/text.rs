//! Text for people, on its way to a function of the program's or to standard error.

use super::hooks;
use crate::os;
use core::ffi::{c_char, c_void};
use core::fmt;

/// Gets text in pieces, each a C string. Returns normally.
pub type OutputFn = unsafe extern "C" fn(text: *const c_char, arg: *mut c_void);

/// Longest piece, with its end.
const PIECE: usize = 512;

/// A buffer before a sink. What is left is written when it is dropped.
pub(super) struct Text {
    sink: Option<(OutputFn, *mut c_void)>,
    buffer: [u8; PIECE],
    used: usize,
}

impl Text {
    /// To this function, or if there is none, to the registered one, or to standard error.
    ///
    /// # Safety
    /// The function may be called with the argument until the text is dropped.
    pub(super) unsafe fn to(function: Option<OutputFn>, arg: *mut c_void) -> Text {
        let sink = function.map(|function| (function, arg)).or_else(hooks::output);
        Text { sink, buffer: [0; PIECE], used: 0 }
    }

    fn flush(&mut self) {
        if self.used == 0 {
            return;
        }
        match self.sink {
            // SAFETY: whoever named the function allows the call; the buffer ends with a zero.
            Some((function, arg)) => unsafe { function(self.buffer.as_ptr().cast(), arg) },
            None => os::write_error(&self.buffer[..self.used]),
        }
        self.buffer[..self.used].fill(0);
        self.used = 0;
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.used == PIECE - 1 {
                self.flush();
            }
            let n = rest.len().min(PIECE - 1 - self.used);
            self.buffer[self.used..self.used + n].copy_from_slice(&rest[..n]);
            self.used += n;
            rest = &rest[n..];
        }
        Ok(())
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.flush();
    }
}
