//! Arenas: ranges of memory that were reserved, or handed over by the program.
//!
//! An *exclusive* arena serves only those who ask for its pool. The others are *open*: common allocations use them before the window
//! grows. Arenas are never given back.

use super::pool::Pool;
use super::window::address_of;
use super::{SLICE, SLICES, slice, spans, walk};
use crate::options::{self, Name};
use crate::os::lock::Lock;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering::*};

/// Most arenas that there can be.
pub(super) const ARENAS: usize = 160;

/// Makes memory usable (`commit`), or tells that it is not used. Says in `is_zero` whether it reads zero. False: it could not.
pub(crate) type CommitFn =
    unsafe extern "C" fn(commit: bool, start: *mut c_void, size: usize, is_zero: *mut bool, arg: *mut c_void) -> bool;

/// What is known of an arena's memory besides where it is.
#[derive(Clone, Copy)]
pub(crate) struct Nature {
    pub(crate) exclusive: bool,
    /// Its pages stay what they are: none is given back or moved.
    pub(crate) pinned: bool,
    /// Of the NUMA node with this number; negative: of any.
    pub(crate) node: i32,
    /// To be called before memory is used for the first time, with its argument.
    pub(crate) commit: Option<(CommitFn, *mut c_void)>,
}

/// An arena. It does not change once it is counted in `COUNT`.
pub(crate) struct Arena {
    first: AtomicUsize,
    slices: AtomicUsize,
    /// Address of the first slice.
    start: AtomicUsize,
    exclusive: AtomicBool,
    pinned: AtomicBool,
    node: AtomicI32,
    /// A [`CommitFn`], or null.
    commit: AtomicPtr<c_void>,
    commit_arg: AtomicPtr<c_void>,
}

static TABLE: [Arena; ARENAS] = [const {
    Arena {
        first: AtomicUsize::new(0),
        slices: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        exclusive: AtomicBool::new(true),
        pinned: AtomicBool::new(true),
        node: AtomicI32::new(-1),
        commit: AtomicPtr::new(core::ptr::null_mut()),
        commit_arg: AtomicPtr::new(core::ptr::null_mut()),
    }
}; ARENAS];
/// Arenas that there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Guards the making of arenas. Taken before the lock of the runs.
static MAKING: Lock = Lock::new();

impl Arena {
    /// Start and length of its memory, in bytes.
    pub(crate) fn area(&self) -> (usize, usize) {
        (self.start.load(Relaxed), self.slices.load(Relaxed) * SLICE)
    }

    pub(crate) fn contains(&self, address: usize) -> bool {
        let (start, length) = self.area();
        address.wrapping_sub(start) < length
    }

    /// Index of its first slice, and how many it has.
    pub(super) fn range(&self) -> (usize, usize) {
        (self.first.load(Relaxed), self.slices.load(Relaxed))
    }

    /// It lies outside the window, and its indices are aliases.
    pub(super) fn is_outside(&self) -> bool {
        self.first.load(Relaxed) >= SLICES
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive.load(Relaxed)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.load(Relaxed)
    }

    pub(crate) fn node(&self) -> i32 {
        self.node.load(Relaxed)
    }

    /// Slices that are not in use.
    pub(crate) fn free_slices(&self) -> usize {
        let (first, slices) = self.range();
        walk::free_slices(first, first + slices)
    }

    fn place(&self) -> usize {
        (core::ptr::from_ref(self) as usize - TABLE.as_ptr() as usize) / size_of::<Arena>()
    }

    /// Number of the arena, from 1.
    pub(crate) fn number(&self) -> usize {
        1 + self.place()
    }

    /// What to allocate from it by.
    pub(crate) fn pool(&self) -> Pool {
        Pool::of_arena(self.place())
    }

    fn commit(&self) -> Option<CommitFn> {
        let function = self.commit.load(Relaxed);
        // SAFETY: only `add` stores here, and only a `CommitFn`.
        (!function.is_null()).then(|| unsafe { core::mem::transmute::<*mut c_void, CommitFn>(function) })
    }
}

