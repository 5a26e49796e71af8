//! Functions, inlined calls, files and lines from DWARF debug information (versions 2 to 5).
//!
//! All addresses of a module are known before any debug information is read, so nothing is indexed for later: one
//! pass over the first entries of all units tells which units are needed, and each of those is read once, by
//! whichever thread is free, and dropped.
//!
//! - `units` finds the units and which addresses belong to each;
//! - `functions` finds the functions and inlined calls in a unit, `names` what they are called;
//! - `lines` runs a unit's line table, `ranges` reads lists of address ranges;
//! - `fuel` bounds the work that damaged or hostile files can cause.

mod fuel;
mod functions;
mod lines;
mod names;
mod ranges;
mod units;

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{LineProgramHeader, SectionId};

use self::fuel::{Fault, Fuel, Meter};
use self::lines::Row;
use self::names::{Names, RawName};
use self::units::{DebugFile, Task, Unit};
use crate::object::ObjectFile;
use crate::threads::{self, Permits};
use crate::{Error, Frame, Name};

type Reader<'d> = gimli::EndianSlice<'d, gimli::RunTimeEndian>;

/// The sections of one file that symbolizing needs, unpacked.
#[derive(Debug)]
pub(crate) struct Sections {
    sections: gimli::DwarfSections<Vec<u8>>,
    endian: gimli::RunTimeEndian,
    size: u64,
}

impl Sections {
    /// Reads and unpacks them.
    pub(crate) fn load(file: &dyn ObjectFile) -> Result<Self, Error> {
        let mut size = 0;
        let sections = gimli::DwarfSections::load(|id| -> Result<Vec<u8>, Error> {
            // Locations of variables, macros, name tables and types in units of their own are of no use here, and
            // can be as large as all the rest.
            let content = match id {
                SectionId::DebugInfo
                | SectionId::DebugAbbrev
                | SectionId::DebugAddr
                | SectionId::DebugAranges
                | SectionId::DebugLine
                | SectionId::DebugLineStr
                | SectionId::DebugRanges
                | SectionId::DebugRngLists
                | SectionId::DebugStr
                | SectionId::DebugStrOffsets => match file.section(id.name())? {
                    Some(section) => section.all()?.into_owned(),
                    None => Vec::new(),
                },
                _ => Vec::new(),
            };
            size += content.len() as u64;
            Ok(content)
        })?;
        Ok(Sections { sections, endian: file.endian(), size })
    }

    fn dwarf<'s>(&'s self) -> gimli::Dwarf<Reader<'s>> {
        self.sections.borrow(|section| Reader::new(section, self.endian))
    }
}

/// What was found for one address.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The innermost function first; never empty.
    pub(crate) frames: Vec<Frame>,
    /// The last frame has no name, or one without namespace and parameters where the language has them, so the name
    /// of a symbol may say more.
    pub(crate) name_is_poor: bool,
}

