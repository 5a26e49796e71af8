//! mimalloc's C interface: headers, exported names, layouts, and programs that use every function, with the shared and
//! with the static library.

mod support;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{compile, library, preloaded, succeed};

const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");

fn archive() -> PathBuf {
    library().with_file_name("libmimalloc_pprof.a")
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.{name}", std::process::id()))
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} is needed for this test: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Compile a program for the shared library and for the static one, and give both to `run`.
fn with_both(source: &str, options: &[&str], run: impl Fn(&mut Command) -> String, expected: &str) {
    let (folder, archive) = (library().parent().unwrap(), archive());
    let search = format!("-L{}", folder.display());
    let linked = |libraries: &[&str]| compile(source, &[&[INCLUDE], options, libraries].concat());
    let shared = linked(&[&search, "-lmimalloc_pprof"]);
    assert_eq!(run(Command::new(&shared).env("LD_LIBRARY_PATH", folder)), expected, "{source} with the shared library");
    let own = linked(&[archive.to_str().unwrap(), "-ldl"]);
    assert_eq!(run(&mut Command::new(&own)), expected, "{source} with the static library");
}

#[test]
fn blocks() {
    with_both("api_blocks.c", &[], succeed, "");
    // A sampled block differs from others in nothing.
    let profiled =
        |command: &mut Command| succeed(command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "1"));
    with_both("api_blocks.c", &[], profiled, "");
}

#[test]
fn the_profiler() {
    with_both("prof_api.c", &[], succeed, "");
    let environment =
        |command: &mut Command| succeed(command.arg("environment").env("MIMALLOC_PROF_SAMPLE_RATE", "3000"));
    with_both("prof_api.c", &[], environment, "");
}

/// The program says where its dump is to go; the environment may have said something else.
#[test]
fn a_dump_at_exit_for_the_program() {
    let folder = library().parent().unwrap();
    let program = compile("prof_exit.c", &[INCLUDE, &format!("-L{}", folder.display()), "-lmimalloc_pprof"]);
    let place = temporary("exit");
    std::fs::create_dir_all(&place).unwrap();
    for (environment, overrides, expected) in
        [(false, "0", "own"), (false, "1", "own"), (true, "0", "env"), (true, "1", "own")]
    {
        let mut command = Command::new(&program);
        command.args(["own.%p", overrides]).current_dir(&place).env("LD_LIBRARY_PATH", folder);
        if environment {
            command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_DUMP_AT_EXIT", place.join("env.%p"));
        }
        assert_eq!(succeed(&mut command), "");
        let files: Vec<_> = std::fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(files[0].file_stem().unwrap() == expected, "{files:?}, not {expected}");
        assert!(std::fs::read_to_string(&files[0]).unwrap().contains("1:    13312 ["), "the block is there");
        std::fs::remove_file(&files[0]).unwrap();
    }
}

#[test]
fn what_is_said_of_returned_memory() {
    with_both("purging_truths.c", &[], succeed, "");
}

#[test]
fn arenas() {
    let reserving = |command: &mut Command| succeed(command.env("MIMALLOC_RESERVE_OS_MEMORY", "40MiB"));
    with_both("api_arenas.c", &["-pthread"], reserving, "");
    // Nothing but what was reserved.
    let closed = |command: &mut Command| {
        succeed(command.env("MIMALLOC_RESERVE_OS_MEMORY", "40MiB").env("MIMALLOC_DISALLOW_OS_ALLOC", "1").arg("closed"))
    };
    with_both("api_arenas.c", &["-pthread"], closed, "");
}

/// Huge pages that nobody has set aside are missed once, and the program runs without.
#[test]
fn huge_pages_at_the_start() {
    let output = preloaded("/bin/ls").arg("/").env("MIMALLOC_RESERVE_HUGE_OS_PAGES", "100000").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.lines().count() == 1 && errors.contains("huge pages"), "{errors}");
}

#[test]
fn heaps() {
    with_both("heaps.c", &[], succeed, "");
    let profiled =
        |command: &mut Command| succeed(command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "1000"));
    with_both("heaps.c", &[], profiled, "");
}

