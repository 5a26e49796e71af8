//! What a thread needs to record: room for a stack, and the right to be the only one at it.
//!
//! Each heap has one, made at the first event of its thread and kept for the next. A thread without a heap shares one with others of its kind.

use super::live::Live;
use super::pending::{Event, Pending};
use super::point::{Counts, Point};
use super::points::Points;
use crate::heap::{Heap, thread};
use crate::observe::sampler::is_own;
use crate::observe::unwind::{self, Place, Recalled, StackBounds, Trails, Walk};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*, compiler_fence};

/// The most frames of a stack that are kept.
const MOST_FRAMES: usize = 1024;

/// Valid when all zero.
#[repr(C)]
pub(super) struct Recorder {
    /// The thread that is at it: a signal handler that has interrupted it must keep out. Another thread's id is that of one that vanished
    /// in a fork.
    active: AtomicU64,
    /// The point whose lock it has, or waits for; null = none.
    locking: AtomicPtr<Point>,
    next: AtomicPtr<Recorder>,
    bounds: StackBounds,
    /// The recording whose points the trails lead to.
    run: u32,
    trails: Trails,
    frames: [usize; MOST_FRAMES],
}

/// All recorders of heaps, newest first.
static ALL: AtomicPtr<Recorder> = AtomicPtr::new(core::ptr::null_mut());
static MADE: AtomicU32 = AtomicU32::new(0);
/// The one of threads without a heap, and who has it.
static SPARE: AtomicPtr<Recorder> = AtomicPtr::new(core::ptr::null_mut());
static SPARE_LOCK: Lock = Lock::new();
static PENDING: Pending = Pending::new();

/// The right to record one event.
pub(super) struct Turn {
    recorder: *mut Recorder,
    is_spare: bool,
}

impl Turn {
    /// `None`: this thread is at it already, and a signal handler has interrupted it; or there is no memory.
    #[inline(always)]
    pub(super) fn take(heap: *mut Heap) -> Option<Turn> {
        let Some(kept) = Heap::annex(heap) else { return Turn::take_spare() };
        let mut recorder = kept.load(Relaxed).cast::<Recorder>();
        if recorder.is_null() {
            recorder = make()?;
            kept.store(recorder.cast(), Relaxed);
        }
        // SAFETY: recorders are never unmapped, and this one is of this thread's heap.
        let active = unsafe { &(*recorder).active };
        if active.load(Relaxed) == os::thread_id() {
            return None;
        }
        active.store(os::thread_id(), Relaxed);
        compiler_fence(SeqCst);
        Some(Turn { recorder, is_spare: false })
    }

    #[cold]
    #[inline(never)]
    fn take_spare() -> Option<Turn> {
        if SPARE_LOCK.held_by_me() {
            return None;
        }
        SPARE_LOCK.lock();
        let mut recorder = SPARE.load(Relaxed);
        if recorder.is_null() {
            let Some(made) = make() else {
                SPARE_LOCK.unlock();
                return None;
            };
            SPARE.store(made, Relaxed);
            recorder = made;
        }
        Some(Turn { recorder, is_spare: true })
    }

    /// The point of the stack that the function which calls this was called with, less our own frames; `None`: there is no memory for it.
    #[inline(always)]
    pub(super) fn point_of_caller(&mut self, points: &Points, run: u32) -> Option<u32> {
        // SAFETY: the turn makes the recorder this thread's; the function that this is inlined into has unwind tables.
        unsafe {
            let recorder = &mut *self.recorder;
            if recorder.run != run {
                recorder.trails.forget();
                recorder.run = run;
            }
            match unwind::recall(&mut recorder.frames, &mut recorder.bounds, &mut recorder.trails) {
                Recalled::Known(number) => Some(number),
                Recalled::Walked(walk, place) => recorder.intern(points, walk, place),
            }
        }
    }

    /// Count something at a point; and what signal handlers have left meanwhile.
    #[inline(always)]
    pub(super) fn count(&self, points: &Points, number: u32, count: impl FnOnce(&Point)) {
        self.locked(points, number, count);
        if !PENDING.is_empty() {
            PENDING.take(|number, event| self.count_pending(points, number, event));
        }
    }

