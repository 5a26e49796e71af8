//! Which zone an address belongs to.

use super::{Heap, Zone, main};
use crate::arena::{INDICES, Kind, class_entry, index_of, is_ours, slice};
use crate::heap::{sampled, thread};
use core::sync::atomic::Ordering::*;

/// Kind and first slice of the slab or span that an address is in, as far as blocks are there. For any slice of it: only the first one
/// of a span tells. With a live block there, its run stays, and no other begins inside.
pub(super) fn run_with(address: *const u8) -> Option<(Kind, usize)> {
    let index = index_of(address as usize);
    if !is_ours(index) || !thread::is_initialised() {
        return None;
    }
    // SAFETY: described slices have metadata.
    let run = |index: usize| unsafe { (*slice(index)).run() };
    let first = (0..=index).rev().take_while(|&at| is_ours(at)).find(|&at| run(at).is_some())?;
    let (kind, length) = run(first)?;
    let blocks = matches!(kind, Kind::Slab | Kind::Zone | Kind::Span | Kind::Sampled);
    (blocks && index - first < length).then_some((kind, first))
}

/// The address is in memory that blocks are made of.
pub(crate) fn is_block(address: *const u8) -> bool {
    run_with(address).is_some()
}

/// The zone of the block at this address, or of the one that it is in; null: there is none.
pub(crate) fn zone_of(address: *const u8) -> *mut Zone {
    let Some((kind, first)) = run_with(address) else { return core::ptr::null_mut() };
    match kind {
        Kind::Zone | Kind::Span => zone_of_run(first),
        Kind::Sampled => match sampled::parked_with(first, address) {
            parked if parked.is_null() => core::ptr::null_mut(),
            parked => zone_of_run(index_of(parked as usize)),
        },
        _ => main(),
    }
}

pub(super) fn zone_of_run(index: usize) -> *mut Zone {
    // SAFETY: a slice of a slab or the first of a span; owners are never unmapped.
    unsafe {
        let owner = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if owner.is_null() { main() } else { (*owner).zone.load(Relaxed) }
    }
}

/// Whether the address is in a block of this zone.
pub(crate) fn contains(zone: *mut Zone, address: *const u8) -> bool {
    core::ptr::eq(zone_of(address), zone)
}

/// Whether plain allocations of this thread come from the zone of this live block; true of blocks that are not ours.
pub(crate) unsafe fn is_own(block: *const u8) -> bool {
    let index = index_of(block as usize);
    // SAFETY: the caller holds the block.
    unsafe {
        if index < INDICES && *class_entry(index) != 0 {
            return super::main_is_current();
        }
        let zone = (*thread::current()).zone.load(Relaxed);
        !is_block(block) || contains(if zone.is_null() { main() } else { zone }, block)
    }
}
