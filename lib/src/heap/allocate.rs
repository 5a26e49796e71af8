//! `malloc`: two fast paths and the slow one.

use super::classes::{SLAB_MAX, SMALL_MAX, class_size, medium_class, small_class};
use super::events::Extent;
use super::grow::{self, GROWN_TO_SPAN};
use super::interval::Drawn;
use super::magazine::{ClassState, MAGAZINE_SHIFT};
use super::tell::{self, Tell};
use super::{
    Heap, child, due, emergency, guarded, home, interval, refill, release, sampled, span, thread, watch, zone,
};
use crate::arena;
use crate::options::{self, Name};
use crate::os::libc;
use core::sync::atomic::Ordering::Relaxed;

/// A block of at least `size` bytes, aligned to 16; null with `ENOMEM` when there is no memory.
#[inline(always)]
pub(crate) unsafe fn allocate(size: usize) -> *mut u8 {
    // SAFETY: this thread's heap, or EMPTY.
    unsafe { allocate_from(thread::current(), size) }
}

/// [`allocate`] from a particular heap: one of this thread's, or EMPTY.
#[inline(always)]
pub(super) unsafe fn allocate_from(heap: *mut Heap, size: usize) -> *mut u8 {
    // Before the test, so that both ways out pass on the same three registers and need no move.
    let offset = small_class(size) << MAGAZINE_SHIFT;
    if size > SMALL_MAX {
        return allocate_medium(size, offset, heap);
    }
    // SAFETY: the offset is that of a small class.
    match unsafe { Heap::magazine_at(heap, offset).pop() } {
        Some(block) => block,
        None => allocate_slow(size, offset, heap),
    }
}

/// Usable bytes of the block of a class for a request.
pub(super) fn class_size_of(size: usize) -> usize {
    class_size(if size <= SMALL_MAX { small_class(size).max(1) } else { medium_class(size) })
}

/// Requests above the 16-byte classes.
#[inline(never)]
pub(crate) fn allocate_medium(size: usize, offset: usize, heap: *mut Heap) -> *mut u8 {
    // SAFETY: emits nothing; keeps the argument, so that callers need not shuffle registers.
    unsafe { core::arch::asm!("/* {} */", in(reg) offset, options(nomem, nostack, preserves_flags)) };
    if size > SLAB_MAX {
        return span::allocate_quickly(heap, size);
    }
    let offset = medium_class(size) << MAGAZINE_SHIFT;
    // SAFETY: the offset is that of a medium class.
    match unsafe { Heap::magazine_at(heap, offset).pop() } {
        Some(block) => block,
        None => allocate_slow(size, offset, heap),
    }
}

/// [`allocate`] for an alignment: a block of `size` bytes, at most [`SLAB_MAX`], where the program has `asked` for fewer.
#[inline(always)]
unsafe fn allocate_padded(size: usize, asked: usize) -> *mut u8 {
    let class = if size <= SMALL_MAX { small_class(size) } else { medium_class(size) };
    let (offset, heap) = (class << MAGAZINE_SHIFT, thread::current());
    // SAFETY: the offset is that of a class.
    match unsafe { Heap::magazine_at(heap, offset).pop() } {
        Some(block) => block,
        None => allocate_slow(padded(size, asked), offset, heap),
    }
}

/// Log2 of the sizes that slow paths are given: behind that is how much more it is than what the program has asked for.
const PADDING_SHIFT: u32 = 32;
const _: () = assert!(SLAB_MAX < 1 << PADDING_SHIFT);

/// A size and what was asked for, in one number. Without padding that is the size itself.
#[inline(always)]
fn padded(size: usize, asked: usize) -> usize {
    size | (size - asked) << PADDING_SHIFT
}

/// The size, and what was asked for.
#[inline(always)]
fn without_padding(padded: usize) -> (usize, usize) {
    let size = padded & ((1 << PADDING_SHIFT) - 1);
    (size, size - (padded >> PADDING_SHIFT))
}

/// A block from a slow path, or null.
struct Obtained {
    block: *mut u8,
    /// It was never handed out, and all of it reads zero.
    reads_zero: bool,
}

impl Obtained {
    fn unknown(block: *mut u8) -> Obtained {
        Obtained { block, reads_zero: false }
    }
}

