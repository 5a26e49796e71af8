//! Takes out of a bundle what must not leave the machine.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use mpp_profile::formats::bundle::BundledProfile;
use mpp_profile::{BuildId, Format, Frame, Module, Profile, StackEnd, Truncation, TruncationReason};
use mpp_symbolizer::{Name, StoredAnswer, StoredSymbols, SymbolSource};

use super::collect::Item;
use super::pseudonyms::{Kind, Pseudonyms};
use super::runtime_names;
use crate::recording::Index;

/// What is to be taken out.
pub(super) struct Concealer {
    /// Names of source files, and lines.
    pub(super) strip_source: bool,
    /// All names, and what stands for them.
    pub(super) pseudonyms: Option<Pseudonyms>,
}

/// Comments of profiles that are numbers about the recording; all others may tell anything.
const FACTS: &[&str] = &[
    "sample_rate",
    "stacks_marked",
    "time_nanos",
    "duration_nanos",
    "requested_live",
    "dropped_samples",
    "dropped_for_memory",
    "truncated_lines",
    "unloaded_modules",
    "forgotten_modules",
    "estimated_peak_blocks",
    "estimated_peak_bytes",
    "estimated_temporary_blocks",
    "estimated_temporary_bytes",
    "exact_live_blocks",
    "exact_live_bytes",
    "exact_allocated_blocks",
    "exact_allocated_bytes",
    "failed_dumps",
    "inherited_samples",
];

/// Environment variables that every recording sets.
const VARIABLES: &[&str] = &["LD_PRELOAD", "MIMALLOC_", "MPP_"];

impl Concealer {
    /// Symbols without what is to be taken out.
    pub(super) fn stored(&self, stored: &StoredSymbols) -> StoredSymbols {
        if !self.strip_source && self.pseudonyms.is_none() {
            return stored.clone();
        }
        let module = stored.path().to_string_lossy();
        let frame = |frame: mpp_symbolizer::Frame| {
            let model = Frame {
                function: frame.function.as_ref().map_or_else(|| "".into(), |name| name.demangled.clone()),
                file: frame.file.clone(),
                line: frame.line,
                inlined: frame.inlined,
            };
            let concealed = self.frame(Some(&module), &model)?;
            let function = match (frame.function, self.pseudonyms.is_some()) {
                (Some(name), false) => Some(name),
                (Some(_), true) => {
                    Some(Name { raw: concealed.function.clone(), demangled: concealed.function.clone() })
                }
                (None, _) => None,
            };
            let mpp_profile::Frame { file, line, inlined, .. } = concealed;
            Some(mpp_symbolizer::Frame { function, file, line, inlined })
        };
        let answer = |answer: StoredAnswer| StoredAnswer {
            frames: answer.frames.into_iter().filter_map(&frame).collect(),
            ..answer
        };
        let (path, build_id) = match &self.pseudonyms {
            None => (stored.path().to_owned(), stored.build_id().map(<[u8]>::to_vec)),
            Some(_) => {
                let (path, deleted) = split_deleted(&module);
                let id = stored.build_id().map(|id| self.build_id(path, id));
                (format!("{}{deleted}", self.module_path(path)).into(), id)
            }
        };
        StoredSymbols::new(path, build_id, self.source(stored.source()), stored.answers().map(answer))
    }

    /// The profile without what is to be taken out; `None` if it can stay as it is.
    pub(super) fn profile(&self, profile: &Profile) -> Option<Profile> {
        // Our own dumps have addresses only.
        let is_ours = matches!(profile.format, Format::HeapV2 | Format::Pprof | Format::Dhat | Format::Timeline);
        let has_names = profile.locations.iter().any(|location| !location.frames.is_empty());
        let may_stay = self.pseudonyms.is_none() && (!self.strip_source || (is_ours && !has_names));
        if may_stay {
            return None;
        }
        let mut concealed = profile.clone();
        for location in &mut concealed.locations {
            let module = location.module.and_then(|id| profile.modules.get(id.index()));
            let path = module.map(|module| module.path.as_str());
            location.frames = location.frames.iter().filter_map(|frame| self.frame(path, frame)).collect();
        }
        if let Some(pseudonyms) = &self.pseudonyms {
            let names = concealed.threads.iter_mut().map(|thread| &mut thread.name).filter(|name| !name.is_empty());
            names.for_each(|name| *name = pseudonyms.of(Kind::Thread, name).into());
            concealed.linker_names = HashMap::new();
            concealed.modules.iter_mut().for_each(|module| self.module(module));
            concealed.comments.retain(|(key, value)| FACTS.contains(&key.as_str()) && value.parse::<f64>().is_ok());
            concealed.stacks.iter_mut().for_each(|stack| plain_end(&mut stack.end));
        }
        Some(concealed)
    }

