//! Debug information that compilers write to files of their own, so that linkers need not copy it: a `.dwo` file for
//! each object file, which may be packed to one `.dwp` file for the program.
//!
//! What is left in the program is a skeleton for each unit: its addresses, its line table, the name of the file with
//! the rest, and a number of 64 bits that must be found there too. Functions and inlined calls are in the other part,
//! which counts addresses by their index in the program's table.
//!
//! - `package` reads the index of a `.dwp` file, `part` is what was found. Where such files may be is known in
//!   `crate::locate`.

mod package;
mod part;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use self::package::Package;
pub(super) use self::part::Part;
use super::fuel::{Fault, Meter};
use super::sections::Sections;
use crate::elf::Elf;
use crate::file::FileData;
use crate::locate::{SplitPlaces, is_missing, recorded};
use crate::{Error, ModuleReport, Options};

/// Most problems with single files that are kept.
const MAX_PROBLEMS: usize = 8;

/// The files that hold the other parts of a program's units. Any number of threads may ask for them.
#[derive(Debug)]
pub(crate) struct Splits<'p> {
    options: &'p Options,
    places: SplitPlaces,
    package: OnceLock<Option<Package>>,
    notes: Mutex<Notes>,
}

/// What was met on the way.
#[derive(Debug, Default)]
struct Notes {
    /// Numbers of the parts that were found; none gives work twice.
    found: HashSet<u64>,
    /// How many were not, and the file of the first.
    missing: usize,
    first_missing: Option<PathBuf>,
    problems: Vec<Error>,
}

/// What a skeleton says about the other part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Name of the file that it was written to.
    pub(super) name: &'a [u8],
    /// What that name is relative to.
    pub(super) folder: &'a [u8],
    /// The number that both parts have.
    pub(super) id: u64,
}

impl<'p> Splits<'p> {
    pub(crate) fn new(options: &'p Options, places: SplitPlaces) -> Self {
        Splits { options, places, package: OnceLock::new(), notes: Mutex::default() }
    }

    /// The other part of a unit of `main`; `None` if it is nowhere, which is noted.
    pub(super) fn part(
        &self,
        wanted: Wanted<'_>,
        main: &Sections,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Part>, Fault> {
        let mut part = None;
        if let Some(package) = self.package.get_or_init(|| self.find_package(main)) {
            part = self.noted(package.path(), package.part(wanted.id, meter))?;
        }
        if part.is_none() {
            part = self.loose(wanted, main, meter)?;
        }
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match &part {
            Some(part) if notes.found.insert(wanted.id) => meter.supply(part.size()),
            Some(_) => {}
            None => {
                notes.missing += 1;
                notes.first_missing.get_or_insert_with(|| recorded(wanted.folder, wanted.name));
            }
        }
        Ok(part)
    }

    /// The first package that can be read.
    fn find_package(&self, main: &Sections) -> Option<Package> {
        self.places.packages().iter().find_map(|path| {
            let file = self.open(path)?;
            let package = Elf::read(&file).and_then(|elf| Package::read(&elf, main));
            package.map_err(|problem| self.note(problem)).ok()
        })
    }

    /// The part in a file of its own.
    fn loose(&self, wanted: Wanted<'_>, main: &Sections, meter: &mut Meter<'_>) -> Result<Option<Part>, Fault> {
        let mut refused = Vec::new();
        for path in self.places.parts(&recorded(wanted.folder, wanted.name)) {
            let Some(file) = self.open(&path) else { continue };
            let sections = Elf::read(&file).and_then(|elf| Sections::split_off(&elf, main));
            let sections = match sections {
                Ok(sections) => sections,
                Err(problem) => {
                    self.note(problem);
                    continue;
                }
            };
            for sections in sections {
                let part = self.noted(&path, Part::loose(sections, wanted.id, meter))?;
                if part.is_some() {
                    return Ok(part);
                }
            }
            refused.push(path);
        }
        refused.into_iter().for_each(|path| self.note(Error::WrongSplitFile { path, wanted: wanted.id }));
        Ok(None)
    }

    /// Opens a file that need not exist.
    fn open(&self, path: &Path) -> Option<FileData> {
        match FileData::open(path, self.options) {
            Ok(file) => Some(file),
            Err(problem) if is_missing(&problem) => None,
            Err(problem) => {
                self.note(problem);
                None
            }
        }
    }

    /// Damage in one of the files is noted; only the end of all work is passed on.
    fn noted(&self, path: &Path, part: Result<Option<Part>, Fault>) -> Result<Option<Part>, Fault> {
        part.or_else(|fault| {
            let Some(what) = fault.what() else { return Err(fault) };
            self.note(Error::BadDwarf { path: path.to_owned(), what });
            Ok(None)
        })
    }

    fn note(&self, problem: Error) {
        let problems = &mut self.notes.lock().unwrap_or_else(PoisonError::into_inner).problems;
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }

    /// Notes in the report about the file `path` with the skeletons what went wrong, and where was looked for the first
    /// part that is missing.
    pub(crate) fn report(self, path: &Path, report: &mut ModuleReport) {
        let Notes { missing, first_missing, problems, .. } =
            self.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.problems.extend(problems);
        let Some(first) = first_missing else { return };
        for place in self.places.packages().into_iter().chain(self.places.parts(&first)) {
            if !report.looked_at.contains(&place) {
                report.looked_at.push(place);
            }
        }
        report.problems.push(Error::NoSplitFile { path: path.to_owned(), first, missing });
    }
}
