//! Real dumps of other programs: what is read agrees with what the files say of themselves.

mod support;

use mpp_profile::analysis::{Folded, Quality, Table, View};
use mpp_profile::{Amount, Amounts, Format, Metric, Profile, ReadError, read};
use support::{data, shared_corpus};

struct Expected {
    file: &'static str,
    format: Format,
    sample_rate: u64,
    live: (u64, u64),
    allocated: (u64, u64),
    samples: usize,
    modules: usize,
    warnings: usize,
}

/// The totals of gperftools' and Go's files are those of their headers, except for gawk-mmap, whose header does not count
/// mmap; its and jemalloc's totals were added up with awk. Samples are the lines (or `@` lines) that are not all zero, modules
/// the lines after `MAPPED_LIBRARIES:`.
const EXPECTED: [Expected; 6] = [
    Expected {
        file: "jemalloc-lua.txt",
        format: Format::JemallocHeapV2,
        sample_rate: 8192,
        live: (120, 619_347),
        allocated: (0, 0),
        samples: 6,
        modules: 58,
        warnings: 0,
    },
    Expected {
        file: "jemalloc-perl-accum.txt",
        format: Format::JemallocHeapV2,
        sample_rate: 4096,
        live: (675, 4_861_239),
        allocated: (1600, 30_043_765),
        samples: 58,
        modules: 70,
        warnings: 0,
    },
    Expected {
        file: "jemalloc-true-rate-1.txt",
        format: Format::JemallocHeapV2,
        sample_rate: 1,
        live: (1, 81_920),
        allocated: (1, 81_920),
        samples: 1,
        modules: 46,
        warnings: 0,
    },
    Expected {
        file: "gperftools-lua.txt",
        format: Format::GperftoolsHeap,
        sample_rate: 1,
        live: (2743, 361_812),
        allocated: (2802, 500_090),
        samples: 144,
        modules: 75,
        warnings: 0,
    },
    Expected {
        file: "gperftools-gawk-mmap.txt",
        format: Format::GperftoolsHeap,
        sample_rate: 1,
        live: (3545, 3_397_381),
        allocated: (46_827, 3_751_314),
        samples: 243,
        modules: 100,
        warnings: 1,
    },
    Expected {
        file: "go-heap-debug1.txt",
        format: Format::GoHeapText,
        sample_rate: 4096,
        live: (1980, 3_849_448),
        allocated: (41_060, 144_439_160),
        samples: 155,
        modules: 0,
        warnings: 1,
    },
];

#[test]
fn totals_are_those_of_the_files() {
    for expected in &EXPECTED {
        let profile = read(&data(expected.file)[..], expected.file).unwrap();
        let Expected { file, format, sample_rate, samples, modules, warnings, .. } = *expected;
        assert_eq!((profile.format, profile.sample_rate), (format, sample_rate), "{file}");
        let amount = |(objects, bytes)| Amount { objects, bytes };
        assert_eq!(profile.recorded(Metric::Live), amount(expected.live), "{file}");
        assert_eq!(profile.recorded(Metric::Allocated), amount(expected.allocated), "{file}");
        assert_eq!(profile.modules.len(), modules, "{file}");
        assert_eq!(profile.warnings.len(), warnings, "{file}: {:?}", profile.warnings);
        assert_eq!(profile.samples.len(), samples, "{file}");
        assert_consistent(&profile, file);
    }
}

#[test]
fn addresses_are_in_the_code_that_was_mapped_there() {
    let profile = read(&data("jemalloc-lua.txt")[..], "lua").unwrap();
    for location in &profile.locations {
        let module = profile.module_of(location).expect("a module");
        assert!(module.executable, "{:#x} in {module:?}", location.address);
    }
    // The allocator's own frames come first and are folded away: Lua's allocation function is what a person sees.
    let table = Table::build(&profile, &View::default());
    assert!(table.rows[0].name.starts_with("lua5.4+0x"), "{}", table.rows[0].name);
}

#[test]
fn go_text_brings_its_names() {
    let profile = read(&data("go-heap-debug1.txt")[..], "go").unwrap();
    let table = Table::build(&profile, &View::default());
    let grow = table.rows.iter().find(|row| &*row.name == "main.grow").unwrap();
    assert!(grow.flat.bytes > 1_013_760 && grow.place.as_ref().is_some_and(|(file, _)| &**file == "./main.go"));
}

