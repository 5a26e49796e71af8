//! Whether descriptor 2 is standard error: a program that was started without one, or has closed it, gets that number for a file of its own,
//! and nothing of ours belongs there.

use super::syscall::{FCNTL, FSTAT, syscall};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

const DESCRIPTOR: usize = 2;
/// What a file is, in `st_mode`.
const KIND: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// What it was at the start. `UNKNOWN`: nobody has looked.
static START: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const CLOSED: u8 = 1;
const OPEN: u8 = 2;
/// Of the one that was open.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

struct What {
    device: u64,
    number: u64,
    kind: u32,
}

/// `None`: it is closed, or that cannot be told.
fn what() -> Option<What> {
    // `struct stat` has 144 bytes and begins with the device, the file's number, the number of its names, and the mode.
    let mut stat = [0u64; 144 / 8];
    // SAFETY: the kernel fills the structure.
    let told = unsafe { syscall(FSTAT, [DESCRIPTOR, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) } == 0;
    told.then_some(What { device: stat[0], number: stat[1], kind: stat[3] as u32 & KIND })
}

/// The process begins: what descriptor 2 is now is its standard error.
pub(crate) fn remember_standard_error() {
    let what = what();
    if let Some(what) = &what {
        DEVICE.store(what.device, Relaxed);
        NUMBER.store(what.number, Relaxed);
    }
    START.store(if what.is_some() { OPEN } else { CLOSED }, Release);
}

/// Whether a line may be written there: it is what it was at the start, or what a program puts in its place that wants lines: a terminal
/// or the like, or something that is only appended to.
pub(crate) fn is_standard_error() -> bool {
    match START.load(Acquire) {
        UNKNOWN => true,
        CLOSED => false,
        _ => what().is_some_and(|now| {
            let same = (now.device, now.number) == (DEVICE.load(Relaxed), NUMBER.load(Relaxed));
            same || now.kind == CHARACTER_DEVICE || is_appended_to()
        }),
    }
}

fn is_appended_to() -> bool {
    const GETFL: usize = 3;
    const O_APPEND: isize = 0o2000;
    // SAFETY: nothing is read or written.
    let flags = unsafe { syscall(FCNTL, [DESCRIPTOR, GETFL, 0, 0, 0, 0]) };
    flags >= 0 && flags & O_APPEND != 0
}
