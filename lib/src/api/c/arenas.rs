//! `mi_reserve_…`, `mi_manage_…`, `mi_arena_…`: memory that is reserved, or handed over by the program.

use super::text::{OutputFn, Text};
use crate::arena::{self, Arena, Nature, SLICE};
use crate::os;
use core::ffi::{c_int, c_void};
use core::fmt::Write;

/// Makes memory usable, and says whether it reads zero. False: it could not.
pub type CommitFn =
    unsafe extern "C" fn(commit: bool, start: *mut c_void, size: usize, is_zero: *mut bool, arg: *mut c_void) -> bool;

/// Names an arena: its number, as a pointer. Null names none.
pub type ArenaId = *mut c_void;

fn id(arena: &Arena) -> ArenaId {
    core::ptr::without_provenance_mut(arena.number())
}

/// The arena of this name.
pub(super) fn of(id: ArenaId) -> Option<&'static Arena> {
    if !arena::is_initialised() {
        super::attach(); // those that the options ask for
    }
    arena::numbered(id.addr())
}

/// Write the arena's name to a place that may be null. False: there is no arena.
unsafe fn tell(arena: Option<&Arena>, place: *mut ArenaId) -> bool {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(arena.map_or(core::ptr::null_mut(), id)) };
    }
    arena.is_some()
}

fn error_unless(done: bool) -> c_int {
    const ENOMEM: c_int = 12;
    if done { 0 } else { ENOMEM }
}

/// `mi_reserve_os_memory_ex`. Memory is committed by the kernel when it is touched, whatever `commit` says.
///
/// # Safety
/// The place can be written or is null.
pub unsafe fn reserve_os_memory_ex(
    size: usize,
    _commit: bool,
    allow_large: bool,
    exclusive: bool,
    place: *mut ArenaId,
) -> c_int {
    super::attach();
    let arena = if size <= isize::MAX as usize { arena::reserve(size, allow_large, exclusive) } else { None };
    // SAFETY: the caller's promise.
    error_unless(unsafe { tell(arena, place) })
}

/// `mi_reserve_os_memory`.
pub fn reserve_os_memory(size: usize, commit: bool, allow_large: bool) -> c_int {
    // SAFETY: no place.
    unsafe { reserve_os_memory_ex(size, commit, allow_large, false, core::ptr::null_mut()) }
}

/// `mi_manage_memory`.
///
/// # Safety
/// The memory is the program's, is used by nobody else from now on, and stays; it reads zero if `is_zero`. It can be read and
/// written if `is_committed`, else once the function has been called for it, or, where there is none, once access is allowed. The
/// function may be called by any thread and allocates nothing. The place can be written or is null.
#[allow(clippy::too_many_arguments, reason = "the C function has as many")]
pub unsafe fn manage_memory(
    start: *mut c_void,
    size: usize,
    is_committed: bool,
    _is_pinned: bool,
    is_zero: bool,
    node: c_int,
    exclusive: bool,
    commit: Option<CommitFn>,
    arg: *mut c_void,
    place: *mut ArenaId,
) -> bool {
    super::attach();
    let (first, size) = whole_slices(start.addr(), size);
    let commit = commit.filter(|_| !is_committed).map(|commit| (commit, arg));
    let usable = is_committed || commit.is_some() || os::allow(first, size);
    let nature = Nature { exclusive, pinned: true, node, commit };
    // SAFETY: the caller's promise.
    unsafe {
        let arena = if usable && size != 0 { arena::manage(first, size, is_zero, nature) } else { None };
        tell(arena, place)
    }
}

/// The part of a range that is whole slices; of length 0 if there is none.
fn whole_slices(start: usize, size: usize) -> (usize, usize) {
    let end = start.saturating_add(size) & !(SLICE - 1);
    match start.checked_next_multiple_of(SLICE) {
        Some(first) if start != 0 && first < end => (first, end - first),
        _ => (0, 0),
    }
}

/// `mi_manage_os_memory_ex`.
///
/// # Safety
/// As [`manage_memory`].
#[allow(clippy::too_many_arguments, reason = "the C function has as many")]
pub unsafe fn manage_os_memory_ex(
    start: *mut c_void,
    size: usize,
    is_committed: bool,
    is_pinned: bool,
    is_zero: bool,
    node: c_int,
    exclusive: bool,
    place: *mut ArenaId,
) -> bool {
    let arg = core::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { manage_memory(start, size, is_committed, is_pinned, is_zero, node, exclusive, None, arg, place) }
}

