use crate::model::{Amount, Format, Metric, Profile, StackEnd, TruncationReason};
use crate::{Frame, ReadError, read};

const VALGRIND: &str = include_str!("../../../../fuzz/seeds/profile_read/dhat_valgrind.json");
const DHAT_RS: &str = include_str!("../../../../fuzz/seeds/profile_read/dhat_rs.json");
const OWN: &str = include_str!("../../../../fuzz/seeds/profile_read/dhat_own.json");

fn parsed(text: &str) -> Profile {
    read(text.as_bytes(), "dhat.json").unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    read(text.as_bytes(), "x").expect_err("it makes no sense").to_string()
}

fn frames(profile: &Profile, stack: usize) -> Vec<Vec<&str>> {
    let locations = profile.stacks[stack].locations.iter().map(|&id| profile.location(id));
    locations.map(|location| location.frames.iter().map(|frame| &*frame.function).collect()).collect()
}

#[test]
fn valgrinds() {
    let profile = parsed(VALGRIND);
    assert_eq!((profile.format, profile.is_sampled(), profile.samples.len()), (Format::DhatForeign, false, 3));
    assert_eq!(profile.recorded(Metric::Live), Amount { objects: 1, bytes: 60 });
    assert_eq!(profile.recorded(Metric::Allocated), Amount { objects: 8, bytes: 301_520 });
    assert_eq!(profile.recorded(Metric::Peak), Amount { objects: 2, bytes: 200_060 });
    assert_eq!(profile.recorded(Metric::Freed), Amount { objects: 7, bytes: 301_460 });
    assert!(profile.has_peak() && profile.has_allocated());
    assert_eq!(frames(&profile, 0), [["malloc"], ["A"], ["main"]]);
    // Two frames at one address are one place.
    assert_eq!(frames(&profile, 1), [vec!["malloc"], vec!["inlined", "caller"]]);
    let place = profile.location(profile.stacks[1].locations[1]);
    assert_eq!((place.address, place.frames[0].inlined, place.frames[1].inlined), (0x10_917d, true, false));
    assert_eq!(frames(&profile, 2), [vec!["malloc"], vec![]]);
    assert!(profile.stacks.iter().all(|stack| stack.end == StackEnd::Unknown));
    assert_eq!(profile.comment("command"), Some("./app -x"));
    assert_eq!((profile.comment("pid"), profile.comment("time_unit")), (Some("29479"), Some("instrs")));
}

#[test]
fn dhat_rss() {
    let profile = parsed(DHAT_RS);
    let place = profile.location(profile.stacks[0].locations[1]);
    assert_eq!(place.frames, [Frame::named("app::main::{{closure}}").at("src/main.rs", 7)]);
    assert_eq!(profile.recorded(Metric::Peak).bytes, 1024);
}

#[test]
fn our_own() {
    let profile = parsed(OWN);
    assert_eq!(profile.format, Format::Dhat);
    let [first, second] = profile.modules.as_slice() else { panic!("{:?}", profile.modules) };
    assert_eq!(
        (first.start, first.file_offset, first.path.as_str(), first.deleted),
        (0x1000, 0x1000, "/home/u/app", true)
    );
    assert_eq!(first.build_id.as_ref().map(ToString::to_string).as_deref(), Some("00abff"));
    assert!(second.build_id.is_none() && !second.deleted);
    let [whole, none, cut] = profile.stacks.as_slice() else { panic!("{:?}", profile.stacks) };
    assert_eq!(whole.end, StackEnd::Complete);
    let modules: Vec<_> =
        whole.locations.iter().map(|&id| profile.module_of(profile.location(id)).unwrap().start).collect();
    assert_eq!(modules, [0x1000, 0x7000]);
    let reason = |end: &StackEnd| match end {
        StackEnd::Truncated(truncation) => truncation.reason.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((none.locations.len(), reason(&none.end)), (0, TruncationReason::Other("out of memory".into())));
    assert_eq!((cut.locations.len(), reason(&cut.end)), (1, TruncationReason::NoUnwindInfo));
    assert_eq!(profile.comment("known_before_freed"), Some("5"));
    assert_eq!(profile.warnings.len(), 1, "{:?}", profile.warnings);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (from, to, why) in [
        ("\"dhatFileVersion\":2", "\"dhatFileVersion\":3", "version 3"),
        ("\"dhatFileVersion\":2", "\"dhatFileVersion\":\"2\"", "not a DHAT recording"),
        ("\"bklt\":true", "\"bklt\":false", "something else than a heap"),
        ("\"fs\":[1,6]", "\"fs\":[1,7]", "frame 7 of a list of 7"),
        ("\"fs\":[1,6]", "\"fs\":[1,-6]", "not a DHAT recording"),
        ("\"fs\":[1,6]", "\"fs\":[1,1e300]", "not a DHAT recording"),
        ("\"fs\":[1,6]", "\"fs\":[1,0.5]", "not a DHAT recording"),
        ("\"eb\":60,\"ebk\":1", "\"eb\":60,\"ebk\":0", "in 0 blocks"),
        ("\"eb\":60,\"ebk\":1", "\"eb\":511,\"ebk\":1", "more at the end"),
        ("\"gb\":60,\"gbk\":1", "\"gb\":60,\"gbk\":5", "more at the peak"),
        ("\"tb\":510", "\"tb\":9223372036854775808", "exceed 2^63"),
        ("\"tb\":510", "\"tb\":18446744073709551616", "not a DHAT recording"),
        ("\"tb\":510", "\"tb\":510,\"tb\":511", "duplicate"),
        ("\"ftbl\":", "\"ftbl2\":", "missing field"),
        ("\"acc\":[-1000,0]", &format!("\"acc\":{}", "[".repeat(100_000)), "not a DHAT recording"),
    ] {
        let message = refused(&VALGRIND.replacen(from, to, 1));
        let last = VALGRIND.rfind(from).expect("it is there");
        let again = refused(&format!("{}{}", &VALGRIND[..last], VALGRIND[last..].replacen(from, to, 1)));
        assert!(message.contains(why) || again.contains(why), "{to}: {message}; {again}");
    }
    for cut in [1, 300, VALGRIND.len() / 2] {
        let message = refused(&VALGRIND[..VALGRIND.len() - cut - 2]);
        assert!(message.contains("cut off"), "{message}");
    }
    assert!(refused(&format!("{VALGRIND}{VALGRIND}")).contains("trailing"));
    let module = OWN.replace("\"start\":\"0x1000\"", "\"start\":\"0x3000\"");
    assert!(refused(&module).contains("module 0"));
}

#[test]
fn limits_hold() {
    let limits = crate::formats::Limits { input_bytes: 500, ..Default::default() };
    let error = crate::read_with(VALGRIND.as_bytes(), "x", &limits).unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
    for limits in [
        crate::formats::Limits { samples: 2, ..Default::default() },
        crate::formats::Limits { stack_depth: 2, ..Default::default() },
        crate::formats::Limits { stack_entries: 5, ..Default::default() },
        crate::formats::Limits { locations: 4, ..Default::default() },
    ] {
        let error = crate::read_with(VALGRIND.as_bytes(), "x", &limits).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
    }
}
