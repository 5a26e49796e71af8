//! Brings a profile and the symbolizer together: module table and addresses out, functions and lines in.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use mpp_profile::analysis::ModuleShare;
use mpp_profile::text::escaped;
use mpp_profile::units::bytes;
use mpp_profile::{Frame, Profile, Resolution, lookup_address};
use mpp_symbolizer::{
    Debuginfod, DebuginfodMode, DebuginfodSettings, Download, Identity, ModuleReport, Name, Options, SymbolSource,
    Symbolized, Symbolizer,
};

use crate::args::{DebuginfodChoice, SourceDir, SymbolArgs};
use crate::bundle::Stored;
use crate::preload::cache_folder;
use crate::progress;

/// The kernel's mark of files that are gone.
const DELETED: &str = " (deleted)";

/// The symbolizer, and what it said about the profiles it was given.
#[derive(Debug)]
pub(crate) struct Symbols {
    symbolizer: Symbolizer,
    source_dirs: Vec<SourceDir>,
    /// What was found for each file, one list after the other.
    found: Vec<Found>,
}

/// What was found for one file that addresses fell in. Nothing is escaped.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The path as the profile has it.
    pub(crate) path: String,
    /// The build id that the profile has, in hex.
    pub(crate) wanted_build_id: Option<String>,
    /// The build id that the profile has, else that of the file that was found; in hex.
    pub(crate) build_id: Option<String>,
    /// Where the symbols come from, in one word for programs.
    pub(crate) source: &'static str,
    /// The same in words.
    pub(crate) source_text: String,
    /// The file they are in, if it is told.
    pub(crate) source_file: Option<String>,
    /// Whether the file is known to be the one that was profiled: `build-id`, `mapped` or `not verified`; `None` if
    /// there was no file.
    pub(crate) identity: Option<&'static str>,
    /// Places that were looked at, in order.
    pub(crate) looked_at: Vec<String>,
    /// What went wrong.
    pub(crate) problems: Vec<String>,
    /// What to do about it: a command, or flags.
    pub(crate) remedy: Option<String>,
    /// Distinct addresses: with lines, with names only, with nothing.
    pub(crate) addresses: [usize; 3],
}

impl Symbols {
    /// Looks in what is stored, then where the flags say.
    pub(crate) fn new(args: &SymbolArgs, stored: Stored) -> Symbols {
        let source_dirs = args.source_dir.clone();
        Symbols { symbolizer: Symbolizer::new(stored.options(args)), source_dirs, found: Vec::new() }
    }

    /// Fills in the names of all locations that have none yet, in one batch, and moves the files of all.
    pub(crate) fn resolve(&mut self, profile: &mut Profile) {
        let modules: Vec<_> = profile.modules.iter().map(module).collect();
        let unresolved = |frames: &[Frame]| frames.is_empty();
        let addresses: Vec<u64> = profile
            .locations
            .iter()
            .filter(|location| unresolved(&location.frames))
            .map(|location| lookup_address(location.address))
            .collect();
        let answers = self.symbolizer.symbolize(&modules, &addresses);
        self.found.extend(self.symbolizer.report().iter().map(Found::of));
        let mut answers = answers.into_iter();
        let mut linker_names = std::mem::take(&mut profile.linker_names);
        profile.resolve(|_, location| {
            let answer = if unresolved(&location.frames) { answers.next() } else { None };
            answer.map(|answer| resolution(answer, &mut linker_names))
        });
        demangle_all(profile, &mut linker_names);
        profile.linker_names = linker_names;
        self.move_files(profile);
    }

    /// What was found for each file that addresses of the profiles fell in.
    pub(crate) fn found(&self) -> &[Found] {
        &self.found
    }

    /// What was found for a file; of several processes, what is best.
    pub(crate) fn found_for(&self, share: &ModuleShare) -> Option<&Found> {
        let mark = if share.deleted { DELETED } else { "" };
        let (path, build_id) = (share.path.as_deref()?, share.build_id.as_ref().map(ToString::to_string));
        let is_it = |found: &&Found| found.path.strip_suffix(mark) == Some(path) && found.wanted_build_id == build_id;
        self.found.iter().filter(is_it).max_by_key(|found| found.addresses)
    }

