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

#[cfg(test)]
mod tests {
    use super::{Assigner, Task};
    use crate::dwarf::fuel::Fuel;
    use crate::dwarf::testing::{bytes, sections, with_length};
    use crate::dwarf::units::DebugFile;

    /// A unit of version 4 whose first entry covers `low..low + length`.
    fn unit(low: u64, length: u64) -> Vec<u8> {
        with_length(&bytes(&[(4, 2), (0, 4), (8, 1), (1, 0), (low, 8), (length, 8)]))
    }

    /// A set of `.debug_aranges` for the unit at `unit`.
    fn set(unit: u64, ranges: &[(u64, u64)]) -> Vec<u8> {
        let mut numbers = vec![(2, 2), (unit, 4), (8, 1), (0, 1), (0, 4)];
        numbers.extend(ranges.iter().flat_map(|&(low, length)| [(low, 8), (length, 8)]));
        numbers.extend([(0, 8), (0, 8)]);
        with_length(&bytes(&numbers))
    }

    /// Tasks as (unit, addresses): of the first round, then of the second for all addresses.
    fn tasks(units: &[Vec<u8>], sets: &[Vec<u8>], addresses: &[u64]) -> [Vec<(u64, Vec<u64>)>; 2] {
        let abbreviations = bytes(&[(1, 0), (0x11, 0), (0, 1), (0x11, 0), (1, 0), (0x12, 0), (7, 0), (0, 2), (0, 1)]);
        let contents =
            [(".debug_info", units.concat()), (".debug_aranges", sets.concat()), (".debug_abbrev", abbreviations)];
        let (sections, fuel) = (sections(&contents), Fuel::for_size(0));
        let meter = &mut fuel.meter();
        let (file, result) = DebugFile::new(&sections, meter);
        assert_eq!((result, file.units().len()), (Ok(()), units.len()));
        let mut assigner = Assigner::new(&file, addresses);
        let (first, result) = assigner.first_tasks(meter);
        assert_eq!(result, Ok(()));
        let all: Vec<u32> = (0..addresses.len() as u32).collect();
        let (second, result) = assigner.second_tasks(&all, &first, meter);
        assert_eq!(result, Ok(()));
        let told = |task: &Task| {
            let addresses = task.addresses.iter().map(|&index| addresses[index as usize]).collect();
            (task.unit, addresses)
        };
        [first.iter().map(told).collect(), second.iter().map(told).collect()]
    }

    /// Bytes of a unit.
    const SIZE: u64 = 28;

    #[test]
    fn units_without_sets_are_asked_and_sets_are_believed_first() {
        let units = [unit(0x1000, 0x100), unit(0x2000, 0x100), unit(0x3000, 0x100)];
        // The first unit has two ranges, the second none of its own; the third's set leaves half of it out.
        let sets = [set(0, &[(0x1000, 0x100), (0x5000, 0x10)]), set(2 * SIZE, &[(0x3000, 0x80), (0, 0x10)])];
        let [first, second] = tasks(&units, &sets, &[8, 0x1000, 0x10ff, 0x1100, 0x2050, 0x307f, 0x3080, 0x500f]);
        let expected = [(0, vec![0x1000, 0x10ff, 0x500f]), (SIZE, vec![0x2050]), (2 * SIZE, vec![0x307f, 0x3080])];
        assert_eq!((first, second), (expected.to_vec(), vec![]));
    }

    #[test]
    fn what_a_set_gives_to_the_wrong_unit_is_found_in_the_second_round() {
        let units = [unit(0x1000, 0x100), unit(0x2000, 0x100)];
        let sets = [set(0, &[(0x1000, 0x100), (0x2000, 0x100)]), set(SIZE, &[(0x8000, 1)])];
        let [first, second] = tasks(&units, &sets, &[0x1000, 0x2000]);
        assert_eq!(first, [(0, vec![0x1000, 0x2000])]);
        assert_eq!(second, [(SIZE, vec![0x2000])]);
    }

    #[test]
    fn sets_that_make_no_sense_do_no_harm() {
        let units = [unit(0x1000, 0x100), unit(0x2000, 0x100)];
        // For a unit that is not there; cut short; not ended.
        let elsewhere = set(5, &[(0x1000, 0x100)]);
        let mut cut = set(SIZE, &[(0x2000, 0x100)]);
        cut.truncate(20);
        let expected = [(0, vec![0x1000]), (SIZE, vec![0x2000])];
        for sets in [vec![elsewhere, cut], vec![vec![0xff; 7]], vec![with_length(&[])], vec![vec![0, 0]]] {
            assert_eq!(tasks(&units, &sets, &[0x1000, 0x2000])[0], expected, "{sets:x?}");
        }
    }

    #[test]
    fn many_units_that_claim_one_address() {
        let units = vec![unit(0x1000, 0x100); 20];
        let [first, _] = tasks(&units, &[], &[0x1000]);
        assert_eq!(first.len(), 8);
    }
}