/// The pop at `offset` failed: an empty stack, a due sample, a change of the epoch, no heap yet, or class 0.
///
/// By far the most often the stacks are to be swapped and that is all: this way is kept short.
#[cold]
#[inline(never)]
pub(crate) fn allocate_slow(size: usize, offset: usize, heap: *mut Heap) -> *mut u8 {
    // SAFETY: `heap` is this thread's heap or EMPTY, whose magazines (like number 0) refuse whatever `top` is. The lock of EMPTY
    // cannot be taken; nor can that of a heap in which a signal handler has interrupted this thread.
    unsafe {
        Heap::magazine_at(heap, offset).undo_pop();
        if !child::is_in_order() || !(*heap).lock.try_lock() {
            return allocate_unready(size, offset, heap, Tell::Yes).block;
        }
        let class = (offset >> MAGAZINE_SHIFT).max(1);
        let (magazine, state) = Heap::enter(heap, class);
        state.settle(magazine);
        let word = watch::word();
        if state.epoch != word || state.is_due(magazine) || !state.is_empty(magazine) || !state.has_frees(magazine) {
            return allocate_entered(heap, size, class, Tell::Yes).block;
        }
        state.swap(magazine);
        let block = state.pop_locked(magazine);
        Heap::leave(heap, magazine, state, word);
        (*heap).lock.unlock();
        if due::is_due() {
            (crate::HOOKS.drained)();
        }
        block
    }
}

/// [`allocate_slow`] where something stands in the way: a new process, no heap, somebody else in the heap, or this thread itself, interrupted.
#[cold]
#[inline(never)]
unsafe fn allocate_unready(size: usize, offset: usize, heap: *mut Heap, tell: Tell) -> Obtained {
    let class = (offset >> MAGAZINE_SHIFT).max(1);
    // SAFETY: as in `allocate_slow`.
    unsafe {
        if arena::is_busy_here() || home::is_busy_here(heap) || child::is_repaired_here() {
            return Obtained::unknown(allocate_interrupted(size, class, tell));
        }
        child::check();
        let Some(lease) = thread::lease(heap) else { return Obtained::unknown(allocate_without_heap(class)) };
        emergency::adopt_deferred();
        allocate_leased(lease.heap, size, class, tell)
    }
}

/// A signal handler has interrupted this thread inside the allocator. If it was in its heap, another one serves.
#[cold]
#[inline(never)]
unsafe fn allocate_interrupted(size: usize, class: usize, tell: Tell) -> *mut u8 {
    if arena::is_busy_here() || child::is_repaired_here() {
        return emergency::allocate(class_size(class));
    }
    let Some(lease) = thread::borrow_heap() else { return no_memory() };
    // SAFETY: the heap is ours for the time of the lease.
    unsafe {
        // Nor may it wait for who has that one: he may wait for what was interrupted.
        if home::is_busy_here(lease.heap) || !(*lease.heap).lock.try_lock() {
            return emergency::allocate(class_size(class));
        }
        allocate_locked(lease.heap, size, class, tell).block
    }
}

/// No memory for a heap, or we are called back from our own initialisation.
#[cold]
fn allocate_without_heap(class: usize) -> *mut u8 {
    if thread::initialises_here() { emergency::allocate(class_size(class)) } else { out_of_memory() }
}

unsafe fn allocate_leased(heap: *mut Heap, size: usize, class: usize, tell: Tell) -> Obtained {
    // SAFETY: the heap is leased by this thread; its state is touched under its lock.
    unsafe {
        (*heap).lock.lock();
        allocate_locked(heap, size, class, tell)
    }
}

unsafe fn allocate_locked(heap: *mut Heap, size: usize, class: usize, tell: Tell) -> Obtained {
    // SAFETY: the heap is leased by this thread, and its lock is held.
    unsafe {
        let (magazine, state) = Heap::enter(heap, class);
        state.settle(magazine);
        allocate_entered(heap, size, class, tell)
    }
}

