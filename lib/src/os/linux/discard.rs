//! Giving pages back, many ranges with one call.
//!
//! A heap with holes has tens of thousands of ranges of a few pages. One call for each costs about 4 µs, most of it for entering the
//! kernel and its lock; a vector of ranges less than half of that. The kernel takes vectors of this advice for the process itself since
//! Linux 6.13; elsewhere ranges go one by one.

use super::syscall::{MADVISE, PROCESS_MADVISE, syscall};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const MADV_DONTNEED: usize = 4;
const MADV_FREE: usize = 8;
const MADV_COLD: usize = 20;
/// In the place of a descriptor: this process.
const PIDFD_SELF: usize = -10_001isize as usize;
/// What the kernel takes in one call.
const LONGEST_VECTOR: usize = 1024;
/// Calls that are made again when the kernel was interrupted or short of something.
const TRIES: u32 = 8;

const EPERM: isize = -1;
const ESRCH: isize = -3;
const EINTR: isize = -4;
const EBADF: isize = -9;
const EAGAIN: isize = -11;
const EINVAL: isize = -22;
const ENOSYS: isize = -38;

/// Whole pages. Laid out as the kernel's `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) address: usize,
    pub(crate) length: usize,
}

/// Vectors are used.
static VECTORS: AtomicBool = AtomicBool::new(false);
/// System calls made here.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Give the memory of ranges back; they read zero from then on. `lazily`: the kernel takes it when it needs it, and until then, or until
/// they are written, they read what they held. Callers own the ranges and nobody uses what is in them.
///
/// How many of them, from the first on, this was done for. The one after those is refused (locked, unmapped, no memory), and may be done
/// in part; those behind it are as they were.
pub(crate) fn discard_ranges(ranges: &[Range], lazily: bool) -> usize {
    advise(ranges, if lazily { MADV_FREE } else { MADV_DONTNEED })
}

/// Have the kernel split the huge pages that these pages (one in each) are part of, which changes no contents. A hole in a huge page
/// lowers only the figures of the process: the kernel keeps the memory until the page is split.
///
/// How many, from the first on, the kernel has looked at.
pub(crate) fn split_huge(pages: &[Range]) -> usize {
    advise(pages, MADV_COLD)
}

/// System calls that were made here up to now.
pub(crate) fn discard_calls() -> u64 {
    CALLS.load(Relaxed)
}

/// Whether vectors may be used from now on (at first they may not), until the kernel refuses them. Filters of system calls that kill know
/// only `madvise`.
pub(crate) fn permit_vectors(permitted: bool) {
    VECTORS.store(permitted && !is_emulated(), Relaxed);
}

/// Whether this runs under Valgrind, which does not know the vectors and says so on the program's standard error. By the request that it
/// offers for that, which does nothing on a processor.
fn is_emulated() -> bool {
    const RUNNING_ON_VALGRIND: usize = 0x1001;
    let request = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let answer: usize;
    // SAFETY: the rotations of rdi come to a whole turn, and the exchange of rbx with itself changes nothing.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0usize => answer,
            options(nostack)
        );
    }
    answer != 0
}

fn advise(ranges: &[Range], advice: usize) -> usize {
    let mut done = 0;
    for batch in ranges.chunks(LONGEST_VECTOR) {
        let advised = advise_batch(batch, advice);
        done += advised;
        if advised < batch.len() {
            break;
        }
    }
    done
}

/// At most [`LONGEST_VECTOR`] ranges.
fn advise_batch(ranges: &[Range], advice: usize) -> usize {
    let mut done = 0;
    while let rest = &ranges[done..]
        && rest.len() > 1
        && VECTORS.load(Relaxed)
    {
        let result = call(PROCESS_MADVISE, [PIDFD_SELF, rest.as_ptr() as usize, rest.len(), advice, 0, 0]);
        if result > 0 {
            let (whole, part) = progress(rest, result as usize);
            done += whole;
            // The kernel stops in a range only where one call has had enough (2 GiB).
            if part > 0 {
                let Range { address, length } = rest[whole];
                if !advise_one(Range { address: address + part, length: length - part }, advice) {
                    return done;
                }
                done += 1;
            }
            continue;
        }
        if !advise_one(rest[0], advice) {
            return done;
        }
        done += 1;
        // The range can be had, so it is the vector that is refused: by an older kernel, or by a filter.
        if matches!(result, EINVAL | ENOSYS | EPERM | EBADF | ESRCH) {
            permit_vectors(false);
        }
        break;
    }
    done + ranges[done..].iter().take_while(|&&range| advise_one(range, advice)).count()
}

