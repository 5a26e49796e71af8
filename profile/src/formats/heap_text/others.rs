//! Writes the text formats of gperftools and jemalloc, for their own tools.

use std::io::Write;

use super::super::maps;
use super::writer::has_bytes_in_no_blocks;
use crate::error::WriteError;
use crate::model::{Amount, Metric, Profile, Sample};

/// Writes gperftools' unsampled text.
pub(in super::super) fn write_gperftools(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    check(profile)?;
    let total = amounts(profile.recorded(Metric::Live), profile.recorded(Metric::Allocated));
    writeln!(output, "heap profile: {total} @ heapprofile")?;
    for sample in told(profile) {
        writeln!(output, "{} @{}", amounts(sample.live, sample.allocated), addresses(profile, sample))?;
    }
    write_modules(profile, output)
}

/// Writes jemalloc's heap_v2 text, with a stack for each sample, so that blocks of different sizes are scaled apart.
pub(in super::super) fn write_jemalloc(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    check(profile)?;
    let total = amounts(profile.recorded(Metric::Live), profile.recorded(Metric::Allocated));
    writeln!(output, "heap_v2/{}\n  t*: {total}\n  t0: {total}", profile.sample_rate.max(1))?;
    for sample in told(profile) {
        let amounts = amounts(sample.live, sample.allocated);
        writeln!(output, "@{}\n  t*: {amounts}\n  t0: {amounts}", addresses(profile, sample))?;
    }
    writeln!(output)?;
    write_modules(profile, output)
}

/// Samples of what was live at the peak only have nothing to tell here.
fn told(profile: &Profile) -> impl Iterator<Item = &Sample> {
    profile.samples.iter().filter(|sample| !sample.live.is_zero() || !sample.allocated.is_zero())
}

fn amounts(live: Amount, allocated: Amount) -> String {
    format!("{}: {} [{}: {}]", live.objects, live.bytes, allocated.objects, allocated.bytes)
}

fn addresses(profile: &Profile, sample: &Sample) -> String {
    let stack = profile.stack(sample.stack);
    stack.locations.iter().map(|&id| format!(" {:#x}", profile.location(id).address)).collect()
}

fn write_modules(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    writeln!(output, "MAPPED_LIBRARIES:")?;
    for module in &profile.modules {
        writeln!(output, "{}", maps::format_line(module))?;
    }
    Ok(output.flush()?)
}

fn check(profile: &Profile) -> Result<(), WriteError> {
    if has_bytes_in_no_blocks(profile) {
        let reason = "it tells bytes without numbers of blocks".to_owned();
        return Err(WriteError::Inexpressible { format: "text", reason });
    }
    match profile.modules.iter().any(|module| module.path.contains('\n') || module.path.ends_with('\r')) {
        true => {
            let reason = "a path has a line break in it".to_owned();
            Err(WriteError::Inexpressible { format: "text", reason })
        }
        false => Ok(()),
    }
}
