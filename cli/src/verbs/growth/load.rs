//! From what the user named to snapshots, one after the other: never more than two profiles in memory.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use mpp_profile::analysis::growth::{Growth, LEAST_SNAPSHOTS, MOST_SNAPSHOTS, Snapshots, Times};
use mpp_profile::analysis::moment;
use mpp_profile::formats::Limits;
use mpp_profile::formats::timeline::{self, Slice};

use crate::args::{CommonArgs, InputArgs};
use crate::exit::{Code, Failure, OrExit};
use crate::input::{self, Loaded};
use crate::recording::{Recording, numbered_in};
use crate::selection::{self, Selected};
use crate::{bundle, message};

use super::GrowthArgs;

/// Slices of a timeline unless the user wants another number.
const SLICES: u32 = 16;

/// Everything that was read.
pub(super) struct Snapped {
    pub(super) growth: Growth,
    /// Where from, for people; escaped.
    pub(super) from: String,
    /// What each snapshot is called; not escaped.
    pub(super) sources: Vec<String>,
    /// Seconds since the first, or since the start of a timeline; `None` if the order is all there is.
    pub(super) times: Option<Vec<f64>>,
    /// They are of one run of a process.
    pub(super) one_run: bool,
    /// The last snapshot.
    pub(super) last: Selected,
}

pub(super) fn load(args: &GrowthArgs, common: CommonArgs) -> Result<Snapped, Failure> {
    let recording = match args.inputs.as_slice() {
        [] => input::newest(common)?,
        [folder] if folder.is_dir() => input::open(folder)?,
        [file] => return single(args, file, common),
        files if args.slices.is_some() || args.pid.is_some() => {
            let why = format!("--slices and --pid are for one recording, and there are {} inputs", files.len());
            return Err(Failure::new(Code::Usage, why));
        }
        files => return dumps(args, files, "", common),
    };
    let dumped: Vec<u32> = recording.dumps().into_iter().map(|(pid, _)| pid).collect();
    let timelines = recording.timelines();
    let mut all: Vec<u32> = dumped.iter().copied().chain(timelines.iter().map(|(pid, _)| *pid)).collect();
    all.sort_unstable();
    all.dedup();
    let folder = recording.folder.display().to_string();
    input::check_process(&folder, args.pid, &all)?;
    let started = recording.index().ok().and_then(|index| index.pid).filter(|pid| all.contains(pid));
    let pid = args.pid.or(started).or(all.first().copied()).unwrap_or_default();
    let numbered = numbered_dumps(&recording, pid);
    let timeline = timelines.into_iter().find(|(known, _)| *known == pid).map(|(_, path)| path);
    let from_dumps = args.slices.is_none() && numbered.len() >= LEAST_SNAPSHOTS;
    match timeline {
        _ if from_dumps => dumps(args, &numbered, &folder, common),
        Some(path) => slices(args, &path, common),
        None => {
            let why = "has neither a timeline nor three numbered dumps; record with mpp run --interval 10s";
            Err(Failure::new(Code::Input, format!("{folder}: process {pid} {why}")))
        }
    }
}

/// Dumps that were written now and then; those of peaks come when there is much, and would look like growth.
fn numbered_dumps(recording: &Recording, pid: u32) -> Vec<PathBuf> {
    let is_regular =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"heap."));
    numbered_in(&recording.folder.join(pid.to_string())).into_iter().filter(is_regular).collect()
}

/// One file has to hold many snapshots.
fn single(args: &GrowthArgs, file: &Path, common: CommonArgs) -> Result<Snapped, Failure> {
    let opened = input::open_file(file)?;
    if file == Path::new("-") {
        let why =
            "standard input is read once, and growth needs many snapshots: name a recording, a timeline, or profiles";
        return Err(Failure::new(Code::Usage, why));
    }
    if opened.is_bundle() || opened.is_timeline() {
        return slices(args, file, common);
    }
    let why = "is one profile, and growth needs three or more, a recording, or a timeline; `mpp diff` compares two";
    Err(Failure::new(Code::Usage, format!("{}: {why}", file.display())))
}

