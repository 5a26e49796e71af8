use crate::{Amount, BuildId, Format, Metric, Profile, ReadError, StackEnd, Truncation, TruncationReason, read};

/// A dump as our own library writes it: two stacks complete, one cut off, one of them in two block sizes.
const OWN: &str = "\
heap profile:      6:    25600 [    11:    44032] @ heap_v2/524288
     3:     1536 [     5:     2560] @ 0x7f1000001010 0x401100 0x7f1000002020
     1:    16384 [     2:    32768] @ 0x7f1000001010 0x401100 0x7f1000002020
     0:        0 [     2:     1024] @ 0x401200 0x7f1000002020
     2:     7680 [     2:     7680] @ 0x401300
# stack truncated: no unwind info at 0x401300
# mimalloc heap stats
# sample_rate = 524288
# stacks_marked = 1
# requested_live = 20000
# dropped_samples = 3
# build_id 00ff10 /opt/my app/bin/server
# build_id abcd /usr/lib/libc.so.6
MAPPED_LIBRARIES:
00400000-00401000 r--p 00000000 fe:00 7                       /opt/my app/bin/server (deleted)
00401000-00402000 r-xp 00001000 fe:00 7                       /opt/my app/bin/server (deleted)
00602000-00603000 rw-p 00000000 00:00 0                       [heap]
7f1000000000-7f1000003000 r-xp 00028000 fe:00 9               /usr/lib/libc.so.6
7ffff0000000-7ffff0001000 rw-p 00000000 00:00 0 
";

fn own() -> String {
    OWN.to_owned()
}

fn message(text: &str) -> String {
    read(text.as_bytes(), "dump").expect_err("an error").to_string()
}

/// The text with the first occurrence of `from` replaced, which must be there.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

fn addresses(profile: &Profile, sample: usize) -> Vec<u64> {
    let stack = profile.stack(profile.samples[sample].stack);
    stack.locations.iter().map(|&id| profile.location(id).address).collect()
}

#[test]
fn our_own_dump_is_read_in_full() {
    let profile = read(own().as_bytes(), "dump").unwrap();
    assert_eq!((profile.format, profile.sample_rate), (Format::HeapV2, 524288));
    assert_eq!(profile.warnings, [""; 0]);
    assert_eq!(profile.recorded(Metric::Live), Amount { objects: 6, bytes: 25600 });
    assert_eq!(profile.recorded(Metric::Freed), Amount { objects: 5, bytes: 18432 });
    assert_eq!(profile.dropped_samples(), Some(3));
    assert_eq!(profile.comment("requested_live"), Some("20000"));
    assert_eq!(addresses(&profile, 1), [0x7f1000001010, 0x401100, 0x7f1000002020]);
    assert_eq!(profile.samples.iter().map(|sample| sample.block_size).collect::<Vec<_>>(), [512, 16384, 512, 3840]);
    assert_eq!(profile.samples[0].stack, profile.samples[1].stack);
    let ends: Vec<_> = profile.stacks.iter().map(|stack| stack.end.clone()).collect();
    let cut = Truncation { reason: TruncationReason::NoUnwindInfo, at: Some(0x401300) };
    assert_eq!(ends, [StackEnd::Complete, StackEnd::Complete, StackEnd::Truncated(cut)]);
    let server = &profile.modules[1];
    assert_eq!((server.path.as_str(), server.deleted), ("/opt/my app/bin/server", true));
    assert_eq!(server.build_id, BuildId::from_hex(b"00ff10"));
    let of: Vec<_> = profile
        .locations
        .iter()
        .map(|location| profile.module_of(location).map_or("", |module| module.file_name()))
        .collect();
    assert_eq!(of, ["libc.so.6", "server", "libc.so.6", "server", "server"]);
}

#[test]
fn a_return_address_at_the_end_of_a_mapping_belongs_to_it() {
    let text = own().replace("0x401300", "0x402000");
    let profile = read(text.as_bytes(), "dump").unwrap();
    let location = profile.locations.iter().find(|location| location.address == 0x402000).unwrap();
    assert_eq!(profile.module_of(location).unwrap().file_name(), "server");
}