    /// The index of a recording, with the names that `profiles` have now.
    pub(super) fn index(&self, mut index: Index, profiles: &[BundledProfile]) -> Index {
        if let Some(pseudonyms) = &self.pseudonyms {
            let argument = |text: &mut String| *text = pseudonyms.of(Kind::Argument, text);
            index.command.iter_mut().for_each(argument);
            index.cwd = pseudonyms.of(Kind::Folder, &index.cwd);
            for variable in &mut index.environment {
                if !VARIABLES.iter().any(|known| variable.starts_with(known)) {
                    *variable = pseudonyms.of(Kind::Variable, variable);
                }
            }
        }
        for process in &mut index.processes {
            process.exe = process.exe.take().map(|path| self.module_path(&path));
            let of_process = profiles.iter().filter(|profile| profile.pid == Some(process.pid));
            if let Some(shown) = of_process.clone().find(|profile| profile.shown) {
                process.dump.clone_from(&shown.file);
            }
            process.numbered.retain(|file| of_process.clone().any(|profile| profile.file == *file));
        }
        index
    }

    /// One frame; `None` if nothing is left of it.
    fn frame(&self, module: Option<&str>, frame: &Frame) -> Option<Frame> {
        let mut concealed = frame.clone();
        if let Some(pseudonyms) = &self.pseudonyms {
            if !frame.function.is_empty() {
                let kept = runtime_names::function(module, frame);
                concealed.function = kept.unwrap_or_else(|| pseudonyms.of(Kind::Function, &frame.function)).into();
            }
            concealed.file = frame.file.as_ref().map(|file| self.source_file(file, pseudonyms));
        }
        if self.strip_source {
            concealed.file = None;
            concealed.line = 0;
        }
        (!concealed.function.is_empty() || concealed.file.is_some()).then_some(concealed)
    }

    fn source_file(&self, file: &str, pseudonyms: &Pseudonyms) -> Arc<str> {
        runtime_names::source(file).unwrap_or_else(|| pseudonyms.of(Kind::Source, file)).into()
    }

    fn module(&self, module: &mut Module) {
        module.build_id = module.build_id.as_ref().and_then(|id| {
            let concealed = self.build_id(&module.path, id.as_bytes());
            BuildId::from_bytes(&concealed)
        });
        module.path = self.module_path(&module.path);
    }

    /// The build id of the module at `path`. One that stays readable keeps its id, so that it can still be looked up.
    fn build_id(&self, path: &str, id: &[u8]) -> Vec<u8> {
        match &self.pseudonyms {
            Some(pseudonyms) if runtime_names::module(path).is_none() => pseudonyms.build_id(id),
            _ => id.to_vec(),
        }
    }

    fn module_path(&self, path: &str) -> String {
        let Some(pseudonyms) = &self.pseudonyms else { return path.to_owned() };
        // A name in brackets would be taken for one of the kernel's, and no name for memory without a file.
        runtime_names::module(path).unwrap_or_else(|| format!("/{}", pseudonyms.of(Kind::Module, path)))
    }

    fn source(&self, source: &SymbolSource) -> SymbolSource {
        if self.pseudonyms.is_none() {
            return source.clone();
        }
        let concealed = |file: &Path| self.module_path(&file.to_string_lossy()).into();
        match source.origin() {
            SymbolSource::Dwarf { file } => SymbolSource::Dwarf { file: concealed(file) },
            SymbolSource::Pdb { file } => SymbolSource::Pdb { file: concealed(file) },
            SymbolSource::Symtab { file } => SymbolSource::Symtab { file: concealed(file) },
            SymbolSource::PerfMap { file } => SymbolSource::PerfMap { file: concealed(file) },
            SymbolSource::MiniDebugInfo => SymbolSource::MiniDebugInfo,
            SymbolSource::Dynsym => SymbolSource::Dynsym,
            SymbolSource::Vdso => SymbolSource::Vdso,
            SymbolSource::Stored { .. } | SymbolSource::None => SymbolSource::None,
        }
    }
}

/// The kernel's mark at the end of a path apart.
fn split_deleted(path: &str) -> (&str, &str) {
    const MARK: &str = " (deleted)";
    path.strip_suffix(MARK).map_or((path, ""), |path| (path, MARK))
}

/// A reason that this version does not know may say anything.
fn plain_end(end: &mut StackEnd) {
    if let StackEnd::Truncated(Truncation { reason: reason @ TruncationReason::Other(_), .. }) = end {
        *reason = TruncationReason::Other("other".into());
    }
}

/// What a profile is called that is written anew; `None` for those that are the same as another one in another form.
pub(super) fn rewritten_name(item: &Item) -> Option<String> {
    let Some(pid) = item.pid else { return Some("profile/profile.pb.gz".to_owned()) };
    let is_numbered = crate::recording::is_numbered(&item.file);
    match (item.shown, is_numbered) {
        // As the recorder would have called it.
        (_, true) => Some(item.file.clone()),
        (true, false) => Some(format!("{pid}/heap.pb.gz")),
        (false, false) => None,
    }
}
