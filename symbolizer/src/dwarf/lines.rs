//! Source lines: runs a unit's line table once and picks the rows that the wanted addresses fall in.
//!
//! The table is a program for a small machine that emits rows of (address, file, line), in sequences of ascending
//! addresses. A row holds from its address up to that of the next row. Nothing is kept but the rows that are wanted.

use gimli::{AttributeValue, LineInstruction, LineProgramHeader, Reader as _, Section as _};

use super::Reader;
use super::fuel::{Fault, Meter};
use super::units::Unit;

/// Longest list of files and folders that is read, in bytes: each byte can take a hundred in memory.
const MAX_HEADER: u64 = 16 << 20;

/// Longest path of a source file, in bytes.
const MAX_PATH: usize = 16 << 10;

/// A place in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Index in the table's list of files.
    pub(super) file: u64,
    /// From 1; 0 when the compiler made the instruction from no line in particular.
    pub(super) line: u32,
}

/// The unit's line table with its list of files, if it has one.
pub(super) fn header<'d>(
    dwarf: &gimli::Dwarf<Reader<'d>>,
    unit: &Unit<'d>,
    meter: &mut Meter<'_>,
) -> Result<Option<LineProgramHeader<Reader<'d>>>, Fault> {
    let Some(offset) = unit.lines else { return Ok(None) };
    let length = header_length(dwarf, offset.0)?;
    if length > MAX_HEADER {
        return Err(Fault::OutOfFuel);
    }
    meter.burn(length)?;
    let (folder, name) = (unit.unit.comp_dir, unit.unit.name);
    let program = dwarf.debug_line.program(offset, unit.unit.address_size(), folder, name)?;
    Ok(Some(program.header().clone()))
}

/// The number of bytes that the list of folders and files takes.
fn header_length(dwarf: &gimli::Dwarf<Reader<'_>>, offset: usize) -> Result<u64, gimli::Error> {
    let mut input = *dwarf.debug_line.reader();
    input.skip(offset)?;
    let (_, format) = input.read_initial_length()?;
    let version = input.read_u16()?;
    if version >= 5 {
        // Sizes of addresses and segment selectors.
        input.skip(2)?;
    }
    Ok(input.read_length(format)? as u64)
}

/// The rows for `addresses`, which must be ascending; `None` for those in no sequence. On a fault, what was found up
/// to there is in `rows`.
pub(super) fn find_rows(
    header: &LineProgramHeader<Reader<'_>>,
    addresses: &[u64],
    rows: &mut [Option<Row>],
    meter: &mut Meter<'_>,
) -> Result<(), Fault> {
    let mut previous: Option<(u64, Row)> = None;
    // Index of the first address at or after that of the previous row.
    let mut next = 0;
    run(header, meter, |meter, address, row| {
        if let Some((start, row)) = previous {
            if start > address {
                // Out of order: the row is empty, and the next one starts further back.
                next = addresses.partition_point(|&a| a < address);
            }
            while let Some(&wanted) = addresses.get(next)
                && wanted < address
            {
                meter.burn(1)?;
                if rows[next].is_none() {
                    rows[next] = Some(row);
                }
                next += 1;
            }
        } else {
            next = addresses.partition_point(|&a| a < address);
        }
        previous = row.map(|row| (address, row));
        Ok(())
    })
}

/// Calls `each` with the bounds of each sequence.
pub(super) fn for_each_sequence(
    header: &LineProgramHeader<Reader<'_>>,
    meter: &mut Meter<'_>,
    mut each: impl FnMut(u64, u64),
) -> Result<(), Fault> {
    let mut start = None;
    run(header, meter, |_, address, row| {
        let first = *start.get_or_insert(address);
        if row.is_none() {
            if first < address {
                each(first, address);
            }
            start = None;
        }
        Ok(())
    })
}