/// Allocate with the heap's lock held and the class entered; leaves both.
#[inline(never)]
unsafe fn allocate_entered(heap: *mut Heap, size: usize, class: usize, tell: Tell) -> Obtained {
    // SAFETY: the heap is leased by this thread, its lock is held.
    unsafe {
        let (magazine, state) = Heap::class(heap, class);
        let word = watch::word();
        let epoch = watch::epoch_of(word);
        if home::of(heap).is_null() {
            // The thread's heap is a guest whose zone has ended: from here on it is its own again.
            Heap::leave(heap, magazine, state, word);
            (*heap).lock.unlock();
            return allocate_unready(size, class << MAGAZINE_SHIFT, heap, tell);
        }
        let mut drawn = Drawn::default();
        if state.epoch != epoch || state.is_due(magazine) {
            drawn = interval::event(heap, class, without_padding(size).0.max(1), epoch);
        }
        let (_, state) = Heap::class(heap, class);
        let (mut interrupted, mut is_time) = (false, false);
        if state.is_empty(magazine) {
            if state.has_frees(magazine) {
                state.swap(magazine);
            } else {
                interrupted = arena::is_busy_here() || home::is_busy_in_slabs_here(heap);
                if !interrupted {
                    refill::refill(heap, class, magazine, state);
                    is_time = is_slowed(heap);
                }
            }
        }
        let block = state.pop_locked(magazine);
        let reads_zero = magazine.top.load(Relaxed) < ClassState::fresh_end(state);
        Heap::leave(heap, magazine, state, word);
        (*heap).lock.unlock();
        if interrupted {
            return Obtained::unknown(emergency::allocate(class_size(class)));
        }
        emergency::adopt_deferred();
        if block.is_null() {
            return Obtained::unknown(out_of_memory());
        }
        if is_time {
            slowed(heap); // the block is ours already, so it may allocate
        }
        let mut obtained = Obtained { block, reads_zero };
        if drawn.guard || drawn.sample.is_some() {
            obtained = Obtained::unknown(exchange(heap, class, size, block, drawn));
        }
        if watch::is_watched(word) && tell == Tell::Yes {
            tell::allocated(heap, obtained.block, without_padding(size).1, class, drawn.guard);
        }
        obtained
    }
}

/// Refills of a heap before it first asks how often the program's deferred free is wanted: the environment is known by then.
const REFILLS_AT_FIRST: i64 = 64;
/// Refills before it asks again, where that is not wanted.
const REFILLS_UNWANTED: i64 = 10_000;

/// A heap has been refilled: whether it is time to ask for the program's deferred free. The lock is held.
unsafe fn is_slowed(heap: *mut Heap) -> bool {
    // SAFETY: as the caller says.
    let left = unsafe { &mut (*heap).refills_left };
    if *left == 0 {
        *left = REFILLS_AT_FIRST;
    }
    *left -= 1;
    if *left == 0 {
        *left = REFILLS_UNWANTED;
        return true;
    }
    false
}

/// The program may free what it has put off, if it wants that to be now. With no lock held; the heap is leased by this thread.
#[cold]
#[inline(never)]
unsafe fn slowed(heap: *mut Heap) {
    let every = options::get(Name::GenericCollect) as i64;
    if every > 0 {
        // SAFETY: only the owner counts.
        unsafe { (*heap).refills_left = every };
        (crate::HOOKS.slowed)();
    }
}

/// Another block for an allocation that was drawn, or the same one if there is none.
#[cold]
#[inline(never)]
unsafe fn exchange(heap: *mut Heap, class: usize, size: usize, block: *mut u8, drawn: Drawn) -> *mut u8 {
    let (size, asked) = without_padding(size);
    // SAFETY: no lock is held; the block was just popped and nobody else knows it.
    unsafe {
        if drawn.guard
            && let Some(guarded) = guarded::exchange(heap, class, size, block, drawn.sample)
        {
            return guarded;
        }
        match drawn.sample {
            Some(epoch) => sampled::exchange(heap, class, asked, block, epoch),
            None => block,
        }
    }
}

/// There is no memory: the program's function for errors hears of it, then null, and `errno` says why. With no lock held.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory() -> *mut u8 {
    (crate::HOOKS.failed)(libc::ENOMEM, b"out of memory", false);
    no_memory()
}

/// More is asked for than an object may have; `errno` is `ENOMEM` as the C standard wants, the function gets `EOVERFLOW`.
#[cold]
#[inline(never)]
pub(crate) fn too_large() -> *mut u8 {
    (crate::HOOKS.failed)(libc::EOVERFLOW, b"a request for more memory than there can be", false);
    no_memory()
}

/// Null, and `errno` says why; nobody is told.
#[cold]
pub(crate) fn no_memory() -> *mut u8 {
    libc::set_errno(libc::ENOMEM);
    core::ptr::null_mut()
}