/// All arenas, in the order in which they were made.
pub(crate) fn all() -> impl Iterator<Item = &'static Arena> {
    TABLE[..COUNT.load(Acquire)].iter()
}

/// The arena of a pool; `None` for the common one.
pub(super) fn of_pool(pool: Pool) -> Option<&'static Arena> {
    TABLE.get(pool.number().wrapping_sub(1))
}

/// The arena with this number.
pub(crate) fn numbered(number: usize) -> Option<&'static Arena> {
    all().nth(number.checked_sub(1)?)
}

/// The pools that common allocations of so many slices may use.
pub(super) fn open(slices: usize) -> impl Iterator<Item = Pool> {
    let some = COUNT.load(Acquire) != 0
        && options::get(Name::DisallowArenaAlloc) == 0
        && options::get_positive(Name::ArenaMaxObjectSize).is_none_or(|kib| (slices * SLICE / 1024) as u64 <= kib);
    all().filter(move |arena| some && !arena.is_exclusive()).map(Arena::pool)
}

/// Whether the pages of a run are like any others: they may be given back to the kernel, and then read zero.
pub(crate) fn is_plain(run: usize) -> bool {
    of_pool(spans::pool_of(run)).is_none_or(|arena| !arena.pinned.load(Relaxed))
}

/// Have all of a run in transit made usable. False: it is not.
pub(super) fn commit(run: usize) -> bool {
    let Some(arena) = of_pool(spans::pool_of(run)) else { return true };
    let Some(function) = arena.commit() else { return true };
    // SAFETY: the run is the caller's; the program promised that the function can be called like this.
    unsafe {
        (run..run + (*slice(run)).length()).all(|at| {
            let mut is_zero = false;
            let (start, arg) = (address_of(at) as *mut c_void, arena.commit_arg.load(Relaxed));
            (*slice(at)).committed = (*slice(at)).committed || function(true, start, SLICE, &raw mut is_zero, arg);
            (*slice(at)).committed
        })
    }
}

/// Whether a run may be made longer without asking anybody.
pub(super) fn is_extensible(run: usize) -> bool {
    of_pool(spans::pool_of(run)).is_none_or(|arena| arena.commit().is_none())
}

/// Make an arena of the run that `make` gives in transit. `None`: it gives none, or there are too many arenas.
pub(super) fn add(nature: Nature, make: impl FnOnce(usize) -> Option<(usize, usize)>) -> Option<&'static Arena> {
    if MAKING.held_by_me() {
        return None; // a signal handler has interrupted this thread in here
    }
    MAKING.lock();
    let arena = TABLE.get(COUNT.load(Relaxed)).and_then(|arena| {
        let (run, start) = make(arena.place())?;
        // SAFETY: the run is in transit: ours alone.
        arena.slices.store(unsafe { (*slice(run)).length() }, Relaxed);
        arena.first.store(run, Relaxed);
        arena.start.store(start, Relaxed);
        arena.exclusive.store(nature.exclusive, Relaxed);
        arena.pinned.store(nature.pinned, Relaxed);
        arena.node.store(nature.node, Relaxed);
        if let Some((function, arg)) = nature.commit {
            arena.commit_arg.store(arg, Relaxed);
            arena.commit.store(function as *mut c_void, Relaxed);
        }
        COUNT.store(arena.place() + 1, Release);
        spans::found(run, arena.pool());
        Some(arena)
    });
    MAKING.unlock();
    arena
}

/// In a forked child: an arena that a vanished thread was making is nobody's. Its place is not used again.
pub(super) fn repair() {
    if MAKING.held_by_vanished() {
        let place = COUNT.load(Relaxed);
        if let Some(arena) = TABLE.get(place) {
            arena.slices.store(0, Relaxed);
            arena.exclusive.store(true, Relaxed);
            COUNT.store(place + 1, Relaxed);
        }
        MAKING.reset();
    }
}
