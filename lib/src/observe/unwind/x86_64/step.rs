//! Applying a rule: from the registers of a frame to those of its caller.

use super::super::End;
use super::super::stack::Stack;
use super::Registers;
use super::rule::{Base, Packed, Plain, Rule, SIGNAL_FP, SIGNAL_PC, SIGNAL_SP, SavedPointer};

const WORD: usize = 8;

/// The registers in the caller's frame, in the usual case: a plain rule, and nothing wrong. `None` says nothing but that
/// [`step`] must look.
///
/// This is the loop of a walk; it is apart and returns no reasons so that the registers stay in registers.
#[inline(always)]
pub(in super::super) fn step_quickly(rule: Packed, registers: Registers, stack: &Stack<'_>) -> Option<Registers> {
    let Plain { base, interrupted, cfa, saved } = rule.plain()?;
    let cfa = base_value(base, registers).wrapping_add(usize::from(cfa) * WORD);
    if cfa <= registers.sp {
        return None;
    }
    let address = stack.read_known(cfa - WORD).filter(|address| *address != 0)?;
    let slot = cfa.wrapping_sub(usize::from(saved) * WORD);
    let fp = if saved == 0 || slot < registers.sp { registers.fp } else { stack.read_known(slot)? };
    Some(Registers { pc: address.wrapping_sub(usize::from(!interrupted)), sp: cfa, fp })
}

/// A plain step, with what it depended on.
pub(in super::super) struct Tracked {
    /// `None`: this is the outermost frame, as its return address is 0.
    pub(in super::super) caller: Option<Registers>,
    /// The step begins at the frame pointer.
    pub(in super::super) reads_fp: bool,
    /// Address and content of the words that were read: the return address, and the caller's frame pointer if it was saved.
    pub(in super::super) return_slot: (usize, usize),
    pub(in super::super) saved_fp: Option<(usize, usize)>,
}

/// [`step_quickly`] for who wants to know all that. `None`: [`step`] must look.
#[inline(always)]
pub(in super::super) fn step_tracked(rule: Packed, registers: Registers, stack: &Stack<'_>) -> Option<Tracked> {
    let Plain { base, interrupted, cfa, saved } = rule.plain()?;
    let cfa = base_value(base, registers).wrapping_add(usize::from(cfa) * WORD);
    if cfa <= registers.sp {
        return None;
    }
    let address = stack.read_known(cfa - WORD)?;
    let slot = cfa.wrapping_sub(usize::from(saved) * WORD);
    let is_saved = saved != 0 && slot >= registers.sp;
    let saved_fp = if is_saved { Some((slot, stack.read_known(slot)?)) } else { None };
    let pc = address.wrapping_sub(usize::from(!interrupted));
    let fp = saved_fp.map_or(registers.fp, |(_, value)| value);
    let caller = (address != 0).then_some(Registers { pc, sp: cfa, fp });
    let reads_fp = matches!(base, Base::FramePointer);
    Some(Tracked { caller, reads_fp, return_slot: (cfa - WORD, address), saved_fp })
}

/// The registers in the caller's frame.
pub(in super::super) fn step(rule: Packed, registers: Registers, stack: &mut Stack<'_>) -> Result<Registers, End> {
    match rule.unpack() {
        Rule::Plain(plain) => step_plainly(plain, registers, stack),
        Rule::Unknown | Rule::Unsupported => Err(End::NoUnwindInfo),
        Rule::Outermost => Err(End::Complete),
        Rule::Signal => leave_signal(registers, stack),
        Rule::LinkageTable { threshold } => {
            let pushed = usize::from(registers.pc & 15 >= usize::from(threshold));
            let cfa = registers.sp.wrapping_add(WORD + pushed * WORD);
            return_to(cfa, registers.fp, false, stack)
        }
        Rule::Dereference { base, at, add, saved } => {
            let slot = base_value(base, registers).wrapping_add_signed(isize::from(at) * WORD as isize);
            let cfa = stack.read(slot).ok_or(End::BadFrame)?.wrapping_add(usize::from(add) * WORD);
            if cfa <= registers.sp {
                return Err(End::BadFrame);
            }
            let saved_at = match saved {
                SavedPointer::Same => None,
                SavedPointer::BelowCfa(words) => Some(cfa.wrapping_sub(usize::from(words) * WORD)),
                SavedPointer::AboveFramePointer(words) => Some(registers.fp.wrapping_add(usize::from(words) * WORD)),
            };
            let fp = match saved_at {
                Some(slot) => stack.read(slot).ok_or(End::BadFrame)?,
                None => registers.fp,
            };
            return_to(cfa, fp, false, stack)
        }
    }
}

