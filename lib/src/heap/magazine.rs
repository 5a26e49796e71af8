//! The two stacks of cached blocks that each thread has for each class.
//!
//! `malloc` pops from the **alloc stack**, `free` pushes to the **free stack**; when the first is empty they swap. Two
//! stacks, because in a single one each pop would wait for the push before it (measured: 8.7 ns a pair instead of 5.8).
//!
//! The pop stores the lowered `top` first and compares it with `bottom` afterwards. That costs no more than an ordinary
//! test for emptiness, and it is what allows another thread, which raises `bottom` and then fences the process, to be
//! sure of what it may take ([`steal`](super::steal)). A pop that failed has lowered `top` by one slot: the slow path
//! undoes that first. `lib/tests/models` looks at every interleaving of all this; who changes the order of loads and stores
//! here changes it there too.
//!
//! # Counting by position
//!
//! `top` is written by its owner alone and falls by one slot with each allocation. So the number of allocations between
//! two moments is a difference of two `top`s, as long as each *other* write to `top` is known. [`ClassState`] keeps
//! three positions on the same axis and moves them along whenever a pointer is reset, and so never needs to be updated
//! by a pop or a push:
//!
//! * `limit`: `(top - limit) / 8` pops are left before the sampled one,
//! * `allocated`: `(allocated - top) / 8` blocks of the class were allocated by this thread so far,
//! * `freed`: `(free_top - freed) / 8` blocks were freed by this thread so far.
//!
//! The fast path compares with `bottom = max(real_bottom, limit)`, so a due sample looks like an empty stack, and the
//! fast path is the same whether sampling is on or off.
//!
//! # Invariants
//!
//! * M1 `top` and `free_top` are written by the owner only; other than by pop, push and the undo of a failed pop only
//!   through [`ClassState::set_top`] and [`ClassState::set_free_top`].
//! * M2 everything in [`ClassState`] is read and written under the heap's lock only.
//! * M3 whenever the lock is free, `bottom == max(real_bottom, limit)` or `bottom == POISON`, and `limit <= top`. While it is
//!   held the stacks of the class being changed are [closed](ClassState::close).
//! * M4 [`POISON`] in `bottom` of an open stack means that the owner has not yet seen the present epoch, or that somebody
//!   [watches](super::watch); only the owner removes it, after it has looked at the word of the epoch. As long as somebody watches
//!   `free_limit` is 0.

use super::classes::{first_batch, first_capacity, largest_capacity};
use super::watch;
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*, compiler_fence};

/// A `bottom` that no pop can pass.
pub(crate) const POISON: usize = usize::MAX;
/// A distance that no program reaches, in bytes of stack slots.
pub(crate) const NEVER: i64 = 1 << 60;
const SLOT: usize = 8;
/// As many allocations as no program makes.
pub(crate) const LONG: i64 = NEVER / SLOT as i64;
/// An epoch that never is the present one.
const NO_EPOCH: u32 = u32::MAX;

/// Allocations before the next sampled one and before the next guarded one; 0 = it is the one at hand.
pub(crate) struct Waits {
    pub(crate) sample: i64,
    pub(crate) guard: i64,
}

/// What the fast paths touch: 32 bytes per class. All four are addresses of slots.
#[repr(C)]
pub(crate) struct Magazine {
    pub(crate) top: AtomicUsize,
    pub(crate) bottom: AtomicUsize,
    pub(crate) free_top: AtomicUsize,
    pub(crate) free_limit: AtomicUsize,
}

/// Log2 of the size of a [`Magazine`]: class map entries are byte offsets of magazines.
pub(crate) const MAGAZINE_SHIFT: usize = 5;
const _: () = assert!(size_of::<Magazine>() == 1 << MAGAZINE_SHIFT);

impl Magazine {
    /// Every pop and every push fails, for ever: `top` stays a multiple of 8 and so below `POISON`.
    pub(crate) const fn refusing() -> Self {
        Magazine {
            top: AtomicUsize::new(2 * SLOT),
            bottom: AtomicUsize::new(POISON),
            free_top: AtomicUsize::new(2 * SLOT),
            free_limit: AtomicUsize::new(0),
        }
    }

