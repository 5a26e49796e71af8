//! Every public item that the crate `mimalloc-pprof` 1.1 has is here under its name, with a type that its programs compile against; and the structures and numbers of
//! `sys` are those of the C headers.

use mimalloc_pprof::{memory_events, options, prof, stats, sys};
use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_void};
use std::io;
use std::path::Path;
use std::process::Command;

#[global_allocator]
static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;

/// The functions of the root. Types are written out, so that another signature does not compile.
#[test]
fn root() {
    let _: unsafe fn(usize, usize) -> *mut u8 = mimalloc_pprof::unwrapped_malloc;
    let _: unsafe fn(*mut u8) = mimalloc_pprof::unwrapped_free;
    let _: unsafe fn(*mut u8, usize, usize) -> *mut u8 = mimalloc_pprof::unwrapped_realloc;
    let _: unsafe fn(*mut u8, usize) -> *mut u8 = mimalloc_pprof::rezalloc;
    let _: unsafe fn(*mut u8, usize, usize) -> *mut u8 = mimalloc_pprof::recalloc;
    let _: unsafe fn(*mut u8, usize) -> *mut u8 = mimalloc_pprof::expand;
    let _: unsafe fn(*const u8) -> usize = mimalloc_pprof::usable_size;
    let _: fn(bool, bool) -> Option<String> = mimalloc_pprof::heap_dump_json;
    let _: fn(bool, bool, usize) -> Option<String> = mimalloc_pprof::heap_dump_json_ex;
    let _: usize = mimalloc_pprof::HEAP_DUMP_JSON_DEFAULT_WAIT_MS;
    let _: fn(&str, bool) -> io::Result<()> = |path, blocks| mimalloc_pprof::heap_snapshot_to_file(path, blocks);
    let _: fn() = mimalloc_pprof::on_thread_idle;
    let _: fn() -> Option<mimalloc_pprof::IdlePark> = mimalloc_pprof::park_while_idle;
    let _: fn() = mimalloc_pprof::scavenger_stop;
    let _: fn() -> sys::MiPurgeHolesStats = mimalloc_pprof::purge_holes_stats;
    let _: fn() = mimalloc_pprof::purge_holes_report;
    let _: usize = mimalloc_pprof::PURGE_ALL_DEFAULT_WAIT_MS;
    use mimalloc_pprof::{PurgeAllReport, PurgeFlags, PurgeStatus};
    assert_eq!(PurgeFlags { force: true, reclaim: true }, PurgeFlags::FORCE_RECLAIM);
    assert_eq!([PurgeFlags::NONE, PurgeFlags::default()], [PurgeFlags { force: false, reclaim: false }; 2]);
    const { assert!(PurgeFlags::FORCE.force && PurgeFlags::RECLAIM.reclaim) };
    let (status, report) = mimalloc_pprof::purge_all_ex(PurgeFlags::FORCE, 100);
    assert!(matches!(status, PurgeStatus::Ok | PurgeStatus::Partial | PurgeStatus::Busy));
    let PurgeAllReport { arena_bytes, hole_bytes, theaps_swept, theaps_pending, theaps_orphaned, .. } = report;
    let PurgeAllReport { gated, complete, arenas_reclaimed, arena_reclaim_bytes, arenas_kept, .. } = report;
    let PurgeAllReport { subprocs_pending, reclaimed, .. } = mimalloc_pprof::purge_all(false);
    let _: [usize; 9] = [
        arena_bytes,
        hole_bytes,
        theaps_swept,
        theaps_pending,
        theaps_orphaned,
        arenas_reclaimed,
        arena_reclaim_bytes,
        arenas_kept,
        subprocs_pending,
    ];
    let _: [bool; 3] = [gated, complete, reclaimed];
}

