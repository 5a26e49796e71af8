//! Inputs that are no profile, or a damaged one: exit code 13, the place, and nothing on standard output.

mod common;

use common::{Place, data, ran};

#[track_caller]
fn refuses(place: &Place, content: impl AsRef<[u8]>, expected: &str) {
    let input = place.write("input", content);
    for verb in ["top", "flame"] {
        let ran = place.run([verb.as_ref(), input.as_os_str()]).exits(13).says("input");
        assert!(ran.stderr.contains(expected), "expected {expected:?} in {ran:#?}");
        assert_eq!(ran.stdout, "");
        assert!(!ran.stderr.contains("internal error"), "{ran:?}");
    }
    assert!(!place.path("flame.svg").exists(), "half a graph was left");
}

#[test]
fn not_a_profile() {
    let place = Place::new();
    refuses(&place, "", "");
    refuses(&place, "hello\n", "");
    refuses(&place, b"\x00\x01\x02\xff\xfe", "");
    refuses(&place, std::fs::read(env!("CARGO_BIN_EXE_mpp")).expect("a binary"), "");
    place.run(["top", "no-such-file"]).exits(13).says("no-such-file");
    place.run(["top", "."]).exits(13).says("not a recording");
    place.run(["top"]).exits(13).says("no recording below this folder");
}

#[test]
fn damaged_lines_are_named() {
    let place = Place::new();
    let header = "heap profile: 1: 4096 [1: 4096] @ heap_v2/524288\n";
    refuses(&place, format!("{header}1: 4096 [1: 4096] @ 0x1001\n2: -7 [1: 1] @ 0x1\n"), "input:3:");
    refuses(&place, format!("{header}1: 99999999999999999999 [1: 4096] @ 0x1001\n"), "input:2:");
    refuses(&place, format!("{header}1: 4096 [1: 4096] @ 0x11112222333344445\n"), "input:2:");
    refuses(&place, "heap profile: 1: 4096 [1: 4096] @ heap_v2/1e400\n", "input:1:");
}

#[test]
fn every_cut_of_a_profile_ends_well() {
    let place = Place::new();
    let whole = std::fs::read(data("app.heap")).expect("the fixture");
    for length in (0..whole.len()).step_by(41) {
        let input = place.write("input", &whole[..length]);
        let ran = place.run(["top".as_ref(), input.as_os_str()]);
        assert!(matches!(ran.status, Some(0 | 13)), "cut at {length}: {ran:#?}");
    }
}

#[test]
fn nothing_from_a_file_reaches_the_terminal_unescaped() {
    let place = Place::new();
    let profile = std::fs::read_to_string(data("app.heap")).expect("the fixture");
    let input = place.write("in\u{1b}[31mput", profile.replace("libshapes", "lib\u{1b}]0;title\u{7}shapes\u{202e}"));
    for arguments in [&["top"][..], &["top", "--format", "md"], &["flame", "--format", "folded"], &["flame", "-o-"]] {
        let ran = ran(place.mpp().args(arguments).arg(&input)).exits(0);
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{arguments:?}: {text:?}");
        }
        assert!(ran.stdout.contains("shapes"), "{ran:?}");
    }
    let damaged = place.write("dam\u{1b}aged", "heap profile: \u{1b}[2J\n");
    for input in [damaged, place.path("mis\u{1b}sing")] {
        let ran = ran(place.mpp().arg("top").arg(input)).exits(13);
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn a_process_of_a_file_is_a_usage_error() {
    let place = Place::new();
    place.run(["top", "--pid", "7", &data("app.heap")]).exits(2).says("recording folder");
}

#[test]
fn a_metric_that_is_not_there_is_refused() {
    let place = Place::new();
    let live_only = "heap profile: 1: 4096 [0: 0] @ heap_v2/1\n1: 4096 [0: 0] @ 0x1001\nMAPPED_LIBRARIES:\n";
    let input = place.write("input", live_only);
    place
        .run(["top".as_ref(), "--metric".as_ref(), "alloc".as_ref(), input.as_os_str()])
        .exits(2)
        .says("live memory only");
}
