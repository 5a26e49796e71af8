//! Reading the registers of the calling thread.

use super::super::stack::StackBounds;
use super::super::trail::{Request, recall_from};
use super::super::walk::walk;
use super::super::{End, Walk};
use super::Registers;
use super::weak::stack_end;
use core::arch::{asm, naked_asm};

/// Start a walk in the frame of the function that calls this.
///
/// Written in assembly so that the state is exactly the caller's after the call returns, whatever the compiler does: the
/// return address is in the caller, its stack pointer is above it, and nobody has touched its frame pointer.
///
/// # Safety
/// `out` points to `length` words; all pointers are exclusive for the time of the call.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn enter(out: *mut usize, length: usize, bounds: *mut StackBounds) -> Walk {
    naked_asm!(
        "mov rcx, qword ptr [rsp]",
        "lea r8, [rsp + 8]",
        "mov r9, rbp",
        "jmp {walk_from}",
        walk_from = sym walk_from,
    )
}

/// As [`enter`], for a walk that may be known.
///
/// # Safety
/// The request is the caller's, and everything in it.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn enter_recalling(request: *mut Request) {
    naked_asm!(
        "mov rsi, qword ptr [rsp]",
        "lea rdx, [rsp + 8]",
        "mov rcx, rbp",
        "jmp {recall_from}",
        recall_from = sym recall_from,
    )
}

/// The second half of [`enter`]: its arguments and the three registers.
unsafe extern "C" fn walk_from(
    out: *mut usize,
    length: usize,
    bounds: *mut StackBounds,
    return_address: usize,
    sp: usize,
    fp: usize,
) -> Walk {
    let mut frames = 0;
    // SAFETY: the caller of `enter` vouches for the pointer.
    let bounds = unsafe { &mut *bounds };
    let end = walk(Registers { pc: return_address.wrapping_sub(1), sp, fp }, bounds, |address| {
        if frames == length {
            return Err(End::DepthLimit);
        }
        // SAFETY: `frames < length`, and `out` points to that many words.
        unsafe { out.add(frames).write(address) };
        frames += 1;
        Ok(())
    });
    Walk { frames, end }
}

/// Where the stack of the calling thread may end: the two addresses that the C library keeps at the top of stacks.
///
/// A thread made by the C library has its control block there, also on a stack that the program supplied; the address is
/// at `fs:0` by the ABI. The first thread's control block is elsewhere, but its stack ends at `__libc_stack_end` (0 where
/// that does not exist). Neither says by itself which stack the thread is on.
#[inline(always)]
pub(in super::super) fn stack_tops() -> (usize, usize) {
    let control_block: usize;
    // SAFETY: reads the word at `fs:0`, which exists in every thread.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) control_block, options(pure, readonly, nostack, preserves_flags))
    };
    (control_block, stack_end())
}
