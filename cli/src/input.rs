//! From what the user named to profiles in memory: a file, standard input, a recording folder, a bundle, or nothing at all.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use mpp_profile::analysis::Merger;
use mpp_profile::formats::timeline::Slice;
use mpp_profile::{Metric, Profile};

use crate::args::{CommonArgs, InputArgs, SymbolArgs};
use crate::bundle::{self, Stored};
use crate::exit::{Code, Failure, OrExit};
use crate::message;
use crate::process;
use crate::progress::with_spinner;
use crate::recording::Recording;
use crate::slice;
use crate::symbols::Symbols;

/// A profile with names, and where it came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The profile; of several processes merged into one if the user wants that.
    pub(crate) profile: Profile,
    /// How it was symbolized.
    pub(crate) symbols: Symbols,
    /// The file that was read, or the folder if there were several. Not escaped.
    pub(crate) source: String,
    /// How to name the same input after another verb, ready for a shell; `None` if that cannot be done. Not escaped.
    pub(crate) again: Option<String>,
    /// What is shown of a recording.
    pub(crate) processes: Option<Processes>,
    /// The stretch of time that is shown; `None` is the end of the recording.
    pub(crate) slice: Option<Slice>,
}

/// The processes of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    /// Those that are in the profile.
    pub(crate) shown: Vec<u32>,
    /// The executable, if one process is shown and its profile tells it. Not escaped.
    pub(crate) executable: Option<String>,
    /// Those that are not.
    pub(crate) others: Vec<u32>,
}

/// Reads and symbolizes what the flags ask for. Tells on stderr which recording it found, and what is odd about it.
///
/// # Errors
/// If there is nothing to read, or it cannot be read.
pub(crate) fn load(input: &InputArgs, symbols: &SymbolArgs, common: CommonArgs) -> Result<Loaded, Failure> {
    let recording = match &input.input {
        Some(path) if path.is_dir() => Some(open(path)?),
        Some(_) => None,
        None => Some(newest(common)?),
    };
    let loaded = match recording {
        Some(recording) => load_recording(&recording, input, symbols, common)?,
        None => load_file(input.input.as_deref().unwrap_or(Path::new("-")), input, symbols, common)?,
    };
    tell_oddities(&loaded, common);
    Ok(loaded)
}

fn load_file(path: &Path, input: &InputArgs, symbols: &SymbolArgs, common: CommonArgs) -> Result<Loaded, Failure> {
    let slice = input.slice.slice()?;
    let opened = open_file(path)?;
    if let (true, Some(slice)) = (opened.is_bundle(), slice) {
        return load_bundled_slice(path, opened, slice, input, symbols, common);
    }
    if opened.is_bundle() {
        return bundle::load(opened, input, symbols, common);
    }
    if let Some(pid) = input.pid {
        return Err(no_process(pid));
    }
    let source = opened.name.clone();
    let mut profile = match slice {
        Some(slice) => slice::read(opened, None, slice)?,
        None => mpp_profile::read(opened.reader(), &source).or_exit(Code::Input)?,
    };
    let stored = bundle::stored(&symbols.bundle)?;
    let symbols = symbolize([&mut profile].into_iter(), symbols, stored, common);
    Ok(Loaded { profile, symbols, source, again: again(input), processes: None, slice })
}

/// A stretch of the timeline in a bundle, with the symbols of the bundle.
fn load_bundled_slice(
    path: &Path,
    opened: Opened,
    slice: Slice,
    input: &InputArgs,
    symbol_args: &SymbolArgs,
    common: CommonArgs,
) -> Result<Loaded, Failure> {
    if path == Path::new("-") || input.all {
        let why = "--at, --from and --to of a bundle need a file, and one process of it";
        return Err(Failure::new(Code::Usage, why));
    }
    let source = opened.name.clone();
    let mut profile = slice::read(opened, input.pid, slice)?;
    let stored = bundle::all_stored(open_file(path)?, symbol_args)?;
    let symbols = symbolize([&mut profile].into_iter(), symbol_args, stored, common);
    Ok(Loaded { profile, symbols, source, again: again(input), processes: None, slice: Some(slice) })
}

