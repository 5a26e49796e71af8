//! mimalloc's C API: memory that is reserved or handed over.

use crate::malloc::export;
use allocator::api::c::{self, ArenaId, CommitFn};
use core::ffi::{c_int, c_void};

export! {
    safe mi_reserve_os_memory(size: usize, commit: bool, allow_large: bool) -> c_int = c::reserve_os_memory;
    safe mi_reserve_huge_os_pages_interleave(pages: usize, nodes: usize, timeout: usize) -> c_int
        = c::reserve_huge_os_pages_interleave;
    safe mi_reserve_huge_os_pages_at(pages: usize, node: c_int, timeout: usize) -> c_int = c::reserve_huge_os_pages_at;
    safe mi_arena_min_alignment() -> usize = c::arena_unit;
    safe mi_arena_min_size() -> usize = c::arena_unit;
    safe mi_arena_contains(id: ArenaId, address: *const c_void) -> bool = c::arena_contains;
    safe mi_arenas_print() = c::arenas_print;
    safe mi_debug_show_arenas() = c::arenas_print;
}

export! {
    mi_reserve_os_memory_ex(size: usize, commit: bool, allow_large: bool, exclusive: bool, place: *mut ArenaId) -> c_int
        = c::reserve_os_memory_ex;
    mi_manage_os_memory(start: *mut c_void, size: usize, is_committed: bool, is_pinned: bool, is_zero: bool, node: c_int) -> bool
        = c::manage_os_memory;
    mi_manage_os_memory_ex(start: *mut c_void, size: usize, is_committed: bool, is_pinned: bool, is_zero: bool, node: c_int,
        exclusive: bool, place: *mut ArenaId) -> bool = c::manage_os_memory_ex;
    mi_manage_memory(start: *mut c_void, size: usize, is_committed: bool, is_pinned: bool, is_zero: bool, node: c_int,
        exclusive: bool, commit: Option<CommitFn>, arg: *mut c_void, place: *mut ArenaId) -> bool = c::manage_memory;
    mi_reserve_huge_os_pages_at_ex(pages: usize, node: c_int, timeout: usize, exclusive: bool, place: *mut ArenaId) -> c_int
        = c::reserve_huge_os_pages_at_ex;
    mi_reserve_huge_os_pages(pages: usize, most_seconds: f64, reserved: *mut usize) -> c_int = c::reserve_huge_os_pages;
    mi_arena_area(id: ArenaId, size: *mut usize) -> *mut c_void = c::arena_area;
}
