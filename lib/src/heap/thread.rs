//! A thread and its heap: found in two instructions, made at the first slow path, given back when the thread ends.

use super::classes::class_size;
use super::{EMPTY, Heap, claim, emergency, home, misuse, refill, repair, secure, shelf, watch, zone};
use crate::arena;
use crate::os::{self, child, libc};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

thread_word!(
    /// This thread's heap, as an address: that of [`EMPTY`] as long as it has none.
    heap_word, set_heap_word, "mimalloc_pprof_heap", sym EMPTY
);
thread_word!(
    /// 1 once this thread's destructor has run: other destructors may still allocate, but nobody would free a heap that
    /// is made for them.
    ended_word, set_ended_word, "mimalloc_pprof_thread_ended", const 0
);

/// 0 = not begun, 1 = done, else the id of the thread that is at it.
static INITIALISED: AtomicU64 = AtomicU64::new(0);
const DONE: u64 = 1;
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// This thread's heap; [`EMPTY`] when it has none.
#[inline(always)]
pub(crate) fn current() -> *mut Heap {
    heap_word() as *mut Heap
}

/// The ordinary heap of this thread, though its current one may be a guest; [`EMPTY`] when it has none.
#[inline(always)]
pub(crate) fn own() -> *mut Heap {
    host_of(current())
}

/// The ordinary heap of the thread whose current heap this is.
#[inline(always)]
pub(super) fn host_of(current: *mut Heap) -> *mut Heap {
    // SAFETY: H3; a heap of this thread has a host, and so has EMPTY.
    unsafe { (*current).host.load(Relaxed) }
}

/// Allocate from another heap of this thread's from here on.
pub(super) fn set_current(heap: *mut Heap) {
    set_heap_word(heap as usize);
}

/// A heap for the duration of a slow path.
pub(super) struct Lease {
    pub(super) heap: *mut Heap,
    /// Not this thread's own: it has ended as far as we know, so the heap is given back at once.
    pub(super) borrowed: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.borrowed {
            give_up(self.heap);
        }
    }
}

/// This thread's heap, made if need be. `None`: no memory, or we are called back from our own initialisation.
#[inline(always)]
pub(super) fn lease(current: *mut Heap) -> Option<Lease> {
    // SAFETY: H3. EMPTY has no home, nor has a guest whose zone has ended.
    if unsafe { home::of(current).is_null() } {
        return attach(current);
    }
    Some(Lease { heap: current, borrowed: false })
}

/// Take a particular heap if nobody owns it, and this is no signal handler that has interrupted its thread while it looked at it.
pub(super) fn claim_orphan(heap: *mut Heap) -> bool {
    // SAFETY: H3.
    let live = unsafe { &(*heap).live };
    // SAFETY: as above.
    let mine = unsafe { (*heap).lock.held_by_me() };
    live.load(Relaxed) == 0 && !mine && live.compare_exchange(0, os::thread_id(), AcqRel, Relaxed).is_ok()
}

/// Leave a heap that was taken.
pub(super) fn give_up(heap: *mut Heap) {
    // SAFETY: H3.
    unsafe { (*heap).live.store(0, Release) };
}

/// Some heap other than this thread's own, for one call.
pub(super) fn borrow_heap() -> Option<Lease> {
    let heap = claim();
    (!heap.is_null()).then_some(Lease { heap, borrowed: true })
}

#[cold]
#[inline(never)]
fn attach(current: *mut Heap) -> Option<Lease> {
    if !Heap::is_empty_heap(current) {
        if core::ptr::eq(self::current(), current) {
            set_current(host_of(current));
        }
        return Some(Lease { heap: host_of(current), borrowed: false });
    }
    let errno = libc::errno();
    let first = match initialise() {
        Outcome::Failed => return None,
        Outcome::Done => true,
        Outcome::AlreadyDone => false,
    };
    let heap = claim();
    if heap.is_null() {
        return None;
    }
    let borrowed = ended_word() != 0;
    if !borrowed {
        set_heap_word(heap as usize);
        // SAFETY: no lock is held: for high key numbers this allocates, which works from here on.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), heap.cast()) };
    }
    if first {
        (crate::HOOKS.started)();
    }
    if !borrowed {
        (crate::HOOKS.threads_changed)();
    }
    libc::set_errno(errno);
    Some(Lease { heap, borrowed })
}

enum Outcome {
    Failed,
    Done,
    AlreadyDone,
}

