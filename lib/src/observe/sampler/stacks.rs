//! Stacks, each kept once.

use super::run::Run;
use super::table::mix;
use crate::observe::modules;
use crate::observe::unwind::End;

/// One stack. Its frames follow it.
#[repr(C, align(16))]
pub(crate) struct Stack {
    hash: u64,
    /// What its addresses mean: see [`modules::generation`].
    generation: u32,
    depth: u16,
    end: End,
}

impl Stack {
    /// See [`modules::generation`].
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Return addresses, innermost first.
    pub(crate) fn frames(&self) -> &[usize] {
        // SAFETY: written behind the stack before it was published.
        unsafe { core::slice::from_raw_parts((&raw const *self).add(1).cast(), self.depth as usize) }
    }

    /// How the walk ended.
    pub(crate) fn end(&self) -> End {
        self.end
    }
}

/// The number of this stack, never 0. `None`: no memory is left for a new one.
pub(super) fn intern(run: &'static Run, frames: &[usize], end: End) -> Option<u32> {
    let generation = modules::generation(frames);
    let hash = frames.iter().fold((generation as u64) << 8 | end as u64, |hash, &frame| mix(hash, frame as u64));
    let is = |number| {
        let stack = run.stack(number);
        stack.hash == hash && (stack.end, stack.generation) == (end, generation) && stack.frames() == frames
    };
    let make = || {
        let (number, at) = run.room(size_of::<Stack>() + size_of_val(frames))?;
        // SAFETY: this memory was given to this thread alone.
        unsafe {
            let stack = at.cast::<Stack>();
            stack.write(Stack { hash, generation, depth: frames.len() as u16, end });
            stack.add(1).cast::<usize>().copy_from_nonoverlapping(frames.as_ptr(), frames.len());
        }
        Some(number)
    };
    let found = run.stacks.intern(hash, is, make)?;
    if found.is_new {
        run.count_stack();
        modules::meet(frames);
    }
    Some(found.number)
}
