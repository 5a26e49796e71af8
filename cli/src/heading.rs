//! The lines above a report: what is shown, and how far it can be trusted.

use std::path::Path;

use mpp_profile::analysis::{Footprint, Group, Quality, Sum, Table};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count, percent};
use mpp_profile::{Format, Metric, Profile, Unit};

use crate::input::{Loaded, list};
use crate::selection::Selected;
use crate::slice;

/// What the numbers of a metric are, in one word.
pub(crate) fn metric_word(metric: Metric) -> &'static str {
    match metric {
        Metric::Live => "live",
        Metric::Allocated => "allocated",
        Metric::Freed => "freed",
        Metric::Peak => "at the peak",
        Metric::Temporary => "temporary",
    }
}

/// What the rows of a group are, in the plural.
pub(crate) fn rows_word(group: Group) -> &'static str {
    match group {
        Group::Function => "functions",
        Group::Line => "lines",
        Group::File => "files",
        Group::Crate => "crates and libraries",
        Group::Library => "libraries",
        Group::Thread => "threads",
        Group::Size => "sizes",
    }
}

/// The lines above every report. `total` is what is selected, in the profile that `selected` holds.
pub(crate) fn lines(selected: &Selected, total: Sum, quality: &Quality) -> Vec<String> {
    let Selected { loaded, view, whole, filtered } = selected;
    let mut lines = vec![self::total(&loaded.profile, view.metric, total)];
    if *filtered {
        let (part, whole) = (total.value(view.unit), whole.value(view.unit));
        let text = match view.unit {
            Unit::Bytes => bytes(whole),
            Unit::Blocks => format!("{} blocks", count(whole)),
        };
        lines.push(format!("selected: {} of {text}, which is 100% below", percent(part as f64, whole as f64)));
    }
    if view.metric == Metric::Live {
        lines.extend(footprint(&loaded.profile));
    }
    lines.push(source(loaded));
    lines.extend(others(loaded));
    lines.push(self::quality(quality));
    lines
}

/// `RSS: 109 MiB = 94.3 MiB live + 9.16 MiB retained by the allocator + …`; `None` if the profile does not tell it.
pub(crate) fn footprint(profile: &Profile) -> Option<String> {
    let Footprint { resident, live, retained, profiler, files, stacks, other, live_not_resident, purged } =
        Footprint::of(profile)?;
    let parts = [
        (live, "live"),
        (retained, "retained"),
        (profiler, "profiler"),
        (files, "files"),
        (stacks, "stacks"),
        (other, "other"),
    ];
    let parts = parts.iter().filter(|(part, _)| *part > 0).map(|(part, name)| format!("{} {name}", bytes(*part)));
    let mut line = format!("RSS: {} = {}", bytes(resident), parts.collect::<Vec<_>>().join(" + "));
    let outside = [(live_not_resident, "live but not in memory"), (purged, "given back")];
    let outside = outside.iter().filter(|(part, _)| *part > 0).map(|(part, name)| format!("{} {name}", bytes(*part)));
    let outside: Vec<String> = outside.collect();
    if !outside.is_empty() {
        line.push_str(&format!("; besides {}", outside.join(", ")));
    }
    Some(line)
}

/// `live: 62.6 MiB ± 1.31 MiB in 1,234 blocks; estimated from 120 samples, one per 512 KiB`, and what the allocator
/// itself counted, if the profile tells it. `total` is the estimate of all or of a part of the profile.
pub(crate) fn total(profile: &Profile, metric: Metric, total: Sum) -> String {
    let word = metric_word(metric);
    let counted = counted(profile, metric);
    if profile.is_sampled() && total.blocks == 0 {
        let rate = profile.sample_rate;
        // Of 3 R bytes, no sample is taken with probability exp(-3), 5 %.
        let known = counted.unwrap_or_else(|| format!("most likely less than {}", bytes(rate.saturating_mul(3))));
        return format!("{word}: no samples, at one per {}; {known}", bytes(rate));
    }
    let noun = if total.blocks == 1 { "block" } else { "blocks" };
    let amount = format!("{}{} in {} {noun}", bytes(total.bytes), error(profile, total), count(total.blocks));
    let counted = counted.map(|counted| format!("; {counted}")).unwrap_or_default();
    format!("{word}: {amount}; {}{counted}", basis(profile, metric))
}

/// The allocator's own count of everything, to hold an estimate against.
fn counted(profile: &Profile, metric: Metric) -> Option<String> {
    let (bytes_key, blocks_key) = match metric {
        Metric::Live => ("exact_live_bytes", "exact_live_blocks"),
        Metric::Allocated => ("exact_allocated_bytes", "exact_allocated_blocks"),
        Metric::Freed | Metric::Peak | Metric::Temporary => return None,
    };
    let number = |key| profile.comment(key)?.parse::<u64>().ok();
    Some(format!("counted {} in {} blocks", bytes(number(bytes_key)?), count(number(blocks_key)?)))
}

/// What to do about a profile in which nothing is live; `None` if something is, or nothing was recorded at all.
pub(crate) fn other_metric(profile: &Profile, metric: Metric) -> Option<String> {
    let empty = metric == Metric::Live && profile.recorded(Metric::Live).objects == 0 && profile.has_allocated();
    empty.then(|| {
        let samples = count(profile.recorded_blocks(Metric::Allocated));
        format!("nothing of it is live any more; --metric alloc shows the {samples} samples of what was allocated")
    })
}