#[test]
fn profiling() {
    use mimalloc_pprof::{DumpFormat, ProfConfig, ProfConfigMode};
    let _: fn() -> bool = mimalloc_pprof::enable_heap_profiling;
    let folder = std::env::temp_dir();
    let mut config = ProfConfig::default();
    config.mode = ProfConfigMode::Override;
    (config.sample_interval, config.max_profiler_bytes, config.seed) = (Some(1000), Some(64 << 20), Some(5));
    (config.accum, config.max_stack_depth, config.dump_format) = (true, Some(30), DumpFormat::Text);
    config.dump_at_exit = None;
    assert_ne!((ProfConfigMode::Fallback, DumpFormat::Proto), (config.mode, config.dump_format));
    assert!(mimalloc_pprof::enable_heap_profiling_with(&config) && prof::is_enabled());
    assert!(!mimalloc_pprof::enable_heap_profiling() && !prof::start(0) && !prof::start_seeded(1, 1));
    let kept: Vec<Vec<u8>> = (0..500).map(|_| vec![1; 700]).collect();
    let prof::ProfStats {
        enabled,
        accum,
        sample_rate,
        live_samples,
        live_bytes,
        accum_samples,
        accum_bytes,
        unique_stacks,
        arena_committed,
        stack_table_overflows,
        dropped_samples,
        heap,
    } = prof::stats();
    assert!(enabled && accum && sample_rate == 1000 && live_samples > 100 && live_bytes >= live_samples * 16);
    assert!(accum_samples >= live_samples && accum_bytes >= live_bytes && unique_stacks > 0 && arena_committed > 0);
    assert_eq!((stack_table_overflows, dropped_samples), (0, 0));
    let prof::HeapStats {
        committed,
        reserved,
        malloc_requested,
        pages,
        pages_abandoned,
        heaps,
        theaps,
        purged,
        detailed,
    } = heap;
    assert!(committed > 0 && reserved >= committed && pages > 0 && heaps > 0 && theaps > 0 && !detailed);
    let _ = (malloc_requested, pages_abandoned, purged);
    let samples: Vec<prof::Sample> = prof::samples();
    let largest = samples.iter().max_by_key(|sample| sample.live_bytes).unwrap();
    let prof::Sample { stack, live_objects, live_bytes, accum_objects, accum_bytes } = largest.clone();
    assert!(!stack.is_empty() && accum_objects >= live_objects && accum_bytes >= live_bytes);
    // 500 blocks of 704 bytes.
    assert!((200_000..600_000).contains(&largest.estimated_bytes(1000)), "{}", largest.estimated_bytes(1000));
    let text: Vec<u8> = prof::dump_to_vec();
    assert!(text.starts_with(b"heap profile: ") && text.windows(18).any(|part| part == b"MAPPED_LIBRARIES:\n"));
    assert_eq!(prof::dump_proto_to_vec()[0], 0x0a);
    for (name, dump) in [("a", prof::dump_file as fn(&Path) -> io::Result<()>), ("b", prof::dump_proto_file)] {
        let file = folder.join(format!("surface-{name}-{}", std::process::id()));
        dump(&file).unwrap();
        assert!(std::fs::metadata(&file).unwrap().len() > 100);
        std::fs::remove_file(&file).unwrap();
        assert!(dump(Path::new("/nowhere/at/all")).is_err() && dump(Path::new("a\0b")).is_err());
    }
    let modules: Vec<prof::ModuleInfo> = prof::modules();
    assert!(modules.iter().all(|prof::ModuleInfo { path, base, size }| !path.is_empty() && *base != 0 && *size != 0));
    prof::reset();
    prof::stop();
    assert!(!prof::is_enabled());
    drop(kept);
}

