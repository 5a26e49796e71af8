//! Runs a line table's program once and picks the rows that the wanted addresses fall in.
//!
//! The program emits rows of (address, file, line), in sequences of ascending addresses. A row holds from its address up
//! to that of the next row. Nothing is kept but the rows that are wanted.

use super::{Row, Table};
use crate::dwarf::cursor::Cursor;
use crate::dwarf::fuel::{Fault, Meter};

/// The rows for `addresses`, which must be ascending; `None` for those in no sequence. On a fault, what was found up
/// to there is in `rows`.
pub(in crate::dwarf) fn find_rows(
    table: &Table<'_>,
    addresses: &[u64],
    rows: &mut [Option<Row>],
    meter: &mut Meter<'_>,
) -> Result<(), Fault> {
    let mut previous: Option<(u64, Row)> = None;
    // Index of the first address at or after that of the previous row.
    let mut next = 0;
    run(table, meter, |meter, address, row| {
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
pub(in crate::dwarf) fn for_each_sequence(
    table: &Table<'_>,
    meter: &mut Meter<'_>,
    mut each: impl FnMut(u64, u64),
) -> Result<(), Fault> {
    let mut start = None;
    run(table, meter, |_, address, row| {
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
fn run<'f>(
    table: &Table<'_>,
    meter: &mut Meter<'f>,
    mut emit: impl FnMut(&mut Meter<'f>, u64, Option<Row>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut machine = Machine::new(table);
    // Rows of the present sequence have been emitted.
    let mut is_open = false;
    let mut program = table.program;
    while !program.is_empty() {
        meter.burn(1)?;
        let opcode = program.u8()?;
        match opcode.checked_sub(table.opcode_base) {
            Some(adjusted) => machine.special(adjusted),
            None => match gimli::DwLns(opcode) {
                // Extended ones.
                gimli::DwLns(0) => {
                    if machine.extended(&mut program)? {
                        if is_open {
                            emit(meter, machine.address, None)?;
                        }
                        is_open = false;
                        machine = Machine::new(table);
                    }
                    continue;
                }
                gimli::DW_LNS_copy => {}
                opcode => {
                    machine.standard(opcode, &mut program)?;
                    continue;
                }
            },
        }
        if !machine.removed {
            let line = u32::try_from(machine.line).unwrap_or(0);
            is_open = true;
            emit(meter, machine.address, Some(Row { file: machine.file, line }))?;
        }
    }
    Ok(())
}

/// The registers that matter here.
struct Machine<'t> {
    table: &'t Table<'t>,
    address: u64,
    /// Which operation within an instruction.
    operation: u64,
    file: u64,
    line: u64,
    /// The code of this part of the sequence was removed by the linker, or no address has been set yet.
    removed: bool,
}

impl<'t> Machine<'t> {
    fn new(table: &'t Table<'t>) -> Self {
        Machine { table, address: 0, operation: 0, file: 1, line: 1, removed: true }
    }

    #[inline]
    fn special(&mut self, adjusted: u8) {
        let table = self.table;
        self.advance(u64::from(adjusted / table.line_range));
        let lines = i64::from(table.line_base) + i64::from(adjusted % table.line_range);
        self.line = self.line.wrapping_add_signed(lines);
    }

    /// An opcode with arguments, other than the extended ones.
    #[inline]
    fn standard(&mut self, opcode: gimli::DwLns, program: &mut Cursor<'_>) -> Result<(), Fault> {
        let table = self.table;
        match opcode {
            gimli::DW_LNS_advance_pc => {
                let operations = program.uleb()?;
                self.advance(operations);
            }
            gimli::DW_LNS_advance_line => self.line = self.line.wrapping_add_signed(program.sleb()?),
            gimli::DW_LNS_set_file => self.file = program.uleb()?,
            gimli::DW_LNS_set_column | gimli::DW_LNS_set_isa => program.skip_leb()?,
            gimli::DW_LNS_const_add_pc => {
                self.advance(u64::from((255 - table.opcode_base) / table.line_range));
            }
            gimli::DW_LNS_fixed_advance_pc => {
                let bytes = program.u16()?;
                self.advance_bytes(u64::from(bytes));
                self.operation = 0;
            }
            gimli::DW_LNS_negate_stmt
            | gimli::DW_LNS_set_basic_block
            | gimli::DW_LNS_set_prologue_end
            | gimli::DW_LNS_set_epilogue_begin => {}
            gimli::DwLns(unknown) => {
                let arguments = table.arguments.get(usize::from(unknown).wrapping_sub(1));
                for _ in 0..arguments.copied().unwrap_or(0) {
                    program.skip_leb()?;
                }
            }
        }
        Ok(())
    }

    /// An extended opcode; says whether it ends the sequence.
    fn extended(&mut self, program: &mut Cursor<'_>) -> Result<bool, Fault> {
        let length = program.uleb()?;
        let start = program.position();
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        if length == 0 {
            return Ok(false);
        }
        let opcode = gimli::DwLne(program.u8()?);
        if opcode == gimli::DW_LNE_set_address {
            // By its own length rather than what the header says: some linkers' scripts mix sizes.
            let address = program.uint(u8::try_from(length - 1).unwrap_or(0))?;
            let last = self.table.encoding.last_address();
            // The two highest addresses mark removed code, and so does going back.
            self.removed = address == 0 || address < self.address || address >= last - 1;
            self.address = if self.removed { self.address } else { address };
            self.operation = 0;
        }
        program.seek(end)?;
        Ok(opcode == gimli::DW_LNE_end_sequence)
    }

    #[inline]
    fn advance(&mut self, operations: u64) {
        let table = self.table;
        let bytes = match u64::from(table.operations) {
            0 | 1 => operations,
            per_instruction => {
                let operations = self.operation.wrapping_add(operations);
                self.operation = operations % per_instruction;
                operations / per_instruction
            }
        };
        self.advance_bytes(u64::from(table.minimum_length).wrapping_mul(bytes));
    }

    #[inline]
    fn advance_bytes(&mut self, bytes: u64) {
        if !self.removed {
            self.address = self.address.wrapping_add(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{find_rows, for_each_sequence};
    use crate::dwarf::cursor::Cursor;
    use crate::dwarf::encoding::Encoding;
    use crate::dwarf::fuel::{Fuel, Spot};
    use crate::dwarf::lines::{Row, Table};
    use gimli::RunTimeEndian;

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

    fn header(bytes: &[u8]) -> Table<'_> {
        let (spot, fuel) = (Spot { section: ".debug_line", offset: 0 }, Fuel::for_size(0));
        let unit = Encoding { version: 4, address_size: 8, is_64: false };
        let mut cursor = Cursor::new(bytes, spot, RunTimeEndian::Little);
        Table::parse(&mut cursor, unit, &mut fuel.meter()).expect("a line table")
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
