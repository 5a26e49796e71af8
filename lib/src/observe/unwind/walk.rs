//! The walk from frame to frame.

use super::arch::{self, Packed, Registers, Rule};
use super::stack::{Stack, StackBounds};
use super::{End, eh_frame, foreign, module, rule_cache};

/// Call `found` with each return address above the frame in `registers`, innermost first, until it or the stack ends.
#[inline(always)]
pub(super) fn walk(
    mut registers: Registers,
    bounds: &mut StackBounds,
    mut found: impl FnMut(usize) -> Result<(), End>,
) -> End {
    let mut stack = Stack::of_caller(registers.sp, bounds);
    loop {
        let quick = rule_cache::get(registers.pc).and_then(|rule| arch::step_quickly(rule, registers, &stack));
        registers = match quick {
            Some(caller) => caller,
            None => match step(registers, &mut stack) {
                Ok(caller) => caller,
                Err(end) => return end,
            },
        };
        if let Err(end) = found(registers.pc.wrapping_add(1)) {
            return end;
        }
    }
}

/// A step from an address that is not in the cache, by a rule that is not plain, or to a place that has to be checked.
#[cold]
#[inline(never)]
fn step(registers: Registers, stack: &mut Stack<'_>) -> Result<Registers, End> {
    match arch::step(rule_at(registers.pc), registers, stack) {
        Err(End::NoUnwindInfo) => foreign::step(registers, stack),
        step => step,
    }
}

/// What the tables say of an address, kept for the next time. Code outside all modules is [`Rule::Unknown`], which is not
/// kept: it comes and goes.
#[inline(always)]
pub(super) fn rule_at(pc: usize) -> Packed {
    rule_cache::get(pc).unwrap_or_else(|| look_up(pc))
}

#[cold]
#[inline(never)]
fn look_up(pc: usize) -> Packed {
    let Some(module) = module::find(pc) else { return Rule::Unknown.pack() };
    let rule = eh_frame::rule_for(&module, pc).pack();
    rule_cache::put(pc, rule);
    rule
}