/// That the input has no processes to choose from.
pub(crate) fn no_process(pid: u32) -> Failure {
    let why = format!("--pid {pid} chooses a process of a recording folder, and the input is a file");
    Failure::new(Code::Usage, why)
}

/// Whether a process that the user wants is among those that `source` has; any, if none is wanted.
///
/// # Errors
/// If it is not.
pub(crate) fn check_process(source: &str, wanted: Option<u32>, all: &[u32]) -> Result<(), Failure> {
    match wanted {
        Some(pid) if !all.contains(&pid) => {
            let why = format!("{source}: has no profile of process {pid}, but of {}", list(all));
            Err(Failure::new(Code::Input, why))
        }
        _ if all.is_empty() => {
            let why = "holds no profile: does the program still run? It writes its profile when it exits";
            Err(Failure::new(Code::Input, format!("{source}: {why}")))
        }
        _ => Ok(()),
    }
}

/// A file or standard input whose first bytes were looked at.
pub(crate) struct Opened {
    /// What it is called in messages.
    pub(crate) name: String,
    head: Vec<u8>,
    rest: Box<dyn Read>,
}

impl Opened {
    /// Whether it is a bundle.
    pub(crate) fn is_bundle(&self) -> bool {
        mpp_profile::formats::bundle::is_bundle(&self.head)
    }

    /// Whether it is a timeline.
    pub(crate) fn is_timeline(&self) -> bool {
        self.head.starts_with(mpp_profile::formats::timeline::MAGIC)
    }

    /// All of it.
    pub(crate) fn reader(self) -> Box<dyn Read> {
        Box::new(Cursor::new(self.head).chain(self.rest))
    }
}

/// Opens a file, or standard input for `-`.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn open_file(path: &Path) -> Result<Opened, Failure> {
    let name = name(path);
    let failed = |error: io::Error| Failure::new(Code::Input, format!("{name}: {error}"));
    let mut rest: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    let mut head = Vec::new();
    (&mut rest).take(mpp_profile::formats::bundle::HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    Ok(Opened { name, head, rest })
}

/// A file of a process in a recording, or the file that was named: of `pid` or, without, of the process that was started or
/// else the first. `nothing` says what to do about a recording in which there is none.
///
/// # Errors
/// If there is no such file or process.
pub(crate) fn part(
    input: Option<&Path>,
    pid: Option<u32>,
    files: fn(&Recording) -> Vec<(u32, PathBuf)>,
    nothing: &str,
    common: CommonArgs,
) -> Result<PathBuf, Failure> {
    let recording = match input {
        Some(path) if path.is_dir() => Recording::open(path).ok_or_else(|| {
            Failure::new(Code::Input, format!("{}: is a folder, but not a recording", path.display()))
        })?,
        Some(path) => return Ok(path.to_owned()),
        None => newest(common)?,
    };
    let all = files(&recording);
    let pids: Vec<u32> = all.iter().map(|(pid, _)| *pid).collect();
    let started = recording.index().ok().and_then(|index| index.pid);
    let wanted = pid.or(started.filter(|pid| pids.contains(pid))).or(pids.first().copied());
    all.into_iter().find(|(pid, _)| Some(*pid) == wanted).map(|(_, path)| path).ok_or_else(|| {
        let why = match pid {
            Some(pid) if !pids.is_empty() => format!("has none of process {pid}, but of {}", list(&pids)),
            _ => nothing.to_owned(),
        };
        Failure::new(Code::Input, format!("{}: {why}", recording.folder.display()))
    })
}

/// A recording in a folder.
///
/// # Errors
/// If it is none.
pub(crate) fn open(folder: &Path) -> Result<Recording, Failure> {
    let not_one = || {
        let why = "is a folder, but not a recording: it has neither recording.json nor <pid>/heap.prof or dhat.json";
        Failure::new(Code::Input, format!("{}: {why}", folder.display()))
    };
    Recording::open(folder).ok_or_else(not_one)
}

