//! All addresses of one file of the profiled process: open it, check it, ask each source of symbols in turn.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::debug_file::{Places, check_build_id};
use crate::dwarf::{self, Answer, Problem, Sections};
use crate::elf::Elf;
use crate::file::FileData;
use crate::object::ObjectFile;
use crate::object::symbols::Table;
use crate::threads::Permits;
use crate::{Error, Frame, ModuleReport, Name, Options, Quality, SymbolSource};

/// What the kernel appends to the path of a mapped file that has no name any more.
const DELETED: &[u8] = b" (deleted)";

/// A file of the profiled process and where in it symbols are wanted.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) build_id: Option<Vec<u8>>,
    /// Indices of its modules with wanted addresses, ascending.
    pub(crate) modules: Vec<usize>,
    /// Offsets in the file, ascending and distinct; virtual addresses if `by_address`.
    pub(crate) offsets: Vec<u64>,
    /// Whether somebody asks about a file and its own addresses, not about a process.
    pub(crate) by_address: bool,
}

/// What was found for one offset.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The virtual address, or the offset when there is no file to tell it.
    pub(crate) file_address: u64,
    pub(crate) frames: Vec<Frame>,
    pub(crate) quality: Quality,
}

impl Image {
    /// One place for each offset, and where they came from.
    pub(crate) fn symbolize(&self, options: &Options, permits: &Permits) -> (Vec<Place>, ModuleReport) {
        let mut report = ModuleReport {
            path: self.path.clone(),
            modules: self.modules.clone(),
            wanted_build_id: self.build_id.clone(),
            ..ModuleReport::default()
        };
        let places = match self.open(options, &mut report) {
            Ok(file) => self.look_up(&file, options, permits, &mut report),
            Err(error) => Err(error),
        };
        let places = places.unwrap_or_else(|error| {
            report.problems.push(error);
            self.offsets.iter().map(|&offset| Place::new(offset, Vec::new())).collect()
        });
        count(&places, &mut report);
        (places, report)
    }

    /// The same of whatever file is at the path on this machine.
    ///
    /// # Errors
    /// If that is no file that symbols could be looked up in.
    pub(crate) fn symbolize_as_it_is(
        &self,
        options: &Options,
        permits: &Permits,
    ) -> Result<(Vec<Place>, ModuleReport), Error> {
        let file = FileData::open(&self.path, options)?;
        let found_build_id = Elf::read(&file)?.identity().map(<[u8]>::to_vec);
        let mut report = ModuleReport { path: self.path.clone(), found_build_id, ..ModuleReport::default() };
        let places = self.look_up(&file, options, permits, &mut report)?;
        count(&places, &mut report);
        Ok((places, report))
    }

    /// Opens the file if it is the one that was profiled.
    pub(crate) fn open(&self, options: &Options, report: &mut ModuleReport) -> Result<FileData, Error> {
        let bytes = self.path.as_os_str().as_bytes();
        let (path, is_deleted) = match bytes.strip_suffix(DELETED) {
            Some(path) => (Path::new(std::ffi::OsStr::from_bytes(path)), true),
            None => (self.path.as_path(), false),
        };
        let no_file = || Error::NoFile { path: self.path.clone() };
        let local = Places::new(options).local(path).ok_or_else(no_file)?;
        if is_deleted && self.build_id.is_none() {
            return Err(Error::Deleted { path: path.to_owned() });
        }
        let file = FileData::open(&local, options)?;
        report.found_build_id = Elf::read(&file)?.identity().map(<[u8]>::to_vec);
        if let Some(wanted) = &self.build_id {
            check_build_id(&file, wanted)?;
        }
        Ok(file)
    }

    fn look_up(
        &self,
        file: &FileData,
        options: &Options,
        permits: &Permits,
        report: &mut ModuleReport,
    ) -> Result<Vec<Place>, Error> {
        let places = Places::new(options);
        let elf = Elf::read(file)?;
        let debug_file =
            if elf.has_dwarf() { None } else { places.find_debug_file(&elf, &self.path, &mut report.problems) };
        let debug_elf = debug_file.as_ref().map(Elf::read).transpose()?;
        let with_dwarf = debug_elf.as_ref().unwrap_or(&elf);

        // Addresses always by the file itself: the program headers of a separate debug file may say nothing.
        let address = |&offset: &u64| if self.by_address { Some(offset) } else { elf.address_of_offset(offset) };
        let addresses: Vec<Option<u64>> = self.offsets.iter().map(address).collect();
        let mut sorted: Vec<u64> = addresses.iter().flatten().copied().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut answers = look_up_dwarf(with_dwarf, &places, &sorted, permits, report);
        look_up_symbols(&elf, debug_elf.as_ref(), &sorted, &mut answers, report);

        let place = |(&offset, address): (&u64, Option<u64>)| {
            let index = address.and_then(|address| sorted.binary_search(&address).ok());
            let answer = index.and_then(|index| answers[index].as_ref());
            Place::new(address.unwrap_or(offset), answer.map_or_else(Vec::new, |answer| answer.frames.clone()))
        };
        Ok(self.offsets.iter().zip(addresses).map(place).collect())
    }
}