#[test]
fn parts_of_heaps_and_sub_processes() {
    with_both("heaps_parts.c", &[], succeed, "");
}

#[test]
fn heaps_in_arenas() {
    with_both("heaps_arena.c", &[], succeed, "");
    // A sampled block is where it belongs, too.
    let profiled =
        |command: &mut Command| succeed(command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "1000"));
    with_both("heaps_arena.c", &[], profiled, "");
}

#[test]
fn visits_of_heaps() {
    with_both("heaps_visit.c", &[], succeed, "");
    let profiled =
        |command: &mut Command| succeed(command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "500"));
    with_both("heaps_visit.c", &[], profiled, "");
}

#[test]
fn returning_memory() {
    with_both("purging.c", &[], succeed, "");
    let folder = library().parent().unwrap();
    let program = compile("purging.c", &[INCLUDE, &format!("-L{}", folder.display()), "-lmimalloc_pprof"]);
    for option in ["SCAVENGER=0", "SCAVENGER=2", "PURGE_DELAY=0", "PURGE_DELAY=-1", "PURGE_HOLES=0"] {
        let (name, value) = option.split_once('=').unwrap();
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", folder).env(format!("MIMALLOC_{name}"), value);
        assert_eq!(succeed(&mut command), "", "{option}");
    }
}

#[test]
fn operators_and_containers() {
    for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
        with_both("heaps_stl.cpp", &[standard], succeed, "fine\n");
    }
    for options in [["-std=c++17", "-DLIBRARY"], ["-std=c++20", "-DOPERATORS"]] {
        with_both("api_new.cpp", &options, succeed, "fine\n");
    }
}

#[test]
fn names_of_the_c_library() {
    with_both("api_override.c", &[], succeed, "fine\n");
    let program = compile("api_libc.c", &[]);
    assert_eq!(succeed(&mut preloaded(&program)), "");
    let told = preloaded(&program).arg("stats").output().unwrap();
    assert!(told.status.success() && String::from_utf8_lossy(&told.stderr).contains("block size"), "{told:?}");
    let archive = archive();
    let own = compile("api_own_names.c", &[archive.to_str().unwrap(), "-ldl"]);
    assert_eq!(succeed(&mut Command::new(own)), "own\n112\n");
}

/// Options from the environment, what is said about them, and the JSON that the program prints.
#[test]
fn process_options_and_statistics() {
    const OLD: &str = "mimalloc-pprof: MIMALLOC_EAGER_REGION_COMMIT is an old name; use MIMALLOC_ARENA_EAGER_COMMIT\n";
    const BAD: &str = "mimalloc-pprof: MIMALLOC_MAX_ERRORS is not a number; the default is used\n";
    let run = |command: &mut Command| {
        command.env("MIMALLOC_PAGE_FULL_RETAIN", "-3").env("MIMALLOC_ARENA_RESERVE", "2MiB");
        command.env("MIMALLOC_PAGEMAP_COMMIT", "").env("MIMALLOC_EAGER_REGION_COMMIT", "yes");
        let output = command.env("MIMALLOC_MAX_ERRORS", "many").output().unwrap();
        let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{text}\n{errors}");
        // Each is said once, although the values are read many times.
        assert_eq!(errors, [OLD, BAD].concat());
        check_json(&text);
        String::new()
    };
    with_both("api_process.c", &[], run, "");
}

