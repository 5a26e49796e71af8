//! Crossing code without unwind tables by its frame pointer, when there is good reason to believe in it.
//!
//! Compilers that run inside programs (V8, the JVM) keep frame pointers, and some put code of that kind into the program
//! file too. Other code without tables may use the register for anything, and then the frame pointer is one of some frame
//! further up: a step by it would leave frames out, and nobody would see it. So when the step leads back to code with
//! tables, that code has to confirm that it called into code without tables. One case cannot be told: code without tables
//! and without frame pointers, reached through two calls by pointer of which the first went to a function with a frame
//! pointer. Then that function is missing.

use super::arch::{self, Call, Registers, Rule, call_before};
use super::stack::Stack;
use super::walk::rule_at;
use super::{End, eh_frame, module};

/// Linux maps nothing below (`vm.mmap_min_addr`): smaller values are numbers and not addresses.
const LOWEST_CODE: usize = 0x1_0000;
/// Words of a frame that are searched for the true return address.
const LONGEST_SEARCH: usize = 128;

/// The registers in the caller's frame of one that the tables do not describe.
#[cold]
#[inline(never)]
pub(super) fn step(registers: Registers, stack: &mut Stack<'_>) -> Result<Registers, End> {
    if !module::can_be_found() {
        // All there is are frame pointers, which most code does not keep: the end of their chain proves nothing.
        return arch::step_by_frame_pointer(registers, stack).ok_or(End::NoUnwindInfo);
    }
    if stack.is_at_program_entry(registers.sp) {
        return Err(End::Complete);
    }
    // A table that exists but is not understood says that this is no such code.
    if !is_foreign(registers.pc) {
        return Err(End::NoUnwindInfo);
    }
    if is_made_by_hand(registers.pc.wrapping_add(1)) {
        return Err(End::Complete);
    }
    arch::step_by_frame_pointer(registers, stack)
        .filter(|caller| is_credible(registers, *caller, stack))
        .ok_or(End::NoUnwindInfo)
}

fn is_credible(frame: Registers, caller: Registers, stack: &mut Stack<'_>) -> bool {
    let return_address = caller.pc.wrapping_add(1);
    if module::find(caller.pc).is_none() {
        // More generated code. Its return addresses need not follow a call (the JVM's interpreter makes its own).
        return caller.pc >= LOWEST_CODE && caller.pc >> arch::ADDRESS_BITS == 0;
    }
    match call_before(return_address) {
        Some(_) if is_foreign(caller.pc) => true,
        Some(Call::Direct(callee)) => is_foreign(callee),
        Some(Call::Indirect) => !has_return_address(frame.sp, caller.sp, stack),
        None => false,
    }
}

/// A return address to the beginning of a function is not from a call. Whoever made the stack put it there, so that its
/// first function returns to something (`makecontext` does).
fn is_made_by_hand(return_address: usize) -> bool {
    call_before(return_address).is_none()
        && module::find(return_address).is_some_and(|module| eh_frame::begins_function(&module, return_address))
}

fn is_foreign(code: usize) -> bool {
    rule_at(code).unpack() == Rule::Unknown
}

/// True when a word in `from..to` returns into code with tables that called code without: then the frame ends there, and
/// the frame pointer belongs to another.
fn has_return_address(from: usize, to: usize, stack: &mut Stack<'_>) -> bool {
    // The last word is the return address that is being doubted.
    (from..to.saturating_sub(size_of::<usize>())).step_by(size_of::<usize>()).take(LONGEST_SEARCH).any(|at| {
        stack.read(at).is_some_and(|word| {
            word >= LOWEST_CODE
                && !is_foreign(word - 1)
                && matches!(call_before(word), Some(Call::Direct(callee)) if is_foreign(callee))
        })
    })
}