    #[inline(always)]
    fn locked(&self, points: &Points, number: u32, count: impl FnOnce(&Point)) {
        let Some(point) = points.point_if_any(number) else { return };
        // SAFETY: as above.
        let locking = unsafe { &(*self.recorder).locking };
        locking.store((&raw const *point).cast_mut(), Relaxed);
        compiler_fence(SeqCst);
        count(point);
        locking.store(core::ptr::null_mut(), Release);
    }

    #[cold]
    fn count_pending(&self, points: &Points, number: u32, event: Event) {
        let live = super::live();
        self.locked(points, number, |point| match event {
            Event::Allocated { bytes, at } => point.allocate(bytes, at, live),
            Event::Freed { bytes, born, at } => point.free(bytes, born, at, live),
            Event::Resized { from, to, at } => point.resize(from, to, at, live),
        });
    }
}

impl Recorder {
    #[inline(never)]
    fn intern(&mut self, points: &Points, walk: Walk, place: Option<Place>) -> Option<u32> {
        let frames = &self.frames[..walk.frames];
        let own = frames.iter().take_while(|&&frame| is_own(frame)).count();
        let number = points.intern(&frames[own..], walk.end)?;
        place.into_iter().for_each(|place| self.trails.remember(place, number));
        Some(number)
    }
}

impl Drop for Turn {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_spare {
            return SPARE_LOCK.unlock();
        }
        compiler_fence(SeqCst);
        // SAFETY: as above.
        unsafe { (*self.recorder).active.store(0, Release) };
    }
}

/// A signal handler has interrupted this thread in an event.
pub(super) fn is_busy_here() -> bool {
    let kept = Heap::annex(thread::current()).map(|kept| kept.load(Relaxed).cast::<Recorder>());
    // SAFETY: recorders are never unmapped.
    let recorder = kept.and_then(|recorder| unsafe { recorder.as_ref() });
    SPARE_LOCK.held_by_me() || recorder.is_some_and(|recorder| recorder.active.load(Relaxed) == os::thread_id())
}

/// Leave an event for whoever has the next turn. False: there is no room, it is lost.
#[cold]
pub(super) fn leave(point: u32, event: Event) -> bool {
    PENDING.put(point, event)
}

/// Count what signal handlers have left, then show every point in which anything is counted.
pub(super) fn each(points: &Points, live: &Live, mut show: impl FnMut(&Point, Counts)) {
    // A turn, so that a child that is forked meanwhile knows whose lock to give back.
    let Some(turn) = Turn::take_spare() else { return };
    PENDING.take(|number, event| turn.count_pending(points, number, event));
    for number in points.all() {
        turn.locked(points, number, |point| {
            let counts = point.counts(live);
            if counts.total_blocks != 0 {
                show(point, counts);
            }
        });
    }
}

/// Forget what signal handlers have left: it is of a recording that is over.
pub(super) fn forget() {
    PENDING.take(|_, _| {});
}

#[cold]
#[inline(never)]
fn make() -> Option<*mut Recorder> {
    let recorder = os::map(size_of::<Recorder>()).cast::<Recorder>();
    if recorder.is_null() {
        return None;
    }
    MADE.fetch_add(1, Relaxed);
    let mut first = ALL.load(Relaxed);
    loop {
        // SAFETY: fresh memory, all zero.
        unsafe { (*recorder).next.store(first, Relaxed) };
        match ALL.compare_exchange(first, recorder, Release, Relaxed) {
            Ok(_) => return Some(recorder),
            Err(now) => first = now,
        }
    }
}

/// Bytes of all recorders.
pub(super) fn bytes() -> usize {
    MADE.load(Relaxed) as usize * size_of::<Recorder>()
}

/// In a forked child: give back what vanished threads held.
pub(super) fn repair() {
    if SPARE_LOCK.held_by_vanished() {
        SPARE_LOCK.reset();
    }
    PENDING.repair();
    let mut at = ALL.load(Acquire);
    while !at.is_null() {
        // SAFETY: recorders are never unmapped; there is one thread.
        let recorder = unsafe { &*at };
        // SAFETY: points are never unmapped.
        if let Some(point) = unsafe { recorder.locking.load(Relaxed).as_ref() } {
            point.repair();
        }
        if recorder.active.load(Relaxed) != os::thread_id() {
            recorder.locking.store(core::ptr::null_mut(), Relaxed);
        }
        at = recorder.next.load(Relaxed);
    }
}
