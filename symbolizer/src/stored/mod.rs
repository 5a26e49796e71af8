//! Answers for addresses of one file, kept apart from the file: on disk as a cache, or in a bundle that travels.
//!
//! Only what was asked for is kept, not whole symbol tables: for each offset in the file its address, and the functions
//! there with raw names, source files and lines. Names are demangled when they are used, so a better demangler helps
//! old answers, too.

mod cache;
mod first;
mod form;
mod numbers;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::{Frame, Name, Quality, SymbolSource};

pub(crate) use first::{symbolize, trim_cache};

/// What is known at one place of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The place: bytes from the start of the file.
    pub offset: u64,
    /// The same place as the file itself counts it, see [`Symbolized::file_address`](crate::Symbolized::file_address).
    pub file_address: u64,
    /// The functions there, innermost first; empty when it was looked up and nothing was found. Only the raw names are
    /// kept.
    pub frames: Vec<Frame>,
}

/// Answers for some addresses of one file. Immutable, so it can be shared by threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSymbols {
    path: PathBuf,
    build_id: Option<Vec<u8>>,
    source: SymbolSource,
    /// The program that found the answers, and its version.
    writer: String,
    /// The file that the answers are about, as it was then.
    state: Option<FileState>,
    texts: Texts,
    frames: Vec<StoredFrame>,
    /// The frames of one entry after the other.
    chains: Vec<u32>,
    /// By offset, ascending and distinct.
    entries: Vec<Entry>,
}

/// By what a file on disk is taken for unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    /// Bytes.
    pub(crate) size: u64,
    /// Last change, in nanoseconds since 1970.
    pub(crate) modified: i64,
}

/// One place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    offset: u64,
    file_address: u64,
    /// Where its frames begin in `chains`; they end where those of the next entry begin.
    first: u32,
}

/// A function at a line. Texts are given by their number plus one, 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StoredFrame {
    function: u32,
    file: u32,
    line: u32,
    inlined: bool,
}

/// Many texts, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Texts {
    all: String,
    /// Where each ends.
    ends: Vec<u32>,
}

impl StoredAnswer {
    /// How much is known.
    pub fn quality(&self) -> Quality {
        Quality::of(&self.frames)
    }
}

impl StoredSymbols {
    /// Keeps `answers` about the file at `path`. Of several for the same offset, the first counts.
    ///
    /// `path` and `build_id` are those of the [`Module`](crate::Module) that is to find them again: by the build id if
    /// there is one, else by the path. `source` is where they came from.
    pub fn new(
        path: PathBuf,
        build_id: Option<Vec<u8>>,
        source: SymbolSource,
        answers: impl IntoIterator<Item = StoredAnswer>,
    ) -> Self {
        let mut answers: Vec<StoredAnswer> = answers.into_iter().collect();
        answers.sort_by_key(|answer| answer.offset);
        answers.dedup_by_key(|answer| answer.offset);
        let mut stored = StoredSymbols {
            path,
            build_id,
            // What the answers first came from, however often they were stored since.
            source: source.origin().clone(),
            writer: form::WRITER.to_owned(),
            state: None,
            texts: Texts::default(),
            frames: Vec::new(),
            chains: Vec::new(),
            entries: Vec::with_capacity(answers.len()),
        };
        let mut numbers = Numbers::default();
        for answer in &answers {
            // Beyond 4 GiB of names or frames: such a thing is not kept.
            if stored.push(answer, &mut numbers).is_none() {
                break;
            }
        }
        stored
    }

    /// The path of the file as the profile has it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build id of the file as the profile has it.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Where the answers came from when they were found.
    pub fn source(&self) -> &SymbolSource {
        &self.source
    }

    /// How many places are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All answers, in the order of their offsets.
    pub fn answers(&self) -> impl Iterator<Item = StoredAnswer> {
        let mut lookup = Lookup::new(self);
        (0..self.entries.len()).filter_map(move |index| lookup.at(index))
    }

