//! mimalloc's C interface under its own names, for code that was written against it. The functions are those of this allocator, and no
//! symbols: a program that also links mimalloc itself has two allocators that do not meet.
//!
//! `lib/include/mimalloc.h` and the headers beside it say what each one does and what callers promise.
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    missing_docs,
    reason = "the names, and what they mean, are those of C"
)]
#![allow(clippy::missing_safety_doc, reason = "as above")]

use crate::api::c;
use crate::options;
use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

pub use c::stats::{BINS, CHUNK_BINS as MI_CBIN_COUNT, Count as mi_stat_count_t, Counter as mi_stat_counter_t};
pub use c::stats::{STAT_VERSION as MI_STAT_VERSION, Stats as mi_stats_t};
pub use c::{DHAT_STATS_VERSION as MI_DHAT_STATS_VERSION, DhatStats as mi_dhat_stats_t};
pub use c::{HolesStats as MiPurgeHolesStats, PurgeReport as mi_purge_all_report_t};
pub use c::{ProfConfig as mi_prof_config_t, ProfStats as mi_prof_stats_t, SampleInfo as mi_prof_sample_info_t};

/// The bin of all larger blocks.
pub const MI_BIN_HUGE: usize = BINS - 1;
pub const MI_PROF_STAT_VERSION: c_int = 3;
pub const MI_PROF_CONFIG_VERSION: c_int = 1;
pub const MI_PROF_FORMAT_TEXT: c_int = 0;
pub const MI_PROF_FORMAT_PROTO: c_int = 1;
pub const MI_PROF_CONFIG_FALLBACK: c_int = 0;
pub const MI_PROF_CONFIG_OVERRIDE: c_int = 1;
pub const MI_PURGE_FORCE: mi_purge_flags_t = c::PURGE_FORCE;
pub const MI_PURGE_RECLAIM: mi_purge_flags_t = c::PURGE_RECLAIM;
pub const MI_PURGE_OK: c_int = c::PURGE_OK;
pub const MI_PURGE_PARTIAL: c_int = c::PURGE_PARTIAL;
pub const MI_PURGE_BUSY: c_int = c::PURGE_BUSY;
pub const MI_SNAPSHOT_BLOCKS: c_uint = c::SNAPSHOT_BLOCKS;
pub const MI_SNAPSHOT_V2: c_uint = c::SNAPSHOT_V2;
pub const MI_MEMORY_SNAPSHOT_VERSION: c_int = 1;
pub const MI_MEMORY_ALLOCATE: mi_memory_change_kind_t = 0;
pub const MI_MEMORY_FREE: mi_memory_change_kind_t = 1;
pub const MI_MEMORY_RESIZE: mi_memory_change_kind_t = 2;
pub const MI_MEMORY_CHANGE_COUNT: usize = 3;

pub type mi_purge_flags_t = c_int;
pub type mi_option_t = c_int;
pub type mi_memory_change_kind_t = c_int;
pub type mi_output_fun = unsafe extern "C" fn(msg: *const c_char, arg: *mut c_void);
pub type MiProfWriteFun = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
pub type mi_prof_visit_fun = unsafe extern "C" fn(info: *const mi_prof_sample_info_t, arg: *mut c_void) -> bool;
pub type mi_prof_module_visit_fun = unsafe extern "C" fn(info: *const mi_prof_module_info_t, arg: *mut c_void) -> bool;
pub type mi_memory_change_fun = unsafe extern "C" fn(change: *const mi_memory_change_t, arg: *mut c_void);
pub type mi_memory_allocation_visit_fun =
    unsafe extern "C" fn(allocation: *mut c_void, usable_size: usize, arg: *mut c_void) -> bool;

/// What only the allocator looks into.
#[derive(Debug)]
pub enum mi_heap_t {}
/// As above.
#[derive(Debug)]
pub enum mi_prof_snapshot_t {}

