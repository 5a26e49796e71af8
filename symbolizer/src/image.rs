//! All addresses of one file of the profiled process: open it, check it, ask each source of symbols in turn.

use std::path::{Path, PathBuf};

use crate::dwarf::{self, Answer, Problem, Sections};
use crate::elf::Elf;
use crate::file::FileData;
use crate::locate::{Located, Places, Wanted};
use crate::object::ObjectFile as _;
use crate::threads::Permits;
use crate::{Error, Frame, ModuleReport, Options, Quality, SymbolSource, symbol_tables, vdso};

/// A file of the profiled process and where in it symbols are wanted.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) build_id: Option<Vec<u8>>,
    /// Indices of its modules with wanted addresses, ascending.
    pub(crate) modules: Vec<usize>,
    /// Start and end of each of them.
    pub(crate) mappings: Vec<(u64, u64)>,
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
        let places = Places::new(options);
        let located = self.locate(options, &mut report);
        report.identity = located.as_ref().map(Located::identity);
        let found = located.as_ref().map(|located| self.look_up(&places, located, options, permits, &mut report));
        let found = found.and_then(|result| result.map_err(|problem| report.problems.push(problem)).ok());
        let found =
            found.unwrap_or_else(|| self.offsets.iter().map(|&offset| Place::new(offset, Vec::new())).collect());
        count(&found, &mut report);
        if self.path == Path::new(vdso::NAME) && report.source != SymbolSource::None {
            report.source = SymbolSource::Vdso;
        }
        let elf = located.as_ref().and_then(|located| Elf::read(&located.file).ok());
        report.remedy = places.remedy(elf.as_ref(), &report);
        (found, report)
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
        let mut report = ModuleReport { path: self.path.clone(), ..ModuleReport::default() };
        let places = Places::new(options);
        let located = places.as_it_is(&self.path, &mut report)?;
        let found = self.look_up(&places, &located, options, permits, &mut report)?;
        count(&found, &mut report);
        report.remedy = places.remedy(Some(&Elf::read(&located.file)?), &report);
        Ok((found, report))
    }

    /// The file, if there is one and it is the one that was profiled.
    pub(crate) fn locate(&self, options: &Options, report: &mut ModuleReport) -> Option<Located> {
        let wanted = Wanted { path: &self.path, build_id: self.build_id.as_deref(), mappings: &self.mappings };
        Places::new(options).locate(wanted, report)
    }

    fn look_up(
        &self,
        places: &Places<'_>,
        located: &Located,
        options: &Options,
        permits: &Permits,
        report: &mut ModuleReport,
    ) -> Result<Vec<Place>, Error> {
        let elf = Elf::read(&located.file)?;
        let debug_file = if elf.has_dwarf() { None } else { places.find_debug_file(&elf, located, report) };
        let debug_elf = debug_file.as_ref().map(|found| Elf::read(&found.file)).transpose()?;

        // Addresses always by the file itself: the program headers of a separate debug file may say nothing.
        let address = |&offset: &u64| if self.by_address { Some(offset) } else { elf.address_of_offset(offset) };
        let addresses: Vec<Option<u64>> = self.offsets.iter().map(address).collect();
        let mut sorted: Vec<u64> = addresses.iter().flatten().copied().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let with_dwarf = debug_elf.as_ref().unwrap_or(&elf);
        let alt_file = places.find_alt_file(with_dwarf, located, debug_file.as_ref(), report);
        let mut answers = look_up_dwarf(with_dwarf, alt_file.as_ref(), &sorted, permits, report);
        symbol_tables::look_up(&elf, debug_elf.as_ref(), &sorted, &mut answers, options, report);

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

/// What the debug information of `elf` says about each of `addresses`. `alt_file` is where `dwz` moved some of it.
fn look_up_dwarf(
    elf: &Elf<'_>,
    alt_file: Option<&FileData>,
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
    let alt_sections = alt_file.and_then(|file| {
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
