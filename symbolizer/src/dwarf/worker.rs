//! The answers for the addresses of one unit.

use std::collections::HashMap;
use std::sync::Arc;

use super::Answer;
use super::assign::Task;
use super::cursor::Cursor;
use super::fuel::{Fault, Meter, Spot};
use super::functions::{self, Functions};
use super::lines::{self, Row};
use super::names::{FoundName, Interned, Names, Present};
use super::sections::Windows;
use super::units::{DebugFile, Unit};
use super::window;
use crate::Frame;

/// One answer for each address of a task, and why some or all of them are missing.
pub(super) type Outcome = (Vec<Option<Answer>>, Result<(), Fault>);

/// Looks up the addresses of one unit after the other.
#[derive(Debug)]
pub(super) struct Worker<'w, 's> {
    file: &'w DebugFile<'s>,
    addresses: &'w [u64],
    names: Names<'w, 's>,
    meter: Meter<'w>,
    /// Memory for the entries of the present unit and for its line table.
    buffers: (Vec<u8>, Vec<u8>),
}

impl<'w, 's> Worker<'w, 's> {
    pub(super) fn new(
        file: &'w DebugFile<'s>,
        supplementary: Option<&'w DebugFile<'s>>,
        interned: &'w Interned,
        addresses: &'w [u64],
        meter: Meter<'w>,
    ) -> Self {
        let names = Names::new(file, supplementary, interned);
        Worker { file, addresses, names, meter, buffers: (Vec::new(), Vec::new()) }
    }

    /// Looks up the addresses of a task.
    pub(super) fn run(&mut self, task: &Task) -> Outcome {
        let (mut entries, mut lines) = std::mem::take(&mut self.buffers);
        let result = self.look_up(task, &mut entries, &mut lines);
        self.buffers = (entries, lines);
        result.unwrap_or_else(|fault| (Vec::new(), Err(fault)))
    }

    fn look_up(&mut self, task: &Task, entries: &mut Vec<u8>, lines: &mut Vec<u8>) -> Result<Outcome, Fault> {
        let Some(header) = self.file.unit_at(task.unit) else { return Ok((Vec::new(), Ok(()))) };
        let windows = &mut self.names.main.windows;
        let unit = self.file.unit(header, windows, &mut self.meter)?;
        let bytes = window::whole(&windows.info, header.start, header.end, entries, &mut self.meter)?;
        let spot = Spot { section: ".debug_info", offset: header.start };
        let entries = Cursor::new(bytes, spot, windows.endian);
        let addresses: Vec<u64> = task.addresses.iter().map(|&index| self.addresses[index as usize]).collect();
        let (functions, mut result) = functions::find(windows, &unit, entries, &addresses, &mut self.meter);
        let mut rows = vec![None; addresses.len()];
        let table =
            unit.root.lines.map(|offset| lines::Table::read(windows, offset, header.encoding, lines, &mut self.meter));
        let table = table.transpose().unwrap_or_else(|fault| {
            result = result.and(Err(fault));
            None
        });
        if let Some(table) = &table {
            result = result.and(lines::find_rows(table, &addresses, &mut rows, &mut self.meter));
        }
        let mut files = Files { unit: &unit, table: table.as_ref(), paths: HashMap::new() };
        let present = Present { unit: &unit, entries };
        let mut answers = Vec::with_capacity(addresses.len());
        for (place, row) in functions.places.iter().zip(rows) {
            match self.answer(present, &functions, place, row, &mut files) {
                Ok(answer) => answers.push(answer),
                Err(fault) => {
                    result = result.and(Err(fault));
                    answers.push(None);
                }
            }
        }
        Ok((answers, result))
    }

    /// Puts together the frames of one address: each call's place in the source is that of the next frame.
    fn answer(
        &mut self,
        present: Present<'_>,
        functions: &Functions,
        place: &functions::Place,
        row: Option<Row>,
        files: &mut Files<'_>,
    ) -> Result<Option<Answer>, Fault> {
        self.meter.burn(1 + place.inlined.len() as u64)?;
        if place.function.is_none() && row.is_none() {
            return Ok(None);
        }
        let mut frames = Vec::with_capacity(place.inlined.len() + 1);
        let mut file = row.and_then(|row| self.path(files, row.file));
        let mut line = row.map_or(0, |row| row.line);
        for &index in place.inlined.iter().rev() {
            let inlined = &functions.inlined[index as usize];
            let found = self.names.find(present, inlined.name, &mut self.meter)?;
            frames.push(Frame { function: found.map(|found| found.name), file, line, inlined: true });
            file = if inlined.has_file { self.path(files, inlined.call.file) } else { None };
            line = inlined.call.line;
        }
        let found = match place.function {
            Some(index) => self.names.find(present, functions.functions[index as usize], &mut self.meter)?,
            None => None,
        };
        let is_poor = |found: &FoundName| !found.is_linkage && present.unit.root.has_linker_names();
        let name_is_poor = found.as_ref().is_none_or(is_poor);
        frames.push(Frame { function: found.map(|found| found.name), file, line, inlined: false });
        Ok(Some(Answer { frames, name_is_poor }))
    }

    fn path(&mut self, files: &mut Files<'_>, index: u64) -> Option<Arc<str>> {
        let (windows, meter) = (&mut self.names.main.windows, &mut self.meter);
        files.path(index, windows, meter)
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