impl Place {
    pub(crate) fn new(file_address: u64, frames: Vec<Frame>) -> Self {
        let quality = if frames.iter().any(|frame| frame.line != 0 && frame.file.is_some()) {
            Quality::Lines
        } else if frames.iter().any(|frame| frame.function.is_some()) {
            Quality::Name
        } else {
            Quality::Nothing
        };
        // A file without a line and a function says nothing.
        let frames = if quality == Quality::Nothing { Vec::new() } else { frames };
        Place { file_address, frames, quality }
    }
}

/// Adds up how much is known.
fn count(places: &[Place], report: &mut ModuleReport) {
    for place in places {
        match place.quality {
            Quality::Lines => report.with_lines += 1,
            Quality::Name => report.with_name += 1,
            Quality::Nothing => report.unresolved += 1,
        }
    }
}

/// What the debug information of `elf` says about each of `addresses`.
fn look_up_dwarf(
    elf: &Elf<'_>,
    places: &Places<'_>,
    addresses: &[u64],
    permits: &Permits,
    report: &mut ModuleReport,
) -> Vec<Option<Answer>> {
    let nothing = || addresses.iter().map(|_| None).collect();
    if !elf.has_dwarf() || addresses.is_empty() {
        return nothing();
    }
    let sections = match Sections::load(elf) {
        Ok(sections) => sections,
        Err(problem) => {
            report.problems.push(problem);
            return nothing();
        }
    };
    let alt_file = places.find_alt_file(elf, &mut report.problems);
    let alt_sections = alt_file.as_ref().and_then(|file| {
        let sections = Elf::read(file).and_then(|elf| Sections::load(&elf));
        sections.map_err(|problem| report.problems.push(problem)).ok()
    });
    let (answers, problems) = dwarf::look_up(&sections, alt_sections.as_ref(), addresses, permits);
    let path = elf.path();
    report.problems.extend(problems.into_iter().map(|problem| match problem {
        Problem::Damaged(what) => Error::BadDwarf { path: path.to_owned(), what },
        Problem::TooMuchWork => {
            let what = "it takes more work than debug information of its size should".to_owned();
            Error::Limit { path: path.to_owned(), what }
        }
    }));
    if answers.iter().any(Option::is_some) {
        report.source = SymbolSource::Dwarf { file: path.to_owned() };
    }
    answers
}

/// Gives names from the symbol tables to those of `addresses` (ascending) whose answer has none, or a poor one.
///
/// Line tables cover the padding between functions too. So where neither the debug information nor a full symbol
/// table knows a function, the line is that of the function before, and is dropped.
fn look_up_symbols(
    elf: &Elf<'_>,
    debug_elf: Option<&Elf<'_>>,
    addresses: &[u64],
    answers: &mut [Option<Answer>],
    report: &mut ModuleReport,
) {
    let mut is_complete = false;
    let debug_table = debug_elf.map(|elf| (elf, Table::Full));
    for (elf, table) in debug_table.into_iter().chain([(elf, Table::Full), (elf, Table::Dynamic)]) {
        let is_poor = |answer: &Option<Answer>| answer.as_ref().is_none_or(|answer| answer.name_is_poor);
        let poor: Vec<usize> = (0..addresses.len()).filter(|&index| is_poor(&answers[index])).collect();
        if poor.is_empty() {
            break;
        }
        let symbols = match elf.symbols(table) {
            Ok(Some(symbols)) => symbols,
            Ok(None) => continue,
            Err(problem) => {
                report.problems.push(problem);
                continue;
            }
        };
        is_complete |= table == Table::Full;
        let wanted: Vec<u64> = poor.iter().map(|&index| addresses[index]).collect();
        let mut is_used = false;
        let mut last: Option<(&[u8], Name)> = None;
        for (&index, raw) in poor.iter().zip(symbols.names_of(&wanted)) {
            let Some(raw) = raw else { continue };
            let name = match &last {
                Some((known, name)) if *known == raw => name.clone(),
                _ => Name::from_raw(raw),
            };
            last = Some((raw, name.clone()));
            is_used |= give_name(&mut answers[index], name);
        }
        if is_used && report.source == SymbolSource::None {
            report.source = match table {
                Table::Full => SymbolSource::Symtab { file: elf.path().to_owned() },
                Table::Dynamic => SymbolSource::Dynsym,
            };
        }
    }
    if is_complete {
        let has_function = |answer: &mut Answer| answer.frames.iter().any(|frame| frame.function.is_some());
        answers.iter_mut().for_each(|answer| *answer = answer.take_if(has_function));
    }
}

/// Puts the name of the symbol into the answer if that is an improvement; says whether it was.
fn give_name(answer: &mut Option<Answer>, name: Name) -> bool {
    match answer {
        Some(answer) => {
            answer.name_is_poor = false;
            let Some(frame) = answer.frames.last_mut() else { return false };
            // A symbol that is not mangled says no more than the name in the debug information.
            let is_better = frame.function.is_none() || name.demangled != name.raw;
            if is_better {
                frame.function = Some(name);
            }
            is_better
        }
        None => {
            let frame = Frame { function: Some(name), ..Frame::default() };
            *answer = Some(Answer { frames: vec![frame], name_is_poor: false });
            true
        }
    }
}