/// A file that has code in the process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mi_prof_module_info_t {
    pub path: *const c_char,
    pub base: usize,
    pub size: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct mi_subproc_id_t {
    pub _mi_subproc_id: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct mi_memory_change_t {
    pub kind: mi_memory_change_kind_t,
    pub total_bytes: u64,
    pub delta_bytes: i64,
    pub request_size: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mi_memory_callbacks_t {
    pub handlers: [Option<mi_memory_change_fun>; MI_MEMORY_CHANGE_COUNT],
    pub args: [*mut c_void; MI_MEMORY_CHANGE_COUNT],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct mi_memory_snapshot_t {
    pub size: usize,
    pub version: c_int,
    pub live_bytes: u64,
    pub accum_bytes: u64,
    pub live_count: u64,
    pub accum_count: u64,
}
const _: () = assert!(size_of::<mi_memory_snapshot_t>() == size_of::<c::MemorySnapshot>());
const _: () = assert!(size_of::<mi_prof_module_info_t>() == size_of::<c::ModuleInfo>());

macro_rules! options {
    ($($name:ident = $value:literal)*) => {
        $(pub const $name: mi_option_t = $value;)*
        /// Names and numbers in their order, with the end.
        pub const MI_OPTIONS_IN_ORDER: &[(&str, mi_option_t)] = &[$((stringify!($name), $name)),*];
    };
}

options! {
    mi_option_show_errors = 0 mi_option_show_stats = 1 mi_option_verbose = 2 mi_option_deprecated_eager_commit = 3
    mi_option_arena_eager_commit = 4 mi_option_purge_decommits = 5 mi_option_allow_large_os_pages = 6
    mi_option_reserve_huge_os_pages = 7 mi_option_reserve_huge_os_pages_at = 8 mi_option_reserve_os_memory = 9
    mi_option_deprecated_segment_cache = 10 mi_option_deprecated_page_reset = 11
    mi_option_deprecated_abandoned_page_purge = 12 mi_option_deprecated_segment_reset = 13
    mi_option_deprecated_eager_commit_delay = 14 mi_option_purge_delay = 15 mi_option_use_numa_nodes = 16
    mi_option_disallow_os_alloc = 17 mi_option_os_tag = 18 mi_option_max_errors = 19 mi_option_max_warnings = 20
    mi_option_deprecated_max_segment_reclaim = 21 mi_option_destroy_on_exit = 22 mi_option_arena_reserve = 23
    mi_option_arena_purge_mult = 24 mi_option_deprecated_purge_extend_delay = 25 mi_option_disallow_arena_alloc = 26
    mi_option_retry_on_oom = 27 mi_option_deprecated_visit_abandoned = 28 mi_option_guarded_min = 29
    mi_option_guarded_max = 30 mi_option_guarded_precise = 31 mi_option_guarded_sample_rate = 32
    mi_option_guarded_sample_seed = 33 mi_option_generic_collect = 34 mi_option_page_reclaim_on_free = 35
    mi_option_page_full_retain = 36 mi_option_page_max_candidates = 37 mi_option_max_vabits = 38
    mi_option_pagemap_commit = 39 mi_option_page_commit_on_demand = 40 mi_option_page_max_reclaim = 41
    mi_option_page_cross_thread_max_reclaim = 42 mi_option_allow_thp = 43 mi_option_minimal_purge_size = 44
    mi_option_arena_max_object_size = 45 mi_option_arena_is_numa_local = 46 mi_option_prof = 47
    mi_option_prof_sample_rate = 48 mi_option_prof_bt_max = 49 mi_option_prof_accum = 50 mi_option_prof_seed = 51
    mi_option_prof_max_bytes = 52 mi_option_memory_events = 53 mi_option_purge_zeroes = 54 mi_option_scavenger = 55
    mi_option_purge_holes = 56 mi_option_purge_holes_eager_zero = 57 mi_option_purge_holes_min_interval = 58
    mi_option_purge_holes_full_every = 59 mi_option_snapshot_on_exit = 60 mi_option_page_reserve = 61
    mi_option_resident_first = 62 mi_option_large_span = 63 mi_option_large_span_max = 64 _mi_option_last = 65
}
pub const mi_option_large_os_pages: mi_option_t = mi_option_allow_large_os_pages;
pub const mi_option_eager_region_commit: mi_option_t = mi_option_arena_eager_commit;
pub const mi_option_reset_decommits: mi_option_t = mi_option_purge_decommits;
pub const mi_option_reset_delay: mi_option_t = mi_option_purge_delay;
pub const mi_option_limit_os_alloc: mi_option_t = mi_option_disallow_os_alloc;

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $call:expr;)*) => {$(
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            #[allow(unused_unsafe, reason = "some are safe")]
            // SAFETY: the caller's promise, which is that of the C function.
            unsafe { $call }
        }
    )*};
}

