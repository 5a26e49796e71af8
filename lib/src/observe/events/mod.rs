//! Memory events: a callback for every allocation, free and change of size, and totals.
//!
//! Live bytes and blocks are the heap's own exact counts ([`statistics`]), so they are right whenever tracking was switched on, and cannot
//! drift. Only what those cannot know is counted here, where a call is told: blocks that moved, which are not new ones, and
//! blocks of callbacks ([`hidden`]).
//!
//! What is said at each event, the live bytes after it, may not take long to find: it is the sum of the changes so far and of what was there before,
//! which is looked up in the heap's counts in a quiet moment ([`calibrate`]). In a program whose threads allocate all the time that sum
//! misses calls in flight, until the next quiet moment.

mod callbacks;
mod hidden;
#[cfg(test)]
mod tests;

pub(crate) use callbacks::{Callbacks, Change, set as set_callbacks};

use crate::heap::events::Extent;
use crate::heap::statistics::{self, Totals};
use crate::heap::watch::{self, Watcher};
use crate::heap::{self, Heap, zone};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};

/// What the threads of a part of the process have counted, in cache lines of its own. All wrap around.
#[repr(C, align(128))]
struct Shard {
    /// Change of live bytes.
    change: AtomicI64,
    /// Calls that were counted in `change`.
    calls: AtomicU64,
    /// Blocks that moved or were extended, which the heap counts as freed and allocated.
    moved: AtomicU64,
    /// Bytes of those that were there before and after.
    moved_bytes: AtomicU64,
}

const SHARDS: usize = 16;
static COUNTS: [Shard; SHARDS] = [const {
    Shard {
        change: AtomicI64::new(0),
        calls: AtomicU64::new(0),
        moved: AtomicU64::new(0),
        moved_bytes: AtomicU64::new(0),
    }
}; SHARDS];

/// Live bytes, less the changes in all shards.
static BASE: AtomicI64 = AtomicI64::new(0);
/// Switching excludes switching.
static SWITCH: Lock = Lock::new();
/// The program has said whether it wants tracking: the environment is not asked any more.
static DECIDED: AtomicBool = AtomicBool::new(false);

