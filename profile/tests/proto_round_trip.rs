//! What is written as `profile.proto` reads back as it was, names included.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use mpp_profile::analysis::{Group, Table, View};
use mpp_profile::formats::pprof::{write, write_packed};
use mpp_profile::{
    Amount, Amounts, BuildId, Format, Frame, LocationId, Metric, Module, ModuleId, Profile, Resolution, Sample, Stack,
    StackEnd, StackId, Truncation, TruncationReason, read,
};

fn written(profile: &Profile) -> Vec<u8> {
    let mut content = Vec::new();
    write(profile, &mut content).expect("written");
    content
}

fn read_back(profile: &Profile) -> Profile {
    read(&written(profile)[..], "written").expect("what was written can be read")
}

/// Three stacks through two modules, with inlined functions and a file that is gone.
fn profile(sample_rate: u64) -> Profile {
    let mut profile = Profile::new(Format::Pprof, sample_rate);
    let module = |start: u64, path: &str, deleted: bool| Module {
        start,
        end: start + 0x1000,
        file_offset: 0x2000,
        path: path.to_owned(),
        build_id: BuildId::from_bytes(path.as_bytes()).filter(|_| !deleted),
        executable: true,
        deleted,
    };
    profile.modules = vec![module(0x1000, "/opt/my app/bin/server", false), module(0x7000, "/tmp/plugin.so", true)];
    let inlined = Frame { inlined: true, ..Frame::named("inner<int>(int)").at("/src/a.h", 3) };
    for (address, module, frames) in [
        (0x1101, 0, vec![inlined.clone(), Frame::named("outer()").at("/src/a.cc", 30)]),
        (0x1201, 0, vec![Frame::named("main")]),
        (0x7101, 1, vec![]),
        (0x7201, 1, vec![inlined, Frame { function: "".into(), ..Frame::named("").at("/src/b.cc", 7) }]),
    ] {
        let module = Some(ModuleId(module));
        profile.locations.push(mpp_profile::Location { address, module, file_address: None, frames });
    }
    profile.linker_names = HashMap::from([(Arc::from("inner<int>(int)"), Arc::from("_Z5innerIiEiT_"))]);
    let cut = StackEnd::Truncated(Truncation { reason: TruncationReason::NoUnwindInfo, at: Some(0x7101) });
    for (index, (locations, end, [size, live, allocated, peak])) in [
        (vec![0, 1], StackEnd::Complete, [48, 3, 5, 4]),
        (vec![0, 2], cut, [1 << 20, 2, 2, 2]),
        (vec![3, 1], StackEnd::Complete, [16, 0, 7, 1]),
    ]
    .into_iter()
    .enumerate()
    {
        profile.stacks.push(Stack { locations: locations.into_iter().map(LocationId).collect(), end });
        let amount = |objects| Amount { objects, bytes: objects * size };
        let (live, allocated, peak) = (amount(live), amount(allocated), amount(peak));
        profile.samples.push(Sample { live, allocated, peak, ..Sample::new(StackId(index as u32), size) });
    }
    profile.comments = vec![("stacks_marked".into(), "1".into()), ("time_nanos".into(), "77".into())];
    profile
}

#[test]
fn recorded_profiles_are_the_same_afterwards() {
    for sample_rate in [1, 4096, 524_288] {
        let profile = profile(sample_rate);
        assert_eq!(read_back(&profile), profile, "one in {sample_rate} bytes");
        let mut packed = Vec::new();
        write_packed(&profile, &mut packed).expect("written");
        assert_eq!(packed[..2], [0x1f, 0x8b]);
        assert_eq!(read(&packed[..], "packed").expect("readable"), profile);
    }
}

#[test]
fn what_does_not_know_its_stacks_stays_an_estimate_with_the_same_numbers() {
    let mut profile = profile(524_288);
    profile.stacks[0].end = StackEnd::Unknown;
    let back = read_back(&profile);
    assert_eq!((back.format, back.amounts), (Format::PprofForeign, Amounts::Estimated));
    assert_eq!(back.comment("stacks_marked"), None, "nothing says that it is ours");
    assert!(back.warnings.is_empty(), "{:?}", back.warnings);
    for metric in Metric::ALL {
        for group in [Group::Function, Group::Line, Group::Library] {
            let view = View { metric, group, ..View::default() };
            let table = |profile: &Profile| {
                let rows = Table::build(profile, &view).rows.into_iter();
                rows.map(|row| (row.name, row.place, row.flat.bytes, row.cumulative.bytes)).collect::<Vec<_>>()
            };
            // Of freed memory each rounds a difference of its own.
            if metric != Metric::Freed {
                assert_eq!(table(&back), table(&profile), "{view:?}");
            }
        }
    }
}

#[test]
fn dumps_of_others_keep_their_amounts_and_names() {
    for (name, content) in support::all_data() {
        let Ok(mut profile) = read(&content[..], &name) else { continue };
        profile.resolve(|id, location| {
            let frames = vec![Frame::named(format!("function {}", id.0)).at("file.c", id.0)];
            location.frames.is_empty().then_some(Resolution { file_address: None, frames })
        });
        let back = read_back(&profile);
        assert_eq!(back.amounts == Amounts::Recorded, profile.format == Format::Pprof, "{name}");
        let view = View::default();
        let (ours, theirs) = (Table::build(&profile, &view), Table::build(&back, &view));
        assert_eq!((ours.total.bytes, ours.total.blocks), (theirs.total.bytes, theirs.total.blocks), "{name}");
        assert!(ours.rows.iter().zip(&theirs.rows).all(|(a, b)| a.name == b.name && a.place == b.place), "{name}");
    }
}

#[test]
fn sums_that_no_reader_takes_are_refused() {
    let mut profile = profile(1);
    profile.samples[0].live.bytes = u64::MAX;
    assert!(write(&profile, std::io::sink()).unwrap_err().to_string().contains("larger than"));
}
