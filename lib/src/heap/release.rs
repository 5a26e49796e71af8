//! `free`: the fast path, the slow one, and what is known of a block.

use super::classes::class_size;
use super::events::Extent;
use super::magazine::MAGAZINE_SHIFT;
use super::misuse::{self, Misuse};
use super::tell::{self, Tell};
use super::{Heap, child, due, emergency, home, refill, sampled, secure, shelf, span, thread, watch, zone};
use crate::arena::{self, INDICES, Kind, SLICE, SLICES, class_entry, index_of, slice, slice_index};
use crate::os::libc;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Free a block. Null is allowed; `errno` is kept.
#[inline(always)]
pub(crate) unsafe fn release(block: *mut u8) {
    let index = slice_index(block as usize);
    if index >= SLICES {
        return release_foreign(block);
    }
    // SAFETY: the index is inside the window, whose class map is mapped; the entry is the offset of a magazine.
    unsafe {
        let offset = *class_entry(index) as usize;
        let heap = thread::current();
        if !Heap::magazine_at(heap, offset).push(block) {
            release_slow(heap, block, offset, index);
        }
    }
}

/// Null, blocks from the emergency range, and what some other allocator made.
#[cold]
#[inline(never)]
pub(crate) fn release_foreign(block: *mut u8) {
    // Blocks from before our first call came from the emergency range or the loader's own allocator, which never frees.
    if block.is_null() || emergency::owns(block) || !thread::is_initialised() {
        return;
    }
    let index = index_of(block as usize);
    if (SLICES..INDICES).contains(&index) {
        return release_outside(block, index);
    }
    let errno = libc::errno();
    // SAFETY: not ours, so the C library's: programs mix them when a library was bound to it directly.
    unsafe { libc::__libc_free(block) };
    libc::set_errno(errno);
}

/// A block of ours that is not in the window.
fn release_outside(block: *mut u8, index: usize) {
    let heap = thread::current();
    // SAFETY: as in `release`.
    unsafe {
        let offset = *class_entry(index) as usize;
        if !Heap::magazine_at(heap, offset).push(block) {
            release_slow(heap, block, offset, index);
        }
    }
}

/// [`release`] of a block that is not to be told, by the slow path.
pub(super) unsafe fn release_told(block: *mut u8) {
    let index = index_of(block as usize);
    if index >= INDICES {
        return release_foreign(block);
    }
    // SAFETY: as in `release`.
    let offset = unsafe { *class_entry(index) } as usize;
    release_slowly(thread::current(), block, offset, index, Tell::No);
}

/// The push failed: a full stack, no heap yet, or a special block.
#[cold]
#[inline(never)]
pub(crate) fn release_slow(heap: *mut Heap, block: *mut u8, offset: usize, index: usize) {
    // By itself, so that no register has to be saved.
    // SAFETY: this thread's heap or EMPTY, and the slice that the block begins in.
    if offset != 0 || !unsafe { shelf::put_quickly(heap, index, block) } {
        release_slowly(heap, block, offset, index, Tell::Yes);
    }
}

#[cold]
#[inline(never)]
fn release_slowly(heap: *mut Heap, block: *mut u8, offset: usize, index: usize, tell: Tell) {
    // SAFETY: `heap` is this thread's heap or EMPTY; see the steps.
    unsafe {
        if offset == 0 && !tell::is_due(tell) && zone::push_quickly(index, block) {
            return;
        }
        // A guest keeps no ordinary blocks: its push refuses, and the thread's own heap takes them.
        let heap = thread::host_of(heap);
        if home::is_busy_here(heap) || arena::is_busy_here() || sampled::is_busy_here() || child::is_repaired_here() {
            return emergency::defer(block, tell);
        }
        child::check();
        emergency::adopt_deferred();
        if offset == 0 {
            let bytes = release_special(index, block, tell);
            (crate::HOOKS.span_freed)(bytes);
            return misuse::tell();
        }
        let Some(lease) = thread::lease(heap) else { return }; // no memory for a heap: the block is lost
        let class = offset >> MAGAZINE_SHIFT;
        if tell::is_due(tell) && !secure::checks_frees() {
            tell::freed(block, class_size(class));
        }
        let magazine = Heap::magazine_at(lease.heap, offset);
        // Once is enough, unless a signal handler fills the stack in between.
        while !magazine.push(block) {
            if secure::checks_frees() {
                secure::release(lease.heap, class, index, block, tell);
                break;
            }
            if magazine.is_shut() && push_shut(lease.heap, class, block) {
                if !due::is_due() {
                    return; // by far the most often, while somebody watches
                }
                break;
            }
            make_room(lease.heap, class);
        }
        drop(lease);
        (crate::HOOKS.drained)();
        misuse::tell();
    }
}

/// Push to a stack that refuses all pushes since somebody watches or has watched: in the latter case, not any longer. False: it is full.
unsafe fn push_shut(heap: *mut Heap, class: usize, block: *mut u8) -> bool {
    // SAFETY: the heap is leased by this thread; state is touched under its lock.
    unsafe {
        (*heap).lock.lock();
        let (magazine, state) = Heap::class(heap, class);
        state.settle(magazine);
        let pushed = state.push_locked(magazine, block);
        state.open(magazine, watch::word());
        (*heap).lock.unlock();
        pushed
    }
}

/// Empty the free stack: into the alloc stack, which is flushed first if it holds anything.
pub(super) unsafe fn make_room(heap: *mut Heap, class: usize) {
    // SAFETY: the heap is leased by this thread; state is touched under its lock.
    unsafe {
        refill::lock_emptied(heap, class);
        let (magazine, state) = Heap::enter(heap, class);
        if state.has_frees(magazine) {
            state.swap(magazine);
        } else {
            state.rewind_frees(magazine);
        }
        Heap::leave(heap, magazine, state, watch::word());
        (*heap).lock.unlock();
    }
}

