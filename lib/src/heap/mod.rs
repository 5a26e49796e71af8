//! Size classes, cached blocks, slabs, large spans; threads and their heaps; what a forked child repairs.
//!
//! Each block is in exactly one place: with the **program**, in an **alloc stack** or a **free stack** of some heap, as a set
//! **bit** of its slab, or under a **claim** of who gives its page to the kernel. The ways between:
//!
//! | from → to | who | how |
//! |---|---|---|
//! | alloc stack → program | owner | pop, no lock |
//! | program → free stack | whoever frees (its own stack, whatever heap the block belongs to) | push, no lock |
//! | free stack ↔ alloc stack | owner | swap, under its heap's lock |
//! | bit → alloc stack (refill) | owner | under its heap's lock, and that of its home's slabs |
//! | alloc stack → bit (flush) | owner | under the lock of the slabs of the block's home |
//! | either stack → bit (theft) | any thread | under the victim's lock and after a fence of the process, see [`steal`] |
//! | bit → claim → bit (purge) | any thread | under the lock of the slabs; in between the kernel takes the pages, see [`holes`] |
//!
//! All this is about ordinary blocks. The largest are *spans*, runs of the arena ([`span`]), of which a thread keeps one at hand
//! ([`shelf`]). Heaps that the program makes itself are *zones*, with ways of their own: see [`zone`].
//!
//! # Invariants
//!
//! * H1 `slab.free` is the number of set bits whenever the lock of its home's slabs is free (see [`home`]).
//! * H2 A slab goes back to the arena only when all its bits are set, under that lock. So whoever holds a block keeps
//!   slab, class map entry and geometry as they are: `free` may read the class map without a lock.
//! * H3 Heaps are never unmapped; a heap whose thread has ended is reused, with its slabs, by the next thread.
//! * H4 A section under a lock calls nothing but `mmap`, `madvise` and `futex`, allocates nothing, and leaves its truth
//!   (bitmaps, stack pointers of classes other than `busy`, heads of runs) valid after each single store.
//! * H5 Lock order: the right to claim pages ([`holes`]), the theft lock, the registry of zones, one heap's lock at a time, one zone's slab lock, one other home's slab lock, the arena's.
//!   `pthread_*` only with no lock held.

pub(crate) mod allocate;
mod bits;
pub(crate) mod classes;
pub(crate) mod companion;
pub(crate) mod due;
mod emergency;
pub(crate) mod events;
pub(crate) mod grow;
pub(crate) mod guarded;
pub(crate) mod holes;
mod home;
mod hot;
pub(crate) mod interval;
pub(crate) mod look;
mod magazine;
mod misuse;
pub(crate) mod notes;
mod position;
mod refill;
pub(crate) mod release;
mod repair;
pub(crate) mod sampled;
pub(crate) mod secure;
mod shelf;
mod slab;
pub(crate) mod span;
pub(crate) mod statistics;
pub(crate) mod steal;
pub(crate) mod tell;
pub(crate) mod thread;
pub(crate) mod watch;
pub(crate) mod zone;

#[cfg(test)]
pub(crate) mod tests;

use crate::arena;
use crate::os::{self, child, lock::Lock};
use classes::{CLASSES, FIRST_SLOTS, LARGEST_SLOTS, first_capacity, largest_capacity};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, compiler_fence};
use magazine::{ClassState, Magazine};
use slab::SlabLists;
use statistics::SpanCounts;
use zone::Zone;

/// `busy` while another thread steals from the heap.
const THEFT: u32 = u32::MAX;

/// Bytes behind each heap that the layer above may use while it samples for the heap's thread.
pub(crate) const SCRATCH: usize = 8 * 1024;
const SCRATCH_OFFSET: usize = (size_of::<Heap>() + (FIRST_SLOTS + LARGEST_SLOTS) * 8).next_multiple_of(64);