fn initialise() -> Outcome {
    let me = os::thread_id();
    loop {
        match INITIALISED.compare_exchange(0, me, AcqRel, Acquire) {
            Ok(_) => break,
            Err(DONE) => return Outcome::AlreadyDone,
            Err(who) if who == me => return Outcome::Failed,
            Err(_) => core::hint::spin_loop(),
        }
    }
    secure::prepare();
    // SAFETY: plain calls of the C library with no lock held. What they allocate is served from the emergency range.
    let ready = unsafe {
        let mut key = KEY.load(Relaxed);
        (arena::is_initialised() || arena::initialise())
            && (key != u32::MAX || libc::pthread_key_create(&raw mut key, Some(thread_ends)) == 0)
            && {
                KEY.store(key, Relaxed);
                secure::window_is_mapped();
                child::watch(repair::repair, super::map_first());
                // Registered this early, our handler runs before those of libraries that allocate in theirs.
                libc::pthread_atfork(None, None, Some(forked)) == 0
            }
    };
    INITIALISED.store(if ready { DONE } else { 0 }, Release);
    if ready { Outcome::Done } else { Outcome::Failed }
}

/// True while this thread initialises the allocator.
pub(super) fn initialises_here() -> bool {
    INITIALISED.load(Relaxed) == os::thread_id()
}

pub(super) fn is_initialised() -> bool {
    INITIALISED.load(Acquire) == DONE
}

unsafe extern "C" fn forked() {
    child::repair();
}

/// In a forked child: an initialisation begun by a thread that is not here starts again.
pub(super) fn repair_initialisation() {
    let who = INITIALISED.load(Relaxed);
    if who != DONE && who != os::thread_id() {
        INITIALISED.store(0, Release);
    }
}

/// Destructor of the thread key: give the cached blocks back, leave the heap to the next thread.
unsafe extern "C" fn thread_ends(heap: *mut u8) {
    set_ended_word(1);
    // SAFETY: the key's value is this thread's heap.
    unsafe { leave(heap.cast()) };
}

/// As if this thread ended; should it go on to allocate, it begins again.
pub(crate) fn detach() {
    let heap = own();
    if Heap::is_empty_heap(heap) || initialises_here() {
        return;
    }
    // SAFETY: no lock is held; the heap is this thread's.
    unsafe {
        libc::pthread_setspecific(KEY.load(Relaxed), core::ptr::null_mut());
        leave(heap);
    }
}

/// Leave the thread's heap and its guests.
unsafe fn leave(heap: *mut Heap) {
    set_heap_word(&raw const EMPTY as usize);
    (crate::HOOKS.leaving)(heap);
    // SAFETY: the heap was this thread's and is no longer reachable through its word.
    unsafe {
        zone::leave_guests(heap);
        retire(heap);
    }
    give_up(heap);
    emergency::adopt_deferred();
    (crate::HOOKS.threads_changed)();
    misuse::tell();
}

/// Cached bytes that a heap may keep when its thread ends: the next thread finds them at hand. What a short thread leaves; most of
/// it was never touched.
const KEPT_AT_END: usize = 1024 * 1024;

/// The thread of a heap ends: give its cached blocks back, unless they are few.
unsafe fn retire(heap: *mut Heap) {
    // SAFETY: the caller owns the heap; states are read under its lock.
    unsafe {
        shelf::clear(heap);
        (*heap).lock.lock();
        let cached: usize = (1..super::CLASSES)
            .map(|class| {
                let (magazine, state) = Heap::class(heap, class);
                state.begin_small(class);
                state.blocks(magazine) * class_size(class)
            })
            .sum();
        (*heap).lock.unlock();
        if cached > KEPT_AT_END {
            flush_all(heap);
        }
    }
}

/// Give back all cached blocks of a heap. Owner only.
pub(super) unsafe fn flush_all(heap: *mut Heap) {
    // SAFETY: the caller owns the heap, and holds no lock.
    unsafe { shelf::clear(heap) };
    for class in 1..super::CLASSES {
        // SAFETY: the caller owns the heap.
        unsafe { flush_class(heap, class) }
    }
}

/// Give back the cached blocks of classes that were not used since this was asked last. Owner only.
pub(super) unsafe fn flush_idle(heap: *mut Heap) {
    // SAFETY: the caller owns the heap, and holds no lock.
    unsafe { shelf::clear_idle(heap) };
    for class in 1..super::CLASSES {
        // SAFETY: the caller owns the heap; states are read under its lock.
        unsafe {
            (*heap).lock.lock();
            let (magazine, state) = Heap::class(heap, class);
            let rests = !state.has_moved(magazine) && state.blocks(magazine) != 0;
            (*heap).lock.unlock();
            if rests {
                flush_class(heap, class);
            }
        }
    }
}

unsafe fn flush_class(heap: *mut Heap, class: usize) {
    // SAFETY: the caller owns the heap; each flush releases the lock.
    unsafe {
        refill::lock_emptied(heap, class);
        let (magazine, state) = Heap::class(heap, class);
        if state.has_frees(magazine) {
            let (magazine, state) = Heap::enter(heap, class);
            state.swap(magazine);
            Heap::leave(heap, magazine, state, watch::word());
            refill::flush(heap, class);
        } else {
            (*heap).lock.unlock();
        }
    }
}

/// Give back the cached blocks of this thread's heaps. With no lock held.
pub(crate) fn flush_here() {
    let own = own();
    super::steal::steal_from(|heap| !Heap::is_empty_heap(own) && host_of(heap) == own);
}