/// Returns the bytes of a span, 0 of others.
unsafe fn release_special(index: usize, block: *mut u8, tell: Tell) -> usize {
    if !arena::is_ours(index) {
        release_foreign(block); // where the window is not ours yet
        return 0;
    }
    // SAFETY: the slice has metadata if it was ever handed out; a run that is neither kind is not a block.
    unsafe {
        match run_of(index) {
            Some((Kind::Span, first)) => {
                let bytes = (*slice(first)).length() * SLICE;
                let parked = span::release(first, block, tell);
                if !parked.is_null() {
                    release_parked(parked);
                }
                return bytes;
            }
            Some((Kind::Sampled, first)) => {
                if tell::is_due(tell) && sampled::is_live(first, block) {
                    tell::freed(block, (*slice(first)).block_size as usize);
                }
                release_parked(sampled::release(first, block));
            }
            Some((Kind::Zone | Kind::Slab, _)) => zone::release(index, block, tell),
            _ => misuse::note(Misuse::Invalid, block as usize),
        }
    }
    0
}

/// Free the block that was parked for one whose free was told.
unsafe fn release_parked(block: *mut u8) {
    // SAFETY: the caller's block.
    unsafe { if watch::is_on() { release_told(block) } else { release(block) } }
}

/// Whether this block, which the caller holds, is one of ours, and not of the emergency range.
pub(super) fn is_ours(block: *mut u8) -> bool {
    let index = index_of(block as usize);
    // SAFETY: each index has an entry.
    index < INDICES && (unsafe { *class_entry(index) } != 0 || run_of(index).is_some())
}

/// Kind and first slice of the run that a slice is in, as far as blocks have ever been there.
pub(super) fn run_of(index: usize) -> Option<(Kind, usize)> {
    if !arena::is_ours(index) {
        return None;
    }
    // SAFETY: described slices have metadata.
    unsafe {
        let first = (*slice(index)).first as usize;
        (arena::is_ours(first) && first <= index).then_some(())?;
        let (kind, length) = (*slice(first)).run()?;
        (index - first < length).then_some((kind, first))
    }
}

/// Usable bytes of an ordinary block of a slab; `None` for everything special and everything foreign.
#[inline(always)]
pub(super) unsafe fn ordinary_size(block: *const u8) -> Option<usize> {
    let index = slice_index(block as usize);
    if index >= SLICES {
        return None;
    }
    // SAFETY: as in `release`.
    let class = unsafe { *class_entry(index) } as usize >> MAGAZINE_SHIFT;
    (class != 0).then(|| class_size(class))
}

/// Bytes of a block that may be used; 0 for null, and for what is no block if the program's function for errors lets it go on.
pub(crate) unsafe fn usable_size(block: *const u8) -> usize {
    if block.is_null() {
        return 0;
    }
    let index = index_of(block as usize);
    // SAFETY: H2: the caller holds the block; what is not in our part of the window is foreign.
    unsafe {
        if index >= INDICES {
            return usable_size_foreign(block);
        }
        let offset = *class_entry(index) as usize;
        if offset != 0 {
            return class_size(offset >> MAGAZINE_SHIFT);
        }
        if !arena::is_ours(index) {
            return usable_size_foreign(block);
        }
        match run_of(index) {
            Some((Kind::Span, first)) => span::extent(first).1,
            Some((Kind::Sampled | Kind::Zone | Kind::Slab, first)) => (*slice(first)).block_size as usize,
            _ => {
                misuse::report(Misuse::Invalid, block as usize);
                0
            }
        }
    }
}

/// Whether `realloc` to this size leaves a block of this usable size where it is, without making it larger: it has room, and would
/// not be less than half used.
#[inline(always)]
pub(crate) unsafe fn stays(block: *mut u8, usable: usize, size: usize) -> bool {
    // SAFETY: the caller owns the block.
    size != 0 && size <= usable && (size >= usable / 2 || unsafe { span::is_growing(block, size) })
}

#[cold]
unsafe fn usable_size_foreign(block: *const u8) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: blocks of the emergency range have a header; the symbol, when found, has the signature of the C library.
    unsafe {
        if emergency::owns(block) {
            return emergency::usable_size(block);
        }
        let mut next = NEXT.load(Relaxed);
        if next == 0 {
            next = libc::dlsym(libc::RTLD_NEXT, c"malloc_usable_size".as_ptr().cast()) as usize;
            NEXT.store(next, Relaxed);
        }
        if next == 0 {
            return 0;
        }
        core::mem::transmute::<usize, unsafe extern "C" fn(*const u8) -> usize>(next)(block)
    }
}

/// A block keeps its place but has another requested size, and maybe other usable bytes than before: tell its record, if it was sampled,
/// and who watches.
pub(crate) unsafe fn resized(block: *mut u8, before: usize, size: usize) {
    let index = index_of(block as usize);
    if index >= INDICES {
        return;
    }
    if watch::is_on() && is_ours(block) {
        // SAFETY: the caller holds the block.
        unsafe { tell::resized(Extent { block, usable: usable_size(block) }, before, size) };
    }
    // SAFETY: H2: the caller holds the block.
    unsafe {
        if *class_entry(index) != 0 {
            return;
        }
        match run_of(index) {
            Some((Kind::Span, first)) => {
                span::asked(first).write(size);
                sampled::resize(span::record(first), size);
            }
            Some((Kind::Sampled, first)) => {
                sampled::record_of(first, block).into_iter().for_each(|record| sampled::resize(record, size))
            }
            _ => {}
        }
    }
}