#[test]
fn options_and_statistics() {
    use options::Opt;
    for (option, raw) in [
        (Opt::PROF, sys::mi_option_prof),
        (Opt::PROF_SAMPLE_RATE, sys::mi_option_prof_sample_rate),
        (Opt::PROF_BT_MAX, sys::mi_option_prof_bt_max),
        (Opt::PROF_ACCUM, sys::mi_option_prof_accum),
        (Opt::PROF_SEED, sys::mi_option_prof_seed),
        (Opt::PROF_MAX_BYTES, sys::mi_option_prof_max_bytes),
        (Opt::MEMORY_EVENTS, sys::mi_option_memory_events),
        (Opt::PURGE_ZEROES, sys::mi_option_purge_zeroes),
        (Opt::SCAVENGER, sys::mi_option_scavenger),
        (Opt::PURGE_HOLES, sys::mi_option_purge_holes),
        (Opt::PURGE_HOLES_EAGER_ZERO, sys::mi_option_purge_holes_eager_zero),
        (Opt::PURGE_HOLES_MIN_INTERVAL, sys::mi_option_purge_holes_min_interval),
        (Opt::PURGE_HOLES_FULL_EVERY, sys::mi_option_purge_holes_full_every),
        (Opt::SNAPSHOT_ON_EXIT, sys::mi_option_snapshot_on_exit),
        (Opt::PAGE_RESERVE, sys::mi_option_page_reserve),
        (Opt::RESIDENT_FIRST, sys::mi_option_resident_first),
        (Opt::LARGE_SPAN, sys::mi_option_large_span),
        (Opt::LARGE_SPAN_MAX, sys::mi_option_large_span_max),
        (Opt::PURGE_DELAY, sys::mi_option_purge_delay),
        (Opt::SHOW_STATS, sys::mi_option_show_stats),
        (Opt::SHOW_ERRORS, sys::mi_option_show_errors),
        (Opt::VERBOSE, sys::mi_option_verbose),
    ] {
        assert_eq!((option.as_raw(), Opt::from_raw(raw)), (raw, Some(option)));
        let _: &'static str = option.name();
        let _: [c_long; 2] = [options::get(option), options::get_clamp(option, 0, 10)];
        let _: (usize, bool) = (options::get_size(option), options::is_enabled(option));
    }
    let option = Opt::LARGE_SPAN;
    options::set(option, 0);
    options::set_default(option, 5);
    options::enable(option);
    options::disable(option);
    options::set_enabled(option, true);
    options::set_enabled_default(option, false);
    assert!(options::is_enabled(option));
    let _: fn() = options::print;
    let _: &'static [(&'static str, sys::mi_option_t)] = options::all();

    let counts: stats::Stats = stats::get().unwrap();
    let raw: &sys::mi_stats_t = counts.as_raw();
    assert_eq!((raw.size, counts.malloc_normal.total), (4368, raw.malloc_normal.total));
    let json: String = counts.to_json().unwrap();
    assert!(json.len() > 1000 && stats::json().is_some_and(|json: String| json.starts_with('{')));
    let _: fn() = stats::print;
    let _: fn(usize) -> usize = stats::bin_size;
    for which in [stats::Subproc::Main, stats::Subproc::Current] {
        let _: [Option<stats::Stats>; 2] = [stats::subproc_get(which), stats::subproc_get_exclusive(which)];
        let _: Option<String> = stats::subproc_json(which);
    }
    let _: [fn(stats::Subproc); 2] = [stats::subproc_print, stats::subproc_heap_print];
}

#[test]
fn events() {
    use memory_events::{Callbacks, Change, ChangeKind, Snapshot};
    fn seen(change: &Change) {
        let Change { kind, total_bytes, delta_bytes, request_size } = *change;
        assert!(matches!(kind, ChangeKind::Allocate | ChangeKind::Free | ChangeKind::Resize));
        assert!(total_bytes > 0 || delta_bytes <= 0 || request_size == 0);
    }
    static CALLBACKS: Callbacks = Callbacks { allocate: Some(seen), free: Some(seen), resize: Some(seen) };
    assert!(
        memory_events::set_callbacks(&CALLBACKS) && memory_events::set_enabled(true) && memory_events::is_enabled()
    );
    let mut kept = vec![1u8; 100_000];
    kept.resize(300_000, 0);
    let Snapshot { live_bytes, accum_bytes, live_count, accum_count } = memory_events::snapshot().unwrap();
    assert!(live_bytes >= 300_000 && accum_bytes >= 300_000 && live_count > 0 && accum_count > 0);
    let (wanted, mut found) = (kept.as_ptr() as usize, false);
    // SAFETY: blocks are not looked into, and the function neither allocates nor frees.
    let complete = unsafe {
        memory_events::visit_live_allocations(|block: *mut u8, usable: usize| {
            found |= block as usize == wanted && usable >= 300_000;
            true
        })
    };
    assert!(complete && found && memory_events::clear_callbacks());
    memory_events::set_enabled(false);
}

#[test]
fn exact() {
    use mimalloc_pprof::dhat;
    assert!(dhat::start() && dhat::is_enabled() && !dhat::start());
    let kept = vec![1u8; 54_321];
    let dhat::Stats { enabled, incomplete, total_bytes, total_blocks, live_bytes, live_blocks, .. } = dhat::stats();
    assert!(enabled && !incomplete && total_bytes >= live_bytes && total_blocks >= live_blocks && live_bytes >= 54_321);
    dhat::stop();
    let dhat::Stats { peak_bytes, peak_blocks, dropped, internal_bytes, .. } = dhat::stats();
    assert!(peak_bytes >= 54_321 && peak_blocks > 0 && dropped == 0 && internal_bytes > 0);
    let file = std::env::temp_dir().join(format!("surface-dhat-{}", std::process::id()));
    dhat::dump_file(&file).unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().contains("dhatFileVersion"));
    std::fs::remove_file(&file).unwrap();
    assert!(dhat::dump_file(Path::new("a\0b")).is_err());
    drop(kept);
}