/// Looks up `addresses` (ascending virtual addresses) in the debug information `main`, some of which may have been
/// moved to the file `supplementary`. One answer for each address, and what went wrong.
pub(crate) fn look_up(
    main: &Sections,
    supplementary: Option<&Sections>,
    addresses: &[u64],
    permits: &Permits,
) -> (Vec<Option<Answer>>, Vec<Problem>) {
    let mut problems = Problems::default();
    let fuel = Fuel::for_size(main.size.saturating_add(supplementary.map_or(0, |s| s.size)));
    let mut meter = fuel.meter();
    let mut dwarf = main.dwarf();
    if let Some(supplementary) = supplementary {
        dwarf.set_sup(supplementary.dwarf());
    }
    let (main, result) = DebugFile::new(dwarf, &mut meter);
    problems.note("the list of units", result);
    let supplementary = supplementary.map(|sections| {
        let (file, result) = DebugFile::new(sections.dwarf(), &mut meter);
        problems.note("the list of units of the supplementary file", result);
        file
    });
    let (tasks, result) = main.assign(addresses, &mut meter);
    problems.note("the first entry of a unit", result);
    drop(meter);

    let new_worker = || Worker {
        main: &main,
        addresses,
        names: Names::new(&main, supplementary.as_ref()),
        shown: HashMap::new(),
        meter: fuel.meter(),
    };
    let results = threads::for_each(&tasks, permits, new_worker, Worker::run);

    let mut answers: Vec<Option<Answer>> = Vec::new();
    answers.resize_with(addresses.len(), || None);
    for (task, (found, result)) in tasks.iter().zip(results) {
        problems.note(&format!("the unit at {:#x}", task.unit), result);
        for (&index, answer) in task.addresses.iter().zip(found) {
            let slot = &mut answers[index as usize];
            // Of several units that claim the address, the first of those that know most.
            if answer.as_ref().map(Answer::rank) > slot.as_ref().map(Answer::rank) {
                *slot = answer;
            }
        }
    }
    (answers, problems.list)
}

impl Answer {
    fn rank(&self) -> (bool, bool) {
        let has = |test: fn(&Frame) -> bool| self.frames.iter().any(test);
        (has(|frame| frame.function.is_some()), has(|frame| frame.line != 0))
    }
}

/// What went wrong in reading debug information, without the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It is damaged.
    Damaged(String),
    /// It would take too much work.
    TooMuchWork,
}

/// Most problems that are listed for one module.
const MAX_PROBLEMS: usize = 8;

#[derive(Default)]
struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    fn note(&mut self, place: &str, result: Result<(), Fault>) {
        let problem = match result {
            Ok(()) => return,
            Err(Fault::OutOfFuel) => Problem::TooMuchWork,
            Err(Fault::Damaged(error)) => Problem::Damaged(format!("{place}: {error}")),
        };
        if self.list.len() < MAX_PROBLEMS && !self.list.contains(&problem) {
            self.list.push(problem);
        }
    }
}

/// Looks up the addresses of one unit after the other.
struct Worker<'w, 'd> {
    main: &'w DebugFile<'d>,
    addresses: &'w [u64],
    names: Names<'w, 'd>,
    /// Names that have been demangled.
    shown: HashMap<&'d [u8], Name>,
    meter: Meter<'w>,
}