/// Runs the program and calls `emit` with the address of each row, and its place in the source or `None` for the end
/// of a sequence. Rows of removed code, which linkers move to address 0 or to the end of the address space, are left
/// out.
fn run<'m, 'f, 'd>(
    header: &LineProgramHeader<Reader<'d>>,
    meter: &'m mut Meter<'f>,
    mut emit: impl FnMut(&mut Meter<'f>, u64, Option<Row>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let encoding = header.line_encoding();
    let last_addresses = u64::MAX >> (64 - 8 * u32::from(header.address_size().clamp(1, 8)));
    let mut machine = Machine::new();
    // Rows of the present sequence have been emitted.
    let mut is_open = false;
    let mut instructions = header.instructions();
    while let Some(instruction) = instructions.next_instruction(header)? {
        meter.burn(1)?;
        let emits = match instruction {
            LineInstruction::Special(opcode) => {
                let adjusted = opcode.wrapping_sub(header.opcode_base());
                machine.advance(u64::from(adjusted / encoding.line_range), &encoding);
                let lines = i64::from(encoding.line_base) + i64::from(adjusted % encoding.line_range);
                machine.line = machine.line.wrapping_add_signed(lines);
                true
            }
            LineInstruction::Copy => true,
            LineInstruction::EndSequence => {
                if is_open {
                    emit(meter, machine.address, None)?;
                }
                is_open = false;
                machine = Machine::new();
                false
            }
            LineInstruction::SetAddress(address) => {
                // The two highest addresses mark removed code, and so does going back.
                machine.removed = address == 0 || address < machine.address || address >= last_addresses - 1;
                machine.address = if machine.removed { machine.address } else { address };
                machine.operation = 0;
                false
            }
            LineInstruction::AdvancePc(operations) => {
                machine.advance(operations, &encoding);
                false
            }
            LineInstruction::ConstAddPc => {
                let adjusted = 255 - header.opcode_base();
                machine.advance(u64::from(adjusted / encoding.line_range), &encoding);
                false
            }
            LineInstruction::FixedAddPc(bytes) => {
                machine.advance_bytes(u64::from(bytes));
                machine.operation = 0;
                false
            }
            LineInstruction::AdvanceLine(lines) => {
                machine.line = machine.line.wrapping_add_signed(lines);
                false
            }
            LineInstruction::SetFile(file) => {
                machine.file = file;
                false
            }
            _ => false,
        };
        if emits && !machine.removed {
            let line = u32::try_from(machine.line).unwrap_or(0);
            is_open = true;
            emit(meter, machine.address, Some(Row { file: machine.file, line }))?;
        }
    }
    Ok(())
}

/// The registers that matter here.
struct Machine {
    address: u64,
    /// Which operation within an instruction, on machines that pack several in one.
    operation: u64,
    file: u64,
    line: u64,
    /// The code of this part of the sequence was removed by the linker, or no address has been set yet.
    removed: bool,
}

impl Machine {
    fn new() -> Self {
        Machine { address: 0, operation: 0, file: 1, line: 1, removed: true }
    }

    fn advance(&mut self, operations: u64, encoding: &gimli::LineEncoding) {
        let per_instruction = u64::from(encoding.maximum_operations_per_instruction.max(1));
        let operations = self.operation.wrapping_add(operations);
        let bytes = u64::from(encoding.minimum_instruction_length).wrapping_mul(operations / per_instruction);
        self.advance_bytes(bytes);
        self.operation = operations % per_instruction;
    }

    fn advance_bytes(&mut self, bytes: u64) {
        if !self.removed {
            self.address = self.address.wrapping_add(bytes);
        }
    }
}

/// The path of file number `index` of the table: as recorded, put together from the folder of the compilation, the
/// listed folder and the file's name.
pub(super) fn path(
    dwarf: &gimli::Dwarf<Reader<'_>>,
    unit: &Unit<'_>,
    header: &LineProgramHeader<Reader<'_>>,
    index: u64,
    meter: &mut Meter<'_>,
) -> Option<String> {
    // In versions before 5 files count from 1, and 0 stands for none.
    if index == 0 && header.version() < 5 {
        return None;
    }
    let file = header.file(index)?;
    let mut string = |value| super::string(dwarf, &unit.unit, value, meter).ok();
    let mut parts = vec![string(file.path_name())?];
    match file.directory_index() {
        0 => {}
        folder => parts.extend(header.directory(folder).and_then(&mut string)),
    }
    let folder = unit.unit.comp_dir.map(|folder| folder.slice());
    parts.extend(folder.or_else(|| header.directory(0).and_then(string)));
    // Later parts are relative to earlier ones: from the first absolute one on, none is needed.
    let used = parts.iter().position(|part| part.first() == Some(&b'/')).map_or(parts.len(), |at| at + 1);
    let mut path = String::new();
    for part in parts[..used].iter().rev() {
        if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path += &String::from_utf8_lossy(&part[..part.len().min(MAX_PATH)]);
    }
    (!path.is_empty()).then_some(path)
}

