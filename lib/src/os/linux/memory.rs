//! Address space: map, unmap, protect, advise.

use super::super::PAGE;
use super::own;
use super::syscall::{MADVISE, MBIND, MINCORE, MMAP, MPROTECT, MREMAP, MUNMAP, PRLIMIT64, syscall};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

const PROT_NONE: usize = 0;
const PROT_READ_WRITE: usize = 1 | 2;
const MAP_PRIVATE: usize = 0x2;
const MAP_FIXED: usize = 0x10;
const MAP_ANONYMOUS: usize = 0x20;
/// Do not account memory that is never touched (ignored under `overcommit_memory=2`).
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
const MADV_DONTNEED: usize = 4;
const MADV_HUGEPAGE: usize = 14;
const MADV_NOHUGEPAGE: usize = 15;
const MADV_WIPEONFORK: usize = 18;
const NO_FILE: usize = usize::MAX;

/// What [`map`] gives has a page before it and one behind it that nobody may touch.
static GUARDED: AtomicBool = AtomicBool::new(false);

/// Put guards around everything that is mapped by [`map`] from now on.
pub(crate) fn guard_mappings() {
    GUARDED.store(true, Relaxed);
}

/// `length` bytes of zeroed memory wherever there is room; null when there is none.
pub(crate) fn map(length: usize) -> *mut u8 {
    if GUARDED.load(Relaxed) {
        let guarded = map_guarded(length.next_multiple_of(PAGE));
        if !guarded.is_null() {
            return guarded;
        }
    }
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: an anonymous mapping at an address of the kernel's choice disturbs nobody.
    let at = unsafe { syscall(MMAP, [0, length, PROT_READ_WRITE, flags, NO_FILE, 0]) };
    if at < 0 {
        return core::ptr::null_mut();
    }
    own::made(at as usize, length);
    at as *mut u8
}

/// Why memory was not to be had at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Something is mapped there.
    Taken,
    NoMemory,
}

/// Zeroed memory exactly at `address`, never over something else.
pub(crate) fn map_at(address: usize, length: usize) -> Result<(), Refusal> {
    const EEXIST: isize = 17;
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    // SAFETY: NOREPLACE never touches an existing mapping.
    let at = unsafe { syscall(MMAP, [address, length, PROT_READ_WRITE, flags, NO_FILE, 0]) };
    if at < 0 {
        return Err(if at == -EEXIST { Refusal::Taken } else { Refusal::NoMemory });
    }
    if at as usize != address {
        // A kernel before 4.17 takes the address for a hint.
        unmap(at as *mut u8, length);
        return Err(Refusal::Taken);
    }
    Ok(())
}

/// Bytes that the process may map, by its limits on address space and data.
pub(crate) fn address_space_limit() -> usize {
    let limit = |resource: usize| {
        let mut limits = [usize::MAX; 2];
        // SAFETY: the kernel writes two words.
        unsafe { syscall(PRLIMIT64, [0, resource, 0, limits.as_mut_ptr() as usize, 0, 0]) };
        limits[0]
    };
    const RLIMIT_DATA: usize = 2;
    const RLIMIT_AS: usize = 9;
    limit(RLIMIT_AS).min(limit(RLIMIT_DATA))
}

fn map_guarded(length: usize) -> *mut u8 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    let whole = length + 2 * PAGE;
    // SAFETY: as in `map`.
    let at = unsafe { syscall(MMAP, [0, whole, PROT_NONE, flags, NO_FILE, 0]) };
    if at < 0 {
        return core::ptr::null_mut();
    }
    let inner = at as usize + PAGE;
    if !allow(inner, length) {
        unmap(at as *mut u8, whole);
        return core::ptr::null_mut();
    }
    own::made(inner, length);
    inner as *mut u8
}

