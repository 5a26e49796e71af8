//! Zones: the heaps that a program makes itself (`mi_heap_t`), to be given up as a whole.
//!
//! A zone has a *home*, a [`Heap`] of slabs only, shared from the start (see [`home`](super::home)). Each thread that allocates from
//! it gets a *guest*: a heap of stacks that are filled from that home (`mi_theap_t`). So an allocation is the same pop as any other,
//! of another heap. A guest is found through the thread's ordinary heap, in a small table, else on the zone's list; it belongs to its
//! thread until that ends, and serves other zones when its own has ended.
//!
//! | what | how it differs from the main heap |
//! |---|---|
//! | slabs | are of [`Kind::Zone`]: their class map entry sends each `free` to the slow path |
//! | freed blocks | go to the free stack of the freeing thread's guest, or back to the slab as a bit; both under a lock |
//! | spans | have the home as their owner |
//! | slabs and spans | are on one list, so that all can be given up at once |
//!
//! # Invariants
//!
//! * Z1 A block of a zone is never in a stack of a heap whose home is another, nor an ordinary block in a guest: pushes to guests
//!   compare the homes under the guest's lock, and the fast push always fails there.
//! * Z2 Who owns a slab or span of a zone changes under the slab lock of the old owner and of the new one, and is told by the owner
//!   of its first slice; the other slices, class map and kind follow. Who has read an owner looks again under its lock.
//! * Z3 Zones and guests are never unmapped. A guest's zone and home change under the registry's lock and its own.
//! * Z4 The slabs' lock guards the list of members, lists and counts of returned blocks.
//! * Z5 The program neither allocates from a zone that is being ended nor uses it afterwards. It may free blocks of a zone that is
//!   being *deleted*, and of others, at any time.

mod counts;
mod end;
mod guest;
pub(crate) mod inspect;
mod members;
mod release;
mod repair;
pub(crate) mod subprocess;
#[cfg(test)]
mod tests;
mod visit;
mod whose;

pub(crate) use counts::Scope;
pub(super) use counts::{at_rest, outside_stacks};
pub(crate) use end::{delete, destroy};
pub(crate) use guest::{
    Guests, allocate, allocate_from_theap, collect, collect_theap, default_theap, of_theap, set_default_theap,
    theap_of, within, within_theap,
};
pub(super) use guest::{be_ordinary, guests_of, leave_guests, look_closer, main_is_current, main_is_current_unwatched};
pub(super) use members::{create_slab, forget_slab, publish_span, span_resized, withdraw_span};
pub(super) use release::{push_quickly, release};
pub(super) use repair::{finish_vanished, lose_members, orphan, relist, repair_lists, repair_locks};
pub(crate) use visit::{Area, is_under_utilized, visit, visit_all};
pub(crate) use whose::{contains, is_block, is_own, zone_of};

use super::classes::CLASSES;
use super::statistics::SpanCounts;
use super::{EMPTY, Heap, Lock};
use crate::arena::Pool;
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering::*};
use subprocess::Subprocess;

/// What is known of a zone. `mi_heap_t` is its address.
#[repr(C)]
pub(crate) struct Zone {
    /// Null for [`MAIN`], whose slabs are in the homes of all ordinary heaps. Constant.
    home: AtomicPtr<Heap>,
    /// Where threads look for their guest first. Constant.
    slot: u32,
    state: AtomicU32,
    /// The thread that is ending it.
    ended_by: AtomicU64,
    /// How many zones were made before.
    number: AtomicU64,
    /// All zones ever made, and those that are idle.
    next: AtomicPtr<Zone>,
    next_idle: AtomicPtr<Zone>,
    /// The guests that have it, with a thread or without. Threads push, the end of the zone takes all.
    guests: AtomicPtr<Heap>,
    /// First slab or span, 0 = none. Guarded by the home's slab lock.
    members: AtomicU32,
    /// Whose it is; null: the first one's.
    subprocess: AtomicPtr<Subprocess>,
    /// Where its slabs and spans come from.
    pool: AtomicU16,
    /// A sample was taken of it.
    sampled: AtomicBool,
    /// Blocks per class that no stack counts: those that went straight back to the slabs, and those of zones that have ended here.
    allocated: [AtomicU64; CLASSES],
    freed: [AtomicU64; CLASSES],
    /// Its spans. Guarded by the home's slab lock.
    spans: SpanCounts,
}

/// States of a zone.
const IDLE: u32 = 0;
const IN_USE: u32 = 1;
const DELETED: u32 = 2;
const DESTROYED: u32 = 3;

/// Places of a thread's table of guests; the first is for [`MAIN`].
const SLOTS: usize = 64;

impl Zone {
    const fn blank(state: u32) -> Zone {
        Zone {
            home: AtomicPtr::new(core::ptr::null_mut()),
            slot: 0,
            state: AtomicU32::new(state),
            ended_by: AtomicU64::new(0),
            number: AtomicU64::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
            next_idle: AtomicPtr::new(core::ptr::null_mut()),
            guests: AtomicPtr::new(core::ptr::null_mut()),
            members: AtomicU32::new(0),
            subprocess: AtomicPtr::new(core::ptr::null_mut()),
            pool: AtomicU16::new(Pool::COMMON.word()),
            sampled: AtomicBool::new(false),
            allocated: [const { AtomicU64::new(0) }; CLASSES],
            freed: [const { AtomicU64::new(0) }; CLASSES],
            spans: SpanCounts::NONE,
        }
    }

    fn home(&self) -> *mut Heap {
        self.home.load(Relaxed)
    }

