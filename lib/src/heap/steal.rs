//! Taking the cached blocks of other threads, running or not, without waiting for them.
//!
//! Per heap, under its lock: the free stacks are taken as they are; each alloc stack is *claimed* by raising its `bottom`,
//! then one fence runs in every thread of the process, and then `top` tells which slots the owner can no longer take:
//!
//! * The owner's pop stores the lowered `top` and then loads `bottom`. If that load came before the fence, the fence has made
//!   the store visible to us; if it came after, it sees the claim and fails. Either way no slot is taken twice.
//! * It does not matter where the owner was interrupted, and it is never waited for.
//!
//! Where the kernel refuses the fence, claims are dropped and only free stacks are stolen.

use super::classes::{CLASSES, LARGEST_SLOTS};
use super::{Heap, THEFT, all, home, misuse, refill, shelf, slab, thread, watch};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::*};

/// One thief at a time; guards the loot.
static LOCK: Lock = Lock::new();
/// Bytes for everything that one heap can have cached.
pub(super) const ROOM: usize = (LARGEST_SLOTS * 8).next_multiple_of(os::PAGE);
/// That room; mapped at the first theft, if it was not there before.
static LOOT: AtomicPtr<usize> = AtomicPtr::new(core::ptr::null_mut());
static FENCE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const WORKS: u8 = 1;
const REFUSED: u8 = 2;

/// What was done to the caches of all threads.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stolen {
    /// Blocks of other threads.
    pub(crate) blocks: usize,
    /// Heaps that were looked at.
    pub(crate) heaps: usize,
    /// Heaps whose thread has allocated or freed since they were looked at last.
    pub(crate) active: usize,
    /// Heaps whose alloc stacks could not be had, as the kernel has no fence.
    pub(crate) refused: usize,
}

/// Which caches to take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those of classes that their thread has not used since they were looked at last.
    Idle,
}

/// Whose heap it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// This thread's, which is not at it meanwhile, though this may be a signal handler that has interrupted it at any point: no fence
    /// is needed.
    Own,
    Other,
}

/// Give the cached blocks of all threads back to their slabs, this thread's own included, and the slabs that are wholly free to the
/// arena. With no lock held.
pub(crate) fn steal_all() -> Stolen {
    steal_from(|_| true)
}

/// The same for some heaps.
pub(super) fn steal_from(wanted: impl Fn(*mut Heap) -> bool) -> Stolen {
    let stolen = steal_those(Which::All, wanted);
    slab::give_up_empty(core::ptr::null_mut());
    (crate::HOOKS.drained)();
    misuse::tell();
    stolen
}

/// Give back the cached blocks of classes that their threads have not used since this was called last. With no lock held.
pub(crate) fn steal_idle() -> Stolen {
    steal_those(Which::Idle, |_| true)
}

fn steal_those(which: Which, wanted: impl Fn(*mut Heap) -> bool) -> Stolen {
    let own = thread::own();
    let mut stolen = Stolen::default();
    // SAFETY: the lock of EMPTY is never taken.
    if LOCK.held_by_me() || unsafe { (*own).lock.held_by_me() } {
        return stolen; // a signal handler has interrupted this thread
    }
    LOCK.lock();
    if let Some(loot) = loot() {
        for heap in all().filter(|&heap| wanted(heap)) {
            stolen.heaps += 1;
            // SAFETY: H3.
            unsafe {
                // A guest without a zone has nothing, and is no orphan: who takes it from the spare ones asks nobody. It cannot lose
                // its zone meanwhile: see `at_rest`.
                if (*heap).zone.load(Acquire).is_null() {
                    continue;
                }
                let at_rest = if which == Which::Idle { has_rested(heap) } else { Rest::Unknown };
                match at_rest {
                    Rest::Empty => continue,
                    Rest::No => stolen.active += 1,
                    Rest::Yes | Rest::Unknown => {}
                }
                if core::ptr::eq((*heap).host.load(Relaxed), own) && !Heap::is_empty_heap(own) {
                    // Its guests, too; not in one that this signal handler has interrupted. By theft: if it has interrupted a push, the
                    // stack may not be taken apart.
                    if !home::is_busy_here(heap) {
                        steal(heap, loot, which, Victim::Own);
                    }
                } else if thread::claim_orphan(heap) {
                    match which {
                        Which::All => thread::flush_all(heap),
                        Which::Idle => thread::flush_idle(heap),
                    }
                    thread::give_up(heap);
                } else {
                    stolen.blocks += steal(heap, loot, which, Victim::Other);
                    stolen.refused += (FENCE.load(Relaxed) == REFUSED) as usize;
                }
                if at_rest == Rest::Yes {
                    // Nothing is left, unless its thread has come back meanwhile: then it has moved.
                    (*heap).seen.store(!(*heap).seen.load(Relaxed), Relaxed);
                }
            }
        }
    }
    LOCK.unlock();
    stolen
}

