//! Which units to look in for which addresses.
//!
//! `.debug_aranges` says which unit an address belongs to without looking at any unit; GCC writes it, others do not. So
//! units that have no set of their own there are asked one by one: their first entry has the bounds, and if it has none
//! (some assemblers), their line table does.

use std::collections::HashSet;

use super::encoding::Encoding;
use super::fuel::{Fault, Meter};
use super::lines;
use super::sections::Windows;
use super::units::{DebugFile, Header};

/// How many units may claim one and the same address before further ones are ignored.
const MAX_CLAIMS: u8 = 8;

/// The addresses to look for in one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// Where the unit starts.
    pub(super) unit: u64,
    /// Indices into the sorted addresses, ascending.
    pub(super) addresses: Vec<u32>,
}

/// Finds out which units claim which addresses.
#[derive(Debug)]
pub(super) struct Assigner<'a, 's> {
    file: &'a DebugFile<'s>,
    windows: Windows<'s>,
    addresses: &'a [u64],
    /// How many units claim each address.
    claims: Vec<u8>,
    /// Units that have sets in `.debug_aranges`.
    in_sets: HashSet<u64>,
    /// (unit, address) as they were claimed.
    found: Vec<(u64, u32)>,
}

impl<'a, 's> Assigner<'a, 's> {
    /// `addresses` must be ascending.
    pub(super) fn new(file: &'a DebugFile<'s>, addresses: &'a [u64]) -> Self {
        let windows = Windows::new(file.sections);
        Assigner {
            file,
            windows,
            addresses,
            claims: vec![0; addresses.len()],
            in_sets: HashSet::new(),
            found: Vec::new(),
        }
    }

    /// The tasks by what `.debug_aranges` says and by what all units say that are not in there; for addresses that none
    /// of these claims, by what the other units themselves say. Units that cannot be read are left out; the first reason
    /// is in the second result.
    pub(super) fn first_tasks(&mut self, meter: &mut Meter<'_>) -> (Vec<Task>, Result<(), Fault>) {
        let result = self.read_sets(meter);
        // A damaged section only means that units have to be asked.
        let mut result = if result == Err(Fault::OutOfFuel) { result } else { Ok(()) };
        let all: Vec<u32> = (0..self.addresses.len() as u32).collect();
        let file = self.file;
        let (in_sets, others): (Vec<&Header>, Vec<&Header>) =
            file.units().iter().partition(|header| self.in_sets.contains(&header.start));
        result = result.and(self.ask(&others, &all, meter));
        let unclaimed: Vec<u32> = all.into_iter().filter(|&index| self.claims[index as usize] == 0).collect();
        result = result.and(self.ask(&in_sets, &unclaimed, meter));
        (self.take_tasks(), result)
    }

    /// Tasks for those of the addresses with the indices `rest` that the units claim themselves and `.debug_aranges` has
    /// given to others.
    pub(super) fn second_tasks(
        &mut self,
        rest: &[u32],
        done: &[Task],
        meter: &mut Meter<'_>,
    ) -> (Vec<Task>, Result<(), Fault>) {
        let in_sets: Vec<&Header> =
            self.file.units().iter().filter(|header| self.in_sets.contains(&header.start)).collect();
        let result = self.ask(&in_sets, rest, meter);
        let done: HashSet<(u64, u32)> =
            done.iter().flat_map(|task| task.addresses.iter().map(|&index| (task.unit, index))).collect();
        self.found.retain(|claim| !done.contains(claim));
        (self.take_tasks(), result)
    }

    fn take_tasks(&mut self) -> Vec<Task> {
        self.found.sort_unstable();
        self.found.dedup();
        let mut tasks: Vec<Task> = Vec::new();
        for (unit, index) in self.found.drain(..) {
            match tasks.last_mut().filter(|task| task.unit == unit) {
                Some(task) => task.addresses.push(index),
                None => tasks.push(Task { unit, addresses: vec![index] }),
            }
        }
        tasks
    }

    /// Notes what a unit claims of all addresses.
    fn claim(&mut self, unit: u64, low: u64, high: u64) {
        for index in indices_between(self.addresses, low, high) {
            let claims = &mut self.claims[index as usize];
            if *claims < MAX_CLAIMS && self.found.last() != Some(&(unit, index)) {
                *claims += 1;
                self.found.push((unit, index));
            }
        }
    }