    fn is_in_use(&self) -> bool {
        self.state.load(Acquire) == IN_USE
    }
}

/// The heap of plain `malloc`.
pub(crate) static MAIN: Zone = Zone::blank(IN_USE);

/// Guards the lists of idle zones and spare guests, and which zone a guest has.
static REGISTRY: Lock = Lock::new();
/// Zones ever made; grows only.
static ALL: AtomicPtr<Zone> = AtomicPtr::new(core::ptr::null_mut());
static IDLE_ZONES: AtomicPtr<Zone> = AtomicPtr::new(core::ptr::null_mut());
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The main zone as a pointer.
pub(crate) const fn main() -> *mut Zone {
    (&raw const MAIN).cast_mut()
}

fn is_main(zone: *mut Zone) -> bool {
    core::ptr::eq(zone, &MAIN)
}

/// Zones ever made but the main one, in use or not.
fn all() -> impl Iterator<Item = *mut Zone> {
    let mut at = ALL.load(Acquire);
    core::iter::from_fn(move || {
        let zone = at;
        // SAFETY: Z3.
        (!zone.is_null()).then(|| at = unsafe { (*zone).next.load(Acquire) });
        (!zone.is_null()).then_some(zone)
    })
}

/// A new zone in this thread's sub-process; null: no memory.
pub(crate) fn create() -> *mut Zone {
    create_in(subprocess::current(), Pool::COMMON)
}

/// The same, of memory of one pool only.
pub(crate) fn create_in_pool(pool: Pool) -> *mut Zone {
    create_in(subprocess::current(), pool)
}

fn create_in(process: *mut Subprocess, pool: Pool) -> *mut Zone {
    // The thread has a heap then, and the arena is there.
    if super::thread::lease(super::thread::current()).is_none() || REGISTRY.held_by_me() {
        return core::ptr::null_mut();
    }
    REGISTRY.lock();
    let mut zone = IDLE_ZONES.load(Relaxed);
    // SAFETY: Z3; the registry is locked.
    unsafe {
        if zone.is_null() {
            zone = make();
        } else {
            IDLE_ZONES.store((*zone).next_idle.load(Relaxed), Relaxed);
        }
        if !zone.is_null() {
            (*zone).subprocess.store(process, Relaxed);
            (*zone).pool.store(pool.word(), Relaxed);
            (*zone).number.store(NUMBER.fetch_add(1, Relaxed) + 1, Relaxed);
            (*zone).state.store(IN_USE, Release);
        }
    }
    REGISTRY.unlock();
    zone
}

/// A zone behind its home. Registry locked.
unsafe fn make() -> *mut Zone {
    let home = os::map((size_of::<Heap>() + size_of::<Zone>()).next_multiple_of(os::PAGE)).cast::<Heap>();
    if home.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: fresh memory, all zero, which is a valid home with no slabs and a zone that is idle. Pages of the stacks stay untouched.
    unsafe {
        let zone = home.add(1).cast::<Zone>();
        (*home).shared.store(true, Relaxed);
        (*home).home.store(home, Relaxed);
        (*home).zone.store(zone, Relaxed);
        (*zone).home.store(home, Relaxed);
        let first = ALL.load(Relaxed);
        let made = if first.is_null() { 0 } else { (*first).slot as usize };
        (*zone).slot = (1 + made % (SLOTS - 1)) as u32;
        (*zone).next.store(first, Relaxed);
        ALL.store(zone, Release);
        zone
    }
}

/// Bytes of blocks of zones that are not in their slabs.
pub(super) fn bytes_out() -> usize {
    // SAFETY: Z3.
    all().map(|zone| unsafe { (*(*zone).home()).out.load(Relaxed) }).sum()
}

/// How many zones were made before; 0 is the main one.
pub(crate) fn number_of(zone: *mut Zone) -> u64 {
    // SAFETY: Z3.
    unsafe { (*zone).number.load(Relaxed) }
}

/// The zone of a heap or a home: `None` if that is the main one, or none.
fn of_heap(heap: *mut Heap) -> Option<*mut Zone> {
    // SAFETY: H3, Z3.
    let zone = unsafe { (*heap).zone.load(Relaxed) };
    (!is_main(zone) && !zone.is_null()).then_some(zone)
}

/// What the slabs and spans of a heap or a home come from.
pub(super) fn pool_of(heap: *mut Heap) -> Pool {
    if heap.is_null() {
        return Pool::COMMON;
    }
    // SAFETY: Z3.
    of_heap(heap).map_or(Pool::COMMON, |zone| Pool::of_word(unsafe { (*zone).pool.load(Relaxed) }))
}

/// A sample is taken of this heap.
pub(super) fn note_sample(heap: *mut Heap) {
    if let Some(zone) = of_heap(heap) {
        // SAFETY: Z3.
        unsafe { (*zone).sampled.store(true, Relaxed) };
    }
}

/// The home of a zone in whose slabs this thread was interrupted.
fn is_busy(home: *mut Heap) -> bool {
    // SAFETY: Z3.
    unsafe { (*home).slab_lock.held_by_me() }
}

/// Whether a signal handler has interrupted this thread among zones, or in the slabs of one.
pub(super) fn holds_locks() -> bool {
    // SAFETY: Z3.
    REGISTRY.held_by_me() || all().any(|zone| is_busy(unsafe { (*zone).home() }))
}

const _: () = assert!(size_of::<Heap>().is_multiple_of(align_of::<Zone>()));
const _: () = assert!(core::mem::size_of_val(&EMPTY.guests) == (SLOTS + 3) * 8);
