//! How many allocations a thread has made, at no cost to them: read off the positions of its stacks (see [`magazine`](super::magazine)).
//!
//! Two equal positions mean that the same thread has allocated nothing in between, if there was sampling all the time: a class that
//! allocates for the first time since a start is looked at from there on. Other threads have other positions.

use super::classes::CLASSES;
use super::magazine::ClassState;
use super::{Heap, interval, thread, zone};
use core::sync::atomic::Ordering::*;

/// A set of classes.
pub(super) struct Classes([u64; CLASSES.div_ceil(64)]);

impl Classes {
    pub(super) const NONE: Classes = Classes([0; CLASSES.div_ceil(64)]);

    pub(super) fn add(&mut self, class: usize) {
        self.0[class / 64] |= 1 << (class % 64);
    }

    fn each(&self, mut visit: impl FnMut(usize)) {
        for (word, &bits) in self.0.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                visit(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

/// A position that no thread ever has.
pub(super) const NOWHERE: u64 = u64::MAX;

/// The present position of the calling thread. Its upper half is about blocks of one class (0: of spans) and is read quickly, the lower
/// half is about all of them.
pub(super) fn here(class: usize) -> u64 {
    let own = thread::own();
    if Heap::is_empty_heap(own) {
        return NOWHERE;
    }
    ((of_class(own, class) as u64) << 32 | of_all(own) as u64).min(NOWHERE - 1)
}

/// Whether the calling thread is where it was, or another one there.
pub(super) fn is_here(kept: u64, class: usize) -> bool {
    let own = thread::own();
    let may_be = kept != NOWHERE && !Heap::is_empty_heap(own);
    may_be && (kept >> 32) as u32 == of_class(own, class) && kept == here(class)
}

fn of_class(own: *mut Heap, class: usize) -> u32 {
    // SAFETY: H3; the heap is this thread's.
    unsafe {
        let sequence = (*own).sequence as usize;
        let count = if class == 0 { (*own).spans.allocated.load(Relaxed) } else { allocated(own, class) };
        count.wrapping_add(sequence.wrapping_mul(interval::GOLDEN as usize) >> 32) as u32
    }
}

/// With the heaps that the program has made for the thread.
fn of_all(own: *mut Heap) -> u32 {
    // SAFETY: H3; all of these heaps are this thread's.
    unsafe {
        let mut sum = interval::mix((*own).sequence) as usize;
        for heap in core::iter::once(own).chain(zone::guests_of(own)) {
            (*heap).drawn.each(|class| sum = sum.wrapping_add(allocated(heap, class)));
            sum = sum.wrapping_add((*heap).spans.allocated.load(Relaxed));
        }
        sum as u32
    }
}

/// Allocations of a class, up to a constant.
#[inline(always)]
unsafe fn allocated(heap: *mut Heap, class: usize) -> usize {
    // SAFETY: H3; the heap is this thread's.
    unsafe { ClassState::allocated_by_owner(&raw const (*heap).classes[class], &(*heap).magazines[class]) }
}

#[cfg(test)]
mod tests;