    /// Reads `.debug_aranges`.
    fn read_sets(&mut self, meter: &mut Meter<'_>) -> Result<(), Fault> {
        let mut at = 0;
        while at < self.windows.aranges.len() {
            let set = self.windows.aranges.read(at, meter, |cursor, _| {
                let (length, is_64) = cursor.initial_length()?;
                let end = cursor.offset().saturating_add(length);
                let version = cursor.u16()?;
                let unit = cursor.word(is_64)?;
                let (address_size, segment_size) = (cursor.u8()?, cursor.u8()?);
                // Pairs start at a multiple of their size.
                let pair = 2 * u64::from(address_size);
                let first = at.saturating_add((cursor.position() as u64).next_multiple_of(pair.max(1)));
                let is_known = version == 2 && segment_size == 0 && matches!(address_size, 4 | 8);
                Ok((unit, address_size, first, end, is_known))
            })?;
            let (unit, address_size, first, end, is_known) = set;
            if is_known && self.file.unit_at(unit).is_some() {
                self.read_set(unit, address_size, first, end, meter)?;
            }
            at = end;
        }
        Ok(())
    }

    fn read_set(
        &mut self,
        unit: u64,
        address_size: u8,
        mut at: u64,
        end: u64,
        meter: &mut Meter<'_>,
    ) -> Result<(), Fault> {
        /// Pairs that are read from the window at once.
        const BATCH: usize = 64;
        let last = Encoding { version: 2, address_size, is_64: false }.last_address();
        let size = u64::from(address_size);
        while at.saturating_add(2 * size) <= end {
            let (pairs, count, is_end) = self.windows.aranges.read_until(at, end, meter, |cursor, _| {
                let mut pairs = [(0, 0); BATCH];
                for (count, pair) in pairs.iter_mut().enumerate() {
                    if (cursor.left() as u64) < 2 * size && count > 0 {
                        return Ok((pairs, count, false));
                    }
                    *pair = (cursor.uint(address_size)?, cursor.uint(address_size)?);
                    if *pair == (0, 0) {
                        return Ok((pairs, count, true));
                    }
                }
                Ok((pairs, BATCH, false))
            })?;
            meter.burn(1 + count as u64)?;
            for &(low, length) in &pairs[..count] {
                // Removed code is at address 0 or at the end of the address space.
                if low != 0 && low < last - 1 && length != 0 {
                    self.in_sets.insert(unit);
                    self.claim(unit, low, low.saturating_add(length));
                }
            }
            if is_end {
                break;
            }
            at = at.saturating_add(2 * size * count as u64);
        }
        Ok(())
    }

    /// Asks units which of the addresses with the indices `wanted` they claim.
    fn ask(&mut self, units: &[&Header], wanted: &[u32], meter: &mut Meter<'_>) -> Result<(), Fault> {
        let mut result = Ok(());
        if wanted.is_empty() {
            return result;
        }
        let addresses: Vec<u64> = wanted.iter().map(|&index| self.addresses[index as usize]).collect();
        let mut found = Vec::new();
        for header in units {
            // Units of types have no code, and partial ones are imported by others that say what they cover.
            if matches!(header.kind, gimli::DW_UT_type | gimli::DW_UT_split_type | gimli::DW_UT_partial) {
                continue;
            }
            found.clear();
            let each = |low, high| found.extend(indices_between(&addresses, low, high));
            result = result.and(extents(self.file, header, &mut self.windows, meter, each));
            for &index in &found {
                let index = wanted[index as usize];
                let claims = &mut self.claims[index as usize];
                if *claims < MAX_CLAIMS {
                    *claims += 1;
                    self.found.push((header.start, index));
                }
            }
            if result == Err(Fault::OutOfFuel) {
                break;
            }
        }
        result
    }
}

/// Calls `each` with the bounds of what a unit claims: what its first entry says, or else the sequences of its line
/// table (all that some assemblers write).
fn extents(
    file: &DebugFile<'_>,
    header: &Header,
    windows: &mut Windows<'_>,
    meter: &mut Meter<'_>,
    mut each: impl FnMut(u64, u64),
) -> Result<(), Fault> {
    let root = file.root(header, windows, meter)?;
    let mut is_any = false;
    root.extent.for_each(windows, header.encoding, root.bases, meter, |low, high| {
        is_any = true;
        each(low, high);
    })?;
    if !is_any && let Some(offset) = root.lines {
        let mut buffer = Vec::new();
        let table = lines::Table::read(windows, offset, header.encoding, &mut buffer, meter)?;
        lines::for_each_sequence(&table, meter, each)?;
    }
    Ok(())
}

/// Indices of those of `addresses` (ascending) in `low..high`.
pub(super) fn indices_between(addresses: &[u64], low: u64, high: u64) -> std::ops::Range<u32> {
    let start = addresses.partition_point(|&address| address < low);
    let length = addresses[start..].partition_point(|&address| address < high);
    start as u32..(start + length) as u32
}