    /// A cached block, or none: go to the slow path, which undoes the failed pop. Owner only.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<*mut u8> {
        // SAFETY: a slot in [bottom, top) holds a cached block, which is not null: Rust programs are spared the question.
        unsafe {
            let block = *(self.pop_slot()? as *const *mut u8);
            core::hint::assert_unchecked(!block.is_null());
            Some(block)
        }
    }

    /// A number that changes with each pop and each push, but for the rarest of chances.
    pub(crate) fn position(&self) -> usize {
        self.top.load(Relaxed).rotate_left(32) ^ self.free_top.load(Relaxed)
    }

    /// [`pop`](Self::pop), as the slot that holds the block.
    #[inline(always)]
    pub(crate) unsafe fn pop_slot(&self) -> Option<usize> {
        let top = self.top.load(Relaxed).wrapping_sub(SLOT);
        #[cfg(mutant = "check_first")]
        if top < self.bottom.load(Relaxed) {
            self.top.store(top, Relaxed);
            return None;
        }
        self.top.store(top, Relaxed);
        #[cfg(mutant = "check_first")]
        return Some(top); // the mistake that a test must find
        // Store before load, in program order; the thief's fence does the rest.
        compiler_fence(SeqCst);
        if top < self.bottom.load(Relaxed) {
            return None;
        }
        Some(top)
    }

    /// Cache a block; false when there is no room. Owner only.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, block: *mut u8) -> bool {
        let top = self.free_top.load(Relaxed);
        // SAFETY: the owner is the only writer, and not an atomic read so that it becomes part of the comparison.
        if top >= unsafe { *self.free_limit.as_ptr() } {
            return false;
        }
        // SAFETY: a slot below the limit belongs to this stack.
        unsafe { *(top as *mut *mut u8) = block };
        self.free_top.store(top + SLOT, Release);
        true
    }

    /// Every push fails, however few blocks there are.
    pub(crate) fn is_shut(&self) -> bool {
        self.free_limit.load(Relaxed) == 0
    }

    /// Take back what a failed pop did: the first act of the slow path, in one instruction, so that a signal handler that
    /// allocates finds `top` as it should be. Owner only.
    #[inline(always)]
    pub(crate) fn undo_pop(&self) {
        os::add_at_once(&self.top, SLOT);
    }
}

/// What only slow paths touch.
pub(crate) struct ClassState {
    /// The first of the two arrays; the other follows.
    first: usize,
    /// The first of the two larger arrays that are used when these are too short; constant.
    larger: usize,
    alloc_base: usize,
    free_base: usize,
    /// The real bottom of the alloc stack; [real_bottom, bottom) waits behind a due sample.
    real_bottom: usize,
    /// The bottom of the free stack: what was below has been stolen.
    free_bottom: usize,
    /// The position of the next event: a sampled or a guarded allocation, whichever comes first.
    limit: i64,
    /// Allocations between `limit` and the sampled one; 0 = that is the event.
    sample_after: i64,
    /// Allocations between `limit` and the guarded one; 0 = that is the event.
    guard_after: i64,
    allocated: i64,
    freed: i64,
    /// Value of the global epoch under which `limit` was drawn.
    pub(crate) epoch: u32,
    /// Slots in use of each array, at most `room`; 0 where no free may come to the stack (see `secure`).
    capacity: u32,
    /// Slots of each array.
    room: u32,
    /// Slots of each of the larger arrays; constant.
    largest: u32,
    /// Blocks to take at the next refill.
    batch: u32,
    /// Slots of the alloc stack below this one hold blocks that were never handed out and read zero. Read by the owner without the
    /// lock: only the owner writes it, and a theft moves no block to another slot.
    fresh_end: AtomicUsize,
    /// What [`has_moved`](Self::has_moved) saw last.
    seen: usize,
    /// Blocks went back to the slabs since the last refill.
    flushed: bool,
    /// How often blocks are guarded has changed: draw anew.
    pub(crate) guard_changed: bool,
    /// Always only [`push_locked`](Self::push_locked) may push; constant.
    guest: bool,
}