functions! {
    mi_malloc(size: usize) -> *mut c_void = c::malloc(size).cast();
    mi_zalloc(size: usize) -> *mut c_void = c::zalloc(size).cast();
    mi_calloc(count: usize, size: usize) -> *mut c_void = c::mi_calloc(count, size).cast();
    mi_realloc(p: *mut c_void, newsize: usize) -> *mut c_void = c::mi_realloc(p.cast(), newsize).cast();
    mi_free(p: *mut c_void) = c::free(p.cast());
    mi_malloc_aligned(size: usize, alignment: usize) -> *mut c_void = c::malloc_aligned(size, alignment).cast();
    mi_zalloc_aligned(size: usize, alignment: usize) -> *mut c_void = c::zalloc_aligned(size, alignment).cast();
    mi_realloc_aligned(p: *mut c_void, newsize: usize, alignment: usize) -> *mut c_void
        = c::realloc_aligned(p.cast(), newsize, alignment).cast();
    mi_rezalloc(p: *mut c_void, newsize: usize) -> *mut c_void = c::rezalloc(p.cast(), newsize).cast();
    mi_recalloc(p: *mut c_void, newcount: usize, size: usize) -> *mut c_void
        = c::recalloc(p.cast(), newcount, size).cast();
    mi_rezalloc_aligned(p: *mut c_void, newsize: usize, alignment: usize) -> *mut c_void
        = c::rezalloc_aligned(p.cast(), newsize, alignment).cast();
    mi_recalloc_aligned(p: *mut c_void, newcount: usize, size: usize, alignment: usize) -> *mut c_void
        = c::recalloc_aligned(p.cast(), newcount, size, alignment).cast();
    mi_expand(p: *mut c_void, newsize: usize) -> *mut c_void = c::expand(p.cast(), newsize).cast();
    mi_usable_size(p: *const c_void) -> usize = c::usable_size(p.cast());
    mi_unwrapped_malloc(size: usize, alignment: usize) -> *mut c_void = c::unwrapped_malloc(size, alignment).cast();
    mi_unwrapped_free(p: *mut c_void) = c::unwrapped_free(p.cast());
    mi_unwrapped_realloc(p: *mut c_void, new_size: usize, alignment: usize) -> *mut c_void
        = c::unwrapped_realloc(p.cast(), new_size, alignment).cast();

    mi_dhat_start() -> bool = c::dhat_start();
    mi_dhat_stop() = c::dhat_stop();
    mi_dhat_is_enabled() -> bool = c::dhat_is_enabled();
    mi_dhat_stats_get(stats: *mut mi_dhat_stats_t) -> bool = c::dhat_stats_get(stats);
    mi_dhat_dump(path: *const c_char) -> bool = c::dhat_dump(path);

    mi_prof_start(sample_rate: usize) -> bool = c::prof_start(sample_rate);
    mi_prof_start_seeded(sample_rate: usize, seed: u64) -> bool = c::prof_start_seeded(sample_rate, seed);
    mi_prof_start_ex(config: *const mi_prof_config_t) -> bool = c::prof_start_ex(config);
    mi_prof_stop() = c::prof_stop();
    mi_prof_is_enabled() -> bool = c::prof_is_enabled();
    mi_prof_dump(path: *const c_char) -> bool = c::prof_dump(path);
    mi_prof_dump_writer(write: Option<MiProfWriteFun>, arg: *mut c_void) -> bool = c::prof_dump_writer(write, arg);
    mi_prof_dump_proto(path: *const c_char) -> bool = c::prof_dump_proto(path);
    mi_prof_dump_proto_writer(write: Option<MiProfWriteFun>, arg: *mut c_void) -> bool
        = c::prof_dump_proto_writer(write, arg);
    mi_prof_reset() = c::prof_reset();
    mi_prof_debug_stats(records: *mut usize, bytes: *mut usize, unique_stacks: *mut usize)
        = c::prof_debug_stats(records, bytes, unique_stacks);
    mi_prof_stats_get(stats: *mut mi_prof_stats_t) -> bool = c::prof_stats_get(stats);
    mi_prof_visit(visitor: mi_prof_visit_fun, arg: *mut c_void) -> bool = c::prof_visit(Some(visitor), arg);
    mi_prof_snapshot_new() -> *mut mi_prof_snapshot_t = c::prof_snapshot_new().cast();
    mi_prof_snapshot_visit(snap: *const mi_prof_snapshot_t, visitor: mi_prof_visit_fun, arg: *mut c_void) -> bool
        = c::prof_snapshot_visit(snap.cast(), Some(visitor), arg);
    mi_prof_snapshot_free(snap: *mut mi_prof_snapshot_t) = c::prof_snapshot_free(snap.cast());
    mi_prof_modules_visit(visitor: mi_prof_module_visit_fun, arg: *mut c_void) -> bool
        = c::prof_modules_visit(Some(core::mem::transmute::<mi_prof_module_visit_fun, c::ModuleVisitor>(visitor)), arg);

    mi_heap_dump_json(include_blocks: bool, hash_addresses: bool) -> *mut c_char
        = c::heap_dump_json(include_blocks, hash_addresses);
    mi_heap_dump_json_ex(include_blocks: bool, hash_addresses: bool, wait_ms: usize) -> *mut c_char
        = c::heap_dump_json_ex(include_blocks, hash_addresses, wait_ms);
    mi_heap_get_seq(heap: *mut mi_heap_t) -> usize = c::heap_get_seq(heap_at(heap));
    mi_heap_snapshot(fd: c_int, flags: c_uint) -> c_int = c::heap_snapshot(fd, flags);
    mi_heap_snapshot_to_file(path: *const c_char, flags: c_uint) -> c_int = c::heap_snapshot_to_file(path, flags);

    mi_on_thread_idle() = c::thread_idle();
    mi_on_thread_idle_start() -> bool = c::thread_idle_start();
    mi_on_thread_idle_end() = c::thread_idle_end();
    mi_scavenger_stop() = c::scavenger_stop();
    mi_purge_holes_stats_get(stats: *mut MiPurgeHolesStats) = c::purge_holes_stats_get(stats);
    mi_purge_holes_report() = c::purge_holes_report();
    mi_purge_all_ex(flags: mi_purge_flags_t, wait_ms: usize, report: *mut mi_purge_all_report_t) -> c_int
        = c::purge_all_ex(flags, wait_ms, report);
    mi_purge_all(force: bool) = c::purge_all(force);

    mi_option_is_enabled(option: mi_option_t) -> bool = c::option_is_enabled(option);
    mi_option_enable(option: mi_option_t) = c::option_enable(option);
    mi_option_disable(option: mi_option_t) = c::option_disable(option);
    mi_option_set_enabled(option: mi_option_t, enable: bool) = c::option_set_enabled(option, enable);
    mi_option_set_enabled_default(option: mi_option_t, enable: bool) = c::option_set_enabled_default(option, enable);
    mi_option_get(option: mi_option_t) -> c_long = c::option_get(option);
    mi_option_get_clamp(option: mi_option_t, min: c_long, max: c_long) -> c_long = c::option_get_clamp(option, min, max);
    mi_option_get_size(option: mi_option_t) -> usize = c::option_get_size(option);
    mi_option_set(option: mi_option_t, value: c_long) = c::option_set(option, value);
    mi_option_set_default(option: mi_option_t, value: c_long) = c::option_set_default(option, value);
    mi_options_print_out(out: Option<mi_output_fun>, arg: *mut c_void) = c::options_print_out(out, arg);

    mi_stats_get(stats: *mut mi_stats_t) -> bool = c::stats::get(stats);
    mi_stats_get_json(buf_size: usize, buf: *mut c_char) -> *mut c_char = c::stats::get_json(buf_size, buf);
    mi_stats_as_json(stats: *mut mi_stats_t, buf_size: usize, buf: *mut c_char) -> *mut c_char
        = c::stats::as_json(stats, buf_size, buf);
    mi_stats_print_out(out: Option<mi_output_fun>, arg: *mut c_void) = c::stats::print_out(out, arg);
    mi_stats_get_bin_size(bin: usize) -> usize = c::stats::bin_size(bin);
    mi_heap_stats_get(heap: *mut mi_heap_t, stats: *mut mi_stats_t) -> bool = c::stats::heap_get(heap_at(heap), stats);
    mi_heap_stats_get_json(heap: *mut mi_heap_t, buf_size: usize, buf: *mut c_char) -> *mut c_char
        = c::stats::heap_get_json(heap_at(heap), buf_size, buf);
    mi_heap_stats_print_out(heap: *mut mi_heap_t, out: Option<mi_output_fun>, arg: *mut c_void)
        = c::stats::heap_print_out(heap_at(heap), out, arg);
    mi_heap_stats_merge_to_subproc(heap: *mut mi_heap_t) = c::stats::heap_merge(heap_at(heap));
    mi_subproc_stats_get(subproc_id: mi_subproc_id_t, stats: *mut mi_stats_t) -> bool
        = c::stats::subproc_get(known(subproc_id), stats);
    mi_subproc_stats_get_exclusive(subproc_id: mi_subproc_id_t, stats: *mut mi_stats_t) -> bool
        = c::stats::subproc_get_exclusive(known(subproc_id), stats);
    mi_subproc_stats_get_json(subproc_id: mi_subproc_id_t, buf_size: usize, buf: *mut c_char) -> *mut c_char
        = c::stats::subproc_get_json(known(subproc_id), buf_size, buf);
    mi_subproc_stats_print_out(subproc_id: mi_subproc_id_t, out: Option<mi_output_fun>, arg: *mut c_void)
        = c::stats::subproc_print_out(known(subproc_id), out, arg);
    mi_subproc_heap_stats_print_out(subproc_id: mi_subproc_id_t, out: Option<mi_output_fun>, arg: *mut c_void)
        = c::stats::subproc_heap_print_out(known(subproc_id), out, arg);
    mi_subproc_main() -> mi_subproc_id_t = named(c::subproc_main());
    mi_subproc_current() -> mi_subproc_id_t = named(c::subproc_current());

    mi_memory_tracking_set_enabled(enabled: bool) -> bool = c::memory_tracking_set_enabled(enabled);
    mi_memory_tracking_is_enabled() -> bool = c::memory_tracking_is_enabled();
    mi_memory_set_callbacks(callbacks: *const mi_memory_callbacks_t) -> bool = c::memory_set_callbacks(callbacks.cast());
    mi_memory_snapshot(out: *mut mi_memory_snapshot_t) -> bool = c::memory_snapshot(out.cast());
    mi_memory_visit_live_allocations(visitor: mi_memory_allocation_visit_fun, arg: *mut c_void) -> bool
        = c::memory_visit_live_allocations(
            Some(core::mem::transmute::<mi_memory_allocation_visit_fun, c::MemoryVisitor>(visitor)), arg);
}