    /// The same with raw names in place of demangled ones, which would take longer than all else.
    fn raw_answers(&self) -> impl Iterator<Item = StoredAnswer> {
        let mut lookup = Lookup { demangles: false, ..Lookup::new(self) };
        (0..self.entries.len()).filter_map(move |index| lookup.at(index))
    }

    /// These answers, and those of `other`, which must be about the same file, that are not among them.
    pub fn with(&self, other: &StoredSymbols) -> StoredSymbols {
        let answers = self.raw_answers().chain(other.raw_answers());
        let source = if self.source == SymbolSource::None { &other.source } else { &self.source };
        let all = StoredSymbols::new(self.path.clone(), self.build_id.clone(), source.clone(), answers);
        StoredSymbols { state: self.state, ..all }
    }

    fn push(&mut self, answer: &StoredAnswer, numbers: &mut Numbers) -> Option<()> {
        let first = u32::try_from(self.chains.len()).ok()?;
        for frame in answer.frames.iter().take(form::MAX_FRAMES) {
            let function = frame.function.as_ref().map_or(Some(0), |name| numbers.text(&name.raw, &mut self.texts))?;
            let file = frame.file.as_ref().map_or(Some(0), |file| numbers.text(file, &mut self.texts))?;
            let frame = StoredFrame { function, file, line: frame.line, inlined: frame.inlined };
            let number = match numbers.frames.get(&frame) {
                Some(&number) => number,
                None => {
                    let number = u32::try_from(self.frames.len()).ok()?;
                    self.frames.push(frame);
                    numbers.frames.insert(frame, number);
                    number
                }
            };
            self.chains.push(number);
        }
        self.entries.push(Entry { offset: answer.offset, file_address: answer.file_address, first });
        Some(())
    }

    /// The frames of an entry.
    fn chain(&self, index: usize) -> &[u32] {
        let first = self.entries.get(index).map_or(0, |entry| entry.first as usize);
        let end = self.entries.get(index + 1).map_or(self.chains.len(), |next| next.first as usize);
        self.chains.get(first..end).unwrap_or_default()
    }
}

/// The numbers that texts and frames have been given. The first of two equal ones serves both.
#[derive(Default)]
struct Numbers {
    texts: HashMap<Arc<str>, u32>,
    frames: HashMap<StoredFrame, u32>,
}

impl Numbers {
    /// The number of a text plus one.
    fn text(&mut self, text: &Arc<str>, texts: &mut Texts) -> Option<u32> {
        if let Some(&number) = self.texts.get(text) {
            return Some(number);
        }
        let kept = form::shortened(text);
        u32::try_from(texts.all.len() + kept.len()).ok()?;
        texts.push(kept);
        let number = u32::try_from(texts.ends.len()).ok()?;
        self.texts.insert(Arc::clone(text), number);
        Some(number)
    }
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len() as u32);
    }

    fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|&end| end as usize))?;
        self.all.get(start..end)
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|index| self.get(index))
    }
}

/// Looks offsets up. Names that several have in common are demangled once and shared.
#[derive(Debug)]
pub(crate) struct Lookup<'s> {
    stored: &'s StoredSymbols,
    demangles: bool,
    names: HashMap<u32, Name>,
    files: HashMap<u32, Arc<str>>,
}

impl<'s> Lookup<'s> {
    pub(crate) fn new(stored: &'s StoredSymbols) -> Self {
        Lookup { stored, demangles: true, names: HashMap::new(), files: HashMap::new() }
    }

    /// What is stored for `offset`.
    pub(crate) fn find(&mut self, offset: u64) -> Option<StoredAnswer> {
        let index = self.stored.entries.binary_search_by_key(&offset, |entry| entry.offset).ok()?;
        self.at(index)
    }