impl ClassState {
    #[allow(clippy::declare_interior_mutable_const, reason = "copied into each place")]
    pub(crate) const UNUSED: Self = ClassState {
        first: 0,
        larger: 0,
        alloc_base: 0,
        free_base: 0,
        real_bottom: 0,
        free_bottom: 0,
        limit: -NEVER,
        sample_after: 0,
        guard_after: 0,
        allocated: 0,
        freed: 0,
        epoch: 0,
        capacity: 0,
        room: 0,
        largest: 0,
        batch: 0,
        fresh_end: AtomicUsize::new(0),
        seen: 0,
        flushed: false,
        guard_changed: false,
        guest: false,
    };

    /// Two empty stacks of `class` in the `2 * first_capacity(class)` slots from `first` on, and later in the
    /// `2 * largest_capacity(class)` slots from `larger` on. Nothing counted yet.
    ///
    /// Most stacks stay short. The arrays of all of them lie together, so that a thread that uses many classes has a few pages of them in
    /// memory (measured: 64 threads that use 64 classes: 10 MB less).
    pub(crate) fn initialise(&mut self, m: &Magazine, class: usize, first: usize, larger: usize, guest: bool) {
        let free_base = first + first_capacity(class) * SLOT;
        *self = ClassState {
            first,
            larger,
            room: first_capacity(class) as u32,
            capacity: first_capacity(class) as u32,
            largest: largest_capacity(class) as u32,
            batch: first_batch(class) as u32,
            guest,
            ..Self::UNUSED
        };
        m.top.store(first, Relaxed);
        m.free_top.store(free_base, Relaxed);
        self.limit = first as i64 - NEVER;
        self.allocated = first as i64;
        self.freed = free_base as i64;
        self.empty_both(m);
        self.open(m, 0);
    }

    /// Forget what is cached; counts stay.
    pub(crate) fn empty_both(&mut self, m: &Magazine) {
        self.alloc_base = self.first;
        self.free_base = self.first + self.room as usize * SLOT;
        self.free_bottom = self.free_base;
        self.real_bottom = self.alloc_base;
        self.holds_fresh(0);
        self.set_top(m, self.alloc_base);
        self.set_free_top(m, self.free_base);
    }

    /// Refuse every pop and push, from here to [`open`](Self::open): the stacks are being changed, and a signal handler of
    /// this thread must not use them meanwhile.
    #[inline(always)]
    pub(crate) fn close(&self, m: &Magazine) {
        m.bottom.store(POISON, Relaxed);
        m.free_limit.store(0, Relaxed);
        compiler_fence(SeqCst);
    }

    /// Let the fast paths run: pops to the real bottom or to the next sample, whichever comes first. If the epoch in the word is not the
    /// one that `limit` was drawn under, the next pop has to look at it; if somebody [watches](super::watch), none passes, nor any push.
    #[inline(always)]
    pub(crate) fn open(&self, m: &Magazine, word: u32) {
        compiler_fence(SeqCst);
        self.arm(m, word);
        // Blocks of other heaps come to free, too: none may come to the stack of a part of a heap that the program made.
        let shut = self.guest || watch::is_watched(word);
        m.free_limit.store(if shut { 0 } else { self.free_limit() }, Relaxed);
    }

    fn free_limit(&self) -> usize {
        self.free_base + self.capacity as usize * SLOT
    }

    #[inline(always)]
    fn arm(&self, m: &Magazine, word: u32) {
        let bottom = (self.real_bottom as i64).max(self.limit) as usize;
        m.bottom.store(if self.epoch == word { bottom } else { POISON }, Relaxed);
    }

