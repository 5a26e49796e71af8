//! The slabs and spans of a zone: one list through their metadata.

use super::{Heap, Zone, of_heap};
use crate::arena::{Kind, slice};
use crate::heap::tell::Tell;
use crate::heap::{emergency, home, slab, span};
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Next and previous member, 0 = none. They lie where a sampled slab has its records.
unsafe fn links(index: usize) -> *mut [u32; 2] {
    // SAFETY: only an address is formed.
    unsafe { (&raw mut (*slice(index)).records).cast() }
}

/// The slabs and spans of a zone that nobody else uses.
pub(super) unsafe fn all(zone: *mut Zone) -> impl Iterator<Item = usize> {
    // SAFETY: as the caller says.
    let mut at = unsafe { (*zone).members.load(Relaxed) as usize };
    core::iter::from_fn(move || {
        let index = at;
        // SAFETY: as above.
        (index != 0).then(|| at = unsafe { (*links(index))[0] as usize });
        (index != 0).then_some(index)
    })
}

/// The slabs are locked.
pub(super) unsafe fn link(zone: *mut Zone, index: usize) {
    // SAFETY: Z4: the lists are ours.
    unsafe {
        let first = (*zone).members.load(Relaxed);
        *links(index) = [first, 0];
        if first != 0 {
            (*links(first as usize))[1] = index as u32;
        }
        (*zone).members.store(index as u32, Relaxed);
    }
}

/// The slabs are locked.
pub(super) unsafe fn unlink(zone: *mut Zone, index: usize) {
    // SAFETY: Z4: the lists are ours.
    unsafe {
        let [next, previous] = *links(index);
        if previous != 0 {
            (*links(previous as usize))[0] = next;
        } else {
            (*zone).members.store(next, Relaxed);
        }
        if next != 0 {
            (*links(next as usize))[1] = previous;
        }
    }
}

/// A new slab for a home, whose slabs are locked.
pub(crate) unsafe fn create_slab(home: *mut Heap, class: usize) -> Option<usize> {
    let Some(zone) = of_heap(home) else { return slab::create(home, class, Kind::Slab) };
    let index = slab::create(home, class, Kind::Zone)?;
    // SAFETY: the slabs are locked.
    unsafe { link(zone, index) };
    Some(index)
}

/// A wholly free slab leaves a home, whose slabs are locked. False: that is not a zone's.
pub(crate) unsafe fn forget_slab(home: *mut Heap, index: usize) -> bool {
    // SAFETY: the slabs are locked.
    of_heap(home).map(|zone| unsafe { unlink(zone, index) }).is_some()
}

/// A span in transit becomes a block of this thread's heap.
pub(crate) unsafe fn publish_span(heap: *mut Heap, index: usize) {
    // SAFETY: the run is the caller's.
    unsafe {
        let run = slice(index);
        let slices = (*run).length();
        (*run).owner.store(core::ptr::null_mut(), Relaxed);
        let zone = of_heap(heap).and_then(|zone| Some((zone, home::lock((*zone).home(), core::ptr::null_mut())?)));
        // A signal handler that has interrupted this thread in those very slabs gets a span that is in no zone.
        let Some((zone, _locked)) = zone else { return (*run).set_run(Kind::Span, slices) };
        (*run).owner.store((*zone).home().cast(), Relaxed);
        link(zone, index);
        count(index, &(*zone).spans.allocated, &(*zone).spans.allocated_bytes);
        (*run).set_run(Kind::Span, slices);
    }
}

/// A span is to be freed: take it out of its zone, if it is in one. False: a signal handler has interrupted this thread in those slabs,
/// and the free is put off.
pub(crate) unsafe fn withdraw_span(index: usize, block: *mut u8, tell: Tell) -> bool {
    // SAFETY: the caller frees the block: it stays a span meanwhile, but its zone may change.
    unsafe {
        loop {
            let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
            if home.is_null() {
                return true;
            }
            let Some(_locked) = home::lock(home, core::ptr::null_mut()) else {
                emergency::defer(block, tell);
                return false;
            };
            if !core::ptr::eq((*slice(index)).owner.load(Relaxed), home.cast()) {
                continue;
            }
            if let (Some(zone), Kind::Span) = (of_heap(home), (*slice(index)).kind()) {
                unlink(zone, index);
                count(index, &(*zone).spans.freed, &(*zone).spans.freed_bytes);
                (*slice(index)).owner.store(core::ptr::null_mut(), Relaxed);
            }
            return true;
        }
    }
}

/// A span of a zone has another length, in bytes.
pub(crate) unsafe fn span_resized(index: usize, before: usize, after: usize) {
    // SAFETY: the caller holds the block.
    unsafe {
        let home = (*slice(index)).owner.load(Acquire).cast::<Heap>();
        if home.is_null() {
            return;
        }
        if let (Some(zone), Some(_locked)) = (of_heap(home), home::lock(home, core::ptr::null_mut())) {
            let spans = &(*zone).spans;
            for (blocks, bytes, by) in
                [(&spans.freed, &spans.freed_bytes, before), (&spans.allocated, &spans.allocated_bytes, after)]
            {
                blocks.fetch_add(1, Relaxed);
                bytes.fetch_add(by, Relaxed);
            }
        }
    }
}

/// Count a span, unless it stands for a block of a slab, which is counted already.
unsafe fn count(index: usize, blocks: &AtomicUsize, bytes: &AtomicUsize) {
    // SAFETY: the caller's span.
    unsafe {
        if (*span::record(index)).parked.is_null() {
            blocks.fetch_add(1, Relaxed);
            bytes.fetch_add(span::counted(index), Relaxed);
        }
    }
}
