//! Exact counts of a zone. Most of them are stack positions (see [`magazine`](crate::heap::magazine)); the rest is counted where a lock
//! is held anyway.

use super::guest::of_zone;
use super::subprocess::{self, Subprocess};
use super::{Heap, REGISTRY, Zone, all, is_main, main};
use crate::heap::home;
use crate::heap::statistics::{self, Totals};
use core::sync::atomic::Ordering::*;

/// Run with nothing moving between zones. `read` is told whether it may wait for locks of heaps: not in a signal handler that has
/// interrupted this thread where it holds one, as whoever has another may wait for that. Nor is the move then waited for.
pub(crate) fn at_rest<R>(read: impl FnOnce(bool) -> R) -> R {
    let waits = !crate::heap::holds_locks();
    if waits {
        REGISTRY.lock();
    } else if !REGISTRY.try_lock() {
        return read(false);
    }
    let result = read(waits);
    REGISTRY.unlock();
    result
}

/// Allocations and frees of a class that no stack counts, over all zones.
pub(crate) fn outside_stacks(class: usize) -> (u64, u64) {
    let mut sum = of_zone_outside(main(), class);
    for zone in all() {
        let (allocated, freed) = of_zone_outside(zone, class);
        sum = (sum.0 + allocated, sum.1 + freed);
    }
    sum
}

fn of_zone_outside(zone: *mut Zone, class: usize) -> (u64, u64) {
    // SAFETY: Z3.
    unsafe { ((*zone).allocated[class].load(Relaxed), (*zone).freed[class].load(Relaxed)) }
}

/// Allocations and frees of a class in one zone.
fn of_class(zone: *mut Zone, class: usize, waits: bool) -> (u64, u64) {
    let mut sum = of_zone_outside(zone, class);
    let mut add = |heap: *mut Heap| {
        let (allocated, freed) = statistics::of_heap(heap, class, waits);
        sum = (sum.0 + allocated, sum.1 + freed);
    };
    if is_main(zone) {
        // SAFETY: constant.
        crate::heap::all().filter(|&heap| unsafe { !(*heap).guest }).for_each(&mut add);
    } else {
        of_zone(zone).for_each(&mut add);
    }
    sum
}

/// Blocks above the slabs in one zone.
pub(crate) fn spans(zone: *mut Zone) -> Totals {
    if !is_main(zone) {
        return spans_of(zone);
    }
    let mut totals = statistics::spans();
    for zone in all() {
        let other = spans_of(zone);
        // What is counted in between may be in one and not yet in the other.
        totals.allocated_blocks = totals.allocated_blocks.saturating_sub(other.allocated_blocks);
        totals.allocated_bytes = totals.allocated_bytes.saturating_sub(other.allocated_bytes);
        totals.freed_blocks = totals.freed_blocks.saturating_sub(other.freed_blocks);
        totals.freed_bytes = totals.freed_bytes.saturating_sub(other.freed_bytes);
    }
    totals
}

fn spans_of(zone: *mut Zone) -> Totals {
    // SAFETY: Z3.
    let spans = unsafe { &(*zone).spans };
    Totals {
        freed_blocks: spans.freed.load(Relaxed) as u64,
        freed_bytes: spans.freed_bytes.load(Relaxed) as u64,
        allocated_blocks: spans.allocated.load(Relaxed) as u64,
        allocated_bytes: spans.allocated_bytes.load(Relaxed) as u64,
    }
}

/// What is counted together.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    /// All zones.
    Process,
    /// One of them.
    Zone(*mut Zone),
    /// Those of a sub-process.
    Subprocess(*mut Subprocess),
}

impl Scope {
    fn zones(self) -> impl Iterator<Item = *mut Zone> {
        let wanted = move |&zone: &*mut Zone| match self {
            Scope::Process => true,
            Scope::Zone(one) => core::ptr::eq(zone, one),
            Scope::Subprocess(process) => core::ptr::eq(subprocess::of(zone), process),
        };
        core::iter::once(main()).chain(all()).filter(wanted)
    }

    /// Allocations and frees of a class.
    pub(crate) fn of_class(self, class: usize) -> (u64, u64) {
        match self {
            Scope::Process => statistics::of_class(class),
            _ => at_rest(|waits| add(self.zones().map(|zone| of_class(zone, class, waits)))),
        }
    }

    /// Blocks above the slabs.
    pub(crate) fn spans(self) -> Totals {
        match self {
            Scope::Process => statistics::spans(),
            _ => at_rest(|_| {
                self.zones().map(spans).fold(Totals::default(), |sum, next| Totals {
                    allocated_blocks: sum.allocated_blocks + next.allocated_blocks,
                    allocated_bytes: sum.allocated_bytes + next.allocated_bytes,
                    freed_blocks: sum.freed_blocks + next.freed_blocks,
                    freed_bytes: sum.freed_bytes + next.freed_bytes,
                })
            }),
        }
    }

    /// Slabs of a class.
    pub(crate) fn slabs(self, class: usize) -> u64 {
        let mut slabs = 0;
        for zone in self.zones() {
            if is_main(zone) {
                home::each(|home| slabs += statistics::slabs_of(home, class));
            } else {
                // SAFETY: Z3.
                slabs += statistics::slabs_of(unsafe { (*zone).home() }, class);
            }
        }
        slabs
    }

    /// Zones: ever made, and now.
    pub(crate) fn zones_made(self) -> (u64, u64) {
        // SAFETY: Z3.
        let now = self.zones().filter(|&zone| unsafe { (*zone).is_in_use() }).count() as u64;
        match self {
            Scope::Process => (super::NUMBER.load(Relaxed) + 1, now),
            _ => (now, now),
        }
    }

    /// Threads that have a heap now.
    pub(crate) fn threads(self) -> u64 {
        let is_counted = |&heap: &*mut Heap| {
            // SAFETY: H3; a sub-process is only compared.
            unsafe {
                let process = (*heap).guests.subprocess.load(Relaxed);
                let process = if process.is_null() { subprocess::first() } else { process };
                let here = match self {
                    Scope::Process => true,
                    Scope::Zone(_) => false,
                    Scope::Subprocess(this) => core::ptr::eq(process, this),
                };
                here && !(*heap).guest && (*heap).live.load(Relaxed) != 0
            }
        };
        crate::heap::all().filter(is_counted).count() as u64
    }

    /// Heaps of threads: those in use now.
    pub(crate) fn theaps(self) -> u64 {
        // SAFETY: H3.
        let in_use = |&heap: &*mut Heap| unsafe { (*heap).live.load(Relaxed) != 0 };
        let wanted = |&heap: &*mut Heap| match self {
            Scope::Process => true,
            // SAFETY: H3.
            _ => self.zones().any(|zone| unsafe { (*heap).zone.load(Relaxed) == zone }),
        };
        crate::heap::all().filter(in_use).filter(wanted).count() as u64
    }
}

fn add(counts: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    counts.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
}