    /// Whether the owner has allocated or freed since this was asked last.
    pub(crate) fn has_moved(&mut self, m: &Magazine) -> bool {
        let now = m.position();
        core::mem::replace(&mut self.seen, now) != now
    }

    /// Thief, first step for the alloc stack: after this and a fence of the whole process, the owner takes nothing more.
    /// False: there is nothing to take.
    pub(crate) fn claim(&mut self, m: &Magazine) -> bool {
        if m.top.load(Relaxed) <= self.real_bottom {
            return false;
        }
        m.bottom.store(POISON, Relaxed);
        true
    }

    /// Thief, second step, after the fence: the slots that are the thief's now. `top`, `limit` and `allocated` count pops, and a
    /// theft is none.
    ///
    /// If a pop of the owner has just failed at the claim, `top` may still be lowered by one slot: that slot stays cached.
    pub(crate) fn take_claimed(&mut self, m: &Magazine, word: u32) -> (*const usize, usize) {
        let start = self.real_bottom;
        self.real_bottom = m.top.load(Relaxed).max(start);
        self.arm(m, word);
        (start as *const usize, (self.real_bottom - start) / SLOT)
    }

    /// Thief: the claim cannot be made good; the stack is as it was.
    pub(crate) fn drop_claim(&mut self, m: &Magazine, word: u32) {
        self.arm(m, word);
    }

    /// Thief: the slots of the free stack. The owner only pushes above them.
    pub(crate) fn take_frees(&mut self, m: &Magazine) -> (*const usize, usize) {
        let (start, top) = (self.free_bottom, m.free_top.load(Acquire));
        self.free_bottom = top;
        (start as *const usize, (top - start) / SLOT)
    }

    fn set_top(&mut self, m: &Magazine, top: usize) {
        let moved = top as i64 - m.top.load(Relaxed) as i64;
        self.limit += moved;
        self.allocated += moved;
        m.top.store(top, Relaxed);
    }

    fn set_free_top(&mut self, m: &Magazine, free_top: usize) {
        self.freed += free_top as i64 - m.free_top.load(Relaxed) as i64;
        m.free_top.store(free_top, Relaxed);
    }

    /// Nothing is left to pop, whatever `bottom` says. After the undo of a failed pop.
    pub(crate) fn is_empty(&self, m: &Magazine) -> bool {
        m.top.load(Relaxed) == self.real_bottom
    }

    pub(crate) fn has_frees(&self, m: &Magazine) -> bool {
        m.free_top.load(Relaxed) > self.free_bottom
    }

    /// Everything on the free stack was stolen: push from its start again.
    pub(crate) fn rewind_frees(&mut self, m: &Magazine) {
        self.free_bottom = self.free_base;
        self.set_free_top(m, self.free_base);
    }

    /// Exchange an empty alloc stack with the free stack.
    pub(crate) fn swap(&mut self, m: &Magazine) {
        debug_assert!(self.is_empty(m));
        self.holds_fresh(0);
        core::mem::swap(&mut self.alloc_base, &mut self.free_base);
        self.real_bottom = self.free_bottom;
        self.set_top(m, m.free_top.load(Relaxed));
        self.rewind_frees(m);
    }

    /// Refill as in the beginning: another thread takes the heap.
    pub(crate) fn begin_small(&mut self, class: usize) {
        self.batch = first_batch(class) as u32;
    }

    /// The slots to fill of an empty alloc stack, from the far end down so that pops ascend in address order.
    ///
    /// More each time, and if blocks that were given back are wanted again, there is more room from now on.
    pub(crate) fn slots(&mut self, m: &Magazine) -> core::ops::Range<usize> {
        if core::mem::take(&mut self.flushed) {
            self.make_larger(m);
        }
        let batch = self.batch.min(self.capacity);
        self.batch = batch * 2;
        self.alloc_base..self.alloc_base + batch as usize * SLOT
    }