fn heap_at(heap: *mut mi_heap_t) -> c::HeapHandle {
    c::HeapHandle::at(heap as usize)
}

fn known(id: mi_subproc_id_t) -> c::SubprocId {
    // SAFETY: both are one pointer.
    unsafe { core::mem::transmute(id) }
}

fn named(id: c::SubprocId) -> mi_subproc_id_t {
    // SAFETY: as above.
    unsafe { core::mem::transmute(id) }
}

/// A name and a number of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MiRsLayoutEntry {
    pub name: *const c_char,
    pub value: usize,
}
// SAFETY: the names are constants.
unsafe impl Sync for MiRsLayoutEntry {}

/// Sizes of the structures, as this crate has them, and how many there are.
pub unsafe extern "C" fn mi_rs_layout_table(count: *mut usize) -> *const MiRsLayoutEntry {
    macro_rules! sizes {
        ($($type:ident)*) => {
            [$(MiRsLayoutEntry {
                name: concat!("sizeof(", stringify!($type), ")\0").as_ptr().cast(),
                value: size_of::<$type>(),
            }),*]
        };
    }
    static TABLE: [MiRsLayoutEntry; 12] = sizes! {
        mi_prof_stats_t mi_prof_config_t mi_prof_sample_info_t mi_prof_module_info_t MiPurgeHolesStats
        mi_purge_all_report_t mi_stats_t mi_stat_count_t mi_stat_counter_t mi_memory_change_t mi_memory_callbacks_t
        mi_memory_snapshot_t
    };
    if !count.is_null() {
        // SAFETY: the caller's promise.
        unsafe { count.write(TABLE.len()) };
    }
    TABLE.as_ptr()
}

/// The numbers are those of the options.
const _: () = {
    assert!(MI_OPTIONS_IN_ORDER.len() == options::COUNT + 1 && _mi_option_last as usize == options::COUNT);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Opt;

    #[test]
    fn options_are_in_order() {
        for (number, &(name, value)) in MI_OPTIONS_IN_ORDER.iter().enumerate() {
            assert_eq!(value as usize, number);
            if let Some(option) = Opt::from_raw(value) {
                assert_eq!(name.strip_prefix("mi_option_"), Some(option.name()));
            }
        }
    }
}
