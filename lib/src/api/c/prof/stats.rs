//! How much was sampled, and what that takes.

use crate::api::c::stats::{STAT_VERSION, Stats, get};
use crate::heap::{interval, sampled};
use crate::observe::sampler;
use core::ffi::c_int;
use core::mem::{MaybeUninit, offset_of};

/// `mi_prof_stats_t`: numbers of sampled blocks and bytes, not estimates; behind those, what is exact of the heap.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ProfStats {
    /// Bytes of this structure, as far as the caller knows it.
    pub size: usize,
    /// 1: up to `stack_table_overflows`; 2: up to `dropped_samples`; 3: all.
    pub version: c_int,
    /// It is running.
    pub enabled: bool,
    /// True: what was allocated is always counted.
    pub accum: bool,
    /// Mean distance between samples in bytes, of this run or the last one.
    pub sample_rate: usize,
    /// Sampled blocks that are live.
    pub live_samples: usize,
    /// Their usable bytes.
    pub live_bytes: usize,
    /// Blocks that were ever sampled, since the start or the last reset.
    pub accum_samples: usize,
    /// Their usable bytes.
    pub accum_bytes: usize,
    /// Different stacks.
    pub unique_stacks: usize,
    /// Bytes that stacks, counts and records take.
    pub arena_committed: usize,
    /// Samples that were dropped because there was no more memory for stacks.
    pub stack_table_overflows: usize,
    /// Samples that were dropped for any reason.
    pub dropped_samples: usize,
    /// Bytes of the heap that may be in memory.
    pub heap_committed: usize,
    /// Bytes of address space that it can use.
    pub heap_reserved: usize,
    /// 0: it is not counted what is asked for.
    pub heap_malloc_requested: usize,
    /// Slabs and larger blocks.
    pub heap_pages: usize,
    /// 0.
    pub heap_pages_abandoned: usize,
    /// Heaps.
    pub heap_count: usize,
    /// Parts of heaps, one for each thread that uses them.
    pub theap_count: usize,
    /// Bytes given back to the operating system, ever.
    pub heap_purged: usize,
    /// False: see `heap_malloc_requested`.
    pub heap_stats_detailed: bool,
}

/// `mi_prof_stats_get`: false, and nothing is written, unless size and version belong together.
///
/// # Safety
/// `stats` is null or points to an `mi_prof_stats_t` of the size in its first field.
pub unsafe fn prof_stats_get(stats: *mut ProfStats) -> bool {
    if stats.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let (size, version) = unsafe { ((&raw const (*stats).size).read(), (&raw const (*stats).version).read()) };
    let expected = match version {
        1 => offset_of!(ProfStats, dropped_samples),
        2 => offset_of!(ProfStats, heap_committed),
        3 => size_of::<ProfStats>(),
        _ => return false,
    };
    if size != expected {
        return false;
    }
    let all = gather(size, version);
    // SAFETY: as many bytes as the caller has.
    unsafe { stats.cast::<u8>().copy_from_nonoverlapping((&raw const all).cast(), size) };
    true
}

/// `mi_prof_debug_stats`: three of them. Null is allowed for each.
///
/// # Safety
/// Each pointer is null or can be written to.
pub unsafe fn prof_debug_stats(records: *mut usize, bytes: *mut usize, unique_stacks: *mut usize) {
    let stats = gather(size_of::<ProfStats>(), 3);
    for (place, value) in
        [(records, stats.live_samples), (bytes, stats.arena_committed), (unique_stacks, stats.unique_stacks)]
    {
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(value) };
        }
    }
}

fn gather(size: usize, version: c_int) -> ProfStats {
    // SAFETY: zero is a value of all of its fields.
    let mut stats: ProfStats = unsafe { MaybeUninit::zeroed().assume_init() };
    (stats.size, stats.version, stats.accum) = (size, version, true);
    stats.sample_rate = interval::rate() as usize;
    stats.arena_committed = sampled::bytes_of_records();
    if let Some(held) = sampler::hold() {
        stats.enabled = true;
        for site in held.sites() {
            let (counts, size) = (site.counts(), site.block_size() as usize);
            stats.live_samples += counts.live as usize;
            stats.live_bytes += counts.live as usize * size;
            stats.accum_samples += counts.allocated as usize;
            stats.accum_bytes += counts.allocated as usize * size;
        }
        stats.unique_stacks = held.unique_stacks() as usize;
        stats.arena_committed += held.memory();
        stats.stack_table_overflows = held.overflows() as usize;
        stats.dropped_samples = held.dropped() as usize;
    }
    if version >= 3 {
        add_heap(&mut stats);
    }
    stats
}

fn add_heap(stats: &mut ProfStats) {
    // SAFETY: zero is a value of all of its fields; size and version are set.
    let heap = unsafe {
        let mut heap: Stats = MaybeUninit::zeroed().assume_init();
        (heap.size, heap.version) = (size_of::<Stats>(), STAT_VERSION);
        get(&raw mut heap);
        heap
    };
    let bytes = |value: i64| value.max(0) as usize;
    stats.heap_committed = bytes(heap.committed.current);
    stats.heap_reserved = bytes(heap.reserved.current);
    stats.heap_pages = bytes(heap.pages.current);
    stats.heap_count = bytes(heap.heaps.current);
    stats.theap_count = bytes(heap.theaps.current);
    stats.heap_purged = bytes(heap.purged.total);
}