/// Address space exactly at `address` that nobody can use, if there is nothing yet.
pub(crate) fn forbid_at(address: usize, length: usize) {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    // SAFETY: NOREPLACE never touches an existing mapping.
    let at = unsafe { syscall(MMAP, [address, length, PROT_NONE, flags, NO_FILE, 0]) };
    if at >= 0 && at as usize != address {
        unmap(at as *mut u8, length); // a kernel before 4.17
    }
}

/// From now on every access to this range of whole pages is a fault. False: the kernel refuses, and nothing has changed.
pub(crate) fn forbid(address: usize, length: usize) -> bool {
    // SAFETY: callers pass ranges of their own that hold nothing.
    unsafe { syscall(MPROTECT, [address, length, PROT_NONE, 0, 0, 0]) == 0 }
}

/// Undo [`forbid`]. False: the kernel refuses.
pub(crate) fn allow(address: usize, length: usize) -> bool {
    // SAFETY: as above; what is there is anonymous memory of ours.
    unsafe { syscall(MPROTECT, [address, length, PROT_READ_WRITE, 0, 0, 0]) == 0 }
}

/// An address where `length` bytes of address space are free now. Nothing is kept: a reservation would count against
/// `RLIMIT_AS` for ever.
pub(crate) fn find_hole(length: usize) -> Option<usize> {
    let hole = map_nothing(length)?;
    unmap(hole as *mut u8, length);
    Some(hole)
}

/// Address space that nobody can use.
fn map_nothing(length: usize) -> Option<usize> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: as in `map`.
    let at = unsafe { syscall(MMAP, [0, length, PROT_NONE, flags, NO_FILE, 0]) };
    (at >= 0).then_some(at as usize)
}

/// [`find_hole`], and whether the kernel places mappings from the bottom up. It does, if the hole is above a mapping of `probe` bytes
/// that was made before, which is less than a hole and more than the gaps between mappings.
pub(crate) fn find_hole_and_direction(length: usize, probe: usize) -> Option<(usize, bool)> {
    let held = map_nothing(probe)?;
    let hole = map_nothing(length);
    match hole {
        // As a rule one lies right behind the other.
        Some(hole) if hole + length == held => unmap(hole as *mut u8, length + probe),
        _ => {
            unmap(held as *mut u8, probe);
            hole.into_iter().for_each(|hole| unmap(hole as *mut u8, length));
        }
    }
    hole.map(|hole| (hole, hole > held))
}

/// Give a mapping of ours back. A refusal is not fatal: the memory simply stays.
pub(crate) fn unmap(address: *mut u8, length: usize) {
    own::gone(address as usize, length);
    // SAFETY: callers pass ranges that they mapped and no longer use.
    unsafe { syscall(MUNMAP, [address as usize, length, 0, 0, 0, 0]) };
}

/// Have the kernel zero this range in every forked child. False when it cannot (before 4.14, or refused).
pub(crate) fn wipe_on_fork(address: *mut u8, length: usize) -> bool {
    // SAFETY: the advice concerns children only, and the range is the caller's.
    unsafe { syscall(MADVISE, [address as usize, length, MADV_WIPEONFORK, 0, 0, 0]) == 0 }
}

/// Give the memory of a range back; it reads zero from then on. False when the kernel refuses: then nothing has changed.
pub(crate) fn discard(address: *mut u8, length: usize) -> bool {
    // SAFETY: callers pass ranges that nobody uses.
    unsafe { syscall(MADVISE, [address as usize, length, MADV_DONTNEED, 0, 0, 0]) == 0 }
}

/// How many of `pages` pages from an address on are in memory. `None`: the kernel does not say.
pub(crate) fn resident_pages(address: *const u8, pages: usize) -> Option<usize> {
    let mut there = [0u8; 1024];
    let mut sum = 0;
    for first in (0..pages).step_by(there.len()) {
        let count = there.len().min(pages - first);
        // SAFETY: the kernel writes a byte for each page.
        let error = unsafe {
            syscall(MINCORE, [address as usize + first * PAGE, count * PAGE, there.as_mut_ptr() as usize, 0, 0, 0])
        };
        if error != 0 {
            return None;
        }
        sum += there[..count].iter().filter(|&&page| page & 1 != 0).count();
    }
    Some(sum)
}