/// What a thread allocates from.
#[repr(C, align(64))]
pub(crate) struct Heap {
    /// First, so that `class * 32` is a byte offset from the heap. Number 0 refuses everything.
    magazines: [Magazine; CLASSES],
    lock: Lock,
    /// Thread id of its thread; 0 = anybody may take it.
    live: AtomicU64,
    /// Class whose stacks are being changed under the lock, 0 = none. What a vanished thread was changing is lost.
    busy: AtomicU32,
    /// A forked child must rebuild the lists of the slabs.
    damaged: bool,
    next: AtomicPtr<Heap>,
    /// Number of the heap, for seeding.
    sequence: u64,
    random: interval::Random,
    /// Classes that have looked at an epoch: no other one has allocated while there was sampling. Owner only, under `lock`.
    drawn: position::Classes,
    /// Which allocations are guarded. Under `lock`.
    guards: guarded::Guards,
    /// Refills before the program's deferred free is due. Owner only.
    refills_left: i64,
    /// State of the random order of blocks. Under `lock`.
    shuffle: u64,
    classes: [ClassState; CLASSES],
    /// The heap whose slabs this one takes blocks from: itself, unless there are many threads.
    home: AtomicPtr<Heap>,
    /// Other heaps use the slabs of this one: `slab_lock` guards them, not `lock`. Never false again.
    shared: AtomicBool,
    slab_lock: Lock,
    /// The slabs of this heap, by class.
    slabs: [SlabLists; CLASSES],
    /// Bytes of blocks of these slabs that are not in them: with the program, or cached. Written under the slabs' lock.
    out: AtomicUsize,
    /// The most that those were since the last sweep of slow paths. Written under the slabs' lock, and by who sweeps.
    most_out: AtomicUsize,
    /// Of all stacks, what a sweep saw of them last (see [`steal`]).
    seen: AtomicU64,
    /// The zone whose blocks are here: [`zone::MAIN`] in ordinary heaps, the zone in its home and its guests, null in a guest that
    /// has none at present.
    zone: AtomicPtr<Zone>,
    /// The ordinary heap of the thread that this heap belongs to; itself if it is ordinary. Null in guests that belong to no thread.
    host: AtomicPtr<Heap>,
    /// Made for zones; constant.
    guest: bool,
    /// What an ordinary heap's thread knows of zones.
    guests: zone::Guests,
    /// The next guest of the same thread, or the next spare one.
    sibling: AtomicPtr<Heap>,
    /// The next guest of the same zone.
    peer: AtomicPtr<Heap>,
    /// See [`shelf`].
    shelf: shelf::Shelf,
    /// Spans that its thread has allocated and freed.
    spans: SpanCounts,
    /// See [`Heap::annex`].
    annex: AtomicPtr<u8>,
}

/// The heap of threads that have none: each fast path fails and finds its way to the slow one.
pub(crate) static EMPTY: Heap = Heap {
    magazines: [const { Magazine::refusing() }; CLASSES],
    lock: Lock::closed(),
    live: AtomicU64::new(0),
    busy: AtomicU32::new(0),
    damaged: false,
    next: AtomicPtr::new(core::ptr::null_mut()),
    sequence: 0,
    random: interval::Random::UNSEEDED,
    drawn: position::Classes::NONE,
    guards: guarded::Guards::NONE,
    shuffle: 0,
    classes: [const { ClassState::UNUSED }; CLASSES],
    home: AtomicPtr::new(core::ptr::null_mut()),
    shared: AtomicBool::new(false),
    slab_lock: Lock::new(),
    slabs: [const { SlabLists::NONE }; CLASSES],
    out: AtomicUsize::new(0),
    most_out: AtomicUsize::new(0),
    seen: AtomicU64::new(0),
    refills_left: 0,
    zone: AtomicPtr::new(zone::main()),
    host: AtomicPtr::new(&raw const EMPTY as *mut Heap),
    guest: false,
    guests: zone::Guests::none(),
    sibling: AtomicPtr::new(core::ptr::null_mut()),
    peer: AtomicPtr::new(core::ptr::null_mut()),
    shelf: shelf::Shelf::empty(),
    spans: SpanCounts::NONE,
    annex: AtomicPtr::new(core::ptr::null_mut()),
};

// SAFETY: shared state is atomic or guarded by `lock`; the rest belongs to the thread named in `live`.
unsafe impl Sync for Heap {}

/// All heaps ever made; grows only.
static ALL: AtomicPtr<Heap> = AtomicPtr::new(core::ptr::null_mut());
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
/// Guests have numbers apart, so that zones change nothing for the other heaps.
static GUEST_SEQUENCE: AtomicU64 = AtomicU64::new(1 << 32);

impl Heap {
    #[inline(always)]
    pub(crate) fn is_empty_heap(heap: *mut Heap) -> bool {
        core::ptr::eq(heap, &EMPTY)
    }

