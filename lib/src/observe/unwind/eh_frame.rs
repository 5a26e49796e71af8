//! Finding the table entry of a function in `.eh_frame`, by the sorted index in `.eh_frame_hdr`.
//!
//! The formats are those of the Linux Standard Base ("Exception Frames"). `.debug_frame` is not loaded at run time.

use super::arch::Rule;
use super::cursor::{Cursor, OMITTED, Window};
use super::expression::{self, Form};
use super::module::Module;
use super::program::{Row, row_at};

/// The only kind of index that linkers write: pairs of 32-bit offsets from the index itself.
const SORTED_PAIRS: u8 = 0x3b;
/// Entries to look at when there is no index: about a millisecond's worth. Linkers leave it out when a file holds frames
/// that they do not understand.
const LONGEST_SCAN: usize = 100_000;

/// What functions have in common.
pub(super) struct Cie {
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    pub(super) pointer_encoding: u8,
    pub(super) instructions: Cursor,
    /// Frames of this kind were entered by an interruption: their caller's address is not a return address.
    signal_frame: bool,
    /// Entries carry a length and that many bytes that are not for us.
    augmented: bool,
}

/// One function.
struct Fde {
    cie: Cie,
    start: usize,
    length: usize,
    instructions: Cursor,
}

/// The rule for the instruction at `pc`.
pub(super) fn rule_for(module: &Module, pc: usize) -> Rule {
    match find(module, pc) {
        Some(fde) => rule_from(module.window, &fde, pc).unwrap_or(Rule::Unsupported),
        None => Rule::Unknown,
    }
}

/// True when a function that the tables describe has its first instruction at `address`.
pub(super) fn begins_function(module: &Module, address: usize) -> bool {
    find(module, address).is_some_and(|fde| fde.start == address)
}

fn rule_from(window: Window, fde: &Fde, pc: usize) -> Option<Rule> {
    let row = row_at(window, &fde.cie, fde.instructions, fde.start, pc)?;
    Rule::from_row(&Described { row, window, signal_frame: fde.cie.signal_frame })
}

/// A row together with what is needed to understand its expressions.
pub(super) struct Described {
    pub(super) row: Row,
    pub(super) signal_frame: bool,
    pub(super) window: Window,
}

impl Described {
    /// The form of an expression that the row refers to.
    pub(super) fn form(&self, expression: u32) -> Option<Form> {
        let mut code = self.window.cursor_at_offset(expression)?;
        let length = usize::try_from(code.uleb()?).ok()?;
        expression::recognise(code.split(length)?)
    }
}

fn find(module: &Module, pc: usize) -> Option<Fde> {
    let mut index = module.window.cursor(module.index)?;
    if index.u8()? != 1 {
        return None;
    }
    let (frames_encoding, count_encoding, table_encoding) = (index.u8()?, index.u8()?, index.u8()?);
    let frames = index.pointer(frames_encoding, module.index)?;
    let fde = if count_encoding != OMITTED && table_encoding == SORTED_PAIRS {
        let count = index.pointer(count_encoding, module.index)?;
        let offset = search(index, count, module.index, pc)?;
        let at = module.index.wrapping_add_signed(offset as isize);
        parse_fde(module, &mut module.window.cursor(at)?)?
    } else {
        scan(module, module.window.cursor(frames)?, pc)?
    };
    // The index only says which function begins before the address.
    fde.covers(pc).then_some(fde)
}

