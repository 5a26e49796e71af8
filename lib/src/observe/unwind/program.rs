//! The call frame program: from the instructions of a CIE and an FDE to the row for one address.
//!
//! Only three things are followed: the CFA, the return address and the frame pointer (DWARF 5, section 6.4.2).

use super::arch;
use super::cursor::{Cursor, Window};
use super::eh_frame::Cie;

/// How the CFA, the address of the caller's frame, is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cfa {
    Unset,
    Register {
        register: u8,
        offset: i32,
    },
    /// Where in the module the expression is (its length comes first).
    Expression(u32),
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// Still in the register.
    Same,
    /// Nowhere; for the return address this marks the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    AtCfa(i32),
    /// In memory; where in the module the expression for its address is (its length comes first).
    Expression(u32),
    /// In a place that is not followed: another register, or a computed value.
    Elsewhere,
}

/// One row of the table that a call frame program describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cfa: Cfa,
    pub(super) frame_pointer: Saved,
    pub(super) return_address: Saved,
}

/// Rows that can be remembered at once. Compilers nest them once, for a function's exits in the middle.
const REMEMBERED: usize = 8;

const START: Row = Row { cfa: Cfa::Unset, frame_pointer: Saved::Same, return_address: Saved::Same };

/// The row for `target`, in a function that begins at `start` and whose FDE holds `instructions`. `None` when the program
/// is broken, or does something that is not understood before it reaches the address.
///
/// Not inlined: its room on the stack is the largest, and is not needed while the entry is being looked for.
#[inline(never)]
pub(super) fn row_at(window: Window, cie: &Cie, instructions: Cursor, start: usize, target: usize) -> Option<Row> {
    let mut machine =
        Machine { window, cie, row: START, initial: START, remembered: [START; REMEMBERED], depth: 0, location: start };
    // The CIE's own instructions describe every function's first address: they do not advance.
    machine.run(cie.instructions, usize::MAX)?;
    machine.initial = machine.row;
    machine.location = start;
    machine.run(instructions, target)?;
    Some(machine.row)
}

struct Machine<'a> {
    window: Window,
    cie: &'a Cie,
    row: Row,
    /// The row after the CIE's instructions, to which registers can be restored.
    initial: Row,
    remembered: [Row; REMEMBERED],
    depth: usize,
    /// The first address that the current row is for.
    location: usize,
}

impl Machine<'_> {
    /// Run until the end, or to the instruction that goes beyond `target`.
    fn run(&mut self, mut code: Cursor, target: usize) -> Option<()> {
        while !code.is_empty() {
            let byte = code.u8()?;
            let operand = byte & 0x3f;
            match byte >> 6 {
                1 => self.advance(operand.into()),
                2 => {
                    let offset = self.factored_unsigned(&mut code)?;
                    self.set(operand.into(), Saved::AtCfa(offset));
                }
                3 => self.restore(operand.into()),
                _ => self.extended(operand, &mut code)?,
            }
            if self.location > target {
                break;
            }
        }
        Some(())
    }

    /// The instructions that have a whole byte for their number.
    fn extended(&mut self, operation: u8, code: &mut Cursor) -> Option<()> {
        match operation {
            0x00 => {} // nop
            0x01 => self.location = code.pointer(self.cie.pointer_encoding, 0)?,
            0x02 => self.advance(code.u8()?.into()),
            0x03 => self.advance(code.u16()?.into()),
            0x04 => self.advance(code.u32()?.into()),
            // offset_extended, and its signed form
            0x05 | 0x11 => {
                let register = code.uleb()?;
                let offset =
                    if operation == 0x05 { self.factored_unsigned(code)? } else { self.factored_signed(code)? };
                self.set(register, Saved::AtCfa(offset));
            }
            0x06 => self.restore(code.uleb()?),
            0x07 => self.set(code.uleb()?, Saved::Undefined),
            0x08 => self.set(code.uleb()?, Saved::Same),
            // register, val_offset, val_offset_sf
            0x09 | 0x14 | 0x15 => {
                let register = code.uleb()?;
                code.uleb()?;
                self.set(register, Saved::Elsewhere);
            }
            0x0a => {
                *self.remembered.get_mut(self.depth)? = self.row;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.row = *self.remembered.get(self.depth)?;
            }
            // def_cfa, and its signed form
            0x0c | 0x12 => {
                let register = small_register(code.uleb()?);
                let offset = if operation == 0x0c { unsigned(code)? } else { self.factored_signed(code)? };
                self.row.cfa = Cfa::Register { register, offset };
            }
            0x0d => {
                let register = small_register(code.uleb()?);
                let Cfa::Register { offset, .. } = self.row.cfa else {
                    return None;
                };
                self.row.cfa = Cfa::Register { register, offset };
            }
            // def_cfa_offset, and its signed form
            0x0e | 0x13 => {
                let offset = if operation == 0x0e { unsigned(code)? } else { self.factored_signed(code)? };
                let Cfa::Register { register, .. } = self.row.cfa else {
                    return None;
                };
                self.row.cfa = Cfa::Register { register, offset };
            }
            0x0f => self.row.cfa = Cfa::Expression(self.expression(code)?),
            // expression, val_expression
            0x10 | 0x16 => {
                let register = code.uleb()?;
                let expression = self.expression(code)?;
                let saved = if operation == 0x10 { Saved::Expression(expression) } else { Saved::Elsewhere };
                self.set(register, saved);
            }
            // GNU_args_size: only for landing pads
            0x2e => drop(code.uleb()?),
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, delta: u64) {
        self.location = self.location.saturating_add(delta.saturating_mul(self.cie.code_alignment) as usize);
    }

    fn set(&mut self, register: u64, saved: Saved) {
        if register == u64::from(arch::FRAME_POINTER) {
            self.row.frame_pointer = saved;
        } else if register == u64::from(arch::RETURN_ADDRESS) {
            self.row.return_address = saved;
        }
    }

    fn restore(&mut self, register: u64) {
        if register == u64::from(arch::FRAME_POINTER) {
            self.row.frame_pointer = self.initial.frame_pointer;
        } else if register == u64::from(arch::RETURN_ADDRESS) {
            self.row.return_address = self.initial.return_address;
        }
    }

    /// Remember where an expression is, and skip it.
    fn expression(&self, code: &mut Cursor) -> Option<u32> {
        let at = self.window.offset_of(code.address())?;
        let length = code.uleb()?;
        code.skip(usize::try_from(length).ok()?)?;
        Some(at)
    }

    fn factored_unsigned(&self, code: &mut Cursor) -> Option<i32> {
        let value = i64::try_from(code.uleb()?).ok()?;
        i32::try_from(value.checked_mul(self.cie.data_alignment)?).ok()
    }

    fn factored_signed(&self, code: &mut Cursor) -> Option<i32> {
        i32::try_from(code.sleb()?.checked_mul(self.cie.data_alignment)?).ok()
    }
}

fn unsigned(code: &mut Cursor) -> Option<i32> {
    i32::try_from(code.uleb()?).ok()
}

/// Register numbers that matter are small; all others are equally unsupported.
fn small_register(register: u64) -> u8 {
    u8::try_from(register).unwrap_or(u8::MAX)
}
