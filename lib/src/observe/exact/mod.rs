//! The exact profiler: every allocation and every free, by stack.
//!
//! What it finds is what Valgrind's DHAT finds, without its emulated processor, and is written as the same file ([`write`]). The heap tells each
//! event ([`crate::heap::watch`]) and has 16 bytes for each live block ([`note`]), where it finds the [`point`] that the block belongs to again.
//!
//! # What an event costs
//! A walk of the stack for an allocation, two words of the note, one lock that only events of the same program point share, and one atomic
//! addition to what the process holds. There is no lock that all events take, nothing grows with the number of points or blocks, and
//! nothing is allocated from the heap.
//!
//! # What it does not know
//! * Blocks from before the start: they are in no count. Their frees are counted apart; a `realloc` of one is taken for a new block.
//! * Events beyond the memory that it may use are counted at one point without a stack, and the file says so.
//! * In a child that was forked while another thread was counting an event, that event may be counted in half.

mod clock;
mod frames;
mod json;
mod live;
mod note;
mod pending;
mod point;
mod points;
mod recorder;
mod write;

use super::{settings, values};
use crate::heap::events::Extent;
use crate::heap::watch::{self, Watcher};
use crate::heap::{Heap, notes, thread};
use crate::os::{self, lock::Lock};
use clock::{Scale, Start};
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use live::Live;
use note::{Birth, MOST_RUNS};
use pending::Event;
use points::Points;
use recorder::Turn;

pub(crate) use write::write;

/// What the points of a recording may take when nothing else is said, in bytes of address space: room for two million.
const MEMORY: usize = 512 << 20;

/// One recording. There are two that take turns, so that an event that is late by a whole recording finds something harmless.
struct Run {
    /// Its number, from 1; 0 = there has been none.
    number: AtomicU32,
    points: AtomicPtr<Points>,
    live: Live,
    /// Written by who starts, before anybody records.
    start: Cell<Start>,
    /// When it was stopped. Written by who stops, read under the same lock.
    stopped: Cell<Option<Scale>>,
    /// Allocations that are counted without their stack.
    without_stack: AtomicU64,
    /// Events that are in no count.
    lost: AtomicU64,
    /// Frees and new sizes of blocks from before the start.
    unknown: AtomicU64,
}

// SAFETY: see the fields.
unsafe impl Sync for Run {}

impl Run {
    const fn new() -> Run {
        Run {
            number: AtomicU32::new(0),
            points: AtomicPtr::new(core::ptr::null_mut()),
            live: Live::new(),
            start: Cell::new(Start::NEVER),
            stopped: Cell::new(None),
            without_stack: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn points(&self) -> Option<&'static Points> {
        // SAFETY: points are never unmapped.
        unsafe { self.points.load(Relaxed).as_ref() }
    }
}

static RUNS: [Run; 2] = [Run::new(), Run::new()];
/// The recording that goes on; null = none does.
static CURRENT: AtomicPtr<Run> = AtomicPtr::new(core::ptr::null_mut());
/// Recordings so far.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Held to start, to stop, and to read all points.
static CONTROL: Lock = Lock::new();

#[inline(always)]
fn current() -> Option<&'static Run> {
    // SAFETY: one of RUNS, or null.
    unsafe { CURRENT.load(Acquire).as_ref() }
}

/// The last recording, whether it goes on or not.
fn last() -> Option<&'static Run> {
    let begun = BEGUN.load(Acquire);
    (begun != 0).then(|| &RUNS[begun as usize % 2])
}

/// What the process holds, by the last recording.
fn live() -> &'static Live {
    &RUNS[BEGUN.load(Relaxed) as usize % 2].live
}

/// Begin a recording whose points may take `memory` bytes; the one before it is forgotten. False: one goes on already, there is no memory, or
/// there have been 4,095 in this process.
pub(crate) fn start(memory: usize) -> bool {
    CONTROL.lock();
    let started = start_locked(memory);
    CONTROL.unlock();
    if started {
        watch::begin(Watcher::Exact);
    }
    started
}