/// Move the pages of a range of one mapping to another range, which loses what it had; the first stays mapped and reads zero. False:
/// nothing has changed (before Linux 5.7, or refused).
pub(crate) fn move_pages(from: *mut u8, to: *mut u8, length: usize) -> bool {
    const MAYMOVE: usize = 1;
    const FIXED: usize = 2;
    const DONTUNMAP: usize = 4;
    let (flags, to) = (MAYMOVE | FIXED | DONTUNMAP, to as usize);
    // SAFETY: callers own both ranges.
    if unsafe { syscall(MREMAP, [from as usize, length, length, flags, to, 0]) } == to as isize {
        return true;
    }
    // Depending on why it failed the kernel has unmapped the second range by now. Else something is there, and this does nothing.
    let _ = map_at(to, length);
    false
}

/// Bytes of a huge page that the kernel makes by itself.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// Put pages of 1 GiB, which the administrator has set aside, in the place of what a range has. False when there are not enough; the
/// range may then be unmapped.
pub(crate) fn map_huge(address: *mut u8, length: usize) -> bool {
    const HUGETLB: usize = 0x4_0000;
    const LOG2_OF_SIZE: usize = 30 << 26;
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | HUGETLB | LOG2_OF_SIZE;
    // SAFETY: callers pass ranges that are theirs and that nobody uses.
    unsafe { syscall(MMAP, [address as usize, length, PROT_READ_WRITE, flags, NO_FILE, 0]) == address as isize }
}

/// Prefer the memory of a NUMA node for a range that was not touched yet. Nothing happens where the kernel does not know the node.
pub(crate) fn prefer_node(address: *mut u8, length: usize, node: usize) {
    const PREFERRED: usize = 1;
    let mut nodes = [0u64; 16];
    let Some(word) = nodes.get_mut(node / 64) else { return };
    *word = 1 << (node % 64);
    let bits = size_of_val(&nodes) * 8;
    // SAFETY: the kernel reads the mask.
    unsafe { syscall(MBIND, [address as usize, length, PREFERRED, nodes.as_ptr() as usize, bits, 0]) };
}

/// NUMA nodes of the machine, at least 1.
pub(crate) fn numa_nodes() -> usize {
    let mut text = [0u8; 64];
    // A list such as `0-3`: the last number counts.
    let read = super::File::open(c"/sys/devices/system/node/online").and_then(|file| file.read(&mut text));
    let end = text[..read.unwrap_or(0)].iter().rposition(u8::is_ascii_digit).map_or(0, |last| last + 1);
    let start = text[..end].iter().rposition(|c| !c.is_ascii_digit()).map_or(0, |before| before + 1);
    1 + text[start..end].iter().fold(0, |n, c| n * 10 + (c - b'0') as usize)
}

/// A fresh mapping in the place of what a range has: zero, and of one piece with those around it. False when the kernel refuses.
pub(crate) fn renew(address: *mut u8, length: usize) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    // SAFETY: callers pass ranges that are theirs and that nobody uses.
    unsafe { syscall(MMAP, [address as usize, length, PROT_READ_WRITE, flags, NO_FILE, 0]) == address as isize }
}

/// Want huge pages in a range, or none. Only advice: a kernel without them refuses, and nothing is lost.
pub(crate) fn advise_huge(address: usize, length: usize, wanted: bool) {
    let advice = if wanted { MADV_HUGEPAGE } else { MADV_NOHUGEPAGE };
    // SAFETY: the advice changes no contents.
    unsafe { syscall(MADVISE, [address, length, advice, 0, 0, 0]) };
}