    /// The magazine at a class map entry's offset.
    ///
    /// # Safety
    /// `heap` is a heap, and `offset` a multiple of 32 below `CLASSES * 32`.
    #[inline(always)]
    unsafe fn magazine_at<'a>(heap: *mut Heap, offset: usize) -> &'a Magazine {
        // SAFETY: the magazines are the first field.
        unsafe { &*heap.cast::<u8>().add(offset).cast::<Magazine>() }
    }

    /// Magazine and state of a class.
    ///
    /// # Safety
    /// The heap's lock is held for as long as the state is used.
    #[inline(always)]
    unsafe fn class<'a>(heap: *mut Heap, class: usize) -> (&'a Magazine, &'a mut ClassState) {
        // SAFETY: M2: the lock makes the state ours.
        unsafe { (&(*heap).magazines[class], &mut (*heap).classes[class]) }
    }

    /// Begin to change the stacks of a class: signal handlers cannot use them, and a child forked now drops them. Lock held.
    #[inline(always)]
    unsafe fn enter<'a>(heap: *mut Heap, class: usize) -> (&'a Magazine, &'a mut ClassState) {
        // SAFETY: the lock is held.
        let (magazine, state) = unsafe {
            (*heap).busy.store(class as u32, Relaxed);
            Heap::class(heap, class)
        };
        state.close(magazine);
        (magazine, state)
    }

    /// The change is complete.
    #[inline(always)]
    unsafe fn leave(heap: *mut Heap, magazine: &Magazine, state: &mut ClassState, epoch: u32) {
        state.open(magazine, epoch);
        compiler_fence(SeqCst);
        // SAFETY: the lock is held.
        unsafe { (*heap).busy.store(0, Relaxed) };
    }

    /// What the layer above keeps for the thread that this heap belongs to: a word of its own, null at first. `None`: the heap belongs to
    /// none.
    #[inline(always)]
    pub(crate) fn annex(heap: *mut Heap) -> Option<&'static AtomicPtr<u8>> {
        let host = thread::host_of(heap);
        // SAFETY: H3.
        (!host.is_null() && !Heap::is_empty_heap(host)).then(|| unsafe { &(*host).annex })
    }

    /// Scratch memory for the heap's thread, zero at first.
    pub(crate) fn scratch(heap: *mut Heap) -> *mut [u8; SCRATCH] {
        heap.wrapping_byte_add(SCRATCH_OFFSET).cast()
    }
}

/// Every heap, newest first.
fn all() -> impl Iterator<Item = *mut Heap> {
    let mut at = ALL.load(Acquire);
    core::iter::from_fn(move || {
        let heap = at;
        // SAFETY: H3: heaps stay mapped.
        (!heap.is_null()).then(|| at = unsafe { (*heap).next.load(Acquire) });
        (!heap.is_null()).then_some(heap)
    })
}

/// Threads that have a heap, at most as many as `enough`.
pub(crate) fn threads(enough: usize) -> usize {
    // SAFETY: H3.
    all().filter(|&heap| unsafe { !(*heap).guest && (*heap).live.load(Relaxed) != 0 }).take(enough).count()
}

/// The [ids](os::thread_id) of the threads that have a heap.
pub(crate) fn thread_ids() -> impl Iterator<Item = u64> {
    // SAFETY: H3.
    all().map(|heap| unsafe { (*heap).live.load(Relaxed) }).filter(|&id| id != 0)
}

/// Whether this thread holds a lock in here or in the arena: it is in a signal handler that has interrupted it there, and must not wait
/// for anybody who may want that lock.
pub(crate) fn holds_locks() -> bool {
    // SAFETY: H3.
    let of_heap = |heap: *mut Heap| unsafe { (*heap).lock.held_by_me() || (*heap).slab_lock.held_by_me() };
    let apart = arena::is_busy_here() || sampled::is_busy_here() || holes::is_sweeper() || zone::holds_locks();
    apart || all().any(of_heap)
}

/// Whether this thread may call the program, in an event of this heap: it holds no lock in here. It does in a signal handler that has interrupted
/// it in its own heap, and is served from another.
///
/// # Safety
/// The heap is this thread's for the moment.
pub(crate) unsafe fn may_call_out(heap: *mut Heap) -> bool {
    let own = thread::own();
    // SAFETY: H3.
    let is_own = unsafe { (*heap).host.load(Relaxed) == own };
    (is_own && !Heap::is_empty_heap(own)) || !holds_locks()
}