pub(crate) fn newest(common: CommonArgs) -> Result<Recording, Failure> {
    let Some(mut recording) = Recording::newest_below(Path::new(".")) else {
        let why = "no recording below this folder; make one with `mpp run -- PROGRAM`, or name a profile";
        return Err(Failure::new(Code::Input, why));
    };
    let folder = recording.folder.strip_prefix(".").unwrap_or(&recording.folder);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    message::note(common, format!("reading {}", folder.display()));
    recording.folder = folder.to_owned();
    Ok(recording)
}

fn load_recording(
    recording: &Recording,
    input: &InputArgs,
    symbol_args: &SymbolArgs,
    common: CommonArgs,
) -> Result<Loaded, Failure> {
    let slice = input.slice.slice()?;
    let Chosen { all, files: chosen } = match slice {
        Some(_) => slice::chosen(recording, input)?,
        None => chosen_dumps(recording, input)?,
    };
    let read = |path: &Path| slice.map_or_else(|| read(path), |slice| slice::read_file(path, slice));
    let mut profiles = chosen.iter().map(|(_, path)| read(path)).collect::<Result<Vec<_>, _>>()?;
    let symbol_args = &match (chosen.as_slice(), profiles.as_slice()) {
        ([(pid, _)], [profile]) => process::hints(*pid, profile, symbol_args),
        _ => symbol_args.clone(),
    };
    let symbols = symbolize(profiles.iter_mut(), symbol_args, bundle::stored(&symbol_args.bundle)?, common);
    let shown: Vec<u32> = chosen.iter().map(|(pid, _)| *pid).collect();
    let executable = match profiles.as_slice() {
        [only] => executable(only).map(str::to_owned),
        _ => None,
    };
    let source = match chosen.as_slice() {
        [(_, path)] => path.clone(),
        _ => recording.folder.clone(),
    };
    let profile = sum(profiles)?;
    let others = all.into_iter().filter(|pid| !shown.contains(pid)).collect();
    let processes = Some(Processes { shown, executable, others });
    Ok(Loaded { profile, symbols, source: source.display().to_string(), again: again(input), processes, slice })
}

/// The files of a recording that the flags choose.
pub(crate) struct Chosen {
    /// All processes that have left such a file.
    pub(crate) all: Vec<u32>,
    /// Process id and path.
    pub(crate) files: Vec<(u32, PathBuf)>,
}

/// The profiles that the flags choose.
fn chosen_dumps(recording: &Recording, input: &InputArgs) -> Result<Chosen, Failure> {
    let mut chosen = recording.dumps();
    if chosen.is_empty() {
        let why = "holds no profile: does the program still run? It writes its profile when it exits";
        return Err(Failure::new(Code::Input, format!("{}: {why}", recording.folder.display())));
    }
    let all: Vec<u32> = chosen.iter().map(|(pid, _)| *pid).collect();
    if !input.all {
        let pid = input.pid.unwrap_or_else(|| main_process(recording, &all));
        chosen.retain(|(known, _)| *known == pid);
        if chosen.is_empty() {
            let why = format!("has no profile of process {pid}, but of {}", list(&all));
            return Err(Failure::new(Code::Input, format!("{}: {why}", recording.folder.display())));
        }
    }
    Ok(Chosen { all, files: chosen })
}

/// Profiles of several processes as one.
///
/// # Errors
/// If the sums are too large.
pub(crate) fn sum(profiles: Vec<Profile>) -> Result<Profile, Failure> {
    let mut profiles = profiles;
    // One of them keeps all that it tells.
    if let [_] = profiles.as_slice()
        && let Some(only) = profiles.pop()
    {
        return Ok(only);
    }
    let mut merger = Merger::default();
    for profile in profiles {
        merger.add(profile).map_err(|why| Failure::new(Code::Input, why))?;
    }
    merger.finish().ok_or_else(|| Failure::new(Code::Input, "no profile"))
}