/// Blocks and bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum { blocks: self.blocks.wrapping_add(other.blocks), bytes: self.bytes.wrapping_add(other.bytes) }
    }

    /// Not below zero: calls in flight may be in one of two sums only.
    fn minus(self, other: Sum) -> Sum {
        Sum { blocks: self.blocks.saturating_sub(other.blocks), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// The totals.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) live: Sum,
    /// Ever allocated; of blocks that became larger, what they grew by.
    pub(crate) allocated: Sum,
}

/// Words of a [`Sum`] that the switch writes and everybody reads.
struct Kept {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Kept {
    const fn zero() -> Kept {
        Kept { blocks: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    fn get(&self) -> Sum {
        Sum { blocks: self.blocks.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }

    fn set(&self, to: Sum) {
        self.blocks.store(to.blocks, Relaxed);
        self.bytes.store(to.bytes, Relaxed);
    }
}

/// While tracking is on: what is to be taken from the heap's count of allocations. While it is off: the allocations up to its end...
static ALLOCATED: Kept = Kept::zero();
/// ... and what was live then.
static LIVE_AT_END: Kept = Kept::zero();

pub(crate) fn is_enabled() -> bool {
    watch::has(Watcher::Events)
}

/// The environment is known: do what it asks for, unless the program has said something else.
pub(crate) fn start(wanted: bool) {
    if wanted && !DECIDED.load(Relaxed) {
        set_enabled(true);
    }
}

/// Switch tracking on or off. Every call that begins after this returns is told, or is not. With no lock held.
pub(crate) fn set_enabled(enabled: bool) {
    if SWITCH.held_by_me() {
        return; // a signal handler has interrupted this thread in here
    }
    DECIDED.store(true, Relaxed);
    SWITCH.lock();
    if enabled && !is_enabled() {
        hidden::forget_all();
        watch::begin(Watcher::Events);
        let (heap, before) = (of_heap(), snapshot_off(of_heap()));
        // What was allocated while nobody looked and is still there is part of the sum, what is gone again is not.
        ALLOCATED.set(wrapping_minus(heap.allocated, before.allocated));
        calibrate();
    } else if !enabled && is_enabled() {
        let last = snapshot_on(of_heap());
        watch::end(Watcher::Events);
        ALLOCATED.set(last.allocated);
        LIVE_AT_END.set(of_heap().live);
    }
    SWITCH.unlock();
}

fn wrapping_minus(of: Sum, less: Sum) -> Sum {
    Sum { blocks: of.blocks.wrapping_sub(less.blocks), bytes: of.bytes.wrapping_sub(less.bytes) }
}

/// The totals at this moment; calls of other threads in flight may be missing. With no lock held.
pub(crate) fn snapshot() -> Snapshot {
    if is_enabled() {
        calibrate();
        snapshot_on(of_heap())
    } else {
        snapshot_off(of_heap())
    }
}

/// The heap's own counts, and what is not new in them.
fn of_heap() -> Snapshot {
    let moved = sum_of(|shard| Sum { blocks: shard.moved.load(Acquire), bytes: shard.moved_bytes.load(Relaxed) });
    let Totals { allocated_blocks, allocated_bytes, freed_blocks, freed_bytes } = statistics::usable_totals();
    let allocated = Sum { blocks: allocated_blocks, bytes: allocated_bytes };
    let freed = Sum { blocks: freed_blocks, bytes: freed_bytes };
    Snapshot { live: allocated.minus(freed), allocated: wrapping_minus(allocated, moved) }
}

fn snapshot_on(heap: Snapshot) -> Snapshot {
    let hidden = hidden::sums();
    // What is being freed in a callback of this thread is gone for the program.
    Snapshot {
        live: heap.live.minus(hidden.live).minus(callbacks::pending_here()),
        allocated: wrapping_minus(wrapping_minus(heap.allocated, hidden.allocated), ALLOCATED.get()),
    }
}

fn snapshot_off(heap: Snapshot) -> Snapshot {
    let gained = heap.live.minus(LIVE_AT_END.get());
    Snapshot { live: heap.live, allocated: ALLOCATED.get().plus(gained) }
}

fn sum_of(part: impl Fn(&Shard) -> Sum) -> Sum {
    COUNTS.iter().fold(Sum::default(), |sum, shard| sum.plus(part(shard)))
}

/// The live bytes that events are told with start from the heap's own counts, if nothing happens for a moment; else from what comes nearest.
fn calibrate() {
    if !callbacks::any() {
        return;
    }
    let calls = || COUNTS.iter().fold(0u64, |sum, shard| sum.wrapping_add(shard.calls.load(SeqCst)));
    for _ in 0..16 {
        let before = calls();
        let live = snapshot_on(of_heap()).live.bytes as i64;
        let base = live.wrapping_sub(changes());
        if calls() == before {
            return BASE.store(base, Relaxed);
        }
    }
    let live = snapshot_on(of_heap()).live.bytes as i64;
    BASE.store(live.wrapping_sub(changes()), Relaxed);
}

fn changes() -> i64 {
    COUNTS.iter().fold(0i64, |sum, shard| sum.wrapping_add(shard.change.load(Relaxed)))
}

/// This thread's.
fn shard() -> &'static Shard {
    let id = os::thread_id();
    &COUNTS[((id >> 12 ^ id >> 20) % SHARDS as u64) as usize]
}

/// A block was allocated.
#[inline]
pub(super) unsafe fn allocated(heap: *mut Heap, block: *mut u8, usable: usize, requested: usize) {
    if callbacks::is_here() {
        let run = hidden::run();
        if is_enabled() {
            hidden::add(block as usize, usable, run);
        }
        return;
    }
    if callbacks::any() {
        // SAFETY: the heap is this thread's for the moment.
        let may_call = unsafe { heap::may_call_out(heap) };
        happened(0, usable as i64, requested, Sum::default(), may_call);
    }
}

/// A block is to be freed.
#[inline]
pub(super) fn freed(block: *mut u8, usable: usize) {
    if hidden::remove(block as usize) {
        return;
    }
    if callbacks::any() {
        happened(1, -(usable as i64), 0, Sum { blocks: 1, bytes: usable as u64 }, true);
    }
}

/// A block has taken the place of another, or has another size.
#[inline]
pub(super) unsafe fn reallocated(heap: *mut Heap, old: Extent, new: Extent, requested: usize) {
    let moved = old.block != new.block;
    if hidden::replace(old.block as usize, new.block as usize, new.usable) {
        return;
    }
    if moved || old.usable != new.usable {
        let shard = shard();
        shard.moved_bytes.fetch_add(old.usable.min(new.usable) as u64, Relaxed);
        shard.moved.fetch_add(1, Release);
    }
    if callbacks::any() {
        // The old block is not yet back.
        let pending = if moved { Sum { blocks: 1, bytes: old.usable as u64 } } else { Sum::default() };
        let change = new.usable as i64 - old.usable as i64;
        // SAFETY: the heap is this thread's for the moment.
        let may_call = unsafe { heap::may_call_out(heap) };
        happened(2, change, requested, pending, may_call);
    }
}

/// Count a change, and tell it, unless it is a callback's.
fn happened(kind: usize, change: i64, requested: usize, pending: Sum, may_call: bool) {
    let shard = shard();
    shard.change.fetch_add(change, Relaxed);
    shard.calls.fetch_add(1, SeqCst);
    if !callbacks::is_here() && may_call {
        callbacks::tell(kind, pending, || Change {
            kind: kind as i32,
            total_bytes: BASE.load(Relaxed).wrapping_add(changes()).max(0) as u64,
            delta_bytes: change,
            request_size: requested as u64,
        });
    }
}

/// Call `visit` with each live block of the process and its usable bytes, until it returns false. Blocks that are allocated or freed meanwhile
/// may be seen or not. With no lock held, and none is held while `visit` runs.
pub(crate) fn visit_live(visit: impl FnMut(*mut u8, usize) -> bool) {
    zone::visit_all(visit);
}

/// In a forked child with one thread.
pub(super) fn repair() {
    if SWITCH.held_by_vanished() {
        SWITCH.reset();
    }
    hidden::repair();
    callbacks::repair();
}