    fn at(&mut self, index: usize) -> Option<StoredAnswer> {
        let stored = self.stored;
        let entry = stored.entries.get(index)?;
        let frames = stored.chain(index).iter().filter_map(|&number| stored.frames.get(number as usize));
        let frames = frames.map(|frame| self.frame(*frame)).collect();
        Some(StoredAnswer { offset: entry.offset, file_address: entry.file_address, frames })
    }

    fn frame(&mut self, frame: StoredFrame) -> Frame {
        // A name without a letter says nothing.
        let text = |number: u32| self.stored.texts.get((number as usize).checked_sub(1)?).filter(|it| !it.is_empty());
        let function = text(frame.function).map(|raw| {
            let as_it_is = || Name { raw: raw.into(), demangled: raw.into() };
            let name = || if self.demangles { Name::from_raw(raw.as_bytes()) } else { as_it_is() };
            self.names.entry(frame.function).or_insert_with(name).clone()
        });
        let file = text(frame.file).map(|file| Arc::clone(self.files.entry(frame.file).or_insert_with(|| file.into())));
        Frame { function, file, line: frame.line, inlined: frame.inlined }
    }
}

impl FileState {
    /// That of an open or named file.
    pub(crate) fn of(metadata: &std::fs::Metadata) -> Option<FileState> {
        let since = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(FileState { size: metadata.len(), modified: i64::try_from(since.as_nanos()).ok()? })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Answers with everything that answers can have.
    pub(crate) fn sample() -> StoredSymbols {
        let name = |raw: &str| Some(Name::from_raw(raw.as_bytes()));
        let file = |path: &str| Some(Arc::from(path));
        let inner = Frame { function: name("_ZN3foo3barEv"), file: file("/src/a.h"), line: 7, inlined: true };
        let outer = Frame { function: name("main"), file: file("/src/a.c"), line: 70, inlined: false };
        let line_only = Frame { function: None, file: file("/src/a.c"), line: 3, inlined: false };
        let answers = [
            StoredAnswer { offset: 0x1200, file_address: 0x2200, frames: vec![inner, outer.clone()] },
            StoredAnswer { offset: 0x1100, file_address: 0x2100, frames: vec![outer] },
            StoredAnswer { offset: 0x1300, file_address: 0x2300, frames: Vec::new() },
            StoredAnswer { offset: 0x1300, file_address: 0, frames: vec![line_only.clone()] },
            StoredAnswer { offset: u64::MAX, file_address: 5, frames: vec![line_only] },
        ];
        let source = SymbolSource::Dwarf { file: "/usr/lib/debug/a.debug".into() };
        StoredSymbols::new("/usr/bin/a".into(), Some(vec![1, 2, 3]), source, answers)
    }

    #[test]
    fn answers_come_back_in_order_with_demangled_names() {
        let stored = sample();
        let answers: Vec<StoredAnswer> = stored.answers().collect();
        let offsets: Vec<u64> = answers.iter().map(|answer| answer.offset).collect();
        assert_eq!(offsets, [0x1100, 0x1200, 0x1300, u64::MAX]);
        assert_eq!(answers[1].frames.len(), 2);
        let name = answers[1].frames[0].function.as_ref().expect("a name");
        assert_eq!((&*name.raw, &*name.demangled), ("_ZN3foo3barEv", "foo::bar()"));
        assert!(answers[2].frames.is_empty(), "the first of two answers counts");
        let mut lookup = Lookup::new(&stored);
        assert_eq!(lookup.find(0x1200).as_ref(), Some(&answers[1]));
        assert_eq!(lookup.find(0x1201), None);
    }

    #[test]
    fn equal_texts_and_frames_are_kept_once() {
        let stored = sample();
        assert_eq!(stored.texts.iter().collect::<Vec<_>>(), ["main", "/src/a.c", "_ZN3foo3barEv", "/src/a.h"]);
        assert_eq!(stored.frames.len(), 3);
        assert_eq!(stored.chains.len(), 4);
    }
}
