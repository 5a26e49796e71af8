//! What the environment asks for; `docs/environment.md` lists it. Ignored in programs that run with more rights than their user.
//!
//! What is written wrongly is told once, and the default is used.

use super::dump::Format;
use super::path::{self, Path};
use super::sampler::Options;
use super::triggers::Triggers;
use super::{timeline, values};
use crate::options::{self, Name};
use crate::os::{self, lock::Lock};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::*};

/// Which of the processes that a program makes are looked at and write files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follow {
    /// The first one only.
    None,
    /// Those that were started by exec.
    Exec,
    /// Those that were only forked, too.
    All,
}

/// What to do in this process.
pub(crate) struct Settings {
    /// Sample from the start, or when the control channel says so.
    pub(crate) profiles: bool,
    pub(crate) profile: Options,
    /// Record every block from the start.
    pub(crate) exact: bool,
    pub(crate) follow: Follow,
    pub(crate) triggers: Triggers,
    pub(crate) timeline: Option<timeline::Options>,
    /// Open the control channel.
    pub(crate) control: bool,
}

/// The files that the environment gives names to. The names are patterns (`%p` and so on) and absolute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// The dump at exit, also written as a snapshot.
    Exit,
    /// The same moment as the dump at exit, in another form; in recordings.
    ExitPacked,
    /// Dumps that something triggers, numbered.
    Dump,
    /// Those of peaks, numbered by themselves.
    Peak,
    /// What was recorded exactly, at exit.
    Exact,
    /// The timeline.
    Timeline,
    /// The folder of a recording.
    Recording,
}
const NAMED: usize = Named::Recording as usize + 1;

/// The patterns. Under `NAMING`.
struct Names([UnsafeCell<Path>; NAMED]);
// SAFETY: see `Names`.
unsafe impl Sync for Names {}

static NAMES: Names = Names([const { UnsafeCell::new(Path::EMPTY) }; NAMED]);
static NAMING: Lock = Lock::new();
/// Those that are not empty.
static IS_NAMED: [AtomicBool; NAMED] = [const { AtomicBool::new(false) }; NAMED];

/// Whether there is a name for this file.
pub(crate) fn is_named(file: Named) -> bool {
    IS_NAMED[file as usize].load(Relaxed)
}

/// Look at the pattern of a file's name; empty: it is not wanted. `look` names no other one. `None`: this is a signal handler that has
/// interrupted this thread in here.
pub(crate) fn with_pattern<R>(file: Named, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
    if NAMING.held_by_me() {
        return None;
    }
    NAMING.lock();
    // SAFETY: the lock is held.
    let result = look(unsafe { (*NAMES.0[file as usize].get()).as_bytes() });
    NAMING.unlock();
    Some(result)
}

/// Give a file another name, a pattern, from now on. False: it is too long, and there is none.
pub(crate) fn name(file: Named, fill: impl FnOnce(&mut Path) -> bool) -> bool {
    if NAMING.held_by_me() {
        return false;
    }
    NAMING.lock();
    // SAFETY: the lock is held.
    let path = unsafe { &mut *NAMES.0[file as usize].get() };
    *path = Path::EMPTY;
    let fits = fill(path);
    if !fits {
        *path = Path::EMPTY;
    }
    IS_NAMED[file as usize].store(!path.as_bytes().is_empty(), Relaxed);
    NAMING.unlock();
    fits
}

/// The program wants the dump at exit there. False: the name is too long, and there is none.
pub(crate) fn set_exit(given: &[u8]) -> bool {
    name(Named::Exit, |path| make_absolute(given, path))
}

/// In a forked child with one thread.
pub(super) fn forked() {
    if NAMING.held_by_vanished() {
        NAMING.reset();
    }
}

/// What the environment or the program says about the form of dumps: 0 nothing, else the form's number plus one.
static FORMAT: AtomicU8 = AtomicU8::new(0);
const FORMATS: [Format; 3] = [Format::Text, Format::Proto, Format::ProtoGz];

/// The form of a file: as was said, else as its name tells. The names in a recording are ours, and always tell.
pub(crate) fn format(file: Named) -> Format {
    let asked = (FORMAT.load(Relaxed) as usize).checked_sub(1).map(|number| FORMATS[number]);
    let of_name = with_pattern(file, format_of).unwrap_or(Format::Text);
    let folder = copy(Named::Recording);
    let is_ours =
        is_named(Named::Recording) && with_pattern(file, |name| name.starts_with(folder.as_bytes())) == Some(true);
    asked.filter(|_| !is_ours).unwrap_or(of_name)
}