/// Binary search for the last pair whose function does not begin after `pc`; the second word of that pair.
fn search(table: Cursor, count: usize, index: usize, pc: usize) -> Option<i32> {
    let wanted = i32::try_from(pc.wrapping_sub(index) as isize).ok()?;
    let pair = |number: usize| {
        let mut at = table;
        at.skip(number.checked_mul(8)?)?;
        Some((at.i32()?, at.i32()?))
    };
    let (mut low, mut high) = (0, count.min(table.remaining() / 8));
    let mut found = None;
    while low < high {
        let middle = low + (high - low) / 2;
        let (begins, entry) = pair(middle)?;
        if begins <= wanted {
            found = Some(entry);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    found
}

/// Look at every entry in turn.
fn scan(module: &Module, mut frames: Cursor, pc: usize) -> Option<Fde> {
    for _ in 0..LONGEST_SCAN {
        let mut entry = frames;
        let length = frames.u32()?;
        if length == 0 {
            return None;
        }
        frames.skip(length as usize)?;
        // CIEs fail to parse as FDEs.
        if let Some(fde) = parse_fde(module, &mut entry)
            && fde.covers(pc)
        {
            return Some(fde);
        }
    }
    None
}

impl Fde {
    fn covers(&self, pc: usize) -> bool {
        pc.wrapping_sub(self.start) < self.length
    }
}

/// The contents of one entry: what follows the length. The 64-bit form does not occur in `.eh_frame`.
fn entry(at: &mut Cursor) -> Option<Cursor> {
    let length = at.u32()?;
    if length == 0 || length == u32::MAX {
        return None;
    }
    at.split(length as usize)
}

fn parse_fde(module: &Module, at: &mut Cursor) -> Option<Fde> {
    let mut body = entry(at)?;
    let from = body.address();
    let back = body.u32()?;
    if back == 0 {
        return None; // a CIE
    }
    let cie = parse_cie(&mut module.window.cursor(from.checked_sub(back as usize)?)?)?;
    let start = body.pointer(cie.pointer_encoding, module.index)?;
    // A length has the same size but is relative to nothing.
    let length = body.pointer(cie.pointer_encoding & 0x0f, 0)?;
    if cie.augmented {
        let skipped = usize::try_from(body.uleb()?).ok()?;
        body.skip(skipped)?;
    }
    Some(Fde { cie, start, length, instructions: body })
}

fn parse_cie(at: &mut Cursor) -> Option<Cie> {
    let mut body = entry(at)?;
    if body.u32()? != 0 {
        return None;
    }
    let version = body.u8()?;
    let mut augmentation = body;
    while body.u8()? != 0 {}
    if version == 4 {
        body.skip(2)?; // sizes of addresses and of segment selectors
    }
    let code_alignment = body.uleb()?;
    let data_alignment = body.sleb()?;
    let return_address = if version == 1 { body.u8()?.into() } else { body.uleb()? };
    if !matches!(version, 1 | 3 | 4) || return_address != u64::from(super::arch::RETURN_ADDRESS) {
        return None;
    }
    let mut cie = Cie {
        code_alignment,
        data_alignment,
        pointer_encoding: 0,
        instructions: body,
        signal_frame: false,
        augmented: false,
    };
    match augmentation.u8()? {
        0 => {}
        b'z' => {
            let length = usize::try_from(body.uleb()?).ok()?;
            let data = body.split(length)?;
            cie.instructions = body;
            cie.augmented = true;
            read_augmentation(&mut cie, augmentation, data)?;
        }
        _ => return None,
    }
    Some(cie)
}

/// The letters after `z` say what the augmentation data holds. An unknown letter hides what follows it, so the rest may not
/// be trusted to be absent: such a CIE is not understood.
fn read_augmentation(cie: &mut Cie, mut letters: Cursor, mut data: Cursor) -> Option<()> {
    loop {
        match letters.u8()? {
            0 => return Some(()),
            b'R' => cie.pointer_encoding = data.u8()?,
            // The personality routine and the kind of pointer to its data: not ours.
            b'P' => {
                let encoding = data.u8()?;
                data.pointer(encoding, 0)?;
            }
            b'L' => drop(data.u8()?),
            b'S' => cie.signal_frame = true,
            // aarch64: return addresses are signed with the B key; the frame is tagged.
            b'B' | b'G' => {}
            _ => return None,
        }
    }
}