/// Every function of `sys` as a C function of its type.
#[test]
fn functions_of_sys() {
    macro_rules! are {
        ($($($name:ident)* : $type:ty;)*) => {{ $($(let _: $type = sys::$name;)*)* }};
    }
    type Any = *mut c_void;
    are! {
        mi_malloc mi_zalloc: unsafe extern "C" fn(usize) -> Any;
        mi_calloc mi_malloc_aligned mi_zalloc_aligned mi_unwrapped_malloc: unsafe extern "C" fn(usize, usize) -> Any;
        mi_realloc mi_rezalloc mi_expand: unsafe extern "C" fn(Any, usize) -> Any;
        mi_realloc_aligned mi_recalloc mi_rezalloc_aligned mi_unwrapped_realloc: unsafe extern "C" fn(Any, usize, usize) -> Any;
        mi_recalloc_aligned: unsafe extern "C" fn(Any, usize, usize, usize) -> Any;
        mi_free mi_unwrapped_free: unsafe extern "C" fn(Any);
        mi_usable_size: unsafe extern "C" fn(*const c_void) -> usize;
        mi_prof_start: unsafe extern "C" fn(usize) -> bool;
        mi_prof_start_seeded: unsafe extern "C" fn(usize, u64) -> bool;
        mi_prof_start_ex: unsafe extern "C" fn(*const sys::mi_prof_config_t) -> bool;
        mi_dhat_start mi_dhat_is_enabled: unsafe extern "C" fn() -> bool;
        mi_dhat_stop: unsafe extern "C" fn();
        mi_dhat_stats_get: unsafe extern "C" fn(*mut sys::mi_dhat_stats_t) -> bool;
        mi_dhat_dump: unsafe extern "C" fn(*const c_char) -> bool;
        mi_prof_stop mi_prof_reset mi_on_thread_idle mi_on_thread_idle_end mi_scavenger_stop mi_purge_holes_report: unsafe extern "C" fn();
        mi_prof_is_enabled mi_on_thread_idle_start mi_memory_tracking_is_enabled: unsafe extern "C" fn() -> bool;
        mi_prof_dump mi_prof_dump_proto: unsafe extern "C" fn(*const c_char) -> bool;
        mi_prof_dump_writer mi_prof_dump_proto_writer: unsafe extern "C" fn(Option<sys::MiProfWriteFun>, Any) -> bool;
        mi_prof_debug_stats: unsafe extern "C" fn(*mut usize, *mut usize, *mut usize);
        mi_prof_stats_get: unsafe extern "C" fn(*mut sys::mi_prof_stats_t) -> bool;
        mi_prof_visit: unsafe extern "C" fn(sys::mi_prof_visit_fun, Any) -> bool;
        mi_prof_snapshot_new: unsafe extern "C" fn() -> *mut sys::mi_prof_snapshot_t;
        mi_prof_snapshot_visit: unsafe extern "C" fn(*const sys::mi_prof_snapshot_t, sys::mi_prof_visit_fun, Any) -> bool;
        mi_prof_snapshot_free: unsafe extern "C" fn(*mut sys::mi_prof_snapshot_t);
        mi_prof_modules_visit: unsafe extern "C" fn(sys::mi_prof_module_visit_fun, Any) -> bool;
        mi_heap_dump_json: unsafe extern "C" fn(bool, bool) -> *mut c_char;
        mi_heap_dump_json_ex: unsafe extern "C" fn(bool, bool, usize) -> *mut c_char;
        mi_heap_get_seq: unsafe extern "C" fn(*mut sys::mi_heap_t) -> usize;
        mi_heap_snapshot: unsafe extern "C" fn(c_int, c_uint) -> c_int;
        mi_heap_snapshot_to_file: unsafe extern "C" fn(*const c_char, c_uint) -> c_int;
        mi_purge_holes_stats_get: unsafe extern "C" fn(*mut sys::MiPurgeHolesStats);
        mi_purge_all_ex: unsafe extern "C" fn(sys::mi_purge_flags_t, usize, *mut sys::mi_purge_all_report_t) -> c_int;
        mi_purge_all: unsafe extern "C" fn(bool);
        mi_option_is_enabled: unsafe extern "C" fn(sys::mi_option_t) -> bool;
        mi_option_enable mi_option_disable: unsafe extern "C" fn(sys::mi_option_t);
        mi_option_set_enabled mi_option_set_enabled_default: unsafe extern "C" fn(sys::mi_option_t, bool);
        mi_option_get: unsafe extern "C" fn(sys::mi_option_t) -> c_long;
        mi_option_get_clamp: unsafe extern "C" fn(sys::mi_option_t, c_long, c_long) -> c_long;
        mi_option_get_size: unsafe extern "C" fn(sys::mi_option_t) -> usize;
        mi_option_set mi_option_set_default: unsafe extern "C" fn(sys::mi_option_t, c_long);
        mi_options_print_out mi_stats_print_out: unsafe extern "C" fn(Option<sys::mi_output_fun>, Any);
        mi_stats_get: unsafe extern "C" fn(*mut sys::mi_stats_t) -> bool;
        mi_stats_get_json: unsafe extern "C" fn(usize, *mut c_char) -> *mut c_char;
        mi_stats_as_json: unsafe extern "C" fn(*mut sys::mi_stats_t, usize, *mut c_char) -> *mut c_char;
        mi_stats_get_bin_size: unsafe extern "C" fn(usize) -> usize;
        mi_heap_stats_get: unsafe extern "C" fn(*mut sys::mi_heap_t, *mut sys::mi_stats_t) -> bool;
        mi_heap_stats_get_json: unsafe extern "C" fn(*mut sys::mi_heap_t, usize, *mut c_char) -> *mut c_char;
        mi_heap_stats_print_out: unsafe extern "C" fn(*mut sys::mi_heap_t, Option<sys::mi_output_fun>, Any);
        mi_heap_stats_merge_to_subproc: unsafe extern "C" fn(*mut sys::mi_heap_t);
        mi_subproc_stats_get mi_subproc_stats_get_exclusive: unsafe extern "C" fn(sys::mi_subproc_id_t, *mut sys::mi_stats_t) -> bool;
        mi_subproc_stats_get_json: unsafe extern "C" fn(sys::mi_subproc_id_t, usize, *mut c_char) -> *mut c_char;
        mi_subproc_stats_print_out mi_subproc_heap_stats_print_out: unsafe extern "C" fn(sys::mi_subproc_id_t, Option<sys::mi_output_fun>, Any);
        mi_subproc_main mi_subproc_current: unsafe extern "C" fn() -> sys::mi_subproc_id_t;
        mi_memory_tracking_set_enabled: unsafe extern "C" fn(bool) -> bool;
        mi_memory_set_callbacks: unsafe extern "C" fn(*const sys::mi_memory_callbacks_t) -> bool;
        mi_memory_snapshot: unsafe extern "C" fn(*mut sys::mi_memory_snapshot_t) -> bool;
        mi_memory_visit_live_allocations: unsafe extern "C" fn(sys::mi_memory_allocation_visit_fun, Any) -> bool;
        mi_rs_layout_table: unsafe extern "C" fn(*mut usize) -> *const sys::MiRsLayoutEntry;
    }
    // SAFETY: as in C.
    unsafe {
        let block = sys::mi_zalloc(100);
        assert!(sys::mi_usable_size(block) >= 100 && sys::mi_heap_get_seq(std::ptr::null_mut()) == 0);
        sys::mi_free(block);
        assert_eq!(sys::mi_heap_snapshot(-1, sys::MI_SNAPSHOT_BLOCKS), -1);
        let nowhere = CString::new("/nowhere/at/all").unwrap();
        assert!(!sys::mi_prof_dump(nowhere.as_ptr()));
        let mut count = 0;
        let table = sys::mi_rs_layout_table(&raw mut count);
        assert!(count > 10 && (*table).value == size_of::<sys::mi_prof_stats_t>());
    }
}