/// It is JSON, and has all members in their order.
fn check_json(text: &str) {
    let balance = |open: char, close: char| text.matches(open).count() == text.matches(close).count();
    assert!(text.starts_with("{\n") && balance('{', '}') && balance('[', ']') && !text.contains(",\n  ]"), "{text}");
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  \"").or_else(|| line.strip_prefix("    \"")))
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let expected = "stat_version mimalloc_version process elapsed_msecs user_msecs system_msecs rss_current rss_peak \
        commit_current commit_peak page_faults pages reserved committed reset purged page_committed pages_abandoned threads \
        malloc_normal malloc_huge malloc_requested mmap_calls commit_calls reset_calls purge_calls arena_count \
        malloc_normal_count malloc_huge_count malloc_guarded_count arena_rollback_count arena_purges pages_extended \
        pages_retire page_searches page_searches_count segments segments_abandoned segments_cache _segments_reserved heaps \
        theaps pages_reclaim_on_alloc pages_reclaim_on_free pages_reabandon_full pages_unabandon_busy_wait \
        heaps_delete_wait malloc_bins page_bins chunk_bins holes purged_bytes purged_blocks purged_bytes_total discard_calls \
        reuse_calls pages_freed ineligible_pages ineligible_bytes ineligible_free_bytes unformed_bytes unformed_bytes_total \
        unformed_discard_calls unformed_reuse_calls pages_skipped blocks_visited full_sweeps retained pages_with_live_blocks \
        caches free_pages free_runs freed_spans empty_slabs huge_pages tails slack ineligible purge_holes_off";
    assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(text.matches("\"block_size\": ").count(), 2 * 74);
    assert_eq!(text.matches("\"bin\": ").count(), 6);
    let file = temporary("stats.json");
    std::fs::write(&file, text).unwrap();
    output(Command::new("python3").args(["-c", "import json, sys; json.load(open(sys.argv[1]))"]).arg(&file));
}

#[test]
fn statistics_at_the_end() {
    let output = preloaded("/bin/true").env("MIMALLOC_SHOW_STATS", "1").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("block size") && errors.contains("process: "), "{errors}");
}

#[test]
fn memory_events() {
    with_both("memory_events.c", &[], succeed, "");
    let profiled =
        |command: &mut Command| succeed(command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "300"));
    with_both("memory_events.c", &[], profiled, "");
    let guarded = |command: &mut Command| succeed(command.env("MIMALLOC_GUARDED_SAMPLE_RATE", "3"));
    with_both("memory_events.c", &[], guarded, "");
    let secure = |command: &mut Command| succeed(command.env("MIMALLOC_SECURE", "4"));
    with_both("memory_events.c", &[], secure, "");
    let from_the_start = |command: &mut Command| succeed(command.env("MIMALLOC_MEMORY_EVENTS", "1").arg("on"));
    with_both("memory_events.c", &[], from_the_start, "");
}

/// Each call is told once if tracking is on, and not at all if it is off, whatever others do meanwhile; and nothing is lost from the totals.
#[test]
fn memory_events_in_a_storm() {
    for (how, variables) in [
        ("threads", [("MIMALLOC_SCAVENGER", "1"), ("MIMALLOC_PURGE_DELAY", "0")]),
        ("forks", [("MIMALLOC_PROF", "1"), ("MIMALLOC_PROF_SAMPLE_RATE", "1000")]),
        ("signals", [("MIMALLOC_SCAVENGER", "0"), ("MIMALLOC_PURGE_DELAY", "1")]),
        ("guarded", [("MIMALLOC_GUARDED_SAMPLE_RATE", "40"), ("MIMALLOC_PROF", "1")]),
        ("secure", [("MIMALLOC_SECURE", "3"), ("MIMALLOC_PURGE_DELAY", "0")]),
    ] {
        let run = |command: &mut Command| succeed(command.args([how, "8", "700"]).envs(variables));
        with_both("memory_events_storm.c", &["-pthread"], run, "");
    }
}

/// All of them, each of which a program may include by itself.
const HEADERS: [&str; 7] = [
    "mimalloc.h",
    "mimalloc-stats.h",
    "mimalloc-override.h",
    "mimalloc-new-delete.h",
    "mimalloc/dhat.h",
    "mimalloc/memory-events.h",
    "mimalloc/profile.h",
];

/// Those that declare functions.
fn includes() -> String {
    let declaring = HEADERS.iter().filter(|header| !header.contains("override") && !header.contains("new-delete"));
    declaring.map(|header| format!("#include <{header}>\n")).collect()
}