/// The form that a name tells.
pub(super) fn format_of(name: &[u8]) -> Format {
    match extension(name) {
        b".pb.gz" => Format::ProtoGz,
        b".pb" => Format::Proto,
        _ => Format::Text,
    }
}

/// Whether anybody has said what form dumps have.
pub(crate) fn is_format_set() -> bool {
    FORMAT.load(Relaxed) != 0
}

/// From now on dumps have this form.
pub(crate) fn set_format(format: Format) {
    let number = FORMATS.iter().position(|&known| known == format);
    FORMAT.store(number.map_or(0, |number| number as u8 + 1), Relaxed);
}

fn read_format() {
    if let Some(format) = value(b"MIMALLOC_PROF_DUMP_FORMAT", "text, proto or proto-gz", Format::named) {
        set_format(format);
    }
}

/// Read the environment, once in a process. `None`: this process is not to be looked at.
pub(crate) fn read() -> Option<Settings> {
    if os::is_privileged() {
        return None;
    }
    let profiles = options::get(Name::Prof) != 0;
    // As in mimalloc-pprof: anything that does not begin with a zero.
    let exact = os::variable(b"MIMALLOC_DHAT").is_some_and(|value| !matches!(value.first(), None | Some(b'0')));
    let control = os::variable(b"MIMALLOC_CTL").is_some_and(os::is_true);
    // The program may start a recording itself.
    let is_wanted = profiles || exact || control || os::variable(b"MIMALLOC_DHAT_DUMP_AT_EXIT").is_some();
    if !is_wanted {
        return None;
    }
    read_names();
    read_format();
    let follow = follow();
    if follow == Follow::None
        && let Some(parent) = os::variable(b"MIMALLOC_PROF_PARENT").and_then(values::whole)
        && parent != os::parent_id() as u64
    {
        return None;
    }
    let profile = Options::as_set();
    Some(Settings { profiles, profile, exact, follow, triggers: read_triggers(), timeline: read_timeline(), control })
}

/// Without a word from the user: forked children too, unless they would write over their parent's files.
fn follow() -> Follow {
    match os::variable(b"MIMALLOC_PROF_FOLLOW") {
        Some(b"none") => Follow::None,
        Some(b"exec") => Follow::Exec,
        Some(b"all") => Follow::All,
        other => {
            if other.is_some() {
                os::complain(b"MIMALLOC_PROF_FOLLOW is none of none, exec, all; the default is used");
            }
            let is_distinct = |name: &[u8]| name.is_empty() || path::tells_processes_apart(name);
            let files = [Named::Exit, Named::Dump, Named::Peak, Named::Exact, Named::Timeline];
            let distinct = files.into_iter().all(|file| with_pattern(file, is_distinct) == Some(true));
            if distinct { Follow::All } else { Follow::Exec }
        }
    }
}

fn read_triggers() -> Triggers {
    let triggers = Triggers {
        signal: value(b"MIMALLOC_PROF_DUMP_SIGNAL", "a signal that a program can handle", values::signal),
        interval: value(b"MIMALLOC_PROF_DUMP_INTERVAL", "a time such as 30s", values::duration),
        every: value(b"MIMALLOC_PROF_DUMP_EVERY", "a size such as 256MiB", values::size),
        peaks: value(b"MIMALLOC_PROF_DUMP_PEAKS", "a number of files", values::whole),
        snapshot: value(b"MIMALLOC_PROF_SNAPSHOT", "a time such as 10s", values::duration),
    };
    let Triggers { signal, interval, every, peaks, .. } = triggers;
    let numbered = signal.is_some() || [interval, every].iter().any(|value| value.is_some_and(|value| value > 0));
    if (numbered && !is_named(Named::Dump)) || (peaks > Some(0) && !is_named(Named::Peak)) {
        os::complain(b"MIMALLOC_PROF_DUMP does not say where to write dumps; there will be none");
    }
    triggers
}

fn read_timeline() -> Option<timeline::Options> {
    let budget = value(b"MIMALLOC_TIMELINE_MAX", "a size such as 1GiB", values::size);
    let interval = value(b"MIMALLOC_TIMELINE_INTERVAL", "a time such as 100ms", values::duration);
    is_named(Named::Timeline).then_some(timeline::Options {
        budget: budget.unwrap_or(timeline::BUDGET),
        interval: interval.unwrap_or(timeline::INTERVAL),
        takes_thread: interval.is_some(),
    })
}

/// What a variable says, if it is set.
pub(crate) fn value<T>(name: &[u8], expected: &str, parse: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    let text = os::variable(name)?;
    let value = parse(text);
    if value.is_none() {
        os::complain_parts(&[name, b" is not ", expected.as_bytes(), b"; the default is used: ", text]);
    }
    value
}