/// The file number in an attribute `DW_AT_call_file`.
pub(super) fn call_file(value: AttributeValue<Reader<'_>>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(index) => Some(index),
        value => value.udata_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuel::Fuel;
    use super::{Row, find_rows, for_each_sequence};
    use gimli::{DebugLine, DebugLineOffset, LineProgramHeader, RunTimeEndian};

    /// Advances the line by one and the address by `n` bytes (up to 17), and emits a row.
    const fn special(n: u8) -> u8 {
        // Opcode base 10, line base 1, line range 14: one line is 0 within the range.
        10 + n * 14
    }

    /// `DW_LNE_set_address`.
    fn at(address: u64) -> Vec<u8> {
        [&[0, 9, 2][..], &address.to_le_bytes()].concat()
    }

    /// `DW_LNE_end_sequence`, `n` bytes further on.
    fn end(n: u8) -> Vec<u8> {
        vec![2, n, 0, 1, 1]
    }

    /// A table of version 4 without files.
    fn table(program: &[Vec<u8>]) -> Vec<u8> {
        let header = [&[1, 1, 1, 1, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1][..], &[0, 0]].concat();
        let mut bytes = vec![4, 0];
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.extend(program.concat());
        [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
    }

    fn header(bytes: &[u8]) -> LineProgramHeader<super::Reader<'_>> {
        let section = DebugLine::from(super::Reader::new(bytes, RunTimeEndian::Little));
        section.program(DebugLineOffset(0), 8, None, None).expect("a line table").header().clone()
    }

    fn lines_at(program: &[Vec<u8>], addresses: &[u64]) -> Vec<u32> {
        let (bytes, fuel) = (table(program), Fuel::for_size(0));
        let mut rows = vec![None; addresses.len()];
        assert_eq!(find_rows(&header(&bytes), addresses, &mut rows, &mut fuel.meter()), Ok(()));
        rows.into_iter().map(|row: Option<Row>| row.map_or(0, |row| row.line)).collect()
    }

    fn sequences(program: &[Vec<u8>]) -> Vec<(u64, u64)> {
        let (bytes, fuel, mut found) = (table(program), Fuel::for_size(0), Vec::new());
        let each = |start, end| found.push((start, end));
        assert_eq!(for_each_sequence(&header(&bytes), &mut fuel.meter(), each), Ok(()));
        found
    }

    #[test]
    fn rows_hold_up_to_the_next_and_not_past_the_end() {
        // Lines 2 at 0x100, 3 and 4 both at 0x104 (the later counts), end at 0x108; then line 2 at 0x200.
        let program =
            [at(0x100), vec![special(0), special(4), special(0)], end(4), at(0x200), vec![special(0)], end(1)];
        let addresses = [0xff, 0x100, 0x103, 0x104, 0x107, 0x108, 0x1ff, 0x200, 0x201];
        assert_eq!(lines_at(&program, &addresses), [0, 2, 2, 4, 4, 0, 0, 2, 0]);
        assert_eq!(sequences(&program), [(0x100, 0x108), (0x200, 0x201)]);
    }

    #[test]
    fn sequences_may_come_in_any_order() {
        let program = [at(0x200), vec![special(0), special(8)], end(8), at(0x100), vec![special(0)], end(8)];
        assert_eq!(lines_at(&program, &[0x100, 0x107, 0x108, 0x200, 0x20f, 0x210]), [2, 2, 0, 2, 3, 0]);
    }

    #[test]
    fn removed_code_has_no_lines() {
        let dead = [at(0), vec![special(0), special(16)], end(16)].concat();
        let live = [at(0x10), vec![special(0)], end(8)].concat();
        assert_eq!(lines_at(&[dead, live.clone()], &[0x8, 0x10, 0x17, 0x18]), [0, 2, 2, 0]);
        // The second part of a sequence removed: its address would go back.
        let half = [at(0x100), vec![special(0)], at(0x1), vec![special(4)], end(8)].concat();
        let later = [at(0x200), vec![special(0)], end(8)].concat();
        let program = [half, later];
        assert_eq!(lines_at(&program, &[0x100, 0x104, 0x1ff, 0x200]), [0, 0, 0, 2]);
        assert_eq!(sequences(&program), [(0x200, 0x208)]);
        // The end of the address space.
        let last = [at(u64::MAX), vec![special(0)], end(0)].concat();
        assert_eq!(sequences(&[last, live]), [(0x10, 0x18)]);
    }

    #[test]
    fn rows_that_go_back_within_a_sequence() {
        // `DW_LNS_advance_pc` by 2^64 - 32: from 0x100 to 0xe0.
        let back = [&[2, 0xe0][..], &[0xff; 8], &[1]].concat();
        let program = [at(0x100), vec![special(0)], back, vec![special(0), special(8)], end(8)];
        assert_eq!(lines_at(&program, &[0xdf, 0xe0, 0xe8, 0xf0, 0x100]), [0, 3, 4, 0, 0]);
    }
}
