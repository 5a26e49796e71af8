//! mimalloc's C API: heaps that the program makes.

use crate::malloc::export;
use allocator::api::c::{
    self, ArenaId, BlockVisitor, HeapHandle, HeapVisitor, OutputFn, SubprocId, TheapHandle, stats,
};
use core::ffi::{c_char, c_int, c_uint, c_void};

export! {
    safe mi_heap_new() -> HeapHandle = c::heap_new;
    safe mi_heap_new_in_arena(arena: ArenaId) -> HeapHandle = c::heap_new_in_arena;
    safe mi_heap_main() -> HeapHandle = c::heap_main;
    safe mi_heap_of(address: *const u8) -> HeapHandle = c::heap_of;
    safe mi_any_heap_contains(address: *const u8) -> bool = c::any_heap_contains;
    safe mi_theap_get_default() -> TheapHandle = c::theap_get_default;
    safe mi_heap_dump_json(blocks: bool, hash_addresses: bool) -> *mut c_char = c::heap_dump_json;
    safe mi_heap_dump_json_ex(blocks: bool, hash_addresses: bool, wait_ms: usize) -> *mut c_char = c::heap_dump_json_ex;
    safe mi_heap_snapshot(descriptor: c_int, flags: c_uint) -> c_int = c::heap_snapshot;
    safe mi_subproc_main() -> SubprocId = c::subproc_main;
    safe mi_subproc_current() -> SubprocId = c::subproc_current;
    safe mi_subproc_new() -> SubprocId = c::subproc_new;
}