/// Offsets and sizes that a C program prints for the headers, and those of `sys`.
#[test]
fn layouts_and_numbers_are_those_of_the_headers() {
    let (mut source, mut expected) = (String::new(), String::new());
    macro_rules! layout {
        ($($type:ident $(as $c:ident)? { $($field:ident)* })*) => {$(
            let c = [stringify!($type) $(, stringify!($c))?].into_iter().last().unwrap();
            $(
                source += &format!("P(offsetof({c}, {}));\n", stringify!($field));
                expected += &format!("{}\n", std::mem::offset_of!(sys::$type, $field));
            )*
            source += &format!("P(sizeof({c}));\n");
            expected += &format!("{}\n", size_of::<sys::$type>());
        )*};
    }
    layout! {
        mi_prof_stats_t {
            size version enabled accum sample_rate live_samples live_bytes accum_samples accum_bytes unique_stacks
            arena_committed stack_table_overflows dropped_samples heap_committed heap_reserved heap_malloc_requested
            heap_pages heap_pages_abandoned heap_count theap_count heap_purged heap_stats_detailed
        }
        mi_dhat_stats_t {
            size version enabled incomplete total_bytes total_blocks live_bytes live_blocks peak_bytes peak_blocks dropped
            internal_bytes
        }
        mi_prof_config_t {
            size version mode sample_interval max_profiler_bytes seed accum max_stack_depth dump_at_exit dump_format
        }
        mi_prof_sample_info_t { stack depth live_objects live_bytes accum_objects accum_bytes }
        MiPurgeHolesStats as mi_purge_holes_stats_t { purged_bytes purged_blocks purged_bytes_total full_sweeps }
        mi_purge_all_report_t { arena_bytes gated complete arenas_reclaimed subprocs_pending reclaimed }
        mi_stats_t { size version pages _segments_reserved _stat_reserved _stat_counter_reserved malloc_bins page_bins chunk_bins }
        mi_stat_count_t { total peak current }
        mi_stat_counter_t { total }
        mi_memory_change_t { kind total_bytes delta_bytes request_size }
        mi_memory_callbacks_t { handlers args }
        mi_memory_snapshot_t { size version live_bytes accum_bytes live_count accum_count }
        mi_subproc_id_t { }
        mi_option_t { }
        mi_purge_flags_t { }
        mi_memory_change_kind_t { }
    }
    for &(name, value) in sys::MI_OPTIONS_IN_ORDER {
        source += &format!("P({name});\n");
        expected += &format!("{value}\n");
    }
    macro_rules! numbers {
        ($($name:ident $(= $c:ident)?)*) => {$(
            let c = [stringify!($name) $(, stringify!($c))?].into_iter().last().unwrap();
            source += &format!("P({c});\n");
            expected += &format!("{}\n", sys::$name);
        )*};
    }
    numbers! {
        mi_option_large_os_pages mi_option_eager_region_commit mi_option_reset_decommits mi_option_reset_delay
        mi_option_limit_os_alloc MI_PROF_STAT_VERSION = MI_PROF_STATS_VERSION MI_PROF_CONFIG_VERSION
        MI_PROF_CONFIG_FALLBACK MI_PROF_CONFIG_OVERRIDE MI_PURGE_FORCE MI_PURGE_RECLAIM MI_PURGE_OK = MI_PURGE_ALL_OK MI_PURGE_PARTIAL = MI_PURGE_ALL_PARTIAL
        MI_PURGE_BUSY = MI_PURGE_ALL_BUSY MI_STAT_VERSION MI_SNAPSHOT_BLOCKS MI_SNAPSHOT_V2 MI_MEMORY_SNAPSHOT_VERSION MI_MEMORY_ALLOCATE
        MI_MEMORY_FREE MI_MEMORY_RESIZE MI_MEMORY_CHANGE_COUNT
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join("surface.c"), folder.join("surface"));
    let text = format!(
        "#include <mimalloc-stats.h>\n#include <mimalloc/profile.h>\n#include <mimalloc/memory-events.h>\n#include <mimalloc/dhat.h>\n#include <stdio.h>\n\
         #define P(x) printf(\"%lld\\n\", (long long)(x))\nint main(void) {{\n{source}}}\n"
    );
    std::fs::write(&file, text).unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let compiled = Command::new("cc").arg(include).arg(&file).arg("-o").arg(&program).output().expect("cc is needed");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    for (number, (line, wanted)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, wanted, "{}", source.lines().nth(number).unwrap());
    }
    assert_eq!(printed.lines().count(), expected.lines().count());
}