fn read_names() {
    let recording = read_name(Named::Recording, b"MIMALLOC_PROF_RECORDING");
    if !read_name(Named::Exit, b"MIMALLOC_PROF_DUMP_AT_EXIT") && recording {
        in_recording(Named::Exit, b"heap.prof");
    }
    if recording {
        in_recording(Named::ExitPacked, b"heap.pb.gz");
    }
    if !read_name(Named::Dump, b"MIMALLOC_PROF_DUMP") {
        if recording {
            in_recording(Named::Dump, b"heap.%n.pb.gz");
        } else {
            beside(Named::Exit, b".%n", Named::Dump);
        }
    }
    if !read_name(Named::Exact, b"MIMALLOC_DHAT_DUMP_AT_EXIT") && recording {
        in_recording(Named::Exact, b"dhat.json");
    }
    match os::variable(b"MIMALLOC_TIMELINE") {
        None | Some(b"" | b"0") => {}
        Some(b"1") if recording => in_recording(Named::Timeline, b"timeline.bin"),
        Some(b"1") => {
            os::complain(b"MIMALLOC_TIMELINE is no path, and there is no recording to put it into; there will be none")
        }
        Some(_) => _ = read_name(Named::Timeline, b"MIMALLOC_TIMELINE"),
    }
    if recording {
        in_recording(Named::Peak, b"peak.%n.pb.gz");
    } else {
        // Of a name that has the number somewhere, the peak's differ by a word.
        let from = if is_named(Named::Exit) { Named::Exit } else { Named::Dump };
        let numbered = with_pattern(from, path::is_numbered) == Some(true);
        beside(from, if numbered { b".peak" } else { b".peak.%n" }, Named::Peak);
    }
}

/// The name of a file, made absolute: the program may change its folder. False: it is not wanted.
fn read_name(file: Named, variable: &[u8]) -> bool {
    let Some(given) = os::variable(variable).filter(|name| !name.is_empty()) else { return false };
    let fits = name(file, |path| make_absolute(given, path));
    if !fits {
        os::complain_about(variable, b" is too long; there will be no such file");
    }
    fits
}

/// A name that need not begin at the root. False: it does not fit.
pub(crate) fn make_absolute(given: &[u8], path: &mut Path) -> bool {
    let mut fits = true;
    if given.first() != Some(&b'/') {
        let mut buffer = [0; path::PATH];
        // Where there is none that has a name, the file is to be looked for where the program then is.
        if let Some(folder) = os::folder_at_start(&mut buffer) {
            for part in folder.split_inclusive(|&byte| byte == b'%') {
                fits = fits && path.push(part) && (!part.ends_with(b"%") || path.push(b"%"));
            }
            fits = fits && (folder.ends_with(b"/") || path.push(b"/"));
        }
    }
    fits && path.push(given)
}

fn in_recording(file: Named, called: &[u8]) {
    let folder = copy(Named::Recording);
    name(file, |path| path.push(folder.as_bytes()) && path.push(b"/%p/") && path.push(called));
}

/// Named as another one, with something before what tells the kind of file.
fn beside(of: Named, with: &[u8], file: Named) {
    let model = copy(of);
    let model = model.as_bytes();
    if !model.is_empty() {
        let (stem, kind) = model.split_at(model.len() - extension(model).len());
        name(file, |path| path.push(stem) && path.push(with) && path.push(kind));
    }
}

fn copy(file: Named) -> Path {
    let mut copy = Path::EMPTY;
    with_pattern(file, |name| copy.push(name));
    copy
}

/// What tells the kind of file at the end of its name, with the point; empty if nothing does.
fn extension(name: &[u8]) -> &[u8] {
    let start = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let last = &name[start..];
    let of_proto = last.ends_with(b".pb.gz").then(|| last.len() - b".pb.gz".len());
    // A name that begins with a point has no kind.
    match of_proto.or_else(|| last.iter().rposition(|&byte| byte == b'.')) {
        Some(point) if point > 0 && !last[point..].contains(&b'%') => &last[point..],
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_files() {
        for (name, kind) in [
            ("/a/heap.prof", ".prof"),
            ("/a.b/heap", ""),
            ("/a/heap.pb.gz", ".pb.gz"),
            ("/a/.hidden", ""),
            ("/a/heap.%p", ""),
            ("/a/heap.%p.prof", ".prof"),
            ("/a/.pb.gz", ""),
        ] {
            assert_eq!(core::str::from_utf8(extension(name.as_bytes())).unwrap(), kind, "{name}");
        }
    }
}
