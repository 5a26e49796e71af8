//! Frees of what is not a block, or not any more. Found under locks, told when none is held.
//!
//! Whoever finds one leaves a **note** and goes on as if the free had not been made; the end of the slow path **tells**: the
//! program's function for errors gets `EAGAIN`, `EINVAL` or `EFAULT`. Where there is no such function, a message says what
//! happened and the process is aborted: to go on in silence would corrupt memory.
//!
//! Notes are single words, so that nothing here needs a lock or a repair in a forked child.

use super::classes::class_size;
use super::magazine::MAGAZINE_SHIFT;
use super::{release, span};
use crate::arena::{Kind, address_of, class_entry, index_of, is_ours, slice};
use crate::os::{self, libc};
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// What was wrong with a free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Misuse {
    /// The block was free already.
    Double = 1,
    /// There is no block at the address, and perhaps never was.
    Invalid = 2,
    /// The program has written beyond the end of the block.
    Corrupted = 3,
}

/// Notes that can wait to be told. More are only counted.
const NOTES: usize = 32;
/// Addresses have 47 bits; what is above is the kind.
const KIND_SHIFT: u32 = 60;

static WAITING: [AtomicU64; NOTES] = [const { AtomicU64::new(0) }; NOTES];
/// Notes of each kind that found no place.
static MORE: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static ANY: AtomicBool = AtomicBool::new(false);

/// Leave a note; any thread, with or without locks.
#[cold]
#[inline(never)]
pub(super) fn note(kind: Misuse, block: usize) {
    let word = (kind as u64) << KIND_SHIFT | block as u64;
    if !WAITING.iter().any(|place| place.compare_exchange(0, word, AcqRel, Relaxed).is_ok()) {
        MORE[kind as usize].fetch_add(1, Relaxed);
    }
    ANY.store(true, Release);
}

/// Tell what waits. With no lock held; keeps `errno`.
#[inline(always)]
pub(super) fn tell() {
    if ANY.load(Relaxed) {
        tell_all();
    }
}

/// Note and tell at once.
#[cold]
pub(super) fn report(kind: Misuse, block: usize) {
    note(kind, block);
    tell();
}

#[cold]
#[inline(never)]
fn tell_all() {
    let errno = libc::errno();
    ANY.store(false, Relaxed);
    for place in &WAITING {
        let word = place.swap(0, AcqRel);
        let block = (word & !(!0 << KIND_SHIFT)) as usize;
        if let Some(kind) = Misuse::of(word >> KIND_SHIFT) {
            kind.tell(|line| kind.describe(block, line));
        }
    }
    for (number, more) in MORE.iter().enumerate() {
        for _ in 0..more.swap(0, Relaxed) {
            if let Some(kind) = Misuse::of(number as u64) {
                kind.tell(|line| line.write_str(kind.what()));
            }
        }
    }
    libc::set_errno(errno);
}

impl Misuse {
    fn of(number: u64) -> Option<Misuse> {
        [Misuse::Double, Misuse::Invalid, Misuse::Corrupted].into_iter().find(|&kind| kind as u64 == number)
    }

    /// What the program's function gets, as mimalloc has it.
    fn code(self) -> i32 {
        match self {
            Misuse::Double => libc::EAGAIN,
            Misuse::Invalid => libc::EINVAL,
            Misuse::Corrupted => libc::EFAULT,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Misuse::Double => "double free of the pointer",
            Misuse::Invalid => "free of an invalid pointer",
            Misuse::Corrupted => "memory was written beyond the end of the block",
        }
    }

    fn tell(self, describe: impl FnOnce(&mut Line) -> core::fmt::Result) {
        let mut line = Line { text: [0; 400], used: 0 };
        let _ = describe(&mut line);
        if !(crate::HOOKS.failed)(self.code(), line.as_bytes(), true) {
            os::fatal(line.as_bytes());
        }
    }

    /// The pointer, what is known of its place, and what to do.
    fn describe(self, block: usize, line: &mut Line) -> core::fmt::Result {
        write!(line, "{} {block:#018x} (", self.what())?;
        describe_place(block, line)?;
        line.write_str(match self {
            Misuse::Double => "); MIMALLOC_SECURE=3 stops at the second free itself",
            Misuse::Invalid => "); MIMALLOC_SECURE=3 stops at the free itself",
            Misuse::Corrupted => "); MIMALLOC_GUARDED_PRECISE=1 stops at the write itself",
        })
    }
}

/// What lies at an address. Nobody holds a block there, so it is only a hint.
fn describe_place(block: usize, line: &mut Line) -> core::fmt::Result {
    let index = index_of(block);
    if !is_ours(index) {
        return line.write_str("not memory of this allocator");
    }
    // SAFETY: described slices have a class map entry and metadata.
    unsafe {
        let class = class_entry(index).read() as usize >> MAGAZINE_SHIFT;
        let first = (*slice(index)).first as usize;
        if class != 0 && first <= index && is_ours(first) {
            let (size, slab) = (class_size(class), address_of(first));
            let inside = (block - slab) % size;
            if inside != 0 {
                write!(line, "{inside} bytes inside the block at {:#x}, ", block - inside)?;
            }
            return write!(line, "class {class} of {size} bytes, slab at {slab:#x}");
        }
        match release::run_of(index) {
            Some((Kind::Span, first)) => {
                let (start, size) = span::extent(first);
                write!(line, "inside the block of {size} bytes at {start:#x}")
            }
            Some((Kind::Sampled, first)) => write!(line, "class of {} bytes", (*slice(first)).block_size),
            _ => line.write_str("nothing is allocated there, or not any more"),
        }
    }
}

/// A line of text; what does not fit is left out.
struct Line {
    text: [u8; 400],
    used: usize,
}

impl Line {
    fn as_bytes(&self) -> &[u8] {
        &self.text[..self.used]
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let n = text.len().min(self.text.len() - self.used);
        self.text[self.used..self.used + n].copy_from_slice(&text.as_bytes()[..n]);
        self.used += n;
        Ok(())
    }
}