fn start_locked(memory: usize) -> bool {
    let number = BEGUN.load(Relaxed) + 1;
    if !CURRENT.load(Relaxed).is_null() || number >= MOST_RUNS {
        return false;
    }
    let run = &RUNS[number as usize % 2];
    let Some(points) = run.points().map_or_else(|| Points::map(memory), Points::renew) else { return false };
    run.points.store((&raw const *points).cast_mut(), Relaxed);
    run.live.reset();
    [&run.without_stack, &run.lost, &run.unknown].iter().for_each(|count| count.store(0, Relaxed));
    run.start.set(Start::now());
    run.stopped.set(None);
    run.number.store(number, Relaxed);
    recorder::forget();
    BEGUN.store(number, Release);
    CURRENT.store((&raw const *run).cast_mut(), Release);
    true
}

/// End the recording; what it found stays.
pub(crate) fn stop() {
    CONTROL.lock();
    if let Some(run) = current() {
        CURRENT.store(core::ptr::null_mut(), Release);
        run.stopped.set(Some(run.start.get().scale()));
    }
    CONTROL.unlock();
    watch::end(Watcher::Exact);
}

/// There is something to write.
pub(crate) fn was_on() -> bool {
    last().is_some()
}

/// A signal handler has interrupted this thread in an event, or while it looked at all points: nothing can be written.
pub(crate) fn is_busy_here() -> bool {
    CONTROL.held_by_me() || recorder::is_busy_here()
}

pub(crate) fn is_on() -> bool {
    current().is_some()
}

/// A block was allocated.
///
/// # Safety
/// The block is the caller's, `heap` this thread's heap for now, or the one of threads that have none.
#[inline(never)]
pub(crate) unsafe fn allocated(heap: *mut Heap, block: *mut u8, requested: usize) {
    let Some(run) = current() else { return };
    let Some(points) = run.points() else { return };
    let (requested, at) = (requested as u64, run.start.get().ticks());
    let number = run.number.load(Relaxed);
    // SAFETY: the block is the caller's.
    let Some(note) = (unsafe { notes::place_for(block) }) else {
        return count_at_once(run, points, heap, requested, at);
    };
    let Some(mut turn) = Turn::take(heap) else {
        let point = points.unknown();
        run.without_stack.fetch_add(1, Relaxed);
        if recorder::leave(point, Event::Allocated { bytes: requested, at }) {
            Birth { point, run: number, requested, at }.write(note);
        } else {
            run.lost.fetch_add(1, Relaxed);
        }
        return;
    };
    let point = turn.point_of_caller(points, number).unwrap_or_else(|| {
        run.without_stack.fetch_add(1, Relaxed);
        points.unknown()
    });
    turn.count(points, point, |point| point.allocate(requested, at, &run.live));
    Birth { point, run: number, requested, at }.write(note);
}

/// A block that nothing can be noted of: it is counted as if it were freed at once.
#[cold]
#[inline(never)]
fn count_at_once(run: &Run, points: &Points, heap: *mut Heap, requested: u64, at: u64) {
    run.lost.fetch_add(1, Relaxed); // its free will be
    run.without_stack.fetch_add(1, Relaxed);
    if let Some(turn) = Turn::take(heap) {
        turn.count(points, points.unknown(), |point| {
            point.allocate(requested, at, &run.live);
            point.free(requested, at, at, &run.live);
        });
    }
}

/// A block is freed.
///
/// # Safety
/// The block is the caller's.
#[inline(never)]
pub(crate) unsafe fn freed(block: *mut u8) {
    let Some(run) = current() else { return };
    let Some(points) = run.points() else { return };
    // SAFETY: the block is the caller's.
    let birth = unsafe { notes::note_of(block) }.and_then(|note| Birth::take(note, run.number.load(Relaxed)));
    let Some(Birth { point, requested, at: born, .. }) = birth else {
        run.unknown.fetch_add(1, Relaxed);
        return;
    };
    let at = run.start.get().ticks();
    match Turn::take(thread::current()) {
        Some(turn) => turn.count(points, point, |point| point.free(requested, born, at, &run.live)),
        None => {
            if !recorder::leave(point, Event::Freed { bytes: requested, born, at }) {
                run.lost.fetch_add(1, Relaxed);
            }
        }
    }
}