    fn move_files(&self, profile: &mut Profile) {
        if self.source_dirs.is_empty() {
            return;
        }
        let mut moved: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        let files = profile.locations.iter_mut().flat_map(|location| &mut location.frames);
        for file in files.filter_map(|frame| frame.file.as_mut()) {
            let place = moved.entry(file.clone()).or_insert_with(|| match moved_file(&self.source_dirs, file) {
                Some(place) => place.into(),
                None => file.clone(),
            });
            *file = place.clone();
        }
    }
}

/// Where a source file is now, by the first of the folders that it was in; `None` if it was in none.
pub(crate) fn moved_file(folders: &[SourceDir], file: &str) -> Option<String> {
    folders.iter().find_map(|SourceDir { from, to }| {
        let rest = file.strip_prefix(from.trim_end_matches('/'))?;
        // `/src` is not the beginning of `/src2/a.c`.
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", to.trim_end_matches('/')))
    })
}

/// What the flags ask for, in the symbolizer's terms.
pub(crate) fn options(args: &SymbolArgs) -> Options {
    Options {
        debug_dirs: args.debug_dir.clone(),
        sysroot: args.sysroot.clone(),
        pid: args.proc,
        perf_map: args.perf_map.clone(),
        debuginfod: debuginfod(args.debuginfod),
        cache_dir: if args.no_symbol_cache { None } else { cache_folder().map(|folder| folder.join("mpp/symbols")) },
        ..Options::default()
    }
}

fn debuginfod(choice: DebuginfodChoice) -> Debuginfod {
    let mode = match choice {
        DebuginfodChoice::Off => DebuginfodMode::Off,
        DebuginfodChoice::Cache => DebuginfodMode::Cache,
        DebuginfodChoice::On => DebuginfodMode::On,
    };
    let tell = |download: &Download<'_>| {
        let received = bytes(download.received);
        let total = download.total.map(|total| format!(" of {}", bytes(total))).unwrap_or_default();
        let text = format!("fetching {} ({received}{total})", escaped(download.url));
        progress::tell(Some(text).filter(|_| !download.is_done));
    };
    Debuginfod::new(DebuginfodSettings { progress: Some(Arc::new(tell)), ..DebuginfodSettings::from_env(mode) })
}

/// Where symbols come from: in one word for programs, the file if it is told, and in words.
pub(crate) fn source(source: &SymbolSource) -> (&'static str, Option<&Path>, &'static str) {
    match source.origin() {
        SymbolSource::Dwarf { file } => ("dwarf", Some(file), "lines and inlined functions from"),
        SymbolSource::Symtab { file } => ("symtab", Some(file), "names only, from the symbol table of"),
        SymbolSource::Pdb { file } => ("pdb", Some(file), "lines and inlined functions from"),
        SymbolSource::MiniDebugInfo => ("minidebuginfo", None, "names only, from its packed symbol table"),
        SymbolSource::Dynsym => ("dynsym", None, "exported names only"),
        SymbolSource::PerfMap { file } => ("perf-map", Some(file), "names only, from the perf map"),
        SymbolSource::Vdso => ("vdso", None, "names only, from the kernel's library"),
        SymbolSource::Stored { .. } | SymbolSource::None => ("none", None, "no symbols"),
    }
}

impl Found {
    /// The same in the terms of the command line.
    pub(crate) fn of(report: &ModuleReport) -> Found {
        let (source, file, text) = source(&report.source);
        let source_file = file.map(|file| file.display().to_string());
        let mut source_text = match &source_file {
            Some(file) => format!("{text} {file}"),
            None => text.to_owned(),
        };
        if matches!(report.source, SymbolSource::Stored { .. }) {
            source_text += ", found before";
        }
        let build_id = report.wanted_build_id.as_deref().or(report.found_build_id.as_deref());
        Found {
            path: report.path.display().to_string(),
            wanted_build_id: report.wanted_build_id.as_deref().map(hex),
            build_id: build_id.map(hex),
            source,
            source_text,
            source_file,
            identity: report.identity.map(|identity| match identity {
                Identity::BuildId => "build-id",
                Identity::Mapped => "mapped",
                Identity::NotVerified => "not verified",
            }),
            looked_at: report.looked_at.iter().map(|path| path.display().to_string()).collect(),
            remedy: report.remedy.clone(),
            problems: report.problems.iter().map(ToString::to_string).collect(),
            addresses: [report.with_lines, report.with_name, report.unresolved],
        }
    }

