//! Recognising the call instruction before a return address.

use super::super::probe;
use core::ptr::with_exposed_provenance;

/// What called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Call {
    /// `call address`
    Direct(usize),
    /// `call` through a register or memory.
    Indirect,
}

/// The longest call: a prefix, the operation, two bytes for the addressing mode, four for a displacement.
const LONGEST: usize = 8;
const CALL_RELATIVE: u8 = 0xe8;
/// Together with 2 in the middle bits of the next byte.
const CALL_INDIRECT: u8 = 0xff;

/// The call that `return_address` returns from; `None` when the bytes before it are no call, or cannot be read.
pub(in super::super) fn call_before(return_address: usize) -> Option<Call> {
    let start = return_address.checked_sub(LONGEST)?;
    let page = |address: usize| address & !(probe::PAGE - 1);
    let (first, last) = (page(start), page(return_address - 1));
    if !probe::is_readable(first) || (last != first && !probe::is_readable(last)) {
        return None;
    }
    // SAFETY: the eight bytes are on one or two pages that can be read. They may be unmapped by another thread just now,
    // but only when this is no code that the thread is in; see the gap that `stack` describes.
    let bytes = unsafe { with_exposed_provenance::<[u8; LONGEST]>(start).read_volatile() };
    recognise(bytes, return_address)
}

pub(in super::super) fn recognise(bytes: [u8; LONGEST], return_address: usize) -> Option<Call> {
    let [_, _, _, operation, offset @ ..] = bytes;
    if operation == CALL_RELATIVE {
        return Some(Call::Direct(return_address.wrapping_add_signed(i32::from_le_bytes(offset) as isize)));
    }
    // The addressing mode says how long the instruction is; it has to end at the return address.
    let is_indirect = (2..LONGEST).any(|length| {
        let [operation, mode, ..] = bytes[LONGEST - length..] else { return false };
        operation == CALL_INDIRECT && mode >> 3 & 7 == 2 && length == 2 + operand_length(mode)
    });
    is_indirect.then_some(Call::Indirect)
}

/// Bytes that follow a ModR/M byte (Intel SDM, volume 2, table 2-2).
fn operand_length(mode: u8) -> usize {
    let (kind, register) = (mode >> 6, mode & 7);
    let index = usize::from(kind != 3 && register == 4);
    match kind {
        0 if register == 5 => 4,
        1 => index + 1,
        2 => index + 4,
        _ => index,
    }
}