/// The process that was started; if it left no profile, the one with the most live memory.
pub(crate) fn main_process(recording: &Recording, pids: &[u32]) -> u32 {
    let index = recording.index().ok();
    let started = index.as_ref().and_then(|index| index.pid).filter(|pid| pids.contains(pid));
    let largest = || {
        let processes = &index.as_ref()?.processes;
        let known = processes.iter().filter(|process| pids.contains(&process.pid));
        known.max_by_key(|process| process.live_bytes).map(|process| process.pid)
    };
    started.or_else(largest).or(pids.first().copied()).unwrap_or_default()
}

/// Reads one profile, without names.
///
/// # Errors
/// If it cannot be read or is no profile; the message names the place.
pub(crate) fn read(path: &Path) -> Result<Profile, Failure> {
    let opened = open_file(path)?;
    let name = opened.name.clone();
    mpp_profile::read(opened.reader(), &name).or_exit(Code::Input)
}

/// What an input is called in messages.
fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Gives names to profiles.
pub(crate) fn symbolize<'a>(
    profiles: impl Iterator<Item = &'a mut Profile>,
    args: &SymbolArgs,
    stored: Stored,
    common: CommonArgs,
) -> Symbols {
    with_spinner("looking up functions and lines", common.quiet, || {
        let mut symbols = Symbols::new(args, stored);
        profiles.for_each(|profile| symbols.resolve(profile));
        symbols
    })
}

/// The executable of the profiled process: the kernel maps it first, at the lowest address.
pub(crate) fn executable(profile: &Profile) -> Option<&str> {
    profile.modules.iter().find(|module| module.is_file()).map(|module| module.path.as_str())
}

/// Process ids for people; not all of them if they are many.
pub(crate) fn list(pids: &[u32]) -> String {
    const MOST: usize = 8;
    let mut text: Vec<String> = pids.iter().take(MOST).map(u32::to_string).collect();
    if pids.len() > MOST {
        text.push(format!("{} more", pids.len() - MOST));
    }
    text.join(", ")
}

fn tell_oddities(loaded: &Loaded, common: CommonArgs) {
    for warning in &loaded.profile.warnings {
        message::warning(common, format!("{}: {warning}", loaded.source));
    }
    if let Some(dropped) = loaded.profile.dropped_samples().filter(|&dropped| dropped > 0) {
        let dropped = mpp_profile::units::count(dropped);
        message::warning(common, format!("{}: {dropped} samples were lost, so numbers are too low", loaded.source));
    }
    if common.verbose {
        loaded.symbols.found().iter().for_each(|found| message::note(common, found.note()));
    }
}

/// The path of a recording or profile as it is best typed again: relative to the current folder where that is shorter.
pub(crate) fn relative(path: &Path) -> PathBuf {
    let current = std::env::current_dir().ok();
    current.and_then(|current| path.strip_prefix(current).ok()).unwrap_or(path).to_owned()
}

/// A path as a shell takes it.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// See [`Loaded::again`].
pub(crate) fn again(input: &InputArgs) -> Option<String> {
    let mut words = Vec::new();
    match input.input.as_deref() {
        // It has been read, and is gone.
        Some(path) if path == Path::new("-") => return None,
        Some(path) => words.push(shell_word(&relative(path))),
        None => {}
    }
    words.extend(input.pid.map(|pid| format!("--pid {pid}")));
    words.extend(input.all.then(|| "--all".to_owned()));
    words.extend(input.slice.words());
    Some(words.join(" "))
}

/// The total of a profile for an index: estimated live bytes.
pub(crate) fn live_bytes(profile: &Profile) -> u64 {
    profile.estimate(Metric::Live).bytes.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(shell_word(Path::new("mpp-app-1-2")), "mpp-app-1-2");
        assert_eq!(shell_word(Path::new("/tmp/it's here")), "'/tmp/it'\\''s here'");
        let again =
            |input: &str, pid, all| again(&InputArgs { input: Some(input.into()), pid, all, ..InputArgs::default() });
        assert_eq!(again("my dump", Some(7), false).as_deref(), Some("'my dump' --pid 7"));
        assert_eq!(again("-", None, false), None);
        assert_eq!(super::again(&InputArgs { all: true, ..InputArgs::default() }).as_deref(), Some("--all"));
    }
}
