//! Profiles for tests.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::{
    Amount, Format, Frame, Location, LocationId, Module, ModuleId, Profile, Sample, Stack, StackEnd, StackId,
    Truncation, TruncationReason,
};

/// An unsampled profile of one module `app`, with a named function for each address, from stacks (innermost first) and
/// bytes. All blocks are live.
pub(super) fn profile(stacks: &[(&[&'static str], u64)]) -> Profile {
    let mut profile = Profile::new(Format::HeapV2, 1);
    profile.modules.push(Module {
        start: 0x1000,
        end: 0x2000,
        file_offset: 0,
        path: "/bin/app".into(),
        build_id: None,
        executable: true,
        deleted: false,
    });
    let mut ids = HashMap::new();
    for (stack, bytes) in stacks {
        let mut locations = Vec::new();
        for &name in *stack {
            let next = LocationId(profile.locations.len() as u32);
            let id = *ids.entry(name).or_insert(next);
            if id == next {
                let frames = vec![Frame::named(name)];
                let address = 0x1002 + u64::from(id.0) * 0x10;
                let address = if name == "?" { 0x1002 } else { address };
                profile.locations.push(Location { address, module: Some(ModuleId(0)), file_address: None, frames });
            }
            locations.push(id);
        }
        let stack = StackId(profile.stacks.len() as u32);
        profile.stacks.push(Stack { locations: locations.into(), end: StackEnd::Complete });
        let live = Amount { objects: 1, bytes: *bytes };
        profile.samples.push(Sample { live, allocated: live, peak: live, ..Sample::new(stack, *bytes) });
    }
    profile
}

/// Sampled profiles with all kinds of stacks.
pub(super) fn stacks() -> impl Strategy<Value = Profile> {
    const NAMES: [&str; 8] = [
        "malloc",
        "app::a",
        "app::b",
        "std::vec::Vec::push",
        "main",
        "operator new(unsigned long)",
        "app::c;d",
        "_start",
    ];
    let stack = (prop::collection::vec(0..NAMES.len(), 0..6), 1..50u64, 1..5000u64, 0..50u64, 0..3u8);
    (prop::collection::vec(stack, 0..40), 1..1_000_000u64).prop_map(|(stacks, rate)| {
        let names: Vec<Vec<&str>> =
            stacks.iter().map(|(names, ..)| names.iter().map(|&index| NAMES[index]).collect()).collect();
        let plain: Vec<(&[&'static str], u64)> = names.iter().map(|names| (names.as_slice(), 0)).collect();
        let mut profile = profile(&plain);
        profile.sample_rate = rate;
        for (index, (_, objects, size, freed, end)) in stacks.into_iter().enumerate() {
            let amount = |objects| Amount { objects, bytes: objects * size };
            profile.samples[index] = Sample {
                block_size: size,
                live: amount(objects),
                allocated: amount(objects + freed),
                ..profile.samples[index]
            };
            profile.stacks[index].end = match end {
                0 => StackEnd::Complete,
                1 => StackEnd::Unknown,
                _ => StackEnd::Truncated(Truncation { reason: TruncationReason::DepthLimit, at: None }),
            };
        }
        profile
    })
}