export! {
    mi_heap_delete(heap: HeapHandle) = c::heap_delete;
    mi_heap_destroy(heap: HeapHandle) = c::heap_destroy;
    mi_heap_contains(heap: HeapHandle, address: *const u8) -> bool = c::heap_contains;
    mi_heap_collect(heap: HeapHandle, force: bool) = c::heap_collect;
    mi_heap_set_numa_affinity(heap: HeapHandle, node: c_int) = c::heap_set_numa_affinity;

    mi_heap_malloc(heap: HeapHandle, size: usize) -> *mut u8 = c::heap_malloc;
    mi_heap_malloc_small(heap: HeapHandle, size: usize) -> *mut u8 = c::heap_malloc;
    mi_heap_zalloc(heap: HeapHandle, size: usize) -> *mut u8 = c::heap_zalloc;
    mi_heap_zalloc_small(heap: HeapHandle, size: usize) -> *mut u8 = c::heap_zalloc;
    mi_heap_calloc(heap: HeapHandle, count: usize, size: usize) -> *mut u8 = c::heap_calloc;
    mi_heap_mallocn(heap: HeapHandle, count: usize, size: usize) -> *mut u8 = c::heap_mallocn;
    mi_heap_realloc(heap: HeapHandle, block: *mut u8, size: usize) -> *mut u8 = c::heap_realloc;
    mi_heap_reallocn(heap: HeapHandle, block: *mut u8, count: usize, size: usize) -> *mut u8 = c::heap_reallocn;
    mi_heap_reallocf(heap: HeapHandle, block: *mut u8, size: usize) -> *mut u8 = c::heap_reallocf;
    mi_heap_rezalloc(heap: HeapHandle, block: *mut u8, size: usize) -> *mut u8 = c::heap_rezalloc;
    mi_heap_recalloc(heap: HeapHandle, block: *mut u8, count: usize, size: usize) -> *mut u8 = c::heap_recalloc;
    mi_heap_strdup(heap: HeapHandle, text: *const c_char) -> *mut c_char = c::heap_strdup;
    mi_heap_strndup(heap: HeapHandle, text: *const c_char, most: usize) -> *mut c_char = c::heap_strndup;
    mi_heap_realpath(heap: HeapHandle, path: *const c_char, resolved: *mut c_char) -> *mut c_char = c::heap_realpath;

    mi_heap_malloc_aligned(heap: HeapHandle, size: usize, alignment: usize) -> *mut u8 = c::heap_malloc_aligned;
    mi_heap_malloc_aligned_at(heap: HeapHandle, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::heap_malloc_aligned_at;
    mi_heap_zalloc_aligned(heap: HeapHandle, size: usize, alignment: usize) -> *mut u8 = c::heap_zalloc_aligned;
    mi_heap_zalloc_aligned_at(heap: HeapHandle, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::heap_zalloc_aligned_at;
    mi_heap_calloc_aligned(heap: HeapHandle, count: usize, size: usize, alignment: usize) -> *mut u8
        = c::heap_calloc_aligned;
    mi_heap_calloc_aligned_at(heap: HeapHandle, count: usize, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::heap_calloc_aligned_at;
    mi_heap_realloc_aligned(heap: HeapHandle, block: *mut u8, size: usize, alignment: usize) -> *mut u8
        = c::heap_realloc_aligned;
    mi_heap_realloc_aligned_at(heap: HeapHandle, block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::heap_realloc_aligned_at;
    mi_heap_rezalloc_aligned(heap: HeapHandle, block: *mut u8, size: usize, alignment: usize) -> *mut u8
        = c::heap_rezalloc_aligned;
    mi_heap_rezalloc_aligned_at(heap: HeapHandle, block: *mut u8, size: usize, alignment: usize, offset: usize) -> *mut u8
        = c::heap_rezalloc_aligned_at;
    mi_heap_recalloc_aligned(heap: HeapHandle, block: *mut u8, count: usize, size: usize, alignment: usize) -> *mut u8
        = c::heap_recalloc_aligned;
    mi_heap_recalloc_aligned_at(
        heap: HeapHandle, block: *mut u8, count: usize, size: usize, alignment: usize, offset: usize
    ) -> *mut u8 = c::heap_recalloc_aligned_at;
}

export! {
    mi_heap_theap(heap: HeapHandle) -> TheapHandle = c::heap_theap;
    mi_theap_set_default(theap: TheapHandle) -> TheapHandle = c::theap_set_default;
    mi_theap_collect(theap: TheapHandle, force: bool) = c::theap_collect;
    mi_theap_malloc(theap: TheapHandle, size: usize) -> *mut u8 = c::theap_malloc;
    mi_theap_malloc_small(theap: TheapHandle, size: usize) -> *mut u8 = c::theap_malloc;
    mi_theap_zalloc(theap: TheapHandle, size: usize) -> *mut u8 = c::theap_zalloc;
    mi_theap_zalloc_small(theap: TheapHandle, size: usize) -> *mut u8 = c::theap_zalloc;
    mi_theap_calloc(theap: TheapHandle, count: usize, size: usize) -> *mut u8 = c::theap_calloc;
    mi_theap_malloc_aligned(theap: TheapHandle, size: usize, alignment: usize) -> *mut u8 = c::theap_malloc_aligned;
    mi_theap_zalloc_aligned(theap: TheapHandle, size: usize, alignment: usize) -> *mut u8 = c::theap_zalloc_aligned;
    mi_theap_realloc(theap: TheapHandle, block: *mut u8, size: usize) -> *mut u8 = c::theap_realloc;
    mi_theap_rezalloc(theap: TheapHandle, block: *mut u8, size: usize) -> *mut u8 = c::theap_rezalloc;

    mi_subproc_destroy(process: SubprocId) = c::subproc_destroy;
    mi_subproc_add_current_thread(process: SubprocId) = c::subproc_add_current_thread;
    mi_subproc_visit_heaps(process: SubprocId, visitor: Option<HeapVisitor>, arg: *mut c_void) -> bool
        = c::subproc_visit_heaps;

    mi_heap_visit_blocks(heap: HeapHandle, blocks: bool, visitor: Option<BlockVisitor>, arg: *mut c_void) -> bool
        = c::heap_visit_blocks;
    mi_heap_visit_abandoned_blocks(
        heap: HeapHandle, blocks: bool, visitor: Option<BlockVisitor>, arg: *mut c_void
    ) -> bool = c::heap_visit_abandoned_blocks;
    mi_theap_visit_blocks(theap: TheapHandle, blocks: bool, visitor: Option<BlockVisitor>, arg: *mut c_void) -> bool
        = c::theap_visit_blocks;
    mi_unsafe_heap_page_is_under_utilized(heap: HeapHandle, block: *const u8, percent: usize) -> bool
        = c::heap_page_is_under_utilized;

    mi_heap_get_seq(heap: HeapHandle) -> usize = c::heap_get_seq;
    mi_heap_snapshot_to_file(path: *const c_char, flags: c_uint) -> c_int = c::heap_snapshot_to_file;
    mi_heap_stats_get(heap: HeapHandle, stats: *mut stats::Stats) -> bool = stats::heap_get;
    mi_heap_stats_get_json(heap: HeapHandle, size: usize, buffer: *mut c_char) -> *mut c_char = stats::heap_get_json;
    mi_heap_stats_print_out(heap: HeapHandle, function: Option<OutputFn>, arg: *mut c_void) = stats::heap_print_out;
    mi_heap_stats_merge_to_subproc(heap: HeapHandle) = stats::heap_merge;
    mi_subproc_stats_get(process: SubprocId, stats: *mut stats::Stats) -> bool = stats::subproc_get;
    mi_subproc_stats_get_exclusive(process: SubprocId, stats: *mut stats::Stats) -> bool = stats::subproc_get_exclusive;
    mi_subproc_stats_get_json(process: SubprocId, size: usize, buffer: *mut c_char) -> *mut c_char
        = stats::subproc_get_json;
    mi_subproc_stats_print_out(process: SubprocId, function: Option<OutputFn>, arg: *mut c_void)
        = stats::subproc_print_out;
    mi_subproc_heap_stats_print_out(process: SubprocId, function: Option<OutputFn>, arg: *mut c_void)
        = stats::subproc_heap_print_out;
}
