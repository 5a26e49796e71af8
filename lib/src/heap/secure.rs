//! Hardening that costs time or memory, by level. `docs/hardening.md` says what each does and what always holds.
//!
//! The fast paths know nothing of it: where frees are checked, every push is refused and at most one block is cached, so both
//! ways lead through the slow paths, and the bitmap of a slab says at every moment which of its blocks are live.

use super::classes::class_size;
use super::interval::{GOLDEN, mix};
use super::misuse::{self, Misuse};
use super::tell::{self, Tell};
use super::{CLASSES, Heap, all, bits, emergency, home, steal};
use crate::arena::{self, slice};
use crate::options::{self, Unit};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::*};

/// Level when nothing is said.
const DEFAULT: u8 = if cfg!(feature = "secure") { 4 } else { 0 };
const HIGHEST: i64 = 5;

static LEVEL: AtomicU8 = AtomicU8::new(DEFAULT);
/// The environment was asked.
static READ: AtomicBool = AtomicBool::new(false);

/// The present level. The environment can raise it only: heaps are made as it says.
#[inline(always)]
pub(crate) fn level() -> u8 {
    LEVEL.load(Relaxed)
}

/// Blocks are handed out in random order.
#[inline(always)]
pub(super) fn shuffles() -> bool {
    level() >= 2
}

/// Each free is checked before anything else knows of it.
#[inline(always)]
pub(super) fn checks_frees() -> bool {
    level() >= 3
}

/// There is memory that faults behind each span.
pub(super) fn guards_spans() -> bool {
    level() >= 4
}

/// What is freed is overwritten with zeroes.
pub(super) fn clears() -> bool {
    level() >= 5
}

/// Before anything is mapped, if the environment is known by then.
pub(super) fn prepare() {
    read();
    if level() >= 1 {
        os::guard_mappings();
    }
}

/// The window is there.
pub(super) fn window_is_mapped() {
    if level() >= 1 {
        arena::guard_metadata();
    }
}

/// The environment is known now: heaps that were made before learn of it. With no lock held.
pub(crate) fn begin() {
    if !read() || level() == 0 {
        return;
    }
    os::guard_mappings();
    if !arena::is_initialised() {
        return;
    }
    arena::guard_metadata();
    for heap in all() {
        // SAFETY: H3; the lock is held.
        unsafe {
            (*heap).lock.lock();
            adopt(heap);
            (*heap).lock.unlock();
        }
    }
    steal::steal_all();
}

/// Ask the environment, once. True: it was this call.
fn read() -> bool {
    if !os::environment_is_known() || READ.swap(true, AcqRel) {
        return false;
    }
    const NAME: &[u8] = b"MIMALLOC_SECURE";
    let Some(value) = os::variable(NAME).filter(|_| !os::is_privileged()) else { return true };
    match options::parse(value, Unit::Plain) {
        Some(level) => drop(LEVEL.fetch_max(level.clamp(0, HIGHEST) as u8, Relaxed)),
        None => os::complain_about(NAME, b" is not a number; the default is used"),
    }
    true
}

/// Make a heap do as the level says. Its lock is held, or nobody else knows it.
pub(super) unsafe fn adopt(heap: *mut Heap) {
    if shuffles() {
        // SAFETY: as the caller says.
        unsafe { (*heap).shuffle = os::random_seed() };
    }
    for class in 1..if checks_frees() { CLASSES } else { 1 } {
        // SAFETY: as the caller says.
        unsafe {
            let (magazine, state) = Heap::class(heap, class);
            state.refuse_frees(magazine);
        }
    }
}

/// In a forked child: another sequence than in the parent.
pub(super) unsafe fn repair(heap: *mut Heap) {
    if shuffles() {
        // SAFETY: one thread.
        unsafe { (*heap).shuffle = mix((*heap).shuffle ^ os::random_seed()) };
    }
}

/// A random number. The heap's lock is held.
pub(super) unsafe fn random(heap: *mut Heap) -> u64 {
    // SAFETY: as the caller says.
    unsafe {
        (*heap).shuffle = (*heap).shuffle.wrapping_add(GOLDEN);
        mix((*heap).shuffle)
    }
}

/// Bring the blocks in some slots into random order. The heap's lock is held.
pub(super) unsafe fn shuffle(heap: *mut Heap, slots: *mut usize, count: usize) {
    for last in (1..count).rev() {
        // SAFETY: the caller's slots.
        unsafe {
            let other = random(heap) as usize % (last + 1);
            core::ptr::swap(slots.add(last), slots.add(other));
        }
    }
}

/// `free` where each is checked: the block goes to its slab at once, and if it cannot, that is noted. The heap is leased by this
/// thread; no lock is held.
pub(super) unsafe fn release(heap: *mut Heap, class: usize, index: usize, block: *mut u8, tell: Tell) {
    // SAFETY: the metadata of a slice with a class can be read; all else is looked at under its lock.
    unsafe {
        let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if home.is_null() {
            return misuse::note(Misuse::Double, block as usize);
        }
        let with_slab = |act: &dyn Fn(usize) -> bool| {
            let Some(_locked) = home::lock(home, core::ptr::null_mut()) else {
                emergency::defer(block, tell);
                return false;
            };
            let is_there = core::ptr::eq((*slice(index)).owner.load(Relaxed), home.cast());
            if !is_there {
                misuse::note(Misuse::Double, block as usize);
            }
            is_there && act((*slice(index)).first as usize)
        };
        let told = tell::is_due(tell);
        if clears() || told {
            // Not under the lock. Only the caller can give the block back, so it stays what it is meanwhile.
            if !with_slab(&|first| bits::is_live(first, block as usize)) {
                return;
            }
            if told {
                tell::freed(block, class_size(class));
            }
            if clears() {
                block.write_bytes(0, class_size(class));
            }
        }
        if with_slab(&|first| bits::put(home, first, block as usize)) {
            count_free(heap, class);
        }
    }
}

unsafe fn count_free(heap: *mut Heap, class: usize) {
    // SAFETY: M2.
    unsafe {
        (*heap).lock.lock();
        let (_, state) = Heap::class(heap, class);
        state.count_frees(1);
        (*heap).lock.unlock();
    }
}