    /// Twice as much room, up to the most. The alloc stack is empty, and the stacks are closed.
    fn make_larger(&mut self, m: &Magazine) {
        debug_assert!(self.is_empty(m));
        self.capacity = (self.capacity * 2).min(self.largest);
        if self.capacity <= self.room {
            return;
        }
        let (frees, count) = self.cached_frees(m);
        self.first = self.larger;
        self.room = self.largest;
        self.alloc_base = self.first;
        self.free_base = self.first + self.room as usize * SLOT;
        // SAFETY: the larger arrays are this class's, were not used so far, and have room for all.
        unsafe { (self.free_base as *mut usize).copy_from_nonoverlapping(frees, count) };
        self.free_bottom = self.free_base;
        self.set_free_top(m, self.free_base + count * SLOT);
        self.filled(m, 0);
    }

    /// Like [`slots`](Self::slots), but one slot only: no block is cached.
    pub(crate) fn one_slot(&self) -> core::ops::Range<usize> {
        self.alloc_base..self.alloc_base + SLOT
    }

    /// The alloc stack has been filled: its lowest `count` slots hold blocks.
    pub(crate) fn filled(&mut self, m: &Magazine, count: usize) {
        self.real_bottom = self.alloc_base;
        self.holds_fresh(0);
        self.set_top(m, self.alloc_base + count * SLOT);
    }

    /// The first `count` slots of the alloc stack, just filled, hold blocks that read zero.
    pub(crate) fn holds_fresh(&self, count: usize) {
        self.fresh_end.store(if count == 0 { 0 } else { self.alloc_base + count * SLOT }, Relaxed);
    }

    /// Slots below hold blocks that read zero. Owner only; no lock is needed.
    #[inline(always)]
    pub(crate) unsafe fn fresh_end(state: *const Self) -> usize {
        // SAFETY: states live for ever; no reference is made to what a thief may be changing.
        unsafe { (*state).fresh_end.load(Relaxed) }
    }

    /// First slot and number of cached blocks of the alloc stack.
    pub(crate) fn cached(&self, m: &Magazine) -> (*const usize, usize) {
        (self.real_bottom as *const usize, (m.top.load(Relaxed) - self.real_bottom) / SLOT)
    }

    /// Cached blocks in both stacks.
    pub(crate) fn blocks(&self, m: &Magazine) -> usize {
        let allocs = m.top.load(Relaxed).saturating_sub(self.real_bottom);
        (allocs + (m.free_top.load(Relaxed) - self.free_bottom)) / SLOT
    }

    /// The alloc stack has been emptied; none of its blocks was allocated. `foreign`: most of them were of other homes.
    ///
    /// If that happens again before a refill, this thread frees what others allocate: with more room it takes their locks less often
    /// (measured: 13.6 instead of 14.6 ns for a block that another thread frees).
    pub(crate) fn drained(&mut self, m: &Magazine, foreign: bool) {
        self.filled(m, 0);
        if foreign && self.flushed {
            self.make_larger(m);
        }
        self.flushed = true;
    }

    /// The pop of a slow path: null when empty. The sampling limit does not stop it.
    pub(crate) fn pop_locked(&mut self, m: &Magazine) -> *mut u8 {
        if self.is_empty(m) {
            return core::ptr::null_mut();
        }
        let top = m.top.load(Relaxed) - SLOT;
        m.top.store(top, Relaxed);
        // SAFETY: the slot lies above the real bottom, so it holds a cached block.
        unsafe { *(top as *const *mut u8) }
    }

    /// The push of a slow path, in a guest or while somebody watches; false when there is no room.
    pub(crate) fn push_locked(&mut self, m: &Magazine, block: *mut u8) -> bool {
        let top = m.free_top.load(Relaxed);
        if top >= self.free_limit() {
            return false;
        }
        // SAFETY: a slot below the limit belongs to this stack.
        unsafe { (top as *mut *mut u8).write(block) };
        m.free_top.store(top + SLOT, Release);
        true
    }

    /// First slot and number of cached blocks of the free stack.
    pub(crate) fn cached_frees(&self, m: &Magazine) -> (*const usize, usize) {
        (self.free_bottom as *const usize, (m.free_top.load(Relaxed) - self.free_bottom) / SLOT)
    }

