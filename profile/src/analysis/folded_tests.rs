use super::*;
use crate::analysis::test_profile::{profile, stacks};
use crate::{Frame, Truncation, TruncationReason, Unit};
use proptest::prelude::*;

fn lines(profile: &Profile, view: View) -> Vec<String> {
    Folded::build(profile, &view).lines().collect()
}

#[test]
fn the_outermost_frame_is_first_and_equal_stacks_are_one_line() {
    let profile = profile(&[
        (&["malloc", "app::parse", "main"], 100),
        (&["strdup", "app::parse", "main"], 11),
        (&["app::load", "main"], 5),
        (&["malloc", "app::nothing", "main"], 0),
    ]);
    assert_eq!(lines(&profile, View::default()), ["main;app::load 5", "main;app::parse 111"]);
    let blocks = View { unit: Unit::Blocks, ..View::default() };
    assert_eq!(lines(&profile, blocks), ["main;app::load 1", "main;app::nothing 1", "main;app::parse 2"]);
}

#[test]
fn cut_off_stacks_stand_apart() {
    let mut profile = profile(&[(&["app::f", "main"], 3), (&["app::f"], 2), (&[], 1)]);
    let cut = Truncation { reason: TruncationReason::NoUnwindInfo, at: Some(7) };
    profile.stacks[1].end = StackEnd::Truncated(cut);
    assert_eq!(
        lines(&profile, View::default()),
        ["main;app::f 3", "[truncated: no unwind info];app::f 2", "[no stack] 1"]
    );
}

#[test]
fn names_cannot_break_a_line() {
    let mut profile = profile(&[(&["a"], 3)]);
    profile.locations[0].frames =
        vec![Frame::named("<[u8; 4] as app::T>::f\n\u{1b}").at("src/x;y.rs", 7), Frame::named("")];
    profile.stacks[0].end =
        StackEnd::Truncated(Truncation { reason: TruncationReason::Other("a;\rb".into()), at: None });
    let line = View { group: Group::Line, ..View::default() };
    assert_eq!(lines(&profile, line), ["[truncated: a,\\rb];app+0x1;<[u8, 4] as app::T>::f\\n\\u{1b} (x,y.rs:7) 3"]);
}

proptest! {
    #[test]
    fn the_lines_add_up_to_the_rounded_total(profile in stacks(), blocks in any::<bool>()) {
        let unit = if blocks { Unit::Blocks } else { Unit::Bytes };
        let folded = Folded::build(&profile, &View { unit, ..View::default() });
        let mut sum = 0u64;
        let mut before = std::collections::HashSet::new();
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            sum += weight.parse::<u64>().unwrap();
            prop_assert!(before.insert(stack.to_owned()) && !stack.is_empty());
        }
        prop_assert_eq!(sum, folded.total());
        let exact = profile.estimate(crate::Metric::Live).value(unit);
        prop_assert!((sum as f64 - exact).abs() <= 0.5 + exact * 1e-9);
        let mut written = Vec::new();
        folded.write(&mut written).unwrap();
        prop_assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), folded.stacks().count());
    }
}