impl<'d> Worker<'_, 'd> {
    fn run(&mut self, task: &Task) -> (Vec<Option<Answer>>, Result<(), Fault>) {
        match self.main.unit(task.unit, &mut self.meter) {
            Ok(unit) => self.look_up(&unit, task),
            Err(fault) => (Vec::new(), Err(fault)),
        }
    }

    fn look_up(&mut self, unit: &Unit<'d>, task: &Task) -> (Vec<Option<Answer>>, Result<(), Fault>) {
        let addresses: Vec<u64> = task.addresses.iter().map(|&index| self.addresses[index as usize]).collect();
        let (functions, mut result) = functions::find(&self.main.dwarf, unit, &addresses, &mut self.meter);
        let mut rows = vec![None; addresses.len()];
        let table = match lines::header(&self.main.dwarf, unit, &mut self.meter) {
            Ok(table) => table,
            Err(fault) => {
                result = result.and(Err(fault));
                None
            }
        };
        if let Some(table) = &table {
            result = result.and(lines::find_rows(table, &addresses, &mut rows, &mut self.meter));
        }
        let mut files = Files { dwarf: &self.main.dwarf, unit, table: table.as_ref(), paths: HashMap::new() };
        let mut answers = Vec::with_capacity(addresses.len());
        for (place, row) in functions.places.iter().zip(rows) {
            match self.answer(unit, &functions, place, row, &mut files) {
                Ok(answer) => answers.push(answer),
                Err(fault) => {
                    result = result.and(Err(fault));
                    answers.push(None);
                }
            }
        }
        (answers, result)
    }

    /// Puts together the frames of one address: each call's place in the source is that of the next frame.
    fn answer(
        &mut self,
        unit: &Unit<'d>,
        functions: &functions::Functions<'d>,
        place: &functions::Place,
        row: Option<Row>,
        files: &mut Files<'_, 'd>,
    ) -> Result<Option<Answer>, Fault> {
        self.meter.burn(1 + place.inlined.len() as u64)?;
        if place.function.is_none() && row.is_none() {
            return Ok(None);
        }
        let mut frames = Vec::with_capacity(place.inlined.len() + 1);
        let mut file = row.and_then(|row| files.path(row.file, &mut self.meter));
        let mut line = row.map_or(0, |row| row.line);
        for &index in place.inlined.iter().rev() {
            let inlined = &functions.inlined[index as usize];
            let name = self.names.find(unit, inlined.name, &mut self.meter)?;
            frames.push(Frame { function: name.map(|name| self.show(name)), file, line, inlined: true });
            file = if inlined.has_file { files.path(inlined.call.file, &mut self.meter) } else { None };
            line = inlined.call.line;
        }
        let name = match place.function {
            Some(index) => self.names.find(unit, functions.functions[index as usize], &mut self.meter)?,
            None => None,
        };
        let name_is_poor = name.is_none_or(|name| !name.is_linkage && has_linker_names(unit.language));
        frames.push(Frame { function: name.map(|name| self.show(name)), file, line, inlined: false });
        Ok(Some(Answer { frames, name_is_poor }))
    }

    fn show(&mut self, name: RawName<'d>) -> Name {
        self.shown.entry(name.bytes).or_insert_with(|| Name::from_raw(name.bytes)).clone()
    }
}

/// Whether functions of the language have other names for the linker than in the source.
fn has_linker_names(language: Option<gimli::DwLang>) -> bool {
    !matches!(
        language,
        Some(
            gimli::DW_LANG_C
                | gimli::DW_LANG_C89
                | gimli::DW_LANG_C99
                | gimli::DW_LANG_C11
                | gimli::DW_LANG_C17
                | gimli::DW_LANG_Mips_Assembler
        )
    )
}

/// The source files of one unit, their paths put together once.
struct Files<'w, 'd> {
    dwarf: &'w gimli::Dwarf<Reader<'d>>,
    unit: &'w Unit<'d>,
    table: Option<&'w LineProgramHeader<Reader<'d>>>,
    paths: HashMap<u64, Option<Arc<str>>>,
}

impl Files<'_, '_> {
    fn path(&mut self, index: u64, meter: &mut Meter<'_>) -> Option<Arc<str>> {
        let table = self.table?;
        let path = self
            .paths
            .entry(index)
            .or_insert_with(|| lines::path(self.dwarf, self.unit, table, index, meter).map(Arc::from));
        path.clone()
    }
}

/// The string that an attribute stands for, paid for by its length.
fn string<'d>(
    dwarf: &gimli::Dwarf<Reader<'d>>,
    unit: &gimli::Unit<Reader<'d>>,
    value: gimli::AttributeValue<Reader<'d>>,
    meter: &mut Meter<'_>,
) -> Result<&'d [u8], Fault> {
    /// Bytes that can be searched for the end of a string in the time of one step.
    const BYTES_PER_STEP: usize = 64;
    match dwarf.attr_string(unit, value) {
        Ok(string) => {
            meter.burn(1 + (string.len() / BYTES_PER_STEP) as u64)?;
            Ok(string.slice())
        }
        Err(error) => {
            // It may have been searched for up to the end of the section.
            let section = gimli::Section::reader(&dwarf.debug_str).len();
            let section = section.max(gimli::Section::reader(&dwarf.debug_line_str).len());
            meter.burn(1 + (section / BYTES_PER_STEP) as u64)?;
            Err(error.into())
        }
    }
}