    /// Every cached block, while the owner may pop and push.
    pub(crate) fn each(&self, m: &Magazine, mut visit: impl FnMut(usize)) {
        let ranges = [(self.real_bottom, m.top.load(Acquire)), (self.free_bottom, m.free_top.load(Acquire))];
        for (bottom, top) in ranges {
            for slot in (bottom..top).step_by(SLOT) {
                // SAFETY: slots between bottom and top hold blocks and are not written to while the lock is held.
                visit(unsafe { (slot as *const usize).read_volatile() });
            }
        }
    }

    /// Count from 0 again.
    pub(crate) fn forget_counts(&mut self, m: &Magazine) {
        self.allocated = m.top.load(Relaxed) as i64;
        self.freed = m.free_top.load(Relaxed) as i64;
    }

    /// This thread's next allocation of the class is the sampled one.
    #[inline(always)]
    pub(crate) fn is_due(&self, m: &Magazine) -> bool {
        m.top.load(Relaxed) as i64 == self.limit
    }

    /// How many allocations come before the events. After the undo of a failed pop.
    pub(crate) fn waits(&self, m: &Magazine) -> Waits {
        let before = (m.top.load(Relaxed) as i64 - self.limit) / SLOT as i64;
        Waits { sample: before + self.sample_after, guard: before + self.guard_after }
    }

    /// Stop the fast path where the first of the events is.
    pub(crate) fn wait(&mut self, m: &Magazine, waits: Waits) {
        let first = waits.sample.min(waits.guard).min(LONG);
        self.limit = m.top.load(Relaxed) as i64 - first * SLOT as i64;
        self.sample_after = waits.sample - first;
        self.guard_after = waits.guard - first;
    }

    /// Have the owner draw its events anew at its next pop, as a start of sampling does.
    pub(crate) fn draw_anew(&mut self, m: &Magazine) {
        self.guard_changed = true;
        self.epoch = NO_EPOCH;
        m.bottom.store(POISON, Relaxed);
    }

    /// Blocks that were freed without coming to the free stack.
    pub(crate) fn count_frees(&mut self, count: i64) {
        self.freed -= count * SLOT as i64;
    }

    /// From now on refuse every push, also when the stacks are open.
    pub(crate) fn refuse_frees(&mut self, m: &Magazine) {
        self.capacity = 0;
        m.free_limit.store(0, Relaxed);
    }

    /// Blocks allocated and blocks freed by this thread so far. Exact but for a pop or push in flight.
    pub(crate) fn counts(&self, m: &Magazine) -> (u64, u64) {
        let allocated = (self.allocated - m.top.load(Relaxed) as i64) / SLOT as i64;
        let freed = (m.free_top.load(Relaxed) as i64 - self.freed) / SLOT as i64;
        (allocated.max(0) as u64, freed.max(0) as u64)
    }

    /// Blocks allocated by this thread so far, up to a constant. Owner only, without the lock: nobody else writes these two while it has
    /// the heap.
    ///
    /// # Safety
    /// The state lives. No reference is made to it: a thief may be changing the rest.
    pub(crate) unsafe fn allocated_by_owner(state: *const Self, m: &Magazine) -> usize {
        // SAFETY: as above.
        let allocated = unsafe { (&raw const (*state).allocated).read_volatile() };
        (allocated as usize).wrapping_sub(m.top.load(Relaxed)) / SLOT
    }

    /// Take back a failed pop that nobody has undone, as far as it can be told: of a thread that this process does not have, or of
    /// code that a signal handler has interrupted.
    ///
    /// A pop that failed at [`POISON`] on a stack that was not empty leaves no trace; then one cached block is given up.
    #[inline(always)]
    pub(crate) fn settle(&mut self, m: &Magazine) {
        let least = (self.real_bottom as i64).max(self.limit) as usize;
        if m.top.load(Relaxed) < least {
            m.top.store(least, Relaxed);
        }
    }
}