#[test]
fn a_copy_cut_at_any_byte_is_an_error_or_has_the_same_totals() {
    let text = own();
    let whole = read(text.as_bytes(), "dump").unwrap();
    let maps = text.find("MAPPED_LIBRARIES:\n").unwrap() + "MAPPED_LIBRARIES:\n".len();
    for length in 0..text.len() {
        match read(&text.as_bytes()[..length], "dump") {
            Ok(part) => {
                // Nothing marks the end of the mapping table, so a cut between two of its lines cannot be seen.
                assert!(length >= maps && text.as_bytes()[length - 1] == b'\n', "{length}");
                assert_eq!(part.samples, whole.samples, "{length}");
            }
            Err(error) => assert!(error.to_string().starts_with("dump:"), "{error}"),
        }
    }
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (from, to, line, part) in [
        ("@ heap_v2/524288", "@ heap_v2/0", 1, "rate is 0"),
        ("@ heap_v2/524288", "@ heap_v2/65536", 8, "sampling rate 65536"),
        ("25600 [", "25601 [", 1, "add up to"),
        ("1536 [", "9223372036854775808 [", 2, "too large"),
        ("3:     1536", "-3:     1536", 2, "negative"),
        ("3:     1536", "x:     1536", 2, "expected \"OBJECTS"),
        ("0:        0 [", "0:        9 [", 4, "9 live bytes of 0 objects"),
        ("1:    16384 [", "3:    16384 [", 3, "more is live"),
        ("@ 0x401200 0x7f", "@ 0x401200 7f", 4, "expected an address"),
        ("@ 0x401200 0x7f", "@ 0x401200 0x10000000000000007f", 4, "expected an address"),
        ("# mimalloc heap stats", "# stack truncated: bad frame", 7, "only in the line after a stack"),
        ("# build_id 00ff10", "# build_id 00ff1", 12, "build id"),
        ("00402000 r-xp", "00401000 r-xp", 16, "expected a mapping"),
        ("[heap]", "[heap]\nMAPPED_LIBRARIES:", 18, "second mapping table"),
        ("[heap]", "[heap]\nheap profile: 0: 0 [0: 0] @ heap_v2/1", 18, "second dump"),
        ("     0:        0", "heap_v2/524288\n     0:        0", 4, "second dump"),
        ("     0:        0", "  t*: 1: 2 [0: 0]\n     0:        0", 4, "jemalloc"),
        ("     0:        0", "@ 0x1 0x2\n     0:        0", 4, "jemalloc"),
        ("3:     1536 [     5:     2560]", "1:1[9223372036854775807:9223372036854775807]", 2, "exceeds 2^63"),
    ] {
        let error = message(&with(&own(), from, to));
        assert!(error.starts_with(&format!("dump:{line}: ")) && error.contains(part), "{to}: {error}");
    }
}

#[test]
fn an_estimate_beyond_all_memory_is_refused() {
    let text = "heap profile: 0: 0 [0: 0] @ heap_v2/9223372036854775807\n4: 8 [4: 8] @ 0x1\nMAPPED_LIBRARIES:\n";
    assert!(message(text).contains("sampling rate"), "{}", message(text));
}

#[test]
fn too_much_of_anything_is_refused() {
    let limits = crate::formats::Limits {
        samples: 4,
        stack_depth: 3,
        stack_entries: 6,
        locations: 5,
        modules: 5,
        ..Default::default()
    };
    let read = |limits: &crate::formats::Limits| crate::read_with(own().as_bytes(), "dump", limits);
    read(&limits).unwrap();
    for (limits, line) in [
        (crate::formats::Limits { samples: 3, ..limits }, 6),
        (crate::formats::Limits { stack_depth: 2, ..limits }, 2),
        (crate::formats::Limits { stack_entries: 5, ..limits }, 6),
        (crate::formats::Limits { locations: 4, ..limits }, 6),
        (crate::formats::Limits { modules: 4, ..limits }, 19),
        (crate::formats::Limits { line_bytes: 79, ..limits }, 15),
    ] {
        let error = read(&limits).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("dump:{line}: ")), "{error}");
    }
}

#[test]
fn without_marks_nothing_is_known_of_the_end_of_stacks() {
    let profile = read(with(&own(), "# stacks_marked = 1\n", "").as_bytes(), "dump").unwrap();
    assert_eq!(profile.format, Format::HeapV2Foreign);
    assert_eq!(profile.stacks[0].end, StackEnd::Unknown);
    assert!(matches!(profile.stacks[2].end, StackEnd::Truncated(_)));
    assert!(!profile.stacks_marked());
}

#[test]
fn carriage_returns_byte_order_marks_and_junk_before_the_header_are_no_obstacle() {
    let plain = read(own().as_bytes(), "dump").unwrap();
    let windows = read(own().replace('\n', "\r\n").as_bytes(), "dump").unwrap();
    let marked = read(format!("\u{feff}{}", own()).as_bytes(), "dump").unwrap();
    assert_eq!((&windows, &marked), (&plain, &plain));
    let mut late = read(format!("<jemalloc>: a warning\n\n{}", own()).as_bytes(), "dump").unwrap();
    assert_eq!(late.warnings.pop().as_deref(), Some("2 lines before the header were skipped"));
    assert_eq!(late, plain);
    let broken = format!("junk\n{}", with(&own(), "3:     1536", "x:     1536"));
    assert!(message(&broken).starts_with("dump:3: "), "{}", message(&broken));
}