/// A block has another size, in its place or in another.
///
/// # Safety
/// Both blocks are the caller's; as for [`allocated`].
#[inline(never)]
pub(crate) unsafe fn reallocated(heap: *mut Heap, old: Extent, new: Extent, requested: usize) {
    let Some(run) = current() else { return };
    let Some(points) = run.points() else { return };
    let number = run.number.load(Relaxed);
    // SAFETY: both blocks are the caller's.
    let (old_note, new_note) = unsafe { (notes::note_of(old.block), notes::place_for(new.block)) };
    let birth = old_note.and_then(|note| Birth::take(note, number));
    let (Some(birth), Some(note)) = (birth, new_note) else {
        // SAFETY: as the caller says.
        return unsafe { reallocated_in_the_dark(run, heap, birth, new.block, requested) };
    };
    let (from, to, at) = (birth.requested, requested as u64, run.start.get().ticks());
    let counted = match Turn::take(heap) {
        Some(turn) => {
            turn.count(points, birth.point, |point| point.resize(from, to, at, &run.live));
            true
        }
        None => recorder::leave(birth.point, Event::Resized { from, to, at }),
    };
    if !counted {
        run.lost.fetch_add(1, Relaxed);
    }
    let requested = if counted { to } else { from };
    Birth { requested, ..birth }.write(note);
}

/// The old block is from before the start, or nothing can be noted of the new one.
#[cold]
#[inline(never)]
unsafe fn reallocated_in_the_dark(run: &Run, heap: *mut Heap, birth: Option<Birth>, new: *mut u8, requested: usize) {
    match (birth, run.points()) {
        (Some(Birth { point, requested, at: born, .. }), Some(points)) => {
            let at = run.start.get().ticks();
            if let Some(turn) = Turn::take(heap) {
                turn.count(points, point, |point| point.free(requested, born, at, &run.live));
            }
        }
        _ => _ = run.unknown.fetch_add(1, Relaxed),
    }
    // SAFETY: as the caller says.
    unsafe { allocated(heap, new, requested) };
}

/// What is counted in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) total_bytes: u64,
    pub(crate) total_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) live_blocks: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) peak_blocks: u64,
    /// The largest number of live bytes that there ever was. With one thread this is `peak_bytes`.
    pub(crate) highest_bytes: u64,
    /// Allocations counted without their stack.
    pub(crate) without_stack: u64,
    /// Events in no count.
    pub(crate) lost: u64,
    /// Frees of blocks from before the start.
    pub(crate) unknown: u64,
    /// Memory for points, stacks and threads. Notes belong to the heap.
    pub(crate) internal_bytes: u64,
}

/// Of the last recording: the sums over all its points. All zero when there was none.
pub(crate) fn totals() -> Totals {
    CONTROL.lock();
    let totals = last().map(totals_of).unwrap_or_default();
    CONTROL.unlock();
    totals
}

fn totals_of(run: &Run) -> Totals {
    let Some(points) = run.points() else { return Totals::default() };
    let mut sum = Totals {
        highest_bytes: run.live.peak(),
        without_stack: run.without_stack.load(Relaxed),
        lost: run.lost.load(Relaxed),
        unknown: run.unknown.load(Relaxed),
        internal_bytes: (points.bytes() + recorder::bytes()) as u64,
        ..Totals::default()
    };
    recorder::each(points, &run.live, |_, counts| {
        sum.total_bytes += counts.total_bytes;
        sum.total_blocks += counts.total_blocks;
        sum.live_bytes += counts.bytes;
        sum.live_blocks += counts.blocks;
        sum.peak_bytes += counts.peak_bytes;
        sum.peak_blocks += counts.peak_blocks;
    });
    sum
}

impl Totals {
    /// Allocations whose stack is not known, and events in no count.
    pub(crate) fn dropped(&self) -> u64 {
        self.without_stack + self.lost
    }
}

/// What the points of a recording may take, as the environment says; 0 there is as much as there can be.
pub(crate) fn memory() -> usize {
    const EXPECTED: &str = "a size such as 256MiB";
    let given =
        if os::is_privileged() { None } else { settings::value(b"MIMALLOC_DHAT_MAX_BYTES", EXPECTED, values::size) };
    match given {
        None => MEMORY,
        Some(0) => usize::MAX,
        Some(bytes) => bytes as usize,
    }
}

/// In a forked child with one thread that is not to be recorded.
pub(crate) fn stop_in_child() {
    if is_on() {
        stop();
    }
}

/// In a forked child with one thread.
pub(crate) fn repair() {
    if CONTROL.held_by_vanished() {
        CONTROL.reset();
    }
    recorder::repair();
}
