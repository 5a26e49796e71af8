//! All addresses of one file of the profiled process: open it, check it, ask each source of symbols in turn.

use std::path::{Path, PathBuf};

use crate::dwarf::{self, Answer, Problem, Sections, Splits};
use crate::elf::Elf;
use crate::foreign::Foreign;
use crate::locate::{Located, Places, Wanted};
use crate::object::ObjectFile;
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
        report.remedy = self.remedy(&places, located.as_ref(), &report);
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
        report.remedy = self.remedy(&places, Some(&located), &report);
        Ok((found, report))
    }

    /// What would give names or lines to what lacks them.
    fn remedy(&self, places: &Places<'_>, located: Option<&Located>, report: &ModuleReport) -> Option<String> {
        let file = located.map(|located| &located.file);
        let foreign = file.and_then(|file| Foreign::read(file, self.build_id.as_deref()).ok().flatten());
        match foreign {
            Some(foreign) => foreign.remedy(report),
            None => places.remedy(file.and_then(|file| Elf::read(file).ok()).as_ref(), report),
        }
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
        if let Some(foreign) = Foreign::read(&located.file, self.build_id.as_deref())? {
            let addresses = self.addresses(foreign.object());
            let sorted = sorted(&addresses);
            let answers = foreign.look_up(&self.path, &sorted, options, permits, report);
            return Ok(self.places(&addresses, &sorted, &answers));
        }
        let elf = Elf::read(&located.file)?;
        let debug_file = if elf.has_dwarf() { None } else { places.find_debug_file(&elf, located, report) };
        let debug_elf = debug_file.as_ref().map(|found| Elf::read(&found.file)).transpose()?;

        // Addresses always by the file itself: the program headers of a separate debug file may say nothing.
        let addresses = self.addresses(&elf);
        let sorted = sorted(&addresses);
        let with_dwarf = debug_elf.as_ref().unwrap_or(&elf);
        let alt_file = places.find_alt_file(with_dwarf, located, debug_file.as_ref(), report);
        let alt_elf = alt_file.as_ref().map(Elf::read).and_then(|elf| match elf {
            Ok(elf) => Some(elf),
            Err(problem) => {
                report.problems.push(problem);
                None
            }
        });
        let alt_elf = alt_elf.as_ref().map(|elf| elf as &dyn ObjectFile);
        let splits = Splits::new(options, places.split_places(&elf, located, debug_file.as_ref()));
        let mut answers = look_up_dwarf(with_dwarf, alt_elf, splits, &sorted, permits, report);
        symbol_tables::look_up(&elf, debug_elf.as_ref(), &sorted, &mut answers, options, report);
        Ok(self.places(&addresses, &sorted, &answers))
    }

    /// The virtual address of each offset, as `file` counts them.
    fn addresses(&self, file: &dyn ObjectFile) -> Vec<Option<u64>> {
        let address = |&offset: &u64| if self.by_address { Some(offset) } else { file.address_of_offset(offset) };
        self.offsets.iter().map(address).collect()
    }

    /// One place for each offset, whose address is in `addresses`; the answers are those for `sorted`.
    fn places(&self, addresses: &[Option<u64>], sorted: &[u64], answers: &[Option<Answer>]) -> Vec<Place> {
        let place = |(&offset, address): (&u64, &Option<u64>)| {
            let index = address.and_then(|address| sorted.binary_search(&address).ok());
            let answer = index.and_then(|index| answers[index].as_ref());
            Place::new(address.unwrap_or(offset), answer.map_or_else(Vec::new, |answer| answer.frames.clone()))
        };
        self.offsets.iter().zip(addresses).map(place).collect()
    }
}

/// The known ones of some addresses, ascending and distinct.
fn sorted(addresses: &[Option<u64>]) -> Vec<u64> {
    let mut sorted: Vec<u64> = addresses.iter().flatten().copied().collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

impl Place {
    pub(crate) fn new(file_address: u64, frames: Vec<Frame>) -> Self {
        let quality = Quality::of(&frames);
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

/// What the debug information of `file` says about each of `addresses`. `alt_file` is where `dwz` moved some of it,
/// `splits` where the compiler wrote some of it.
pub(crate) fn look_up_dwarf(
    file: &dyn ObjectFile,
    alt_file: Option<&dyn ObjectFile>,
    splits: Splits<'_>,
    addresses: &[u64],
    permits: &Permits,
    report: &mut ModuleReport,
) -> Vec<Option<Answer>> {
    let nothing = || addresses.iter().map(|_| None).collect();
    if !file.has_dwarf() || addresses.is_empty() {
        return nothing();
    }
    let sections = match Sections::load(file) {
        Ok(sections) => sections,
        Err(problem) => {
            report.problems.push(problem);
            return nothing();
        }
    };
    let alt_sections =
        alt_file.and_then(|file| Sections::load(file).map_err(|problem| report.problems.push(problem)).ok());
    let (answers, problems) = dwarf::look_up(&sections, alt_sections.as_ref(), &splits, addresses, permits);
    let path = file.path();
    splits.report(path, report);
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
