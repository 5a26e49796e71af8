use super::*;
use crate::analysis::test_profile::{profile, stacks};
use crate::{Frame, Truncation, TruncationReason};
use proptest::prelude::*;

#[test]
fn shares_of_bytes() {
    let mut profile = profile(&[(&["malloc", "app::f", "main"], 60), (&["g"], 30), (&[], 10)]);
    profile.locations[1].frames = vec![Frame::named("app::f").at("f.rs", 3)];
    profile.locations[3].frames = vec![];
    profile.stacks[1].end = StackEnd::Truncated(Truncation { reason: TruncationReason::DepthLimit, at: None });
    profile.stacks[2].end = StackEnd::Unknown;
    let quality = Quality::of(&profile, Metric::Live);
    assert_eq!((quality.total, quality.complete, quality.truncated, quality.unknown), (100, 60, 30, 10));
    assert_eq!(quality.truncated_by_reason, [("depth limit".to_owned(), 30)]);
    assert_eq!(quality.without_stack, 10);
    assert_eq!(quality.first_frame, Resolved { lines: 60.0, names: 0.0, nothing: 40.0 });
    assert_eq!(quality.all_frames, Resolved { lines: 20.0, names: 40.0, nothing: 40.0 });
    assert_eq!(quality.share(quality.first_frame.lines), 0.6);
}

#[test]
fn nothing_lacks_nothing() {
    let quality = Quality::of(&profile(&[]), Metric::Live);
    assert_eq!(quality, Quality::default());
    assert_eq!(quality.share(0.0), 1.0);
}

proptest! {
    #[test]
    fn the_parts_make_the_whole(profile in stacks()) {
        let quality = Quality::of(&profile, Metric::Allocated);
        prop_assert_eq!(quality.complete + quality.truncated + quality.unknown, quality.total);
        prop_assert_eq!(quality.truncated_by_reason.iter().map(|(_, bytes)| bytes).sum::<u64>(), quality.truncated);
        for Resolved { lines, names, nothing } in [quality.first_frame, quality.all_frames] {
            prop_assert!((lines + names + nothing - quality.total as f64).abs() <= 1.0 + quality.total as f64 * 1e-9);
        }
    }
}
