//! The sampled profiler: what is done with an allocation that was drawn.
//!
//! A [run](run) begins with a start and ends with a stop. In it each drawn allocation has a [site](sites): its [stack](stacks), its block
//! size and its [thread](threads). The site counts what becomes of it; the heap keeps the number of the site in the block's record.
//! Nothing here waits for another thread, but for the numbers and names of threads.

mod lifetimes;
mod options;
mod peak;
mod run;
mod scale;
pub(crate) mod sites;
mod snapshot;
mod stacks;
pub(super) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
mod visitors;

pub(crate) use self::{options::Options, snapshot::Snapshot, visitors::Visitor};
pub(crate) use self::{run::Hold, run::hold, scale::scale};

use super::timeline::{self, Place};
use super::unwind::{self, End, StackBounds};
use super::{dump, inherited, observer};
use crate::heap::events::{Ended, Sample};
use crate::heap::sampled::{self, Record};
use crate::heap::{Heap, SCRATCH, interval};
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use run::Run;
use sites::Key;

/// The most frames of a stack that are kept.
pub(crate) const MOST_FRAMES: usize =
    (SCRATCH - size_of::<StackBounds>() - size_of::<threads::Own>()) / size_of::<usize>() - 1;

/// Room for our own frames, which are left out: there are about six.
const OWN_FRAMES: usize = 16;

/// What a thread needs to walk its stack; lies in its heap's scratch memory, and is valid when all zero.
#[repr(C)]
struct Walker {
    /// The thread that is at it: a signal handler that allocates in between must keep out. Another thread's id is that of one
    /// that vanished in a fork.
    active: AtomicU64,
    thread: threads::Own,
    bounds: StackBounds,
    frames: [usize; MOST_FRAMES],
}
const _: () = assert!(size_of::<Walker>() <= SCRATCH);

static DEPTH: AtomicUsize = AtomicUsize::new(MOST_FRAMES);
/// Code of this library, whose frames are left out of stacks: empty where it is part of the program itself.
static OWN_START: AtomicUsize = AtomicUsize::new(0);
static OWN_END: AtomicUsize = AtomicUsize::new(0);
/// Start and stop exclude each other.
static SWITCH: Lock = Lock::new();

/// Begin a run. False: one is going on, or there is no memory, or this thread is in a visit, or it is a signal handler that has
/// interrupted a start or a stop.
pub(crate) fn start(options: &Options) -> bool {
    begin(options, false)
}

/// [`start`]; a run that is going on ends.
#[cfg(test)]
pub(crate) fn restart(options: &Options) -> bool {
    begin(options, true)
}

fn begin(options: &Options, ends_other: bool) -> bool {
    if SWITCH.held_by_me() || is_looked_at_here() {
        return false;
    }
    SWITCH.lock();
    if !ends_other && hold().is_some() {
        SWITCH.unlock();
        return false;
    }
    end_run(true);
    let run = Run::create(options.memory, options.rate.max(1));
    if let Some(run) = run {
        DEPTH.store(options.depth.clamp(1, MOST_FRAMES), Relaxed);
        threads::forget();
        interval::start(options.rate, options.seed, |epoch| {
            run.set_epoch(epoch);
            run::publish(run);
        });
    }
    SWITCH.unlock();
    run.is_some()
}

/// This is a function of the program that looks at samples, or gets a dump.
pub(crate) fn is_looked_at_here() -> bool {
    Visitor::is_here() || dump::is_busy_here()
}

/// End the run: what begins later is not sampled, what was found is forgotten, and its memory given back.
pub(crate) fn stop() {
    if !SWITCH.held_by_me() {
        SWITCH.lock();
        // Who is in a visit would wait for itself.
        end_run(!is_looked_at_here());
        SWITCH.unlock();
    }
}

fn end_run(waits: bool) {
    interval::stop();
    if waits {
        // What is told of its blocks can be explained as long as it is there.
        timeline::catch_up();
    }
    run::end(waits);
    inherited::forget();
    sampled::trim();
}

/// Forget all that was counted but what is live; the peak is the present.
pub(crate) fn reset() {
    if SWITCH.held_by_me() {
        return;
    }
    SWITCH.lock();
    if let Some(held) = hold() {
        held.sites().for_each(sites::Site::reset);
        held.run().peak.restart();
    }
    SWITCH.unlock();
}

/// In a forked child.
pub(crate) fn forked() {
    if SWITCH.held_by_vanished() {
        SWITCH.reset();
    }
    lifetimes::repair();
    threads::repair();
    visitors::repair();
    let heap = crate::heap::thread::own();
    if !Heap::is_empty_heap(heap) && hold().is_some() {
        // SAFETY: the scratch memory belongs to this thread.
        unsafe { (*Heap::scratch(heap).cast::<Walker>()).thread.forked() };
    }
}

/// In a forked child that is not to be profiled.
pub(crate) fn stop_in_child() {
    // The lock is free, or this thread has been interrupted where it holds it.
    end_run(false);
}