#[test]
fn headers_need_no_others_and_raise_no_warnings() {
    let strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic", INCLUDE];
    for header in HEADERS {
        let source = temporary(&format!("{}.c", header.replace('/', "-")));
        std::fs::write(&source, format!("#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n"))
            .unwrap();
        output(Command::new("cc").args(strict).arg("-std=c99").arg(&source));
        for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
            output(Command::new("c++").args(strict).args([standard, "-x", "c++"]).arg(&source));
        }
    }
}

/// Functions that the headers declare and do not define.
fn declared() -> BTreeSet<String> {
    let source = temporary("declared.c");
    std::fs::write(&source, includes()).unwrap();
    let text = output(Command::new("cc").args(["-E", "-P", INCLUDE]).arg(&source));
    let mut declarations = Vec::new();
    let (mut depth, mut current) = (0, String::new());
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 && !current.contains("typedef") {
                    current.clear(); // a function with its body
                }
            }
            ';' if depth == 0 => declarations.push(std::mem::take(&mut current)),
            c if depth == 0 => current.push(c),
            _ => {}
        }
    }
    let name = |declaration: &String| {
        let before = declaration.split('(').map(str::trim_end).find(|part| {
            part.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().is_some_and(|word| word.starts_with("mi_"))
        })?;
        before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
    };
    declarations.iter().filter(|text| !text.contains("typedef") && text.contains('(')).filter_map(name).collect()
}

#[test]
fn what_is_declared_is_exported_and_the_other_way_round() {
    let declared = declared();
    assert!(
        declared.len() > 100 && declared.contains("mi_malloc") && declared.contains("mi_stats_as_json"),
        "{declared:?}"
    );
    let symbols = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let exported: BTreeSet<String> =
        symbols.lines().map(|line| line[19..].to_owned()).filter(|name| name.starts_with("mi_")).collect();
    assert_eq!(declared, exported);
    let symbols = Command::new("nm").args(["--defined-only", "--extern-only"]).arg(archive()).output().unwrap();
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let archived: BTreeSet<&str> = symbols.lines().filter_map(|line| line.get(19..)).collect();
    assert!(declared.iter().all(|name| archived.contains(name.as_str())));
}

/// `docs/api.md` has every function in one row, and calls there what is there.
#[test]
fn the_page_tells_the_state_of_every_function() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md")).unwrap();
    let (mut there, mut rows) = (BTreeSet::new(), 0);
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = cells[1].split_whitespace().map(|name| name.trim_matches('`').to_owned());
        match cells[2] {
            "yes" | "accepted" => names.for_each(|name| assert!(there.insert(name.clone()), "{name} is there twice")),
            "not yet" => names.for_each(|name| assert!(!declared().contains(&name), "{name}")),
            state => panic!("{state}: {row}"),
        }
        rows += 1;
    }
    assert!(rows > 20);
    assert_eq!(there, declared());
}

/// Every function that is declared is called by one of the programs.
#[test]
fn every_function_is_used() {
    let programs = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")).unwrap();
    let used: String = programs.map(|program| std::fs::read_to_string(program.unwrap().path()).unwrap()).collect();
    let unused: Vec<String> = declared().into_iter().filter(|name| !used.contains(&format!("{name}("))).collect();
    assert_eq!(unused, [""; 0]);
}

/// A C program that prints offsets, and what it has to print.
macro_rules! layout {
    ($type:path as $c:ident { $($field:ident $(as $named:ident)?),* }) => {{
        let mut source = String::new();
        let mut expected = String::new();
        $(
            let c_field = [stringify!($field) $(, stringify!($named))?].into_iter().last().unwrap();
            source += &format!("printf(\"{c_field} %zu\\n\", offsetof({}, {c_field}));\n", stringify!($c));
            expected += &format!("{c_field} {}\n", std::mem::offset_of!($type, $field));
        )*
        source += &format!("printf(\"%zu\\n\", sizeof({}));\n", stringify!($c));
        expected += &format!("{}\n", size_of::<$type>());
        (source, expected)
    }};
}

