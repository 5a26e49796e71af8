//! mimalloc's C API: the process, threads, options, hooks and statistics.

use crate::malloc::export;
use allocator::api::c::{self, DeferredFreeFn, ErrorFn, OutputFn, stats};
use core::ffi::{CStr, c_char, c_int, c_long, c_void};

export! {
    safe mi_version() -> c_int = c::version;
    safe mi_process_init() = c::attach;
    safe mi_process_done() = c::nothing;
    safe mi_thread_init() = c::attach;
    safe mi_thread_done() = c::thread_done;
    safe mi_thread_set_in_threadpool() = c::nothing;
    safe mi_collect(force: bool) = c::collect;
    safe mi_collect_reduce(target: usize) = c::collect_reduce;
    safe mi_on_thread_idle() = c::thread_idle;
    safe mi_on_thread_idle_start() -> bool = c::thread_idle_start;
    safe mi_on_thread_idle_end() = c::thread_idle_end;
    safe mi_scavenger_stop() = c::scavenger_stop;
    safe mi_purge_holes_report() = c::purge_holes_report;
    safe mi_purge_all(force: bool) = c::purge_all;
    safe mi_is_in_heap_region(address: *const u8) -> bool = c::is_in_heap_region;
    safe mi_check_owned(address: *const u8) -> bool = c::is_in_heap_region;
    safe mi_process_info_print() = c::process_info_print;

    safe mi_option_is_enabled(option: c_int) -> bool = c::option_is_enabled;
    safe mi_option_enable(option: c_int) = c::option_enable;
    safe mi_option_disable(option: c_int) = c::option_disable;
    safe mi_option_set_enabled(option: c_int, on: bool) = c::option_set_enabled;
    safe mi_option_set_enabled_default(option: c_int, on: bool) = c::option_set_enabled_default;
    safe mi_option_get(option: c_int) -> c_long = c::option_get;
    safe mi_option_get_clamp(option: c_int, min: c_long, max: c_long) -> c_long = c::option_get_clamp;
    safe mi_option_get_size(option: c_int) -> usize = c::option_get_size;
    safe mi_option_set(option: c_int, value: c_long) = c::option_set;
    safe mi_option_set_default(option: c_int, value: c_long) = c::option_set_default;
    safe mi_options_print() = c::options_print;

    safe mi_stats_reset() = c::nothing;
    safe mi_stats_merge() = c::nothing;
    safe mi_stats_get_bin_size(bin: usize) -> usize = stats::bin_size;
}

export! {
    mi_register_output(function: Option<OutputFn>, arg: *mut c_void) = c::register_output;
    mi_register_error(function: Option<ErrorFn>, arg: *mut c_void) = c::register_error;
    mi_register_deferred_free(function: Option<DeferredFreeFn>, arg: *mut c_void) = c::register_deferred_free;
    mi_process_info(
        elapsed: *mut usize, user: *mut usize, system: *mut usize, resident: *mut usize, peak_resident: *mut usize,
        committed: *mut usize, peak_committed: *mut usize, faults: *mut usize
    ) = c::process_info;
    mi_process_info_print_out(function: Option<OutputFn>, arg: *mut c_void) = c::process_info_print_out;
    mi_options_print_out(function: Option<OutputFn>, arg: *mut c_void) = c::options_print_out;
    mi_theap_guarded_set_sample_rate(theap: *mut u8, rate: usize, seed: usize) = c::theap_guarded_set_sample_rate;
    mi_theap_guarded_set_size_bound(theap: *mut u8, least: usize, most: usize) = c::theap_guarded_set_size_bound;
    mi_purge_all_ex(flags: c_int, wait: usize, report: *mut c::PurgeReport) -> c_int = c::purge_all_ex;
    mi_purge_holes_stats_get(stats: *mut c::HolesStats) = c::purge_holes_stats_get;
    mi_stats_print(unused: *mut c_void) = stats::print;
    mi_stats_print_out(function: Option<OutputFn>, arg: *mut c_void) = stats::print_out;
    mi_thread_stats_print_out(function: Option<OutputFn>, arg: *mut c_void) = stats::print_out;
    mi_stats_get(stats: *mut stats::Stats) -> bool = stats::get;
    mi_stats_get_json(size: usize, buffer: *mut c_char) -> *mut c_char = stats::get_json;
    mi_stats_as_json(stats: *const stats::Stats, size: usize, buffer: *mut c_char) -> *mut c_char = stats::as_json;
}

unsafe extern "C" {
    fn dlsym(handle: *mut u8, name: *const c_char) -> *mut u8;
}

/// Whether the program's `malloc` is ours: another library may come before us.
#[unsafe(no_mangle)]
pub extern "C" fn mi_is_redirected() -> bool {
    // SAFETY: whatever the two names belong to, they have the signatures of the C library, and belong together.
    unsafe {
        let find = |name: &CStr| dlsym(core::ptr::null_mut(), name.as_ptr());
        let (malloc, free) = (find(c"malloc"), find(c"free"));
        if malloc.is_null() || free.is_null() {
            return false;
        }
        let block = core::mem::transmute::<*mut u8, unsafe extern "C" fn(usize) -> *mut u8>(malloc)(1);
        let ours = c::is_in_heap_region(block);
        core::mem::transmute::<*mut u8, unsafe extern "C" fn(*mut u8)>(free)(block);
        ours
    }
}