/// How much of the slabs is out.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    /// Bytes of blocks that are not in them: with the program, or cached.
    pub(crate) now: usize,
    /// No less than the most that this was since [`forget_most_out`].
    pub(crate) most: usize,
}

/// Of all slabs.
pub(crate) fn out() -> Out {
    let zones = zone::bytes_out();
    let mut sum = Out { now: zones, most: zones };
    home::each(|home| {
        // SAFETY: homes are never unmapped.
        let (now, most) = unsafe { ((*home).out.load(Relaxed), (*home).most_out.load(Relaxed)) };
        sum.now += now;
        sum.most += most.max(now);
    });
    sum
}

/// The present is the most.
pub(crate) fn forget_most_out() {
    // SAFETY: homes are never unmapped.
    home::each(|home| unsafe { (*home).most_out.store((*home).out.load(Relaxed), Relaxed) });
}

/// Whether this thread's slabs have got back so many bytes more than they gave since [`forget_most_out`].
#[inline(always)]
pub(crate) fn has_fallen(bytes: usize) -> bool {
    // SAFETY: homes are never unmapped; EMPTY has none.
    unsafe {
        let home = home::of(thread::own());
        !home.is_null() && (*home).most_out.load(Relaxed) >= (*home).out.load(Relaxed).saturating_add(bytes)
    }
}

/// A heap for this thread: one that nobody owns, else a new one. Lock-free. Null: no memory.
fn claim() -> *mut Heap {
    // SAFETY: H3; constant.
    let ordinary = |&heap: &*mut Heap| unsafe { !(*heap).guest } && thread::claim_orphan(heap);
    all().find(ordinary).unwrap_or_else(|| create(false))
}

/// Bytes of a heap with what is behind it.
const WHOLE: usize = (SCRATCH_OFFSET + SCRATCH).next_multiple_of(os::PAGE);

/// Memory for the first heap.
static FIRST: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Map memory for the first heap, and behind it a page for who calls this and room for thieves: two mappings less in each process. Null:
/// no memory.
fn map_first() -> *mut u8 {
    // Where there are guards, thieves get a mapping that has its own.
    let room = if secure::level() == 0 { steal::ROOM } else { 0 };
    let memory = os::map(WHOLE + os::PAGE + room);
    if memory.is_null() {
        return memory;
    }
    FIRST.store(memory, Relaxed);
    if room != 0 {
        steal::furnish(memory.wrapping_add(WHOLE + os::PAGE));
    }
    memory.wrapping_add(WHOLE)
}

/// A new heap of this thread's. A guest has no home yet.
fn create(guest: bool) -> *mut Heap {
    let mut heap = FIRST.swap(core::ptr::null_mut(), Relaxed).cast::<Heap>();
    if heap.is_null() {
        heap = os::map(WHOLE).cast();
    }
    if heap.is_null() {
        return heap;
    }
    // SAFETY: fresh memory of the right size that nobody else knows; all-zero is a valid Heap but for what is set here.
    unsafe {
        (*heap).live.store(os::thread_id(), Relaxed);
        (*heap).guest = guest;
        (&raw mut (*heap).magazines[0]).write(Magazine::refusing());
        if guest {
            (*heap).sequence = GUEST_SEQUENCE.fetch_add(1, Relaxed);
        } else {
            (*heap).sequence = SEQUENCE.fetch_add(1, Relaxed);
            home::settle(heap, (*heap).sequence as usize);
            zone::be_ordinary(heap);
        }
        let mut slots = heap as usize + size_of::<Heap>();
        let mut larger = slots + FIRST_SLOTS * 8;
        for class in 1..CLASSES {
            let (magazine, state) = Heap::class(heap, class);
            state.initialise(magazine, class, slots, larger, guest);
            slots += first_capacity(class) * 2 * 8;
            larger += largest_capacity(class) * 2 * 8;
        }
        guarded::adopt(heap);
        secure::adopt(heap);
        let mut first = ALL.load(Acquire);
        loop {
            (*heap).next.store(first, Relaxed);
            match ALL.compare_exchange(first, heap, AcqRel, Acquire) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
    }
    watch::adopt(heap);
    heap
}
