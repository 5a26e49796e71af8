//! The answers for the addresses of one unit.

use std::collections::HashMap;
use std::sync::Arc;

use super::Answer;
use super::assign::Task;
use super::cursor::Cursor;
use super::fuel::{Fault, Meter, Spot};
use super::functions::{self, DieName, Functions};
use super::lines::{self, Row};
use super::names::{FoundName, Interned, Names, Present};
use super::sections::{Strings, Windows};
use super::split::{Part, Splits, Wanted};
use super::units::{DebugFile, Unit};
use super::window;
use crate::Frame;

/// One answer for each address of a task, and why some or all of them are missing.
pub(super) type Outcome = (Vec<Option<Answer>>, Result<(), Fault>);

/// Looks up the addresses of one unit after the other.
#[derive(Debug)]
pub(super) struct Worker<'w, 's> {
    file: &'w DebugFile<'s>,
    splits: &'w Splits<'w>,
    addresses: &'w [u64],
    names: Names<'w, 's>,
    /// For line tables and what they refer to.
    windows: Windows<'s>,
    meter: Meter<'w>,
    /// Memory for the entries of the present unit and for its line table.
    buffers: Buffers,
}

#[derive(Debug, Default)]
struct Buffers {
    entries: Vec<u8>,
    lines: Vec<u8>,
}

impl<'w, 's> Worker<'w, 's> {
    pub(super) fn new(
        file: &'w DebugFile<'s>,
        supplementary: Option<&'w DebugFile<'s>>,
        splits: &'w Splits<'w>,
        interned: &'w Interned,
        addresses: &'w [u64],
        meter: Meter<'w>,
    ) -> Self {
        let names = Names::new(file, supplementary, interned);
        let windows = Windows::new(file.sections);
        Worker { file, splits, addresses, names, windows, meter, buffers: Buffers::default() }
    }

    /// Looks up the addresses of a task.
    pub(super) fn run(&mut self, task: &Task) -> Outcome {
        let mut buffers = std::mem::take(&mut self.buffers);
        let result = self.look_up(task, &mut buffers);
        self.buffers = buffers;
        result.unwrap_or_else(|fault| (Vec::new(), Err(fault)))
    }

    fn look_up(&mut self, task: &Task, buffers: &mut Buffers) -> Result<Outcome, Fault> {
        let Some(header) = self.file.unit_at(task.unit) else { return Ok((Vec::new(), Ok(()))) };
        let unit = &self.file.unit(header, &mut self.windows, &mut self.meter)?;
        let addresses: Vec<u64> = task.addresses.iter().map(|&index| self.addresses[index as usize]).collect();
        let part = self.part(unit)?;
        let (windows, meter) = (&mut self.windows, &mut self.meter);
        let mut lookup = Lookup { unit, windows, meter, addresses: &addresses, fault: Ok(()) };
        let Some(part) = part else { return lookup.run(unit, &mut self.names, buffers) };
        let file = part.file();
        let mut names = Names::new(&file, None, part.interned());
        match part.unit(&file, unit, &mut names.main.windows, lookup.meter) {
            Ok(unit) => lookup.run(&unit, &mut names, buffers),
            // With what the linker left of it there are lines at least.
            Err(fault) => lookup.run(unit, &mut self.names, buffers).map(|(answers, _)| (answers, Err(fault))),
        }
    }

    /// The part of a unit that was split off, if there is one and it can be found.
    fn part(&mut self, unit: &Unit) -> Result<Option<Part>, Fault> {
        let split = unit.root.split;
        let (encoding, bases) = (unit.header.encoding, unit.root.bases);
        let id = if unit.header.kind == gimli::DW_UT_skeleton { Some(unit.header.split_id) } else { split.id };
        let (Some(name), Some(id)) = (split.name, id) else { return Ok(None) };
        let mut string = |text| {
            let place = self.windows.place(text, Strings::Info, encoding, bases, &mut self.meter)?;
            self.windows.string(place, &mut self.meter, <[u8]>::to_vec)
        };
        let (name, folder) = (string(name)?, unit.root.folder.map(string).transpose()?.unwrap_or_default());
        self.splits.part(Wanted { name: &name, folder: &folder, id }, self.file.sections, &mut self.meter)
    }
}

/// The addresses of one unit.
struct Lookup<'l, 'm, 's> {
    /// The unit with the line table.
    unit: &'l Unit,
    windows: &'l mut Windows<'s>,
    meter: &'l mut Meter<'m>,
    addresses: &'l [u64],
    /// What was wrong with names.
    fault: Result<(), Fault>,
}

