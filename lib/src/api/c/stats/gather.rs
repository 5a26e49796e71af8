//! From the heap's exact counts per class to the fields of [`Stats`].

use super::layout::{BINS, Count, Stats};
use crate::arena;
use crate::heap::classes::{CLASSES, class_size};
use crate::heap::guarded;
use crate::heap::statistics::Totals;
use crate::heap::zone::Scope;
use crate::reclaim;

/// The bin of blocks too large for slabs.
const HUGE: usize = BINS - 1;

/// Bins of 1 to 8 words, then four per doubling.
pub(super) fn bin_size(bin: usize) -> usize {
    const WORD: usize = 8;
    match bin {
        0..=8 => bin * WORD,
        9..HUGE => {
            let (doubling, step) = ((bin - 9) / 4, (bin - 9) % 4);
            ((8 + 2 * (step + 1)) * WORD) << doubling
        }
        _ => 0,
    }
}

/// The least bin that has blocks of this size.
fn bin_of(size: usize) -> usize {
    (1..HUGE).find(|&bin| size <= bin_size(bin)).unwrap_or(HUGE)
}

/// Blocks of one class over all threads: ever allocated, and live.
pub(super) fn blocks(scope: Scope, class: usize) -> Blocks {
    let (allocated, freed) = scope.of_class(class);
    Blocks { allocated, live: allocated.saturating_sub(freed) }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Blocks {
    pub(super) allocated: u64,
    pub(super) live: u64,
}

/// Blocks in spans, and their bytes.
pub(super) fn spans(scope: Scope) -> (Blocks, Blocks) {
    let Totals { allocated_blocks, allocated_bytes, freed_blocks, freed_bytes } = scope.spans();
    let blocks = |allocated: u64, freed: u64| Blocks { allocated, live: allocated.saturating_sub(freed) };
    (blocks(allocated_blocks, freed_blocks), blocks(allocated_bytes, freed_bytes))
}

pub(super) fn gather(scope: Scope) -> Stats {
    let mut stats = Stats::zero();
    for class in 1..CLASSES {
        let Blocks { allocated, live } = blocks(scope, class);
        let size = class_size(class) as u64;
        let slabs = scope.slabs(class) as i64;
        stats.page_bins[bin_of(size as usize)].current += slabs;
        stats.pages.current += slabs;
        add(&mut stats.malloc_bins[bin_of(size as usize)], allocated, live);
        add(&mut stats.malloc_normal, allocated * size, live * size);
        stats.malloc_normal_count.total += allocated as i64;
    }
    let (blocks, bytes) = spans(scope);
    add(&mut stats.malloc_bins[HUGE], blocks.allocated, blocks.live);
    add(&mut stats.malloc_huge, bytes.allocated, bytes.live);
    stats.malloc_huge_count.total = blocks.allocated as i64;
    stats.malloc_guarded_count.total = guarded::count() as i64;
    stats.page_bins[HUGE].current += blocks.live as i64;
    stats.pages.current += blocks.live as i64;
    let (made, now) = scope.zones_made();
    add(&mut stats.heaps, made, now);
    stats.theaps.current = scope.theaps() as i64;
    stats.threads.current = scope.threads() as i64;
    if matches!(scope, Scope::Process) {
        add_memory(&mut stats);
    }
    stats
}

/// Address space and what was returned of it; heaps and sub-processes have none of their own.
fn add_memory(stats: &mut Stats) {
    let (arena, holes) = (arena::counts(), reclaim::holes_stats());
    let committed = arena.committed.saturating_sub(holes.purged_bytes as u64);
    add(&mut stats.reserved, arena.reserved, arena.reserved);
    add(&mut stats.committed, committed + arena.purged, committed);
    stats.purged.total = arena.purged as i64;
    stats.mmap_calls.total = arena.mmap_calls as i64;
    stats.purge_calls.total = arena.purge_calls as i64;
    stats.arena_count.total = arena.arenas as i64;
    stats.pages_retire.total = holes.pages_freed as i64;
}

fn add(count: &mut Count, total: u64, current: u64) {
    count.total += total as i64;
    count.current += current as i64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_of_the_interface() {
        let words: std::vec::Vec<_> = (0..=HUGE).map(|bin| bin_size(bin) / 8).collect();
        assert_eq!(words[..17], [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]);
        assert_eq!((words[72], words[73], bin_size(1000)), (524_288, 0, 0));
        assert!((1..72).all(|bin| words[bin] < words[bin + 1]));
        for class in 1..CLASSES {
            let (bin, size) = (bin_of(class_size(class)), class_size(class));
            assert!(bin < HUGE && bin_size(bin) >= size && bin_size(bin - 1) < size, "{size}");
        }
    }
}
