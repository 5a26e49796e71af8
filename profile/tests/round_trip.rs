//! What is written as heap_v2 text reads back as it was.

mod support;

use mpp_profile::formats::heap_text::write;
use mpp_profile::{
    Amount, Amounts, BuildId, Format, Location, LocationId, Module, Profile, Sample, Stack, StackEnd, StackId,
    Truncation, TruncationReason, read,
};
use proptest::prelude::*;

fn written(profile: &Profile) -> Vec<u8> {
    let mut text = Vec::new();
    write(profile, &mut text).expect("written");
    text
}

fn amounts() -> impl Strategy<Value = (u64, Amount, Amount)> {
    (1u64..1 << 20, 0u64..1 << 20, 0u64..1 << 20).prop_map(|(size, live, freed)| {
        let amount = |objects| Amount { objects, bytes: objects * size };
        (size, amount(live), amount(live + freed.max(1)))
    })
}

fn ends() -> impl Strategy<Value = StackEnd> {
    let reasons = prop_oneof![
        Just(TruncationReason::DepthLimit),
        Just(TruncationReason::NoUnwindInfo),
        Just(TruncationReason::BadFrame),
        "[a-z]{3,9}".prop_map(|text| TruncationReason::Other(text.into())),
    ];
    let cut = (reasons, any::<Option<u64>>()).prop_map(|(reason, at)| StackEnd::Truncated(Truncation { reason, at }));
    prop_oneof![Just(StackEnd::Complete), cut]
}

fn modules() -> impl Strategy<Value = Vec<Module>> {
    let path = prop_oneof![Just(String::new()), "/[ -~é]{0,20}[!-~]", Just("[vdso]".to_owned())];
    let module = (1u64..1 << 40, 1u64..1 << 40, any::<u64>(), path, any::<bool>(), any::<bool>());
    prop::collection::vec(module, 0..8).prop_map(|modules| {
        let mut start = 0;
        let mut all = Vec::new();
        for (gap, size, file_offset, path, executable, deleted) in modules {
            start += gap;
            let deleted = deleted && !path.is_empty() && !path.ends_with(" (deleted)");
            let build_id = BuildId::from_bytes(path.as_bytes()).filter(|_| path.len() % 2 == 1);
            all.push(Module { start, end: start + size, file_offset, path, build_id, executable, deleted });
            start += size;
        }
        all
    })
}

prop_compose! {
    fn profiles()(
        stacks in prop::collection::vec((prop::collection::vec(any::<u64>(), 1..9), ends(), amounts()), 0..20),
        sample_rate in 1u64..1 << 40,
        modules in modules(),
        comments in prop::collection::vec(("[a-z_]{1,9}", "[!-~]{1,9}( [!-~]{1,9})?"), 0..4),
    ) -> Profile {
        let mut profile = Profile::new(Format::HeapV2, sample_rate);
        profile.modules = modules;
        profile.comments = comments;
        for (index, (addresses, end, (block_size, live, allocated))) in stacks.into_iter().enumerate() {
            let first = profile.locations.len() as u32;
            let locations = (first..).map(LocationId).take(addresses.len()).collect();
            profile.locations.extend(addresses.into_iter().map(|address| {
                Location { address, module: None, file_address: None, frames: Vec::new() }
            }));
            let stack = StackId(index as u32);
            profile.stacks.push(Stack { locations, end });
            profile.samples.push(Sample { live, allocated, ..Sample::new(stack, block_size) });
        }
        profile
    }
}

fn addresses(profile: &Profile, sample: &Sample) -> (Vec<u64>, StackEnd) {
    let stack = profile.stack(sample.stack);
    (stack.locations.iter().map(|&id| profile.location(id).address).collect(), stack.end.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn own_profiles(profile in profiles()) {
        let text = written(&profile);
        let back = match read(&text[..], "written") {
            Ok(back) => back,
            // What no program can have is refused, not lost.
            Err(error) => {
                prop_assert!(error.to_string().contains("exceeds 2^63"), "{}", error);
                return Ok(());
            }
        };
        prop_assert_eq!((back.format, back.sample_rate), (Format::HeapV2, profile.sample_rate));
        prop_assert_eq!(&back.modules, &profile.modules);
        prop_assert_eq!(&back.comments[2..], &profile.comments[..]);
        prop_assert_eq!(back.samples.len(), profile.samples.len());
        for (ours, theirs) in profile.samples.iter().zip(&back.samples) {
            prop_assert_eq!(addresses(&profile, ours), addresses(&back, theirs));
            prop_assert_eq!((ours.live, ours.allocated, ours.block_size), (theirs.live, theirs.allocated, theirs.block_size));
        }
        prop_assert_eq!(&written(&back), &text);
    }
}

#[test]
fn dumps_of_others_keep_everything_but_their_names() {
    for (name, content) in support::all_data() {
        let Ok(mut profile) = read(&content[..], &name) else { continue };
        // Those with estimates have nothing that this format could keep; our own has more.
        if profile.amounts == Amounts::Estimated || profile.format == Format::Pprof {
            continue;
        }
        let mut back = read(&written(&profile)[..], &name).unwrap();
        assert_eq!(back.format, Format::HeapV2Foreign, "{name}");
        back.format = profile.format;
        back.warnings = profile.warnings.clone();
        back.comments = profile.comments.clone();
        profile.locations.iter_mut().for_each(|location| location.frames.clear());
        assert_eq!(back, profile, "{name}");
    }
}

#[test]
fn line_breaks_cannot_be_written() {
    let mut profile = Profile::new(Format::HeapV2, 1);
    profile.comments.push(("a".into(), "b\nMAPPED_LIBRARIES:".into()));
    assert!(write(&profile, Vec::new()).unwrap_err().to_string().contains("line break"));
}