#[test]
fn layouts_agree() {
    use mimalloc_pprof::api::c::stats::{BINS, CHUNK_BINS, Count, Counter, Stats};
    use mimalloc_pprof::api::c::{
        DhatStats, HeapArea, HolesStats, MemorySnapshot, ProfConfig, ProfStats, PurgeReport, SampleInfo,
    };
    let layouts = [
        layout!(Count as mi_stat_count_t { total, peak, current }),
        layout!(DhatStats as mi_dhat_stats_t {
            size, version, enabled, incomplete, total_bytes, total_blocks, live_bytes, live_blocks, peak_bytes, peak_blocks,
            dropped, internal_bytes
        }),
        layout!(HeapArea as mi_heap_area_t { blocks, reserved, committed, used, block_size, full_block_size, reserved1 }),
        layout!(Counter as mi_stat_counter_t { total }),
        layout!(MemorySnapshot as mi_memory_snapshot_t { size, version, live_bytes, accum_bytes, live_count, accum_count }),
        layout!(PurgeReport as mi_purge_all_report_t {
            arena_bytes, hole_bytes, theaps_swept, theaps_pending, theaps_orphaned, gated, complete, arenas_reclaimed,
            arena_reclaim_bytes, arenas_kept, subprocs_pending, reclaimed
        }),
        layout!(HolesStats as mi_purge_holes_stats_t {
            purged_bytes, purged_blocks, purged_bytes_total, discard_calls, reuse_calls, pages_freed, ineligible_pages,
            ineligible_bytes, ineligible_free_bytes, unformed_bytes, unformed_bytes_total, unformed_discard_calls,
            unformed_reuse_calls, pages_skipped, blocks_visited, full_sweeps
        }),
        layout!(ProfConfig as mi_prof_config_t {
            size, version, mode, sample_interval, max_profiler_bytes, seed, accum, max_stack_depth, dump_at_exit, dump_format
        }),
        layout!(ProfStats as mi_prof_stats_t {
            size, version, enabled, accum, sample_rate, live_samples, live_bytes, accum_samples, accum_bytes, unique_stacks,
            arena_committed, stack_table_overflows, dropped_samples, heap_committed, heap_reserved, heap_malloc_requested,
            heap_pages, heap_pages_abandoned, heap_count, theap_count, heap_purged, heap_stats_detailed
        }),
        layout!(SampleInfo as mi_prof_sample_info_t {
            stack, depth, live_objects, live_bytes, accum_objects, accum_bytes
        }),
        layout!(Stats as mi_stats_t {
            size, version, pages, reserved, committed, reset, purged, page_committed, pages_abandoned, threads, malloc_normal,
            malloc_huge, malloc_requested, mmap_calls, commit_calls, reset_calls, purge_calls, arena_count,
            malloc_normal_count, malloc_huge_count, malloc_guarded_count, arena_rollback_count, arena_purges, pages_extended,
            pages_retire, page_searches, page_searches_count, segments, segments_abandoned, segments_cache, _segments_reserved,
            heaps, theaps, pages_reclaim_on_alloc, pages_reclaim_on_free, pages_reabandon_full, pages_unabandon_busy_wait,
            heaps_delete_wait, _stat_reserved, _stat_counter_reserved, malloc_bins,
            page_bins, chunk_bins
        }),
    ];
    let (sources, expected): (Vec<_>, Vec<_>) = layouts.into_iter().unzip();
    let source = temporary("layout.c");
    let text = format!(
        "{}#include <stdio.h>\nint main(void) {{\n{}\
         printf(\"%d %d %zu\\n\", MI_BIN_COUNT, MI_CHUNK_BIN_COUNT, sizeof(mi_option_t)); }}\n",
        includes(),
        sources.concat()
    );
    std::fs::write(&source, text).unwrap();
    let program = temporary("layout");
    output(Command::new("cc").arg(INCLUDE).arg(&source).arg("-o").arg(&program));
    assert_eq!(succeed(&mut Command::new(&program)), format!("{}{BINS} {CHUNK_BINS} 4\n", expected.concat()));
}