fn base_value(base: Base, registers: Registers) -> usize {
    match base {
        Base::StackPointer => registers.sp,
        Base::FramePointer => registers.fp,
    }
}

/// The last part of a step: everything is known but the return address, which is below the CFA.
fn return_to(cfa: usize, fp: usize, interrupted: bool, stack: &mut Stack<'_>) -> Result<Registers, End> {
    match stack.read(cfa.wrapping_sub(WORD)) {
        None => Err(End::BadFrame),
        Some(0) => Err(End::Complete),
        Some(address) => Ok(Registers { pc: address.wrapping_sub(usize::from(!interrupted)), sp: cfa, fp }),
    }
}

/// A plain rule where [`step_quickly`] does not do: the frame lies beyond what was looked at so far, or is not further up
/// the same stack at all. Code that runs a function on another stack (stack growth in Rust's `stacker`, coroutine
/// libraries) leaves a frame there whose frame pointer points back to the old stack.
fn step_plainly(plain: Plain, registers: Registers, stack: &mut Stack<'_>) -> Result<Registers, End> {
    let cfa = base_value(plain.base, registers).wrapping_add(usize::from(plain.cfa) * WORD);
    let slot = cfa.wrapping_sub(usize::from(plain.saved) * WORD);
    let mut sp = registers.sp;
    if cfa <= sp || stack.read(cfa - WORD).is_none() {
        let lowest = slot.min(cfa.wrapping_sub(WORD));
        if plain.base == Base::StackPointer || !stack.move_to(lowest) {
            return Err(End::BadFrame);
        }
        sp = lowest;
    }
    // In the last instructions of a function the slot may lie below the stack pointer: the value has been popped and is in
    // its register again.
    let is_in_register = plain.saved == 0 || slot < sp;
    let fp = if is_in_register { registers.fp } else { stack.read(slot).ok_or(End::BadFrame)? };
    return_to(cfa, fp, plain.interrupted, stack)
}

/// From the kernel's frame for a signal to the frame that was interrupted, which may be on another stack.
fn leave_signal(registers: Registers, stack: &mut Stack<'_>) -> Result<Registers, End> {
    let mut saved = |offset: i64| stack.read(registers.sp.wrapping_add_signed(offset as isize)).ok_or(End::BadFrame);
    let interrupted = Registers { pc: saved(SIGNAL_PC)?, sp: saved(SIGNAL_SP)?, fp: saved(SIGNAL_FP)? };
    // The handler's frames are below the interrupted ones, unless it has a stack of its own.
    let is_above = interrupted.sp > registers.sp && stack.holds(interrupted.sp);
    if !is_above && !stack.move_to(interrupted.sp) {
        return Err(End::BadFrame);
    }
    Ok(interrupted)
}

/// The registers in the caller's frame by the frame pointer alone, if it can be one: the caller's frame pointer and the
/// return address are the two words that it points to.
pub(in super::super) fn step_by_frame_pointer(registers: Registers, stack: &mut Stack<'_>) -> Option<Registers> {
    let fp = registers.fp;
    if fp < registers.sp {
        return None;
    }
    let (caller, address) = (stack.read(fp)?, stack.read(fp.wrapping_add(WORD))?);
    Some(Registers { pc: address.checked_sub(1)?, sp: fp.wrapping_add(2 * WORD), fp: caller })
}
