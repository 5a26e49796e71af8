//! x86-64 (System V ABI).

mod call;
mod entry;
mod rule;
mod step;
mod weak;

#[cfg(test)]
pub(super) use call::recognise;
pub(super) use call::{Call, call_before};
pub(super) use entry::{enter, enter_recalling, stack_tops};
#[cfg(test)]
pub(super) use rule::{Base, Plain, SavedPointer};
pub(super) use rule::{Packed, Rule};
pub(super) use step::{Tracked, step, step_by_frame_pointer, step_quickly, step_tracked};
pub(super) use weak::find_object;

/// DWARF register numbers (System V ABI, AMD64 supplement, figure 3.36).
pub(super) const FRAME_POINTER: u8 = 6;
pub(super) const STACK_POINTER: u8 = 7;
pub(super) const RETURN_ADDRESS: u8 = 16;

/// Programs live below this address (48-bit virtual addresses, of which the kernel keeps the upper half).
pub(super) const ADDRESS_BITS: u32 = 47;

/// The registers that are followed from frame to frame.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    /// The address to look up: inside the instruction that the frame is executing. For a call this is the return address
    /// minus one, since a call may be the last instruction of its function.
    pub(super) pc: usize,
    pub(super) sp: usize,
    pub(super) fp: usize,
}