    /// Where the symbols came from, and what went wrong, in one line.
    pub(crate) fn note(&self) -> String {
        let [lines, names, nothing] = self.addresses;
        let counts = format!("{lines} with lines, {names} with names, {nothing} unresolved");
        let build_id = self.build_id.as_deref().unwrap_or("none");
        let mut text = format!("{}: {}; addresses: {counts}; build id {build_id}", self.path, self.source_text);
        if self.identity == Some("not verified") && self.wanted_build_id.is_none() {
            text.push_str(" recorded: not verified to be the file that was profiled");
        }
        for problem in &self.problems {
            text.push_str(&format!("; {problem}"));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("; to do: {remedy}"));
        }
        text
    }
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A module in the symbolizer's terms.
pub(crate) fn module(module: &mpp_profile::Module) -> mpp_symbolizer::Module {
    // The symbolizer wants the kernel's mark, which makes it distrust the file that has the path by now.
    let mark = if module.deleted { DELETED } else { "" };
    mpp_symbolizer::Module {
        start: module.start,
        end: module.end,
        file_offset: module.file_offset,
        path: format!("{}{mark}", module.path).into(),
        build_id: module.build_id.as_ref().map(|id| id.as_bytes().to_vec()),
    }
}

/// Profiles of other tools may have names as the linker has them.
fn demangle_all(profile: &mut Profile, linker_names: &mut HashMap<Arc<str>, Arc<str>>) {
    let mut known: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let frames = profile.locations.iter_mut().flat_map(|location| &mut location.frames);
    for frame in frames.filter(|frame| ["_Z", "__Z", "_R", "?"].iter().any(|start| frame.function.starts_with(start))) {
        let name = known.entry(frame.function.clone()).or_insert_with(|| {
            let name = Name::from_raw(frame.function.as_bytes());
            if name.demangled != name.raw {
                linker_names.entry(name.demangled.clone()).or_insert(name.raw);
            }
            name.demangled
        });
        frame.function = name.clone();
    }
}

fn resolution(answer: Symbolized, linker_names: &mut HashMap<Arc<str>, Arc<str>>) -> Resolution {
    let file_address = answer.module.map(|_| answer.file_address);
    let frame = |frame: mpp_symbolizer::Frame| {
        let function = match frame.function {
            Some(name) => {
                if name.raw != name.demangled {
                    linker_names.entry(name.demangled.clone()).or_insert(name.raw);
                }
                name.demangled
            }
            None => "".into(),
        };
        Frame { function, file: frame.file, line: frame.line, inlined: frame.inlined }
    };
    Resolution { file_address, frames: answer.frames.into_iter().map(frame).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_of_other_tools_are_demangled() {
        let text = "heap profile: 1: 8 [1: 8] @ heap_v2/1\n1: 8 [1: 8] @ 0x1001\nMAPPED_LIBRARIES:\n";
        let mut profile = mpp_profile::read(text.as_bytes(), "test").expect("a profile");
        let names = ["_ZN4shop4takeEi", "main", "?", "_Zwhat"];
        profile.locations[0].frames = names.map(Frame::named).to_vec();
        let mut linker_names = HashMap::new();
        demangle_all(&mut profile, &mut linker_names);
        let after: Vec<&str> = profile.locations[0].frames.iter().map(|frame| &*frame.function).collect();
        assert_eq!(after, ["shop::take(int)", "main", "?", "_Zwhat"]);
        assert_eq!(linker_names, HashMap::from([("shop::take(int)".into(), "_ZN4shop4takeEi".into())]));
    }

    #[test]
    fn files_move_with_their_folder() {
        let folder = |from: &str, to: &str| SourceDir { from: from.to_owned(), to: to.to_owned() };
        let folders = [folder("/build/x", "/home/me/x"), folder("/build", "/src/"), folder("./", "/here")];
        let moved = |file| moved_file(&folders, file);
        assert_eq!(moved("/build/x/a.c").as_deref(), Some("/home/me/x/a.c"));
        assert_eq!(moved("/build/y/a.c").as_deref(), Some("/src/y/a.c"));
        assert_eq!(moved("/builds/a.c"), None);
        assert_eq!(moved("./a.c").as_deref(), Some("/here/a.c"));
        assert_eq!(moved("a.c"), None);
    }
}