/// ` ± 1.31 MiB`, the standard error; nothing if every block was recorded.
pub(crate) fn error(profile: &Profile, total: Sum) -> String {
    if !profile.is_sampled() {
        return String::new();
    }
    format!(" ± {}", bytes(total.standard_error(Unit::Bytes).round() as u64))
}

/// What an estimate rests on.
pub(crate) fn basis(profile: &Profile, metric: Metric) -> String {
    if matches!(profile.format, Format::Dhat | Format::DhatForeign) {
        return "every block was recorded, with the bytes that were asked for".to_owned();
    }
    if !profile.is_sampled() {
        return "every block was recorded".to_owned();
    }
    let samples = profile.recorded_blocks(metric);
    let plural = if samples == 1 { "sample" } else { "samples" };
    format!("estimated from {} {plural}, one per {}", count(samples), bytes(profile.sample_rate))
}

/// Where the profile comes from: the process of a recording, or the file.
pub(crate) fn source(loaded: &Loaded) -> String {
    let source = escaped(&loaded.source);
    let time = loaded.slice.map(slice::words).unwrap_or_default();
    let Some(processes) = &loaded.processes else {
        return format!("from: {source} ({}){time}", loaded.profile.format);
    };
    match processes.shown.as_slice() {
        [pid] => {
            let executable = processes.executable.as_deref().map(file_name).unwrap_or_default();
            format!("from: process {pid} {} ({source}){time}", escaped(executable))
        }
        shown => format!("from: {} processes ({source}){time}", shown.len()),
    }
}

/// The processes of the recording that are not shown, and how to see them; `None` if there are none.
pub(crate) fn others(loaded: &Loaded) -> Option<String> {
    let others = &loaded.processes.as_ref()?.others;
    let noun = if others.len() == 1 { "process" } else { "processes" };
    (!others.is_empty()).then(|| {
        format!("not shown: {} other {noun}; --all adds them up, --pid shows one of {}", others.len(), list(others))
    })
}

/// `stacks: complete for 99.8% of the bytes; symbols: 98.0% with lines, 1.2% names only, 0.8% nothing`.
pub(crate) fn quality(quality: &Quality) -> String {
    let total = quality.total as f64;
    let share = |part: f64| percent(part, total);
    let stacks = if quality.total == 0 {
        "nothing to judge".to_owned()
    } else if quality.unknown == quality.total {
        "the file does not say whether they are complete".to_owned()
    } else {
        let mut text = format!("complete for {} of the bytes", share(quality.complete as f64));
        if let [(reason, _), ..] = quality.truncated_by_reason.as_slice() {
            text.push_str(&format!(", {} cut off ({})", share(quality.truncated as f64), escaped(reason)));
        }
        text
    };
    let resolved = quality.first_frame;
    let symbols = match quality.total {
        0 => "none needed".to_owned(),
        _ => format!(
            "{} with lines, {} names only, {} unknown",
            share(resolved.lines),
            share(resolved.names),
            share(resolved.nothing)
        ),
    };
    format!("stacks: {stacks}; symbols: {symbols}")
}

/// The modules whose functions have no names, with their part of the total, heaviest first; not escaped. The table must
/// be grouped by function or line.
pub(crate) fn nameless_modules(table: &Table) -> Vec<(String, u64)> {
    let mut modules: Vec<(String, u64)> = Vec::new();
    for row in table.rows.iter().filter(|row| !row.named && row.flat.bytes > 0) {
        let name = row.module.as_deref().unwrap_or("no module");
        match modules.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(row.flat.bytes),
            None => modules.push((name.to_owned(), row.flat.bytes)),
        }
    }
    modules.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    modules
}

/// `no names: libfoo.so 1.5%, libbar.so 0.2% (mpp modules app.heap says why)`; `None` if all functions have names.
pub(crate) fn nameless(loaded: &Loaded, table: &Table, metric: Metric) -> Option<String> {
    const MOST: usize = 3;
    let modules = nameless_modules(table);
    if modules.is_empty() {
        return None;
    }
    let total = table.total.bytes as f64;
    let mut parts: Vec<String> = modules
        .iter()
        .take(MOST)
        .map(|(name, part)| format!("{} {}", escaped(name), percent(*part as f64, total)))
        .collect();
    if modules.len() > MOST {
        parts.push(format!("{} more", modules.len() - MOST));
    }
    let flag = match metric {
        Metric::Live => "",
        Metric::Allocated => " --metric alloc",
        Metric::Freed => " --metric freed",
        Metric::Peak => " --metric peak",
        Metric::Temporary => " --metric temp",
    };
    let input = loaded.again.as_deref().map(|input| format!("{input}{flag}")).unwrap_or_default();
    let command = format!("mpp modules {}", escaped(input.trim()));
    Some(format!("no names: {} ({} says why)", parts.join(", "), command.trim_end()))
}

/// A place in the source as it is shown: relative to the current folder if it is below it.
pub(crate) fn place(file: &str, line: u32) -> String {
    let current = std::env::current_dir().ok();
    let shown = current.and_then(|current| Path::new(file).strip_prefix(current).ok()).and_then(Path::to_str);
    let shown = shown.unwrap_or(file);
    if line == 0 { shown.to_owned() } else { format!("{shown}:{line}") }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