impl Lookup<'_, '_, '_> {
    /// With the entries in `unit` of the main file of `names`: the unit with the line table, or its other part.
    fn run(&mut self, unit: &Unit, names: &mut Names<'_, '_>, buffers: &mut Buffers) -> Result<Outcome, Fault> {
        let entries = &mut names.main.windows;
        let (start, end) = (unit.header.start, unit.header.end);
        let bytes = window::whole(&entries.info, start, end, &mut buffers.entries, self.meter)?;
        let spot = Spot { section: ".debug_info", offset: start };
        let present = Present { unit, entries: Cursor::new(bytes, spot, entries.endian) };
        let (functions, mut result) = functions::find(entries, unit, present.entries, self.addresses, self.meter);
        let mut rows = vec![None; self.addresses.len()];
        let (encoding, lines) = (self.unit.header.encoding, &mut buffers.lines);
        let table = self.unit.root.lines.map(|at| lines::Table::read(self.windows, at, encoding, lines, self.meter));
        let table = table.transpose().unwrap_or_else(|fault| {
            result = result.and(Err(fault));
            None
        });
        if let Some(table) = &table {
            result = result.and(lines::find_rows(table, self.addresses, &mut rows, self.meter));
        }
        let mut files = Files { unit: self.unit, table: table.as_ref(), paths: HashMap::new() };
        let mut answers = Vec::with_capacity(rows.len());
        for (place, row) in functions.places.iter().zip(rows) {
            match self.answer(present, &functions, place, row, names, &mut files) {
                Ok(answer) => answers.push(answer),
                Err(fault) => {
                    result = result.and(Err(fault));
                    answers.push(None);
                }
            }
        }
        Ok((answers, result.and(self.fault)))
    }

    /// Puts together the frames of one address: each call's place in the source is that of the next frame.
    fn answer(
        &mut self,
        present: Present<'_>,
        functions: &Functions,
        place: &functions::Place,
        row: Option<Row>,
        names: &mut Names<'_, '_>,
        files: &mut Files<'_>,
    ) -> Result<Option<Answer>, Fault> {
        self.meter.burn(1 + place.inlined.len() as u64)?;
        if place.function.is_none() && row.is_none() {
            return Ok(None);
        }
        let mut frames = Vec::with_capacity(place.inlined.len() + 1);
        let mut file = row.and_then(|row| files.path(row.file, self.windows, self.meter));
        let mut line = row.map_or(0, |row| row.line);
        for &index in place.inlined.iter().rev() {
            let inlined = &functions.inlined[index as usize];
            let found = self.name(present, inlined.name, names)?;
            frames.push(Frame { function: found.map(|found| found.name), file, line, inlined: true });
            file = if inlined.has_file { files.path(inlined.call.file, self.windows, self.meter) } else { None };
            line = inlined.call.line;
        }
        let found = match place.function {
            Some(index) => self.name(present, functions.functions[index as usize], names)?,
            None => None,
        };
        let is_poor = |found: &FoundName| !found.is_linkage && present.unit.root.has_linker_names();
        let name_is_poor = found.as_ref().is_none_or(is_poor);
        frames.push(Frame { function: found.map(|found| found.name), file, line, inlined: false });
        Ok(Some(Answer { frames, name_is_poor }))
    }

    /// The name of a function. What is damaged has none, and takes neither lines nor other names with it.
    fn name(
        &mut self,
        present: Present<'_>,
        name: DieName,
        names: &mut Names<'_, '_>,
    ) -> Result<Option<FoundName>, Fault> {
        match names.find(present, name, self.meter) {
            Ok(found) => Ok(found),
            Err(Fault::OutOfFuel) => Err(Fault::OutOfFuel),
            Err(fault) => {
                self.fault = self.fault.and(Err(fault));
                Ok(None)
            }
        }
    }
}

/// The source files of one unit, their paths put together once.
struct Files<'u> {
    unit: &'u Unit,
    table: Option<&'u lines::Table<'u>>,
    paths: HashMap<u64, Option<Arc<str>>>,
}

impl Files<'_> {
    fn path(&mut self, index: u64, windows: &mut Windows<'_>, meter: &mut Meter<'_>) -> Option<Arc<str>> {
        let table = self.table?;
        let read = || table.path(index, &self.unit.root, windows, meter).map(Arc::from);
        self.paths.entry(index).or_insert_with(read).clone()
    }
}