/// `mi_manage_os_memory`.
///
/// # Safety
/// As [`manage_memory`].
pub unsafe fn manage_os_memory(
    start: *mut c_void,
    size: usize,
    is_committed: bool,
    is_pinned: bool,
    is_zero: bool,
    node: c_int,
) -> bool {
    let place = core::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { manage_os_memory_ex(start, size, is_committed, is_pinned, is_zero, node, false, place) }
}

/// `mi_reserve_huge_os_pages_interleave`. The time-out is not used: pages that were set aside are had at once.
pub fn reserve_huge_os_pages_interleave(pages: usize, nodes: usize, _timeout: usize) -> c_int {
    super::attach();
    error_unless(arena::interleave(pages, nodes) == pages)
}

/// `mi_reserve_huge_os_pages_at_ex`: at least one page.
///
/// # Safety
/// The place can be written or is null.
pub unsafe fn reserve_huge_os_pages_at_ex(
    pages: usize,
    node: c_int,
    _timeout: usize,
    exclusive: bool,
    place: *mut ArenaId,
) -> c_int {
    super::attach();
    let arena = if pages != 0 { arena::reserve_huge(pages, node, exclusive).map(|(arena, _)| arena) } else { None };
    // SAFETY: the caller's promise.
    let done = unsafe { tell(arena, place) };
    error_unless(done || pages == 0)
}

/// `mi_reserve_huge_os_pages_at`.
pub fn reserve_huge_os_pages_at(pages: usize, node: c_int, timeout: usize) -> c_int {
    // SAFETY: no place.
    unsafe { reserve_huge_os_pages_at_ex(pages, node, timeout, false, core::ptr::null_mut()) }
}

/// `mi_reserve_huge_os_pages`: on all nodes; says how many there are.
///
/// # Safety
/// The place can be written or is null.
pub unsafe fn reserve_huge_os_pages(pages: usize, _most_seconds: f64, reserved: *mut usize) -> c_int {
    super::attach();
    let had = arena::interleave(pages, 0);
    if !reserved.is_null() {
        // SAFETY: the caller's promise.
        unsafe { reserved.write(had) };
    }
    error_unless(had == pages)
}

/// `mi_arena_area`: start and size of an arena's memory; null and 0 for an arena that there is not.
///
/// # Safety
/// The place can be written or is null.
pub unsafe fn arena_area(id: ArenaId, size: *mut usize) -> *mut c_void {
    let (start, length) = of(id).map_or((0, 0), Arena::area);
    if !size.is_null() {
        // SAFETY: the caller's promise.
        unsafe { size.write(length) };
    }
    start as *mut c_void
}

/// `mi_arena_min_alignment`, `mi_arena_min_size`: what of a range is not in whole pieces of so many bytes, at such multiples, is
/// left over.
pub fn arena_unit() -> usize {
    SLICE
}

/// `mi_arena_contains`.
pub fn arena_contains(id: ArenaId, address: *const c_void) -> bool {
    of(id).is_some_and(|arena| arena.contains(address.addr()))
}

/// `mi_arenas_print`, `mi_debug_show_arenas`: a line about all memory and one for each arena, where text goes.
pub fn arenas_print() {
    let none: Option<OutputFn> = None;
    // SAFETY: there is no function.
    let mut text = unsafe { Text::to(none, core::ptr::null_mut()) };
    let kib = |bytes: u64| bytes / 1024;
    let counts = arena::counts();
    let _ = writeln!(text, "memory: {} KiB reserved, {} KiB committed", kib(counts.reserved), kib(counts.committed));
    for arena in arena::arenas() {
        let (start, length) = arena.area();
        let kind = if arena.is_exclusive() { "exclusive" } else { "open" };
        let (number, free) = (arena.number(), arena.free_slices() * SLICE);
        let _ = write!(text, "arena {number}: {start:#x}, {} KiB, {} KiB free, {kind}", length / 1024, free / 1024);
        let _ = match arena.node() {
            node @ 0.. => writeln!(text, ", node {node}"),
            _ => writeln!(text),
        };
    }
}