/// A block aligned to `alignment`, a power of two; null with `ENOMEM`.
///
/// A block is aligned as the size of its class is, and a size that is a multiple of the alignment has a class whose size is one, too: the
/// classes of a doubling are multiples of its eighth. Either that is a multiple of the alignment, or the alignment is a multiple of it and
/// the rounded size a class size itself.
#[inline(always)]
pub(crate) unsafe fn allocate_aligned(size: usize, alignment: usize) -> *mut u8 {
    debug_assert!(alignment.is_power_of_two());
    if alignment | size > SLAB_MAX {
        return span::allocate(size.max(1), alignment);
    }
    let mask = alignment - 1;
    // SAFETY: not more than SLAB_MAX, which is a multiple of the alignment.
    unsafe { allocate_padded((size.max(1) + mask) & !mask, size) }
}

/// [`allocate_aligned`] for callers that can afford to look whether somebody watches: who does is told the size that was asked for, not what
/// it is rounded up to.
#[inline(always)]
pub(crate) unsafe fn allocate_aligned_as_asked(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: no preconditions but the alignment.
    unsafe { if watch::is_on() { tell::allocate_aligned(size, alignment) } else { allocate_aligned(size, alignment) } }
}

/// [`allocate_aligned`] that is not told, by the slow path.
pub(crate) unsafe fn allocate_untold(size: usize, alignment: usize) -> *mut u8 {
    if alignment | size > SLAB_MAX {
        return span::allocate_untold(0, size.max(1), alignment);
    }
    let asked = size;
    let size = (size.max(1) + alignment - 1) & !(alignment - 1);
    let class = if size <= SMALL_MAX { small_class(size) } else { medium_class(size) };
    // SAFETY: the thread's heap, or EMPTY, of which no pop has failed.
    unsafe { allocate_unready(padded(size, asked), class << MAGAZINE_SHIFT, thread::current(), Tell::No).block }
}

/// A block whose bytes are all zero, to its end.
#[inline(always)]
pub(crate) unsafe fn allocate_zeroed(size: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    unsafe { allocate_zeroed_padded(size, size) }
}

/// The same for a size of which the program has `asked` for a part.
#[inline(always)]
unsafe fn allocate_zeroed_padded(size: usize, asked: usize) -> *mut u8 {
    if size > SMALL_MAX {
        return allocate_zeroed_medium(size, asked);
    }
    let (offset, heap) = (small_class(size) << MAGAZINE_SHIFT, thread::current());
    // SAFETY: the offset is that of a small class, whose blocks have 16 bytes for each 32 of it.
    unsafe {
        match Heap::magazine_at(heap, offset).pop() {
            Some(block) => {
                block.write_bytes(0, offset / 2);
                block
            }
            None => zero(allocate_slow(padded(size, asked), offset, heap)),
        }
    }
}

/// [`allocate_zeroed`] at an alignment, a power of two. As [`allocate_aligned`].
#[inline(always)]
pub(crate) unsafe fn allocate_zeroed_aligned(size: usize, alignment: usize) -> *mut u8 {
    let mask = alignment - 1;
    // SAFETY: not more than SLAB_MAX, which is a multiple of the alignment; a span is the caller's.
    unsafe {
        if alignment | size <= SLAB_MAX {
            return allocate_zeroed_padded((size.max(1) + mask) & !mask, size);
        }
        let block = span::allocate(size.max(1), alignment);
        if block.is_null() || span::reads_zero(block) { block } else { zero(block) }
    }
}

/// The same as [`allocate_aligned_as_asked`], zeroed.
#[inline(always)]
pub(crate) unsafe fn allocate_zeroed_aligned_as_asked(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: as above; a block is the caller's.
    unsafe {
        if watch::is_on() {
            zero(tell::allocate_aligned(size, alignment))
        } else {
            allocate_zeroed_aligned(size, alignment)
        }
    }
}