fn dumps(args: &GrowthArgs, files: &[PathBuf], folder: &str, common: CommonArgs) -> Result<Snapped, Failure> {
    if files.len() < LEAST_SNAPSHOTS {
        let why = format!("{} snapshots are too few to see growth; `mpp diff OLD NEW` compares two", files.len());
        return Err(Failure::new(Code::Usage, why));
    }
    if files.len() > MOST_SNAPSHOTS {
        let why = format!("{} snapshots are more than the {MOST_SNAPSHOTS} that can be compared", files.len());
        return Err(Failure::new(Code::Usage, why));
    }
    let mut reader = Reader::new(args);
    let (mut moments, mut one_run) = (Vec::new(), true);
    for file in files {
        let input = InputArgs { input: Some(file.clone()), ..InputArgs::default() };
        let loaded = input::load(&input, &args.symbols, common)?;
        moments.push(moment::time(&loaded.profile));
        if let Some(last) = &reader.last {
            one_run &= moment::of_one_run(&last.loaded.profile, &loaded.profile);
        }
        reader.add(file.display().to_string(), loaded)?;
    }
    let times = seconds(&moments);
    let from = match (folder, files) {
        ("", files) => format!("{} files", files.len()),
        (folder, files) => format!("{} dumps in {}", files.len(), mpp_profile::text::escaped(folder)),
    };
    if times.is_none() && moments.iter().any(Option::is_some) {
        message::note(
            common,
            "the snapshots do not tell rising times, so they are compared in the order of the command line",
        );
    }
    reader.finish(from, times, one_run)
}

/// Seconds since the first, if all have a time and each is later than the one before.
fn seconds(moments: &[Option<f64>]) -> Option<Vec<f64>> {
    let times: Vec<f64> = moments.iter().copied().collect::<Option<_>>()?;
    let is_rising = times.windows(2).all(|pair| pair[0] < pair[1]);
    let first = *times.first()?;
    is_rising.then(|| times.iter().map(|time| time - first).collect())
}

/// Snapshots of a timeline, each in the middle of its part of the time: at the start nothing is there yet, and at the end the program
/// may have cleaned up.
fn slices(args: &GrowthArgs, path: &Path, common: CommonArgs) -> Result<Snapped, Failure> {
    let measured = crate::timeline::read(path, args.pid)?;
    for oddity in measured.oddities() {
        message::warning(common, format!("{}: {oddity}", path.display()));
    }
    let count = args.slices.unwrap_or(SLICES);
    let time = |slice: u32| (u128::from(measured.latest) * u128::from(2 * slice + 1) / u128::from(2 * count)) as u64;
    let mut reader = Reader::new(args);
    let mut times = Vec::new();
    for slice in 0..count {
        let time = time(slice);
        let name = path.display().to_string();
        let mut profile = timeline::profile(open_timeline(path, args.pid)?, &name, &Limits::default(), Slice::at(time))
            .or_exit(Code::Input)?;
        let stored = bundle::stored(&args.symbols.bundle)?;
        let symbols = input::symbolize([&mut profile].into_iter(), &args.symbols, stored, common);
        let source = crate::timeline::seconds(time);
        reader.add(
            source,
            Loaded { profile, symbols, source: name, again: None, processes: None, slice: Some(Slice::at(time)) },
        )?;
        times.push(time as f64 / 1e6);
    }
    let name = mpp_profile::text::escaped(&path.display().to_string()).to_string();
    let times = (measured.latest > u64::from(count)).then_some(times);
    reader.finish(format!("{count} times of {name}"), times, true)
}

fn open_timeline(path: &Path, pid: Option<u32>) -> Result<Box<dyn Read>, Failure> {
    let opened = input::open_file(path)?;
    Ok(if opened.is_bundle() { Box::new(Cursor::new(bundle::timeline(opened, pid)?)) } else { opened.reader() })
}

/// Adds up one snapshot after the other.
struct Reader<'a> {
    args: &'a GrowthArgs,
    snapshots: Option<Snapshots>,
    sources: Vec<String>,
    last: Option<Selected>,
}

impl<'a> Reader<'a> {
    fn new(args: &'a GrowthArgs) -> Self {
        Reader { args, snapshots: None, sources: Vec::new(), last: None }
    }

    fn add(&mut self, source: String, loaded: Loaded) -> Result<(), Failure> {
        let selected = selection::select(loaded, &self.args.selection, self.args.group.group())?;
        self.snapshots.get_or_insert_with(|| Snapshots::new(selected.view)).add(&selected.loaded.profile);
        self.sources.push(source);
        self.last = Some(selected);
        Ok(())
    }

    fn finish(self, from: String, times: Option<Vec<f64>>, one_run: bool) -> Result<Snapped, Failure> {
        let (Some(snapshots), Some(last)) = (self.snapshots, self.last) else {
            return Err(Failure::new(Code::Input, "no snapshot"));
        };
        let growth = snapshots.finish(times.as_deref().map_or(Times::Order, Times::Seconds), one_run);
        Ok(Snapped { growth, from, sources: self.sources, times, one_run, last })
    }
}
