//! The readable part of a stack: where a walk may look without faulting.
//!
//! A thread can be on any stack: its own, one for signals, a coroutine's. Nothing in the process says which, and what the C
//! library says about stacks needs locks or files. So a range counts as stack when its pages, looked at one by one from the
//! frame upwards, can be read ([`probe`]).
//!
//! Two cases, because what can be read now may be unmapped by another thread in the next moment:
//! * The readable pages go up without a gap to an address where the C library keeps the top of a stack
//!   ([`arch::stack_tops`]). Then it is the thread's own stack, which lives as long as the thread, and the range is kept in
//!   [`StackBounds`]: the next walk needs no system call.
//! * Otherwise it is a stack of unknown size. It grows page by page as the walk asks for more, and is forgotten after the
//!   walk. What a right walk reads belongs to the stack in use and cannot vanish. A walk gone astray may read above the
//!   stack, in pages that were readable microseconds before; this is the only gap left.

use super::{arch, probe};

/// Bytes that are looked at in one go for the first case. More than twice the usual stack of 8 MiB.
const LARGEST_STACK: usize = 16 << 20;
/// Pages that one walk may look at for the second case.
const MOST_PAGES: u32 = (LARGEST_STACK / probe::PAGE) as u32;
/// How often one walk may go to another stack. Every segment of a stack that grows by segments is one.
const MOST_MOVES: u32 = 16;

/// What is known of one thread's own stack. It belongs to the thread: two walks may not use it at once. It need not be
/// reset when another thread takes it over, as it is not believed when the thread's stack ends elsewhere.
///
/// Memory that is all zero is a valid value: nothing is known yet.
#[derive(Debug, Default)]
pub(crate) struct StackBounds {
    /// Readable, `low..high`, where `high` is the end of the thread's stack. Empty when nothing is known.
    low: usize,
    high: usize,
    /// A page above another stack that this thread was seen on and that could not be read: the place to look first.
    barrier: usize,
}

#[cfg(test)]
impl StackBounds {
    pub(super) fn of_range(low: usize, high: usize) -> StackBounds {
        StackBounds { low, high, barrier: 0 }
    }

    pub(super) fn range(&self) -> (usize, usize) {
        (self.low, self.high)
    }
}

/// The stack that a walk is on.
pub(super) struct Stack<'a> {
    /// Readable: `low..high` (the *stack invariant*). `low` is the beginning of a page, both are multiples of 8.
    low: usize,
    high: usize,
    /// `high` is not the end of the stack.
    may_grow: bool,
    pages_left: u32,
    moves_left: u32,
    bounds: &'a mut StackBounds,
}

impl<'a> Stack<'a> {
    /// The stack that the calling thread runs on; `sp` is the stack pointer of a function that has not returned.
    #[inline(always)]
    pub(super) fn of_caller(sp: usize, bounds: &'a mut StackBounds) -> Stack<'a> {
        let (first, second) = arch::stack_tops();
        let is_known = bounds.low <= sp && sp < bounds.high && (bounds.high == first || bounds.high == second);
        let (low, high) = (page_of(sp), bounds.high);
        let mut stack = Stack { low, high, may_grow: false, pages_left: MOST_PAGES, moves_left: MOST_MOVES, bounds };
        if !is_known {
            stack.find(sp);
        }
        stack
    }

    /// This is not the thread's own stack, or not known to be.
    #[inline(always)]
    pub(super) fn may_grow(&self) -> bool {
        self.may_grow
    }

    /// The word at an address, if it is aligned and on this stack.
    pub(super) fn read(&mut self, address: usize) -> Option<usize> {
        self.read_known(address).or_else(|| if self.grow_to(address) { self.read_known(address) } else { None })
    }

    /// The word at an address, if it is aligned and on what is known of this stack.
    #[inline(always)]
    pub(super) fn read_known(&self, address: usize) -> Option<usize> {
        if !self.holds(address) {
            return None;
        }
        // SAFETY: stack invariant: the word lies in `low..high`. The memory belongs to frames that are not running, except
        // for a walk gone astray, to which any value is as good as another.
        Some(unsafe { core::ptr::with_exposed_provenance::<usize>(address).read_volatile() })
    }

    /// True when there is an aligned word at the address, as far as the stack is known.
    #[inline(always)]
    pub(super) fn holds(&self, address: usize) -> bool {
        // `high - low` is a multiple of 8 and not 0, and `low` is aligned, so an aligned address below `high` has room.
        address.wrapping_sub(self.low) < self.high - self.low && address.is_multiple_of(size_of::<usize>())
    }

    /// Go to the stack that has a frame at `address`. False when there is none, or there have been too many.
    #[cold]
    #[inline(never)]
    pub(super) fn move_to(&mut self, address: usize) -> bool {
        if self.moves_left == 0 || !address.is_multiple_of(size_of::<usize>()) {
            return false;
        }
        self.moves_left -= 1;
        if self.holds(address) {
            return true;
        }
        let can_be_read = probe::is_readable(page_of(address));
        if can_be_read {
            self.find(address);
        }
        can_be_read
    }

    /// True at the frame in which the program began: the first thread has nothing above it but its arguments. The loader's
    /// first function has no unwind table, but it aligns the stack at most.
    pub(super) fn is_at_program_entry(&self, sp: usize) -> bool {
        let (_, stack_end) = arch::stack_tops();
        stack_end != 0 && sp.abs_diff(stack_end) <= 64
    }

    /// Make the stack around `address` the current one. Its page can be read.
    #[cold]
    #[inline(never)]
    fn find(&mut self, address: usize) {
        let page = page_of(address);
        if let Some(top) = nearest_top(address)
            && self.reaches(page, top)
        {
            (self.low, self.high, self.may_grow) = (page, top, false);
        } else {
            (self.low, self.high, self.may_grow) = (page, page + probe::PAGE, true);
        }
    }

    /// True when everything from `page` to `top` can be read; then this is the thread's own stack.
    fn reaches(&mut self, page: usize, top: usize) -> bool {
        let barrier = self.bounds.barrier;
        if page <= barrier && barrier < top && !probe::is_readable(barrier) {
            return false;
        }
        let is_same_stack = self.bounds.high == top;
        if is_same_stack && self.bounds.low <= page {
            return true;
        }
        // What was found before need not be looked at again.
        let until = if is_same_stack { self.bounds.low } else { top };
        let mut at = page + probe::PAGE;
        while at < until {
            if !probe::is_readable(at) {
                self.bounds.barrier = at;
                return false;
            }
            at += probe::PAGE;
        }
        (self.bounds.low, self.bounds.high) = (page, top);
        true
    }

    /// Look at more pages, so that `address` is on the stack.
    #[cold]
    #[inline(never)]
    fn grow_to(&mut self, address: usize) -> bool {
        if !self.may_grow || address < self.high || !address.is_multiple_of(size_of::<usize>()) {
            return false;
        }
        while address >= self.high {
            if self.pages_left == 0 || !probe::is_readable(self.high) {
                return false;
            }
            self.pages_left -= 1;
            self.high += probe::PAGE;
        }
        true
    }
}

fn page_of(address: usize) -> usize {
    address & !(probe::PAGE - 1)
}

/// The nearest address above that may be the end of the stack.
fn nearest_top(address: usize) -> Option<usize> {
    let (first, second) = arch::stack_tops();
    let is_near = |top: &usize| address < *top && *top - address <= LARGEST_STACK && top.is_multiple_of(8);
    [first, second].into_iter().filter(is_near).min()
}
