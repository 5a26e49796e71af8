//! A profile or recording: how far it can be trusted.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use mpp_profile::analysis::{Quality, Weights};
use mpp_profile::units::{bytes, count, percent};
use mpp_profile::{Metric, Unit};

use super::Finding;
use crate::args::{CommonArgs, InputArgs, SymbolArgs};
use crate::exit::Failure;
use crate::input;

/// Estimates of fewer samples have an error of more than a tenth.
const FEW: u64 = 100;

/// A folder, or a file that is neither a program nor a script.
pub(super) fn is_input(subject: &OsStr) -> bool {
    let path = Path::new(subject);
    if path.is_dir() || path == Path::new("-") {
        return true;
    }
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut head));
    path.is_file()
        && read.is_ok_and(|length| !head[..length].starts_with(b"\x7fELF") && !head[..length].starts_with(b"#!"))
}

/// Looks at an input.
///
/// # Errors
/// If it cannot be read.
pub(super) fn look(path: &Path, symbols: &SymbolArgs, common: CommonArgs) -> Result<Vec<Finding>, Failure> {
    let from = InputArgs { input: Some(path.to_owned()), ..InputArgs::default() };
    let loaded = input::load(&from, symbols, CommonArgs { quiet: true, ..common })?;
    let profile = &loaded.profile;
    let mut findings = vec![Finding::ok("format", profile.format.to_string())];
    let metric = if profile.recorded_blocks(Metric::Live) > 0 || !profile.has_allocated() {
        Metric::Live
    } else {
        Metric::Allocated
    };
    let samples = profile.recorded_blocks(metric);
    let total = Weights::of(profile, metric).total();
    findings.push(match (profile.is_sampled(), samples) {
        (false, _) => Finding::ok("samples", "every block was recorded"),
        (true, few) if few < FEW => Finding::hint(
            "samples",
            format!(
                "{} only: {} ± {}",
                count(few),
                bytes(total.bytes),
                bytes(total.standard_error(Unit::Bytes).round() as u64)
            ),
            format!(
                "record with mpp run --sample {}, or --mode exact",
                bytes((profile.sample_rate / 16).max(1)).replace(' ', "")
            ),
        ),
        (true, many) => Finding::ok("samples", format!("{} of {}", count(many), bytes(total.bytes))),
    });
    let quality = Quality::of(profile, metric);
    findings.push(stacks(&quality));
    findings.push(names(&quality, &loaded));
    if let Some(dropped) = profile.dropped_samples().filter(|&dropped| dropped > 0) {
        let advice = "numbers are too low; give the profiler more memory (MIMALLOC_PROF_MAX_BYTES) or sample less";
        findings.push(Finding::hint("losses", format!("{} samples were dropped", count(dropped)), advice));
    }
    for warning in &profile.warnings {
        findings.push(Finding::hint("oddity", warning, ""));
    }
    Ok(findings)
}

fn stacks(quality: &Quality) -> Finding {
    let share = |part: u64| percent(part as f64, quality.total as f64);
    match (quality.total, quality.truncated_by_reason.first()) {
        (0, _) => Finding::ok("stacks", "nothing to judge"),
        (_, Some((reason, part))) => {
            let advice = match reason.as_str() {
                "depth limit" => {
                    "the recorder keeps no more frames; what is cut off is the outer end, so flat numbers are right"
                }
                "no unwind info" => "some code has no unwind tables (.eh_frame), such as code made at run time",
                _ => "the stack was damaged or is of a kind that is not known",
            };
            Finding::hint(
                "stacks",
                format!("complete for {}, {} cut off ({reason})", share(quality.complete), share(*part)),
                advice,
            )
        }
        _ if quality.unknown == quality.total => {
            Finding::ok("stacks", "the file does not say whether they are complete")
        }
        _ => Finding::ok("stacks", format!("complete for {}", share(quality.complete))),
    }
}

fn names(quality: &Quality, loaded: &input::Loaded) -> Finding {
    let first = quality.first_frame;
    let share = |part: f64| percent(part, quality.total as f64);
    let found = format!(
        "{} with lines, {} names only, {} unknown",
        share(first.lines),
        share(first.names),
        share(first.nothing)
    );
    if quality.total == 0 || first.lines >= 0.99 * quality.total as f64 {
        return Finding::ok("names", found);
    }
    let command = format!("mpp modules {}", loaded.again.as_deref().unwrap_or_default());
    Finding::hint(
        "names",
        found,
        format!("{} says which files lack symbols, and where these may come from", command.trim()),
    )
}