/// `go tool pprof -raw` of the same file says so.
#[test]
fn go_profiles_are_read_as_go_means_them() {
    let packed = read(&data("go-heap.pb.gz")[..], "go").unwrap();
    let plain = read(&data("go-heap.raw.pb")[..], "go").unwrap();
    for profile in [&packed, &plain] {
        assert_eq!(
            (profile.format, profile.amounts, profile.warnings.len()),
            (Format::PprofForeign, Amounts::Estimated, 0)
        );
        assert_eq!(profile.recorded(Metric::Allocated), Amount { objects: 138_115, bytes: 254_626_336 });
        assert_eq!(profile.recorded(Metric::Live), Amount { objects: 18_172, bytes: 10_219_357 });
        assert_eq!(Table::build(profile, &View::default()).total.bytes, 10_219_357);
        assert!(profile.recorded_blocks(Metric::Live) < 4000);
        let table = Table::build(profile, &View::default());
        let grow = table.rows.iter().find(|row| &*row.name == "main.grow").unwrap();
        assert!(grow.flat.bytes > 500_000 && grow.place.as_ref().is_some_and(|(file, _)| file.ends_with("main.go")));
    }
    let text = read(&data("go-heap-debug1.txt")[..], "go").unwrap();
    assert_eq!(text.sample_rate, packed.sample_rate);
}

/// The totals are those that `go tool pprof -raw` adds up to.
#[test]
fn our_own_packed_dump_is_read_back_to_what_was_sampled() {
    let profile = read(&data("own-heap.pb.gz")[..], "own").unwrap();
    assert_eq!((profile.format, profile.amounts), (Format::Pprof, Amounts::Recorded));
    assert_eq!((profile.sample_rate, profile.warnings.len(), profile.stacks_marked()), (262_144, 0, true));
    let total = |metric| Table::build(&profile, &View { metric, ..View::default() }).total;
    let totals =
        [Metric::Live, Metric::Allocated, Metric::Peak].map(|metric| (total(metric).blocks, total(metric).bytes));
    assert_eq!(totals, [(8109, 23227850), (96482, 57200346), (21565, 47498586)]);
    assert!(profile.samples.iter().all(|sample| sample.live.bytes == sample.live.objects * sample.block_size));
    assert!(
        profile
            .locations
            .iter()
            .all(|location| profile.module_of(location).is_some_and(|module| module.build_id.is_some()))
    );
}

#[test]
fn what_is_no_heap_profile_is_named() {
    for (file, part) in [("dhat-ad-hoc.json", "DHAT"), ("gperftools-perl.cpu.prof", "CPU profile")] {
        let error = read(&data(file)[..], file).unwrap_err();
        assert!(matches!(error, ReadError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// The larger collection, where it is there.
#[test]
fn the_shared_corpus_is_read_or_refused() {
    let Some(files) = shared_corpus() else { return };
    let mut read_count = 0;
    for (path, content) in &files {
        let outcome = read(&content[..], path);
        let is_heap_text = content.starts_with(b"heap_v2/") || content.starts_with(b"heap profile:");
        match outcome {
            Ok(profile) => {
                let packed = ["heap.pb.gz", "allocs.pb.gz", "heap.raw.pb"].iter().any(|name| path.ends_with(name));
                assert!(is_heap_text || packed || path.contains("/dhat"), "{path}");
                assert_consistent(&profile, path);
                read_count += 1;
            }
            Err(error) => {
                // gobench.heap was shortened by hand: its lines are a fraction of what its header announces.
                let known = path.ends_with(".growth") || path.ends_with("gobench.heap");
                assert!(!is_heap_text || known, "{error}");
                assert!(
                    !matches!(error, ReadError::Unrecognised { .. }) || path.ends_with("malformed_macho"),
                    "{error}"
                );
            }
        }
    }
    println!("{read_count} of {} files are heap profiles", files.len());
    assert!(read_count >= 12);
}

/// Every view of a profile adds up to the same.
fn assert_consistent(profile: &Profile, file: &str) {
    for metric in [Metric::Live, Metric::Allocated, Metric::Freed] {
        let view = View { metric, ..View::default() };
        let table = Table::build(profile, &view);
        let folded = Folded::build(profile, &view);
        let lines: u64 = folded.stacks().map(|(_, weight)| weight).sum();
        let flat: u64 = table.rows.iter().map(|row| row.flat.bytes).sum();
        let total = profile.estimate(metric).bytes.round() as u64;
        assert_eq!(
            (lines, flat, folded.total(), Quality::of(profile, metric).total),
            (total, total, total, total),
            "{file}"
        );
    }
}
