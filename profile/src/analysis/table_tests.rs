use super::*;
use crate::analysis::test_profile::{profile, stacks};
use crate::analysis::{Group, RuntimeFrames};
use crate::{Frame, Metric, Truncation, TruncationReason};
use proptest::prelude::*;

fn rows(table: &Table) -> Vec<(&str, u64, u64)> {
    table.rows.iter().map(|row| (&*row.name, row.flat.bytes, row.cumulative.bytes)).collect()
}

#[test]
fn runtime_leaves_fold_into_the_users_function() {
    let profile = profile(&[
        (&["malloc", "alloc::vec::Vec<T>::push", "app::parse", "std::rt::lang_start", "app::main"], 100),
        (&["malloc", "app::main"], 10),
        (&["malloc", "strdup"], 1),
        (&["malloc"], 2),
    ]);
    let table = |runtime| Table::build(&profile, &View { runtime, ..View::default() });
    let collapsed = table(RuntimeFrames::Collapse);
    assert_eq!(
        rows(&collapsed),
        [
            ("app::parse", 100, 100),
            ("app::main", 10, 110),
            ("malloc", 2, 2),
            ("strdup", 1, 1),
            ("std::rt::lang_start", 0, 100)
        ]
    );
    assert_eq!(collapsed.total.bytes, 113);
    let hidden = table(RuntimeFrames::Hide);
    assert_eq!(rows(&hidden), [("app::parse", 100, 100), ("app::main", 10, 110), ("malloc", 2, 2), ("strdup", 1, 1)]);
    let shown = table(RuntimeFrames::Show);
    assert_eq!(rows(&shown)[0], ("malloc", 113, 113));
    assert_eq!(shown.rows.len(), 6);
}

#[test]
fn recursion_counts_once() {
    let profile = profile(&[(&["app::f", "app::g", "app::f", "app::f", "app::main"], 8)]);
    let table = Table::build(&profile, &View::default());
    assert_eq!(rows(&table), [("app::f", 8, 8), ("app::g", 0, 8), ("app::main", 0, 8)]);
}

#[test]
fn groups() {
    let mut profile = profile(&[(&["a", "c"], 8), (&["b", "c"], 4), (&["d"], 2)]);
    let places = [("a", "x.rs", 1), ("c", "y.rs", 9), ("b", "x.rs", 2)];
    profile.resolve(|_, location| {
        let mut resolution = crate::Resolution { frames: location.frames.clone(), ..Default::default() };
        let frame = &mut resolution.frames[0];
        let &(_, file, line) = places.iter().find(|(name, ..)| *name == &*frame.function)?;
        // Two calls on different lines of one function.
        let line = line + u32::from(location.address == 4);
        *frame = Frame::named("f").at(file, line);
        Some(resolution)
    });
    let table = |group| Table::build(&profile, &View { group, ..View::default() });
    let functions = table(Group::Function);
    assert_eq!(rows(&functions), [("f", 12, 12), ("d", 2, 2), ("f", 0, 12)]);
    assert_eq!((functions.rows[0].place.clone(), functions.rows[0].places), (Some(("x.rs".into(), 1)), 2));
    assert_eq!(rows(&table(Group::Line))[..2], [("f", 8, 8), ("f", 4, 4)]);
    assert_eq!(rows(&table(Group::File)), [("x.rs", 12, 12), ("[app]", 2, 2), ("y.rs", 0, 12)]);
    assert_eq!(rows(&table(Group::Library)), [("app", 14, 14)]);
}

#[test]
fn without_inlines_only_the_function_of_the_machine_code_is_left() {
    let mut profile = profile(&[(&["app::outer"], 8)]);
    profile.resolve(|_, _| {
        let inner = Frame { inlined: true, ..Frame::named("app::inner") };
        Some(crate::Resolution { file_address: None, frames: vec![inner, Frame::named("app::outer")] })
    });
    let table = |inlines| Table::build(&profile, &View { inlines, ..View::default() });
    assert_eq!(rows(&table(true)), [("app::inner", 8, 8), ("app::outer", 0, 8)]);
    assert_eq!(rows(&table(false)), [("app::outer", 8, 8)]);
}

#[test]
fn what_is_not_known_is_visible() {
    let mut profile = profile(&[(&["app::main"], 8), (&[], 4), (&["?"], 2)]);
    profile.stacks[2].end = StackEnd::Truncated(Truncation { reason: TruncationReason::BadFrame, at: None });
    profile.locations.last_mut().unwrap().frames.clear();
    let table = Table::build(&profile, &View::default());
    assert_eq!(rows(&table), [("app::main", 8, 8), ("[no stack]", 4, 4), ("app+0x1", 2, 2)]);
    assert_eq!((table.unresolved.bytes, table.truncated.bytes, table.total.bytes), (6, 2, 14));
    assert_eq!(table.rows.iter().map(|row| row.named).collect::<Vec<_>>(), [true, false, false]);
    profile.locations.last_mut().unwrap().file_address = Some(0x1234);
    assert_eq!(&*Table::build(&profile, &View::default()).rows[2].name, "app+0x1234");
    profile.locations.last_mut().unwrap().module = None;
    assert_eq!(&*Table::build(&profile, &View::default()).rows[2].name, "0x1001");
}

proptest! {
    #[test]
    fn flats_add_up_to_the_total_in_every_view(stacks in stacks(), metric in 0..3usize, group in 0..4usize, runtime in 0..3usize) {
        let view = View {
            metric: [Metric::Live, Metric::Allocated, Metric::Freed][metric],
            group: [Group::Function, Group::Line, Group::File, Group::Library][group],
            runtime: [RuntimeFrames::Collapse, RuntimeFrames::Show, RuntimeFrames::Hide][runtime],
            ..View::default()
        };
        let table = Table::build(&stacks, &view);
        for unit in [Unit::Bytes, Unit::Blocks] {
            let sum: u64 = table.rows.iter().map(|row| row.flat.value(unit)).sum();
            prop_assert_eq!(sum, table.total.value(unit));
            let exact = stacks.estimate(view.metric).value(unit);
            prop_assert!((sum as f64 - exact).abs() <= 0.5 + exact * 1e-9);
            prop_assert!(table.rows.iter().all(|row| row.flat.value(unit) <= row.cumulative.value(unit)));
        }
        prop_assert!(table.rows.windows(2).all(|pair| pair[0].flat.bytes >= pair[1].flat.bytes));
        prop_assert_eq!(&table, &Table::build(&stacks, &view));
    }
}
