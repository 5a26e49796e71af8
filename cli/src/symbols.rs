//! Brings a profile and the symbolizer together: module table and addresses out, functions and lines in.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use mpp_profile::{Frame, Profile, Resolution, lookup_address};
use mpp_symbolizer::{ModuleReport, Options, SymbolSource, Symbolized, Symbolizer};

use crate::args::SymbolArgs;
use crate::preload::cache_folder;

/// The symbolizer, and what it said about the profiles it was given.
#[derive(Debug)]
pub(crate) struct Symbols {
    symbolizer: Symbolizer,
    /// The mangled name of each function name in the profiles.
    mangled: HashMap<Arc<str>, Arc<str>>,
    /// What was found for each file, in words.
    notes: Vec<String>,
}

impl Symbols {
    /// Looks where the flags say.
    pub(crate) fn new(args: &SymbolArgs) -> Symbols {
        Symbols { symbolizer: Symbolizer::new(options(args)), mangled: HashMap::new(), notes: Vec::new() }
    }

    /// Fills in the names of all locations that have none yet, in one batch.
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
        self.notes.extend(self.symbolizer.report().iter().map(note));
        let mut answers = answers.into_iter();
        let mangled = &mut self.mangled;
        profile.resolve(|_, location| {
            if unresolved(&location.frames) { answers.next().map(|answer| resolution(answer, mangled)) } else { None }
        });
    }

    /// The name as the linker knows it; the name itself if that is all there is.
    pub(crate) fn mangled<'a>(&'a self, function: &'a str) -> &'a str {
        self.mangled.get(function).map_or(function, |raw| raw)
    }

    /// One line for each file that addresses fell in: where its symbols came from, and what went wrong. Not escaped.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// What the flags ask for, in the symbolizer's terms.
pub(crate) fn options(args: &SymbolArgs) -> Options {
    Options {
        debug_dirs: args.debug_dir.clone(),
        sysroot: args.sysroot.clone(),
        cache_dir: if args.no_symbol_cache { None } else { cache_folder().map(|folder| folder.join("mpp/symbols")) },
        ..Options::default()
    }
}

/// Where symbols come from, in one word for programs, and the file if it is told.
pub(crate) fn source(source: &SymbolSource) -> (&'static str, Option<&Path>) {
    match source.origin() {
        SymbolSource::Dwarf { file } => ("dwarf", Some(file)),
        SymbolSource::Symtab { file } => ("symtab", Some(file)),
        SymbolSource::Dynsym => ("dynsym", None),
        SymbolSource::Stored { .. } | SymbolSource::None => ("none", None),
    }
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn module(module: &mpp_profile::Module) -> mpp_symbolizer::Module {
    // The symbolizer wants the kernel's mark, which makes it distrust the file that has the path by now.
    let mark = if module.deleted { " (deleted)" } else { "" };
    mpp_symbolizer::Module {
        start: module.start,
        end: module.end,
        file_offset: module.file_offset,
        path: format!("{}{mark}", module.path).into(),
        build_id: module.build_id.as_ref().map(|id| id.as_bytes().to_vec()),
    }
}

fn resolution(answer: Symbolized, mangled: &mut HashMap<Arc<str>, Arc<str>>) -> Resolution {
    let file_address = answer.module.map(|_| answer.file_address);
    let frame = |frame: mpp_symbolizer::Frame| {
        let function = match frame.function {
            Some(name) => {
                if name.raw != name.demangled {
                    mangled.entry(name.demangled.clone()).or_insert(name.raw);
                }
                name.demangled
            }
            None => "".into(),
        };
        Frame { function, file: frame.file, line: frame.line, inlined: frame.inlined }
    };
    Resolution { file_address, frames: answer.frames.into_iter().map(frame).collect() }
}

/// Where the symbols of a file came from, and what went wrong. Not escaped.
pub(crate) fn note(report: &ModuleReport) -> String {
    let source = match report.source.origin() {
        SymbolSource::Dwarf { file } => format!("lines and inlined functions from {}", file.display()),
        SymbolSource::Symtab { file } => format!("names only, from the symbol table of {}", file.display()),
        SymbolSource::Dynsym => "exported names only".to_owned(),
        SymbolSource::Stored { .. } | SymbolSource::None => "no symbols".to_owned(),
    };
    let before = if matches!(report.source, SymbolSource::Stored { .. }) { ", found before" } else { "" };
    let build_id = report.wanted_build_id.as_ref().or(report.found_build_id.as_ref());
    let build_id = build_id.map_or("none".to_owned(), |id| hex(id));
    let counts =
        format!("{} with lines, {} with names, {} unresolved", report.with_lines, report.with_name, report.unresolved);
    let mut text = format!("{}: {source}{before}; addresses: {counts}; build id {build_id}", report.path.display());
    for problem in &report.problems {
        text.push_str(&format!("; {problem}"));
    }
    text
}
