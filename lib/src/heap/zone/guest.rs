//! The guest of a thread in a zone: found, made, used for a while as the thread's heap, left.

use super::subprocess::Subprocess;
use super::{EMPTY, Heap, REGISTRY, SLOTS, Zone, is_main, main};
use crate::heap::classes::CLASSES;
use crate::heap::thread::{self, Lease};
use crate::heap::{allocate as ordinary, child, create, emergency, home, steal, watch};
use crate::os;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};

/// What an ordinary heap's thread knows of zones.
pub(crate) struct Guests {
    /// By the slot of the zone; the first is the thread's own heap.
    table: [AtomicPtr<Heap>; SLOTS],
    /// All guests of the thread, through `sibling`.
    first: AtomicPtr<Heap>,
    /// [`DETACHED`] when no guest without a zone was found among them.
    searched: AtomicU64,
    /// The sub-process that the thread is in; null: the first.
    pub(super) subprocess: AtomicPtr<Subprocess>,
}

impl Guests {
    pub(crate) const fn none() -> Guests {
        Guests {
            table: [const { AtomicPtr::new(core::ptr::null_mut()) }; SLOTS],
            first: AtomicPtr::new(core::ptr::null_mut()),
            searched: AtomicU64::new(0),
            subprocess: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Forget all guests.
    pub(super) fn clear(&self) {
        for place in &self.table[1..] {
            place.store(core::ptr::null_mut(), Relaxed);
        }
        self.first.store(core::ptr::null_mut(), Relaxed);
        self.searched.store(0, Relaxed);
        self.subprocess.store(core::ptr::null_mut(), Relaxed);
    }
}

/// The guests of the thread whose own heap this is; of the calling thread.
pub(crate) fn guests_of(own: *mut Heap) -> impl Iterator<Item = *mut Heap> {
    // SAFETY: H3.
    let mut next = unsafe { (*own).guests.first.load(Relaxed) };
    core::iter::from_fn(move || {
        let guest = next;
        // SAFETY: H3: guests of a thread stay its guests until it leaves them.
        (!guest.is_null()).then(|| next = unsafe { (*guest).sibling.load(Relaxed) });
        (!guest.is_null()).then_some(guest)
    })
}

/// Guests with neither thread nor zone, through `sibling`. Registry locked.
static SPARE: AtomicPtr<Heap> = AtomicPtr::new(core::ptr::null_mut());
/// How often a guest has lost its zone.
pub(super) static DETACHED: AtomicU64 = AtomicU64::new(1);

/// Some thread may have a guest as its heap, or somebody has [watched](watch). Never false again.
static LOOK_CLOSER: AtomicBool = AtomicBool::new(false);

/// Plain allocations of this thread come from the main zone.
#[inline(always)]
pub(crate) fn main_is_current() -> bool {
    // SAFETY: H3.
    !LOOK_CLOSER.load(Relaxed) || unsafe { is_main((*thread::current()).zone.load(Relaxed)) }
}

/// The same, and nobody watches.
#[inline(always)]
pub(crate) fn main_is_current_unwatched() -> bool {
    !LOOK_CLOSER.load(Relaxed) || (main_is_current() && !watch::is_on())
}

/// Somebody begins to watch.
pub(crate) fn look_closer() {
    LOOK_CLOSER.store(true, Relaxed);
}

/// A new ordinary heap is its own host.
pub(crate) unsafe fn be_ordinary(heap: *mut Heap) {
    // SAFETY: the heap is the caller's, and not published.
    unsafe {
        (*heap).zone.store(main(), Relaxed);
        (*heap).host.store(heap, Relaxed);
        (*heap).guests.table[0].store(heap, Relaxed);
    }
}

/// The guest (in the main zone: the heap) of this thread, if it is at hand.
#[inline(always)]
pub(super) unsafe fn at_hand(zone: *mut Zone) -> Option<*mut Heap> {
    // SAFETY: H3, Z3: whatever is in the table is a heap, and belongs to this thread.
    unsafe {
        let slot = (*zone).slot as usize % SLOTS;
        let guest = (*thread::own()).guests.table[slot].load(Relaxed);
        (!guest.is_null() && (*guest).zone.load(Relaxed) == zone).then_some(guest)
    }
}

/// A block of a zone; null with `ENOMEM`.
///
/// # Safety
/// The zone is in use.
#[inline(always)]
pub(crate) unsafe fn allocate(zone: *mut Zone, size: usize) -> *mut u8 {
    // SAFETY: the guest is this thread's.
    unsafe {
        match at_hand(zone) {
            Some(guest) => ordinary::allocate_from(guest, size),
            None => allocate_slow(zone, size),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn allocate_slow(zone: *mut Zone, size: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe { within(zone, || ordinary::allocate(size)) }
}

/// Run `allocate` with the thread's guest as the thread's heap, so that what it allocates is the zone's. Without memory for a guest the
/// result is null, with `ENOMEM`.
///
/// # Safety
/// The zone is in use.
pub(crate) unsafe fn within<T>(zone: *mut Zone, allocate: impl FnOnce() -> *mut T) -> *mut T {
    // SAFETY: the guest is this thread's until the lease ends.
    unsafe {
        let lease = match at_hand(zone) {
            Some(heap) => Some(Lease { heap, borrowed: false }),
            None => find(zone),
        };
        let Some(lease) = lease else { return ordinary::out_of_memory().cast() };
        let result = within_theap(lease.heap, allocate);
        give_back(lease);
        result
    }
}

/// Run `allocate` with this heap as the thread's.
///
/// # Safety
/// It is one of this thread's, or null for the one that is.
pub(crate) unsafe fn within_theap<T>(theap: *mut Heap, allocate: impl FnOnce() -> *mut T) -> *mut T {
    let before = thread::current();
    look_closer();
    if theap.is_null() || core::ptr::eq(before, theap) {
        return allocate();
    }
    thread::set_current(theap);
    let result = allocate();
    thread::set_current(before);
    result
}

/// A block of this heap; null with `ENOMEM`.
///
/// # Safety
/// As [`within_theap`].
#[inline(always)]
pub(crate) unsafe fn allocate_from_theap(theap: *mut Heap, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { if theap.is_null() { ordinary::allocate(size) } else { ordinary::allocate_from(theap, size) } }
}

/// The guest of this thread, wherever it is, or a new one.
#[cold]
#[inline(never)]
unsafe fn find(zone: *mut Zone) -> Option<Lease> {
    child::check();
    emergency::adopt_deferred();
    // SAFETY: H3: the thread's own heap, made if need be.
    unsafe {
        let own = thread::lease(thread::own())?;
        if is_main(zone) {
            return Some(own);
        }
        // A thread that has ended as far as we know keeps nothing.
        let host = if own.borrowed { core::ptr::null_mut() } else { own.heap };
        let heap = mine(zone, host)
            .or_else(|| orphan(zone))
            .or_else(|| own_spare(host).inspect(|&guest| settle(guest, zone)))
            .or_else(|| spare().inspect(|&guest| settle(guest, zone)))?;
        if !host.is_null() {
            if (*heap).host.load(Relaxed).is_null() {
                (*heap).sibling.store((*host).guests.first.load(Relaxed), Relaxed);
                (*heap).host.store(host, Relaxed);
                (*host).guests.first.store(heap, Relaxed);
            }
            (*host).guests.table[(*zone).slot as usize % SLOTS].store(heap, Relaxed);
        } else {
            (*heap).host.store((&raw const EMPTY).cast_mut(), Relaxed);
        }
        Some(Lease { heap, borrowed: host.is_null() })
    }
}

/// The guests of a zone.
pub(super) fn of_zone(zone: *mut Zone) -> impl Iterator<Item = *mut Heap> {
    // SAFETY: Z3.
    let mut at = unsafe { (*zone).guests.load(Acquire) };
    core::iter::from_fn(move || {
        let guest = at;
        // SAFETY: Z3.
        (!guest.is_null()).then(|| at = unsafe { (*guest).peer.load(Acquire) });
        (!guest.is_null()).then_some(guest)
    })
}

fn mine(zone: *mut Zone, host: *mut Heap) -> Option<*mut Heap> {
    // SAFETY: Z3.
    of_zone(zone).find(|&guest| !host.is_null() && unsafe { (*guest).host.load(Relaxed) == host })
}

/// A guest that a thread has left behind, with what it has cached.
fn orphan(zone: *mut Zone) -> Option<*mut Heap> {
    of_zone(zone).find(|&guest| thread::claim_orphan(guest))
}

/// A guest of this thread whose zone has ended.
unsafe fn own_spare(host: *mut Heap) -> Option<*mut Heap> {
    if host.is_null() {
        return None;
    }
    // SAFETY: H3; the list is this thread's.
    unsafe {
        let detached = DETACHED.load(Acquire);
        if (*host).guests.searched.load(Relaxed) == detached {
            return None;
        }
        let mut guest = (*host).guests.first.load(Relaxed);
        while !guest.is_null() {
            if (*guest).zone.load(Acquire).is_null() {
                return Some(guest);
            }
            guest = (*guest).sibling.load(Relaxed);
        }
        (*host).guests.searched.store(detached, Relaxed);
        None
    }
}

/// A guest that nobody has.
fn spare() -> Option<*mut Heap> {
    let mut guest = core::ptr::null_mut::<Heap>();
    if !REGISTRY.held_by_me() {
        REGISTRY.lock();
        guest = SPARE.load(Relaxed);
        if !guest.is_null() {
            // SAFETY: Z3; the registry is locked.
            unsafe {
                SPARE.store((*guest).sibling.load(Relaxed), Relaxed);
                (*guest).live.store(os::thread_id(), Release);
            }
        }
        REGISTRY.unlock();
    }
    if guest.is_null() {
        guest = create(true);
    }
    (!guest.is_null()).then_some(guest)
}

/// Nobody has this guest from now on. Registry locked.
pub(super) unsafe fn spare_one(guest: *mut Heap) {
    // SAFETY: Z3; it is on no thread's list.
    unsafe {
        (*guest).sibling.store(SPARE.load(Relaxed), Relaxed);
        (*guest).live.store(0, Release);
    }
    SPARE.store(guest, Relaxed);
}

/// In a forked child: collect all spare guests again.
pub(super) fn repair_spares() {
    SPARE.store(core::ptr::null_mut(), Relaxed);
    for guest in crate::heap::all() {
        // SAFETY: one thread.
        unsafe {
            if (*guest).guest && (*guest).zone.load(Relaxed).is_null() && (*guest).live.load(Relaxed) == 0 {
                (*guest).host.store(core::ptr::null_mut(), Relaxed);
                spare_one(guest);
            }
        }
    }
}

/// Have a guest without a zone serve this one.
unsafe fn settle(guest: *mut Heap, zone: *mut Zone) {
    // SAFETY: the guest is this thread's, and nobody ends the zone (Z5).
    unsafe {
        (*guest).lock.lock();
        for class in 1..CLASSES {
            let (_, state) = Heap::class(guest, class);
            state.begin_small(class);
        }
        (*guest).refills_left = 0;
        (*guest).home.store((*zone).home(), Relaxed);
        (*guest).zone.store(zone, Release);
        (*guest).lock.unlock();
        let mut first = (*zone).guests.load(Acquire);
        loop {
            (*guest).peer.store(first, Relaxed);
            match (*zone).guests.compare_exchange(first, guest, AcqRel, Acquire) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

/// A thread leaves its heap: its guests stay behind with their zones, empty.
pub(crate) unsafe fn leave_guests(heap: *mut Heap) {
    // SAFETY: the list is this thread's.
    unsafe {
        let mut guest = (*heap).guests.first.load(Relaxed);
        (*heap).guests.clear();
        while !guest.is_null() {
            let next = (*guest).sibling.load(Relaxed);
            leave_one(guest);
            guest = next;
        }
    }
}

/// The end of a lease.
unsafe fn give_back(lease: Lease) {
    // SAFETY: a borrowed guest is this thread's until here.
    unsafe {
        if lease.borrowed && (*lease.heap).guest {
            leave_one(lease.heap);
            core::mem::forget(lease);
        }
    }
}

unsafe fn leave_one(guest: *mut Heap) {
    // SAFETY: the guest is this thread's.
    unsafe {
        thread::flush_all(guest);
        REGISTRY.lock();
        (*guest).host.store(core::ptr::null_mut(), Relaxed);
        if (*guest).zone.load(Relaxed).is_null() {
            spare_one(guest);
        } else {
            (*guest).live.store(0, Release);
        }
        REGISTRY.unlock();
    }
}

/// `mi_heap_theap`: this thread's guest. Null: no memory.
///
/// # Safety
/// The zone is in use.
pub(crate) unsafe fn theap_of(zone: *mut Zone) -> *mut Heap {
    // SAFETY: the caller's promise.
    unsafe {
        match at_hand(zone) {
            Some(heap) => heap,
            // What is only borrowed cannot be kept: a thread that has ended gets none.
            None => find(zone).map_or(core::ptr::null_mut(), |lease| {
                let heap = if lease.borrowed { core::ptr::null_mut() } else { lease.heap };
                give_back(lease);
                heap
            }),
        }
    }
}

/// The zone of a heap of this thread's; of null, that of plain allocations.
pub(crate) unsafe fn of_theap(theap: *mut Heap) -> *mut Zone {
    let theap = if theap.is_null() { thread::current() } else { theap };
    // SAFETY: H3.
    let zone = unsafe { (*theap).zone.load(Relaxed) };
    if zone.is_null() { main() } else { zone }
}

/// The heap that this thread's plain allocations come from, made if need be.
pub(crate) fn default_theap() -> *mut Heap {
    // SAFETY: the main zone is always in use.
    thread::lease(thread::current())
        .filter(|lease| !lease.borrowed)
        .map_or_else(core::ptr::null_mut, |lease| lease.heap)
}

/// Have plain allocations of this thread come from this heap, one of its own. Returns the one before.
pub(crate) unsafe fn set_default_theap(theap: *mut Heap) -> *mut Heap {
    let before = default_theap();
    // SAFETY: a heap, as the caller promises.
    let own = !theap.is_null() && !before.is_null() && unsafe { (*theap).host.load(Relaxed) } == thread::own();
    if own {
        look_closer();
        thread::set_current(theap);
    }
    before
}

/// Give what is cached in a heap of this thread's back to the slabs.
///
/// # Safety
/// As [`within_theap`].
pub(crate) unsafe fn collect_theap(theap: *mut Heap) {
    // SAFETY: the caller's promise.
    unsafe {
        if !theap.is_null() && (*theap).host.load(Relaxed) == thread::own() && !home::is_busy_here(theap) {
            thread::flush_all(theap);
        }
    }
}

/// Give what this thread has cached of a zone back to its slabs; with `force` what any thread has.
///
/// # Safety
/// The zone is in use.
pub(crate) unsafe fn collect(zone: *mut Zone, force: bool) {
    // SAFETY: H3; the heap is this thread's own.
    unsafe {
        if let Some(heap) = at_hand(zone)
            && !home::is_busy_here(heap)
        {
            thread::flush_all(heap);
        }
        if force {
            steal::steal_from(|heap| (*heap).zone.load(Relaxed) == zone);
        }
    }
}
