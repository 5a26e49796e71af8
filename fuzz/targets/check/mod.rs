//! What holds for every profile that was read.

use mpp_profile::analysis::{Folded, Quality, RuntimeFrames, Table, View};
use mpp_profile::formats::{Options, Target, heap_text, pprof, write};
use mpp_profile::{Metric, Profile, Unit, WriteError, read};

pub fn check(profile: &Profile) {
    for metric in Metric::ALL {
        for runtime in [RuntimeFrames::Collapse, RuntimeFrames::Hide] {
            let view = View { metric, runtime, ..View::default() };
            let total = Table::build(profile, &view).total.bytes;
            let lines = Folded::build(profile, &view).stacks().map(|(_, weight)| weight).sum::<u64>();
            assert_eq!(lines, total);
        }
        let quality = Quality::of(profile, metric);
        assert_eq!(quality.complete + quality.truncated + quality.unknown, quality.total);
        assert!(profile.estimate(metric).standard_error(Unit::Bytes).is_finite());
    }
    check_proto(profile);
    check_formats(profile);
    let mut text = Vec::new();
    match heap_text::write(profile, &mut text) {
        // Some oddities that are a warning in the dumps of others cannot be written.
        Err(WriteError::Inexpressible { .. }) => return,
        written => written.expect("memory takes everything"),
    }
    let back = read(&text[..], "written").expect("what was written can be read");
    for metric in [Metric::Live, Metric::Allocated] {
        assert_eq!(back.recorded(metric), profile.recorded(metric));
    }
    // Text has no place for what was live at the peak only.
    let told = profile.samples.iter().filter(|sample| !sample.live.is_zero() || !sample.allocated.is_zero()).count();
    assert_eq!(back.sample_rate, profile.sample_rate);
    // Functions without addresses are one in text.
    assert!(back.samples.len() <= told);
}

/// Totals are the same when the profile is written as `profile.proto` and read again.
fn check_proto(profile: &Profile) {
    let mut content = Vec::new();
    match pprof::write(profile, &mut content) {
        // Sums that no reader takes.
        Err(WriteError::Inexpressible { .. }) => return,
        written => written.expect("memory takes everything"),
    }
    let back = read(&content[..], "written").expect("what was written can be read");
    for metric in [Metric::Live, Metric::Allocated, Metric::Peak] {
        let view = View { metric, ..View::default() };
        let [ours, theirs] = [profile, &back].map(|profile| Table::build(profile, &view).total);
        assert_eq!((ours.bytes, ours.blocks), (theirs.bytes, theirs.blocks));
    }
}

/// What can be written in a format that has all metrics has the same totals when it is read again.
fn check_formats(profile: &Profile) {
    for target in [Target::Csv, Target::Speedscope, Target::Firefox, Target::Callgrind] {
        let mut content = Vec::new();
        write(profile, target, Options::default(), &mut content).expect("memory takes everything");
        // Sums, stacks and lines that are longer than a reader takes.
        let Ok(back) = read(&content[..], "written") else { continue };
        for metric in [Metric::Live, Metric::Allocated, Metric::Peak, Metric::Temporary] {
            let view = View { metric, ..View::default() };
            let [ours, theirs] = [profile, &back].map(|profile| Table::build(profile, &view).total);
            assert_eq!(ours.bytes, theirs.bytes, "{target:?} {metric:?}");
        }
    }
}