/// What the thread of a heap has done since it was looked at last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Unknown,
    /// It has allocated or freed.
    No,
    /// Neither.
    Yes,
    /// Neither, and all its caches were taken before.
    Empty,
}

/// Ask, and remember the answer. Theft lock held.
unsafe fn has_rested(heap: *mut Heap) -> Rest {
    // SAFETY: H3; only the positions of the stacks are read, without a lock.
    unsafe {
        let magazines = &(*heap).magazines;
        let positions = magazines.iter().fold(0u64, |sum, m| sum.rotate_left(7).wrapping_add(m.position() as u64));
        let positions = positions.rotate_left(7).wrapping_add((*heap).spans.position() as u64);
        let seen = (*heap).seen.load(Relaxed);
        if seen == !positions {
            return Rest::Empty;
        }
        (*heap).seen.store(positions, Relaxed);
        if seen == positions { Rest::Yes } else { Rest::No }
    }
}

/// No theft is on its way as long as this lives.
pub(super) struct AtRest(bool);

impl Drop for AtRest {
    fn drop(&mut self) {
        if self.0 {
            LOCK.unlock();
        }
    }
}

/// Wait for a theft to end, but for one of this thread's that a signal handler has interrupted. With no lock held.
pub(super) fn at_rest() -> AtRest {
    let wait = !LOCK.held_by_me();
    if wait {
        LOCK.lock();
    }
    AtRest(wait)
}

/// Here is zeroed memory of [`ROOM`] bytes that nobody else uses. Before the first theft.
pub(super) fn furnish(memory: *mut u8) {
    LOOT.store(memory.cast(), Relaxed);
}

fn loot() -> Option<*mut usize> {
    if LOOT.load(Relaxed).is_null() {
        LOOT.store(os::map(ROOM).cast(), Relaxed);
    }
    let loot = LOOT.load(Relaxed);
    (!loot.is_null()).then_some(loot)
}

fn fence_works() -> bool {
    if FENCE.load(Relaxed) == UNKNOWN {
        FENCE.store(if os::prepare_fence() { WORKS } else { REFUSED }, Relaxed);
    }
    FENCE.load(Relaxed) == WORKS
}

/// What is cached in one heap, given back. Returns the number of blocks.
unsafe fn steal(heap: *mut Heap, loot: *mut usize, which: Which, victim: Victim) -> usize {
    // SAFETY: stacks are touched under the heap's lock; the loot has room for all slots of a heap.
    unsafe {
        match which {
            Which::All => shelf::clear(heap),
            Which::Idle => shelf::clear_idle(heap),
        }
        (*heap).lock.lock();
        (*heap).busy.store(THEFT, SeqCst);
        let mut count = 0;
        let mut take = |(slots, n): (*const usize, usize)| {
            loot.add(count).copy_from_nonoverlapping(slots, n);
            count += n;
        };
        let mut claims = [0u64; CLASSES.div_ceil(64)];
        for class in 1..CLASSES {
            let (magazine, state) = Heap::class(heap, class);
            if state.has_moved(magazine) && which == Which::Idle {
                continue;
            }
            take(state.take_frees(magazine));
            if (victim == Victim::Own || fence_works()) && state.claim(magazine) {
                claims[class / 64] |= 1 << (class % 64);
            }
        }
        if claims.iter().any(|&word| word != 0) {
            let fenced = victim == Victim::Own || os::fence_process();
            if !fenced {
                FENCE.store(REFUSED, Relaxed);
            }
            for class in (1..CLASSES).filter(|class| claims[class / 64] >> (class % 64) & 1 != 0) {
                let (magazine, state) = Heap::class(heap, class);
                if fenced {
                    take(state.take_claimed(magazine, watch::word()));
                } else {
                    state.drop_claim(magazine, watch::word());
                }
            }
        }
        (*heap).busy.store(0, SeqCst);
        (*heap).lock.unlock();
        let mut left = count;
        while left != 0 {
            left = refill::put_foreign(loot, left);
        }
        count
    }
}

/// In a forked child: a theft that a vanished thread was at is over; what it had taken is lost.
pub(super) fn repair() {
    if LOCK.held_by_vanished() {
        LOCK.reset();
    }
}