/// Ranges that so many bytes are, and the bytes of the next one.
fn progress(ranges: &[Range], bytes: usize) -> (usize, usize) {
    let mut left = bytes;
    for (whole, range) in ranges.iter().enumerate() {
        if range.length > left {
            return (whole, left);
        }
        left -= range.length;
    }
    (ranges.len(), 0)
}

fn advise_one(range: Range, advice: usize) -> bool {
    call(MADVISE, [range.address, range.length, advice, 0, 0, 0]) == 0
}

fn call(number: usize, args: [usize; 6]) -> isize {
    let mut tries = 0;
    loop {
        CALLS.fetch_add(1, Relaxed);
        // SAFETY: the kernel reads the vector; callers own the ranges in it, and nobody uses what an advice may take away.
        let result = unsafe { syscall(number, args) };
        tries += 1;
        if !matches!(result, EINTR | EAGAIN) || tries == TRIES {
            return result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{map, unmap};
    use super::*;
    use std::vec::Vec;

    const PAGE: usize = 4096;

    /// Memory of its own, every page of it with its number in it.
    struct Pages(*mut u8, usize);

    impl Pages {
        fn new(count: usize) -> Pages {
            let at = map(count * PAGE);
            assert!(!at.is_null());
            super::super::advise_huge(at as usize, count * PAGE, false);
            let pages = Pages(at, count);
            (0..count).for_each(|page| pages.write(page, page as u64 + 1));
            pages
        }
        fn range(&self, first: usize, count: usize) -> Range {
            Range { address: self.0 as usize + first * PAGE, length: count * PAGE }
        }
        fn write(&self, page: usize, value: u64) {
            assert!(page < self.1);
            // SAFETY: in the mapping.
            unsafe { self.0.add(page * PAGE).cast::<u64>().write_volatile(value) }
        }
        fn read(&self, page: usize) -> u64 {
            // SAFETY: in the mapping.
            unsafe { self.0.add(page * PAGE).cast::<u64>().read_volatile() }
        }
        /// Pages in memory.
        fn resident(&self) -> Vec<bool> {
            const MINCORE: usize = 27;
            let mut map = std::vec![0u8; self.1];
            // SAFETY: the kernel writes a byte for each page.
            let result =
                unsafe { syscall(MINCORE, [self.0 as usize, self.1 * PAGE, map.as_mut_ptr() as usize, 0, 0, 0]) };
            assert_eq!(result, 0);
            map.into_iter().map(|byte| byte & 1 != 0).collect()
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            unmap(self.0, self.1 * PAGE);
        }
    }

    /// The same with vectors and without. One test at a time: others in this process only see a slower road.
    fn both_ways(check: impl Fn()) {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock().unwrap();
        permit_vectors(false);
        check();
        assert!(!VECTORS.load(Relaxed));
        permit_vectors(true);
        check();
        // Only the kernel's own answer has put an end to them, no refused range.
        assert_eq!(VECTORS.load(Relaxed), has_vectors());
    }

    /// This kernel takes vectors.
    fn has_vectors() -> bool {
        let pages = Pages::new(2);
        let ranges = [pages.range(0, 1), pages.range(1, 1)];
        // SAFETY: memory of this test.
        let result =
            unsafe { syscall(PROCESS_MADVISE, [PIDFD_SELF, ranges.as_ptr() as usize, 2, MADV_DONTNEED, 0, 0]) };
        result == 2 * PAGE as isize
    }

    #[test]
    fn every_other_page() {
        both_ways(|| {
            // More than go into one vector.
            let pages = Pages::new(5000);
            let ranges: Vec<_> = (0..2500).map(|i| pages.range(2 * i, 1)).collect();
            let calls = discard_calls();
            assert_eq!(discard_ranges(&ranges, false), 2500);
            assert!(discard_calls() >= calls + 3);
            for (page, resident) in pages.resident().into_iter().enumerate() {
                assert_eq!(resident, page % 2 == 1, "page {page}");
                assert_eq!(pages.read(page), if page % 2 == 1 { page as u64 + 1 } else { 0 });
            }
        });
    }

    #[test]
    fn none_and_one() {
        assert_eq!(discard_ranges(&[], false), 0);
        let pages = Pages::new(3);
        assert_eq!(discard_ranges(&[pages.range(1, 1)], false), 1);
        assert_eq!(pages.resident(), [true, false, true]);
    }

    #[test]
    fn a_hole_ends_it() {
        both_ways(|| {
            let pages = Pages::new(64);
            unmap((pages.0 as usize + 30 * PAGE) as *mut u8, PAGE);
            let ranges: Vec<_> = (0..64).map(|page| pages.range(page, 1)).collect();
            assert_eq!(discard_ranges(&ranges, false), 30);
            assert!((0..30).all(|page| pages.read(page) == 0));
            assert!((31..64).all(|page| pages.read(page) == page as u64 + 1));
            // At the start, and as the only one.
            assert_eq!(discard_ranges(&ranges[30..], false), 0);
            assert_eq!(discard_ranges(&ranges[30..31], false), 0);
            assert_eq!(discard_ranges(&ranges[31..], false), 33);
            assert!((31..64).all(|page| pages.read(page) == 0));
        });
    }

    #[test]
    fn nothing_is_done_behind_the_vector_that_a_hole_ends() {
        both_ways(|| {
            let pages = Pages::new(2 * LONGEST_VECTOR + 2);
            unmap((pages.0 as usize + 30 * PAGE) as *mut u8, PAGE);
            let ranges: Vec<_> = (0..pages.1).map(|page| pages.range(page, 1)).collect();
            assert_eq!(discard_ranges(&ranges, false), 30);
            assert!((31..pages.1).all(|page| pages.read(page) == page as u64 + 1));
        });
    }

    #[test]
    fn more_bytes_than_one_call_takes() {
        both_ways(|| {
            const HALF: usize = 5 << 18; // pages of 5 GiB / 2
            let at = map(2 * HALF * PAGE);
            let pages = Pages(at, 2 * HALF);
            super::super::advise_huge(at as usize, 2 * HALF * PAGE, false);
            let touched = [0, HALF / 2, HALF - 1, HALF, HALF + HALF / 2, 2 * HALF - 1];
            touched.iter().for_each(|&page| pages.write(page, 7));
            assert_eq!(discard_ranges(&[pages.range(0, HALF), pages.range(HALF, HALF)], false), 2);
            assert!(touched.iter().all(|&page| pages.read(page) == 0));
        });
    }

    #[test]
    fn lazily_keeps_what_is_written() {
        both_ways(|| {
            let pages = Pages::new(256);
            let ranges: Vec<_> = (0..128).map(|i| pages.range(2 * i, 1)).collect();
            assert_eq!(discard_ranges(&ranges, true), 128);
            (0..256).for_each(|page| pages.write(page, 9));
            assert!((0..256).all(|page| pages.read(page) == 9));
        });
    }

    #[test]
    fn splitting_changes_nothing() {
        both_ways(|| {
            let pages = Pages::new(2048);
            super::super::advise_huge(pages.0 as usize, 2048 * PAGE, true);
            let ranges: Vec<_> = (0..4).map(|i| pages.range(512 * i, 1)).collect();
            assert_eq!(split_huge(&ranges), 4);
            assert!((0..2048).all(|page| pages.read(page) == page as u64 + 1));
        });
    }

    #[test]
    fn where_a_short_answer_ends() {
        let ranges = [3, 1, 4].map(|pages| Range { address: 0, length: pages * PAGE });
        assert_eq!(progress(&ranges, 3 * PAGE), (1, 0));
        assert_eq!(progress(&ranges, 2 * PAGE), (0, 2 * PAGE));
        assert_eq!(progress(&ranges, 5 * PAGE), (2, PAGE));
        assert_eq!(progress(&ranges, 8 * PAGE), (3, 0));
    }
}
