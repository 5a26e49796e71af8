//! What the GNU C library tells about its own heap. A field that has no meaning here is 0.

use super::stats::Stats;
use super::{hooks, purging};
use crate::os::{
    self,
    libc::{EINVAL, set_errno},
};
use core::ffi::c_int;
use core::fmt::{self, Write};

/// `struct mallinfo2`.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the names are those of the C library")]
pub struct Mallinfo<N> {
    pub arena: N,
    pub ordblks: N,
    pub smblks: N,
    /// Blocks larger than those of slabs.
    pub hblks: N,
    /// Their bytes.
    pub hblkhd: N,
    pub usmblks: N,
    pub fsmblks: N,
    /// Bytes in the blocks of slabs that the program holds.
    pub uordblks: N,
    pub fordblks: N,
    pub keepcost: N,
}

fn counts() -> Option<Stats> {
    let mut stats = core::mem::MaybeUninit::<Stats>::zeroed();
    let at = stats.as_mut_ptr();
    // SAFETY: all-zero is a valid value, and the two fields are set as `get` wants.
    unsafe {
        (*at).size = size_of::<Stats>();
        (*at).version = super::stats::STAT_VERSION;
        super::stats::get(at).then(|| stats.assume_init())
    }
}

/// `mallinfo2`.
pub fn mallinfo2() -> Mallinfo<usize> {
    let Some(stats) = counts() else { return Mallinfo::default() };
    Mallinfo {
        hblks: stats.malloc_bins[stats.malloc_bins.len() - 1].current as usize,
        hblkhd: stats.malloc_huge.current as usize,
        uordblks: stats.malloc_normal.current as usize,
        ..Mallinfo::default()
    }
}

/// `mallinfo`: the same; what an `int` cannot hold is the largest `int`.
pub fn mallinfo() -> Mallinfo<c_int> {
    let Mallinfo { hblks, hblkhd, uordblks, .. } = mallinfo2();
    let narrow = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
    Mallinfo { hblks: narrow(hblks), hblkhd: narrow(hblkhd), uordblks: narrow(uordblks), ..Mallinfo::default() }
}

/// `mallopt`: every parameter is accepted, none has a meaning here.
pub fn mallopt(_: c_int, _: c_int) -> c_int {
    1
}

/// `malloc_trim`: as `mi_collect(true)`. 1: something was returned to the operating system. Nothing is kept: whatever is free may go.
pub fn malloc_trim(_: usize) -> c_int {
    hooks::deferred_free(true);
    c_int::from(purging::return_all() != 0)
}

/// A C string of bounded length.
struct Line {
    bytes: [u8; 256],
    used: usize,
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        // The last byte stays zero.
        if end < self.bytes.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// `malloc_info`: XML on a stream of the program's. -1 and `errno` when options are given, of which there are none.
///
/// # Safety
/// `stream` is a `FILE` that may be written.
pub unsafe fn malloc_info(options: c_int, stream: *mut u8) -> c_int {
    if options != 0 {
        set_errno(EINVAL);
        return -1;
    }
    let info = mallinfo2();
    let mut line = Line { bytes: [0; 256], used: 0 };
    let written = writeln!(
        line,
        "<malloc version=\"mimalloc-pprof-1\">\n<slabs live=\"{}\"/>\n<spans count=\"{}\" live=\"{}\"/>\n</malloc>",
        info.uordblks, info.hblks, info.hblkhd
    );
    // SAFETY: the line ends with a zero, the stream is the caller's, and no lock is held.
    if written.is_ok() && unsafe { os::fputs(line.bytes.as_ptr().cast(), stream) } >= 0 { 0 } else { -1 }
}