/// A drawn allocation was not kept as a sample.
pub(crate) fn drop_one() {
    if let Some(held) = hold() {
        held.run().drop_one(false);
    }
}

/// Leave frames in this range of code out of stacks.
pub(crate) fn set_own_code(range: core::ops::Range<usize>) {
    OWN_START.store(range.start, Relaxed);
    OWN_END.store(range.end, Relaxed);
}

pub(super) fn is_own(frame: usize) -> bool {
    (OWN_START.load(Relaxed)..OWN_END.load(Relaxed)).contains(&frame)
}

/// An allocation was drawn: find its site and count it, or drop the sample.
#[inline(never)]
pub(crate) unsafe fn sampled(heap: *mut Heap, block_size: usize, requested: usize, epoch: u32) -> Sample {
    let Some(held) = hold().filter(|held| held.run().is_of(epoch)) else { return Sample::NONE }; // stopped or started anew meanwhile
    let run = held.run();
    let walker = Heap::scratch(heap).cast::<Walker>();
    // SAFETY: the scratch memory belongs to this thread, is large enough, aligned, and valid when zero.
    let active = unsafe { &(*walker).active };
    if active.swap(os::thread_id(), Relaxed) == os::thread_id() {
        run.drop_one(false);
        return Sample::NONE;
    }
    // SAFETY: as above, and `active` keeps others out.
    let number = unsafe { find_site(&mut *walker, run, block_size as u64, epoch) };
    active.store(0, Release);
    match number {
        Some(number) => {
            let site = run.site(number);
            let weight = site.allocated(requested as u64);
            let stamp = timeline::allocated(Place { run: epoch, site: number }, requested, site.thread());
            let live = held.live_bytes();
            drop(held); // what is due may end the run
            observer::sampled(live, weight);
            Sample { site: number, stamp }
        }
        None => {
            run.drop_one(true);
            Sample::NONE
        }
    }
}

/// The site that allocates: the stack of the caller's caller without our own frames.
#[inline(always)]
unsafe fn find_site(walker: &mut Walker, run: &'static Run, block_size: u64, epoch: u32) -> Option<u32> {
    let depth = DEPTH.load(Relaxed);
    let room = (depth + OWN_FRAMES).min(MOST_FRAMES);
    // SAFETY: this function has unwind tables.
    let walk = unsafe { unwind::capture(&mut walker.frames[..room], &mut walker.bounds) };
    let frames = &walker.frames[..walk.frames];
    let own = frames.iter().take_while(|&&frame| is_own(frame)).count();
    let (frames, end) = match frames[own..].get(..depth) {
        Some(first) if first.len() < frames.len() - own => (first, End::DepthLimit),
        _ => (&frames[own..], walk.end),
    };
    let stack = stacks::intern(run, frames, end)?;
    sites::intern(run, Key { stack, thread: walker.thread.number(epoch), block_size })
}

/// A sampled block has come to its end.
pub(crate) fn released(record: &Record, how: Ended) {
    let Some(held) = hold().filter(|held| held.run().is_of(record.epoch)) else { return };
    let lifetime = lifetimes::nanoseconds(record.birth, lifetimes::now());
    held.run().site(record.site).ended(record.requested as u64, how, lifetimes::bucket(lifetime));
    drop(held);
    if timeline::is_on() {
        let place = Place { run: record.epoch, site: record.site };
        timeline::ended(place, record.stamp, thread_here(record.epoch), how == Ended::Moved);
    }
    observer::released(record.birth);
}

/// The number of the calling thread; 0 if it was never sampled.
fn thread_here(epoch: u32) -> u32 {
    let heap = crate::heap::thread::own();
    if Heap::is_empty_heap(heap) {
        return 0;
    }
    // SAFETY: the scratch memory belongs to this thread.
    unsafe { (*Heap::scratch(heap).cast::<Walker>()).thread.known(epoch) }
}

/// A sampled block has another requested size.
pub(crate) fn resized(record: &Record, requested: usize) {
    if let Some(held) = hold().filter(|held| held.run().is_of(record.epoch)) {
        held.run().site(record.site).resized(record.requested as u64, requested as u64);
        timeline::resized(Place { run: record.epoch, site: record.site }, record.stamp, requested);
    }
}

/// The thread of this heap ends, or leaves the heap to another.
pub(crate) fn leaving(heap: *mut Heap) {
    let run = hold().map_or(0, |held| held.number());
    // SAFETY: the scratch memory belongs to this thread, which is not sampling.
    unsafe { (*Heap::scratch(heap).cast::<Walker>()).thread.leave(run) };
}

/// Sample no more, but keep what was found.
#[cfg(test)]
pub(crate) fn pause() {
    interval::stop();
}

/// Sampled blocks of one size in the present run: live, and ever allocated.
#[cfg(test)]
pub(crate) fn sampled_of_size(size: u64) -> (u64, u64) {
    let run = hold().map_or(0, |held| held.number());
    sites::all(run)
        .filter(|site| site.block_size() == size)
        .map(sites::Site::counts)
        .fold((0, 0), |sum, counts| (sum.0 + counts.live, sum.1 + counts.allocated))
}
