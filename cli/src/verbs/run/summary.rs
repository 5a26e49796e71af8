//! What a run ends with: at most ten lines on stderr, and a flame graph in the recording.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use mpp_profile::analysis::{Quality, Row, Table, View, Weights};
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, duration, percent};
use mpp_profile::{Format, Metric, Profile};

use crate::args::{CommonArgs, InputArgs};
use crate::exit::{Code, Failure};
use crate::input::{self, Loaded, shell_word};
use crate::recording::{self, Index, Process, Recording};
use crate::selection::Names;
use crate::sys::signals;
use crate::verbs::flame;
use crate::{heading, message};

use super::elf::Elf;
use super::{RunArgs, timeline};

/// How many sites the summary names.
const SITES: usize = 3;
/// More profiles than this are listed, but not read: a build starts thousands of compilers.
const MOST_READ: usize = 1000;

/// The processes that left a profile, for the index.
pub(super) fn processes(recording: &Recording) -> Vec<Process> {
    let describe = |(order, (pid, path)): (usize, (u32, std::path::PathBuf))| {
        let profile = if order < MOST_READ { input::read(&path).ok() } else { None };
        let comment = |key: &str| profile.as_ref()?.comment(key)?.parse().ok();
        let relative = |path: &Path| path.strip_prefix(&recording.folder).unwrap_or(path).display().to_string();
        let numbered = path.parent().map(recording::numbered_in).unwrap_or_default();
        Process {
            pid,
            ppid: comment("ppid"),
            exe: profile.as_ref().and_then(input::executable).map(str::to_owned),
            dump: relative(&path),
            numbered: numbered.iter().map(|path| relative(path)).collect(),
            live_bytes: profile.as_ref().map(input::live_bytes),
        }
    };
    recording.dumps().into_iter().enumerate().map(describe).collect()
}

/// Symbolizes the main process, draws its flame graph into the recording, and prints the summary.
///
/// # Errors
/// If the profile cannot be read or the graph cannot be written.
pub(super) fn report(
    args: &RunArgs,
    recording: &Recording,
    index: &Index,
    is_go: bool,
    ended: SystemTime,
    common: CommonArgs,
) -> Result<(), Failure> {
    let folder = input::relative(&recording.folder);
    let from = InputArgs { input: Some(recording.folder.clone()), ..InputArgs::default() };
    let loaded = input::load(&from, &args.symbols, common)?;
    if loaded.profile.recorded(Metric::Live).objects == 0 && !loaded.profile.has_allocated() {
        let lines = nothing_sampled(args, &loaded, index, &folder, is_go)?;
        lines.iter().for_each(|line| message::note(common, line));
        return Ok(());
    }
    let view = View { metric: metric_to_show(&loaded.profile), ..View::default() };
    let names = Names::short(&loaded.profile);
    let mut lines = lines(&loaded, index, &view, names);
    lines.extend(losses(&loaded, recording, index, ended));
    lines.extend(timeline::lines(recording, loaded.processes.as_ref().and_then(|shown| shown.shown.first().copied())));
    if args.then.is_none() {
        let graph = recording.folder.join("flame.svg");
        flame::draw_into(&graph, &loaded, &view, names)?;
        lines.push(format!("flame graph: {}", input::relative(&graph).display()));
    }
    let metric = if view.metric == Metric::Live { "" } else { " --metric alloc" };
    lines.push(format!("next: mpp top {}{metric}", shell_word(&folder)));
    lines.iter().for_each(|line| message::note(common, line));
    Ok(())
}

/// A profile that is older than this at the end was not written there.
const AT_THE_END: Duration = Duration::from_secs(2);

/// What is missing from the profile that is shown: what came after the last snapshot, dumps that could not be written.
fn losses(loaded: &Loaded, recording: &Recording, index: &Index, ended: SystemTime) -> Vec<String> {
    let mut lines = Vec::new();
    let shown = loaded.processes.as_ref().map_or(&[][..], |processes| &processes.shown);
    let path = recording.dumps().into_iter().find(|(pid, _)| Some(*pid) == index.pid && shown == [*pid]);
    let written = path.and_then(|(_, path)| std::fs::metadata(path).ok()?.modified().ok());
    let age = written.and_then(|written| ended.duration_since(written).ok());
    match (index.exit_signal, age) {
        (Some(signal), Some(age)) => {
            let name = signals::name(signal);
            lines.push(format!("{name} ended it: the profile is the last snapshot, {} old", duration(age)));
        }
        (None, Some(age)) if age >= AT_THE_END => {
            lines.push(format!("the profile was written {} before it ended, and not at its end", duration(age)));
        }
        _ => {}
    }
    let failed = loaded.profile.comment("failed_dumps").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if failed > 0 {
        lines.push(format!("{} could not be written", if failed == 1 { "a dump" } else { "some dumps" }));
    }
    lines
}

/// What the summary and the graph show: live memory or, if the program has freed nearly all of it before it exited, what
/// it allocated in all. A handful of samples says nothing, a program that cleans up leaves little else.
fn metric_to_show(profile: &Profile) -> Metric {
    const HANDFUL: u64 = 16;
    let [live, allocated] = [Metric::Live, Metric::Allocated].map(|metric| profile.recorded(metric).objects);
    if live < HANDFUL && allocated > live.saturating_mul(2) { Metric::Allocated } else { Metric::Live }
}