/// A zeroed block above the 16-byte classes. Many of a page or more were never used: to write to them would cost the faults that the
/// program may never cause.
#[inline(never)]
fn allocate_zeroed_medium(size: usize, asked: usize) -> *mut u8 {
    // SAFETY: the block has the bytes of its class, or is a span; the offset is that of a medium class.
    unsafe {
        if size > SLAB_MAX {
            let block = span::allocate(size, 1);
            return if block.is_null() || span::reads_zero(block) { block } else { zero(block) };
        }
        let (class, heap) = (medium_class(size), thread::current());
        let magazine = Heap::magazine_at(heap, class << MAGAZINE_SHIFT);
        let state = &raw const (*heap).classes[class];
        // Looked at before and after: a signal handler may change the stacks in between.
        let fresh_end = ClassState::fresh_end(state);
        let Some(slot) = magazine.pop_slot() else {
            magazine.undo_pop();
            let Obtained { block, reads_zero } =
                allocate_unready(padded(size, asked), class << MAGAZINE_SHIFT, heap, Tell::Yes);
            return if reads_zero { block } else { zero(block) };
        };
        let block = *(slot as *const *mut u8);
        if slot >= fresh_end || slot >= ClassState::fresh_end(state) {
            block.write_bytes(0, class_size(class));
        }
        block
    }
}

/// Zero a block that need not be as large as its class; null is left alone.
#[cold]
#[inline(never)]
unsafe fn zero(block: *mut u8) -> *mut u8 {
    if !block.is_null() {
        // SAFETY: the caller's block.
        unsafe { span::zero(block) };
    }
    block
}

/// Like `realloc`, except that a size of 0 gives a block of the least size. On failure null, and the block is kept.
pub(crate) unsafe fn reallocate(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: as the caller vouches; every block is aligned well enough.
    unsafe { reallocate_aligned(block, size, 1) }
}

/// [`reallocate`] that keeps an alignment, a power of two.
pub(crate) unsafe fn reallocate_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller owns the block, if there is one.
    unsafe {
        if block.is_null() {
            return allocate_aligned(size, alignment);
        }
        if let Some(usable) = release::ordinary_size(block) {
            return reallocate_ordinary(block, usable, usable, size, alignment);
        }
        let usable = release::usable_size(block);
        if usable == 0 {
            libc::set_errno(libc::EINVAL); // no block: what it holds cannot be kept
            return core::ptr::null_mut();
        }
        if zone::is_own(block)
            && is_aligned(block, alignment)
            && (release::stays(block, usable, size) || (size > usable && grow::extend(block, size)))
        {
            release::resized(block, usable, size);
            return block;
        }
        move_to(block, usable, usable, size, alignment, true)
    }
}

/// A block in place of another, of which only the first `used` bytes matter.
#[inline(always)]
unsafe fn move_to(
    block: *mut u8,
    usable: usize,
    used: usize,
    size: usize,
    alignment: usize,
    is_special: bool,
) -> *mut u8 {
    // SAFETY: the caller owns the block, which has the used bytes; the new one has `size` bytes.
    unsafe {
        if watch::is_on() {
            return tell::move_to(Extent { block, usable }, used, size, alignment);
        }
        if size > usable && size >= GROWN_TO_SPAN {
            return grow::grow(block, used, size, alignment);
        }
        let moved = allocate_aligned(size, alignment);
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, size.min(used));
            if is_special {
                sampled::moved(block, moved);
            }
            release::release(block);
        }
        moved
    }
}

/// [`reallocate_aligned`] of a block of which only the first `used` bytes matter.
#[inline(always)]
pub(crate) unsafe fn reallocate_used(block: *mut u8, used: usize, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller owns the block, and knows what of it is used.
    unsafe {
        match release::ordinary_size(block) {
            Some(usable) => reallocate_ordinary(block, usable, used, size, alignment),
            None => reallocate_aligned(block, size, alignment),
        }
    }
}

/// Nobody but who watches needs to be told of an ordinary block that stays where it is.
#[inline(always)]
unsafe fn reallocate_ordinary(block: *mut u8, usable: usize, used: usize, size: usize, alignment: usize) -> *mut u8 {
    let stays = size <= usable && size >= usable / 2 && size != 0 && is_aligned(block, alignment);
    if stays && zone::main_is_current_unwatched() {
        return block;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if stays && zone::main_is_current() {
            tell::resized(Extent { block, usable }, usable, size);
            return block;
        }
        move_to(block, usable, used, size, alignment, false)
    }
}

/// Without a division: the alignment is a power of two, which the compiler does not know.
#[inline(always)]
fn is_aligned(block: *mut u8, alignment: usize) -> bool {
    block as usize & (alignment - 1) == 0
}
