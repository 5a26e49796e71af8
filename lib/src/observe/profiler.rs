//! The sampled profiler: what is done with an allocation that was drawn.

use super::sites::{self, Key};
use super::unwind::{self, StackBounds};
use crate::heap::sampled::Record;
use crate::heap::{Heap, SCRATCH, interval};
use crate::os;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// The most frames of a stack that are kept.
pub(crate) const MOST_FRAMES: usize = (SCRATCH - size_of::<StackBounds>()) / size_of::<usize>() - 1;

/// What a thread needs to walk its stack; lies in its heap's scratch memory, and is valid when all zero.
#[repr(C)]
struct Walker {
    /// The thread that is at it: a signal handler that allocates in between must keep out. Another thread's id is that of one
    /// that vanished in a fork.
    active: AtomicU64,
    bounds: StackBounds,
    frames: [usize; MOST_FRAMES],
}
const _: () = assert!(size_of::<Walker>() <= SCRATCH);

static DEPTH: AtomicUsize = AtomicUsize::new(MOST_FRAMES);
/// The epoch of the present or last run; 0 = there was none.
static RUN: AtomicU32 = AtomicU32::new(0);
/// Samples that were drawn and could not be kept.
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Code of this library, whose frames are left out of stacks: empty where it is part of the program itself.
static OWN_START: AtomicUsize = AtomicUsize::new(0);
static OWN_END: AtomicUsize = AtomicUsize::new(0);

/// How to sample.
pub(crate) struct Options {
    /// Mean distance between samples, in bytes.
    pub(crate) rate: u64,
    /// The same seed samples the same sequence of allocations in the same way.
    pub(crate) seed: u64,
    /// Frames kept of each stack.
    pub(crate) depth: usize,
    /// Memory for sites, in bytes.
    pub(crate) memory: usize,
}

/// Begin a run. False: no memory for sites.
pub(crate) fn start(options: &Options) -> bool {
    if !sites::initialise(options.memory) {
        return false;
    }
    DEPTH.store(options.depth.clamp(1, MOST_FRAMES), Relaxed);
    interval::start(options.rate, options.seed);
    RUN.store(interval::epoch(), Relaxed);
    true
}

/// End the run; what it found stays.
pub(crate) fn stop() {
    interval::stop();
}

/// The epoch of the present or last run, `None` when there was none.
pub(crate) fn run() -> Option<u32> {
    let run = RUN.load(Relaxed);
    (run != 0).then_some(run)
}

pub(crate) fn dropped() -> u64 {
    DROPPED.load(Relaxed)
}

/// A drawn allocation was not kept as a sample.
pub(crate) fn drop_one() {
    DROPPED.fetch_add(1, Relaxed);
}

/// Leave frames in this range of code out of stacks.
pub(crate) fn set_own_code(range: core::ops::Range<usize>) {
    OWN_START.store(range.start, Relaxed);
    OWN_END.store(range.end, Relaxed);
}

fn is_own(frame: usize) -> bool {
    (OWN_START.load(Relaxed)..OWN_END.load(Relaxed)).contains(&frame)
}

/// An allocation was drawn: find its site and count it. 0: the sample is dropped.
#[inline(never)]
pub(crate) unsafe fn sampled(heap: *mut Heap, block_size: usize, requested: usize, epoch: u32) -> u32 {
    if epoch != interval::epoch() {
        return 0; // stopped or started anew meanwhile
    }
    let walker = Heap::scratch(heap).cast::<Walker>();
    // SAFETY: the scratch memory belongs to this thread, is large enough, aligned, and valid when zero.
    let active = unsafe { &(*walker).active };
    if active.swap(os::thread_id(), Relaxed) == os::thread_id() {
        DROPPED.fetch_add(1, Relaxed);
        return 0;
    }
    // SAFETY: as above, and `active` keeps others out.
    let number = unsafe { find_site(&mut *walker, block_size as u64, epoch) };
    active.store(0, Release);
    let Some(site) = number.and_then(sites::site) else {
        DROPPED.fetch_add(1, Relaxed);
        return 0;
    };
    site.live.fetch_add(1, Relaxed);
    site.live_requested.fetch_add(requested as u64, Relaxed);
    site.allocated.fetch_add(1, Relaxed);
    number.unwrap_or(0)
}

/// The site that allocates: the stack of the caller's caller without our own frames.
#[inline(always)]
unsafe fn find_site(walker: &mut Walker, block_size: u64, epoch: u32) -> Option<u32> {
    let room = DEPTH.load(Relaxed);
    // SAFETY: this function has unwind tables.
    let walk = unsafe { unwind::capture(&mut walker.frames[..room], &mut walker.bounds) };
    let frames = &walker.frames[..walk.frames];
    let own = frames.iter().take_while(|&&frame| is_own(frame)).count();
    sites::intern(&Key { frames: &frames[own..], block_size, end: walk.end, epoch })
}

/// A sampled block is freed.
pub(crate) fn released(record: &Record) {
    if let Some(site) = sites::site(record.site) {
        site.live.fetch_sub(1, Relaxed);
        site.live_requested.fetch_sub(record.requested as u64, Relaxed);
    }
}

/// A sampled block has another requested size.
pub(crate) fn resized(record: &Record, requested: usize) {
    if let Some(site) = sites::site(record.site) {
        site.live_requested.fetch_add((requested as u64).wrapping_sub(record.requested as u64), Relaxed);
    }
}

/// Sampled blocks of one size in the present or last run: live, and ever allocated.
#[cfg(test)]
pub(crate) fn sampled_of_size(size: u64) -> (u64, u64) {
    sites::all(RUN.load(Relaxed))
        .filter(|site| site.block_size == size)
        .fold((0, 0), |sum, site| (sum.0 + site.live.load(Relaxed), sum.1 + site.allocated.load(Relaxed)))
}