fn lines(loaded: &Loaded, index: &Index, view: &View, names: Names<'_>) -> Vec<String> {
    let profile = &loaded.profile;
    let total = |metric| heading::total(profile, metric, Weights::of(profile, metric).total());
    let moment = if index.exit_signal.is_some() { "live at the last snapshot:" } else { "live at exit:" };
    let mut lines = vec![total(Metric::Live).replacen("live:", moment, 1)];
    if view.metric == Metric::Allocated || profile.format == Format::Dhat {
        lines.push(total(Metric::Allocated).replacen("allocated:", "allocated in all:", 1));
    }
    if profile.has_peak() {
        lines.push(total(Metric::Peak));
    }
    let table = Table::build(profile, view);
    let sites = table.rows.iter().filter(|row| row.flat.bytes > 0).take(SITES);
    lines.extend(sites.map(|row| site(row, &table, names)));
    lines.push(heading::quality(&Quality::of(profile, view.metric)));
    lines.extend(heading::nameless(loaded, &table, view.metric));
    lines.extend(other_processes(loaded, index));
    lines
}

/// `  62.5 MiB  97.7%  leak_exact_64m  src/main.rs:12`
fn site(row: &Row, table: &Table, names: Names<'_>) -> String {
    let share = percent(row.flat.bytes as f64, table.total.bytes as f64);
    let name = if row.named { names.of(&row.name) } else { row.name.to_string() };
    let place = row.place.as_ref().map(|(file, line)| heading::place(file, *line)).unwrap_or_default();
    let text = format!("  {:>8} {share:>6}  {}  {}", bytes(row.flat.bytes), escaped(&name), escaped(&place));
    text.trim_end().to_owned()
}

/// The processes that are not shown, those with most live memory last.
fn others<'a>(loaded: &Loaded, index: &'a Index) -> Vec<&'a Process> {
    let shown = loaded.processes.as_ref().map_or(&[][..], |processes| &processes.shown);
    let mut others: Vec<&Process> = index.processes.iter().filter(|process| !shown.contains(&process.pid)).collect();
    others.sort_by_key(|process| process.live_bytes);
    others
}

/// What the other processes hold, since one of them may be the one that matters.
fn other_processes(loaded: &Loaded, index: &Index) -> Option<String> {
    let others = others(loaded, index);
    let largest = others.last()?;
    let sum = others.iter().filter_map(|process| process.live_bytes).fold(0, u64::saturating_add);
    let noun = if others.len() == 1 { "process" } else { "processes" };
    if sum == 0 {
        return Some(format!("not shown: {} other {noun}, in which nothing live was sampled", others.len()));
    }
    let (name, pid) = (escaped(file_name(largest.exe.as_deref())), largest.pid);
    Some(format!("not shown: {} other {noun} with {}, most in {name} {pid}", others.len(), bytes(sum)))
}

/// A valid profile without a single sample.
///
/// # Errors
/// If the program has an allocator of its own, and no other process was sampled either: then nothing was captured.
fn nothing_sampled(
    args: &RunArgs,
    loaded: &Loaded,
    index: &Index,
    folder: &Path,
    is_go: bool,
) -> Result<Vec<String>, Failure> {
    let allocated: Option<u64> = loaded.profile.comment("exact_allocated_bytes").and_then(|text| text.parse().ok());
    let in_all = allocated.map(|sum| format!(", which allocated {} in all", bytes(sum))).unwrap_or_default();
    let executable = loaded.processes.as_ref().and_then(|processes| processes.executable.as_deref());
    let name = file_name(executable);
    let seen = if loaded.profile.is_sampled() { "sampled" } else { "seen" };
    let mut lines = vec![format!("no allocation was {seen} in {}{in_all}", escaped(name))];

    let own_allocator = allocated == Some(0) && executable.is_some_and(exports_malloc);
    let largest = others(loaded, index).into_iter().last().filter(|process| process.live_bytes > Some(0));
    if own_allocator && largest.is_none() {
        return Err(Failure::new(Code::NothingCaptured, format!("nothing captured: {name} {OWN_ALLOCATOR}")));
    }
    if own_allocator {
        lines.push(format!("{} {OWN_ALLOCATOR}", escaped(name)));
    } else if is_go {
        let advice = "use Go's runtime/pprof";
        lines.push(format!("this is a Go program, whose own heap does not go through malloc: {advice}"));
    } else if largest.is_none() && loaded.profile.is_sampled() && args.sample > 1024 {
        let rate = bytes(args.sample);
        lines.push(format!("with one sample per {rate} a small heap can go unseen: try --sample 1KiB"));
    }
    // The program that matters may be one that this one started.
    if let Some(largest) = largest {
        lines.extend(other_processes(loaded, index));
        lines.push(format!("next: mpp top {} --pid {}", shell_word(folder), largest.pid));
    } else {
        lines.push(format!("the empty profile is in {}", folder.display()));
    }
    Ok(lines)
}

/// Why nothing comes from a program that the preflight could not know, because another one executed it.
const OWN_ALLOCATOR: &str =
    "has an allocator of its own linked in (it exports malloc, which takes precedence over a preload)";

fn exports_malloc(executable: &str) -> bool {
    File::open(executable).ok().and_then(|file| Elf::read(file).ok()).is_some_and(|elf| elf.exports_malloc)
}

fn file_name(path: Option<&str>) -> &str {
    path.and_then(|path| path.rsplit('/').next()).unwrap_or("the program")
}