#[test]
fn terminal_escapes_do_not_reach_the_message() {
    let text = with(&own(), "0x401200", "\u{1b}]0;owned\u{7}");
    let error = read(text.as_bytes(), "a\nb\u{1b}[1m").unwrap_err().to_string();
    assert!(error.contains("\\u{1b}") && error.starts_with("a\\nb") && !error.chars().any(char::is_control), "{error}");
}

const JEMALLOC: &str = "heap_v2/8192
  t*: 3: 40 [0: 0]
  t0: 3: 40 [0: 0] main
@ 0x10 0x20
  t*: 2: 32 [0: 0]
  t0: 2: 32 [0: 0]
@
  t*: 1: 8 [4: 4]
  t0: 1: 8 [4: 4]

MAPPED_LIBRARIES:
10-30 r-xp 00000000 00:00 0 /bin/x
";

#[test]
fn jemalloc() {
    let profile = read(JEMALLOC.as_bytes(), "dump").unwrap();
    assert_eq!((profile.format, profile.sample_rate), (Format::JemallocHeapV2, 8192));
    assert_eq!((addresses(&profile, 0), addresses(&profile, 1)), (vec![0x10, 0x20], vec![]));
    assert_eq!(profile.warnings, ["1 stacks have more live than was ever allocated"]);
    for length in 0..JEMALLOC.len() {
        if let Ok(part) = read(&JEMALLOC.as_bytes()[..length], "dump") {
            assert_eq!(part.samples, profile.samples, "{length}");
        }
    }
}

#[test]
fn jemalloc_errors() {
    for (from, to, line, part) in [
        ("  t*: 2: 32 [0: 0]\n", "", 5, "expected \"t*:\""),
        ("  t*: 2: 32 [0: 0]\n  t0: 2: 32 [0: 0]\n", "", 5, "expected a line \"t*:"),
        ("  t*: 3: 40 [0: 0]\n  t0: 3: 40 [0: 0] main\n", "", 2, "for the header"),
        ("  t0: 2: 32 [0: 0]\n", "  t*: 2: 32 [0: 0]\n", 6, "second \"t*:\""),
        ("  t0: 2:", "  tx: 2:", 6, "number of the thread"),
        ("@ 0x10 0x20", "2: 32 [0: 0] @ 0x10", 4, "gperftools"),
        ("@ 0x10 0x20", "heap profile: 0: 0 [0: 0] @ heapprofile", 4, "second dump"),
        ("MAPPED_LIBRARIES:\n10-30 r-xp 00000000 00:00 0 /bin/x\n", "", 10, "cut off"),
    ] {
        let error = message(&with(JEMALLOC, from, to));
        assert!(error.starts_with(&format!("dump:{line}: ")) && error.contains(part), "{to}: {error}");
    }
    let odd = with(JEMALLOC, "t0: 2: 32", "t0: 2: 16");
    assert!(read(odd.as_bytes(), "dump").unwrap().warnings.iter().any(|warning| warning.contains("do not add up")));
}

#[test]
fn a_stack_that_is_cut_off_in_the_last_line_is_an_error_even_if_the_sums_are_right() {
    // Go's text has no mapping table whose absence would tell.
    let text = "heap profile: 1: 8 [1: 8] @ heap/8192\n1: 8 [1: 8] @ 0x4b7990 0x437a72\n";
    read(text.as_bytes(), "dump").unwrap();
    for cut in 1.."0x437a72\n".len() {
        let error = message(&text[..text.len() - cut]);
        assert!(error.starts_with("dump:2: the file is cut off"), "{error}");
    }
}

#[test]
fn another_writers_sums_may_differ_if_the_mapping_table_is_there() {
    let text =
        "heap profile: 2: 8 [2: 8] @ heapprofile\n 1: 8 [1: 8] @ 0x0040b5db\n\nMAPPED_LIBRARIES:\nbuild=x\n1-2: /x";
    let profile = read(text.as_bytes(), "dump").unwrap();
    assert_eq!(profile.warnings.len(), 3, "{:?}", profile.warnings);
    assert!(profile.warnings.iter().any(|warning| warning.contains("announces 2: 8 [2: 8]")));
    let cut = text.split("MAPPED").next().unwrap();
    assert!(message(cut).starts_with("dump:1: the header announces"));
}

/// A module that was unloaded has lines of its own: another file of the same name is there now.
#[test]
fn a_build_id_can_be_that_of_one_mapping() {
    let text = with(
        &own(),
        "MAPPED_LIBRARIES:\n",
        "# build_id_at 1000-2000 0102 /usr/lib/libc.so.6\nMAPPED_LIBRARIES:\n1000-2000 r-xp 0 00:00 0 /usr/lib/libc.so.6\n",
    );
    let profile = read(text.as_bytes(), "dump").unwrap();
    let id = |index: usize| profile.modules[index].build_id.as_ref().unwrap().to_string();
    assert_eq!((profile.modules[0].start, id(0), id(4)), (0x1000, "0102".into(), "abcd".into()));
    assert_eq!(profile.warnings, [""; 0]);
}
