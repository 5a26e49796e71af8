//! What is measured of the process every so often. Only what is there already or costs a few system calls: nothing walks the slabs.

use crate::heap::statistics;
use crate::{arena, os};

/// In bytes, but for the blocks; in the order in which the file has them. New ones are added at the end.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tick {
    /// In memory, as the kernel counts it.
    pub(super) resident: u64,
    /// The most that ever was.
    pub(super) peak_resident: u64,
    /// Of the allocator's memory, what was handed out since it came from the kernel or was given back to it.
    pub(super) committed: u64,
    /// Usable bytes of blocks that the program holds, and these blocks: counted, not estimated.
    pub(super) live: u64,
    pub(super) live_blocks: u64,
    /// Usable bytes that were ever allocated.
    pub(super) allocated: u64,
    /// Given back to the kernel and not handed out again.
    pub(super) purged: u64,
    /// Ever given back.
    pub(super) purged_total: u64,
}

impl Tick {
    /// Now. Callers hold no lock, and have not interrupted anybody who does.
    pub(super) fn take() -> Tick {
        let (resident, peak_resident) = os::resident();
        let counts = arena::counts();
        let totals = statistics::totals();
        Tick {
            resident,
            peak_resident,
            committed: counts.committed,
            live: totals.allocated_bytes.saturating_sub(totals.freed_bytes),
            live_blocks: totals.allocated_blocks.saturating_sub(totals.freed_blocks),
            allocated: totals.allocated_bytes,
            purged: arena::purged_now(),
            purged_total: counts.purged,
        }
    }

    pub(super) fn numbers(&self) -> [u64; 8] {
        let Tick { resident, peak_resident, committed, live, live_blocks, allocated, purged, purged_total } = *self;
        [resident, peak_resident, committed, live, live_blocks, allocated, purged, purged_total]
    }
}
