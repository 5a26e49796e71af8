//! Blocks of sampled allocations.
//!
//! A sampled allocation pops an ordinary block like any other, **parks** it, and gets a block of the same class from a
//! *sampled slab* instead, where every block has a record. The class map sends the free of such a block to the slow path,
//! so frees of ordinary blocks pay nothing. Freeing it frees the parked block in the ordinary way: stacks evolve exactly
//! as without sampling, and exact counts need no special case. The price is one untouched block per live sample, and its record.

mod slabs;

#[cfg(test)]
pub(super) use slabs::count as count_slabs;
pub(crate) use slabs::{bytes as bytes_of_records, trim};
pub(super) use slabs::{each_slab, is_busy_here, repair};

use super::classes::class_size;
use super::events::{Ended, Hooks, Sample};
use super::misuse::{self, Misuse};
use super::{Heap, position, release, span, zone};
use crate::arena::{self, Kind, Pool, address_of, class_entry, index_of, slice};
use crate::os;

use slabs::record;

const HOOKS: &Hooks = &crate::HOOKS;

/// What is known about one sampled block that is live.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Record {
    /// The ordinary block to free with it; null for spans that are not guarded blocks of a class.
    pub(super) parked: *mut u8,
    /// Bytes that the program asked for.
    pub(crate) requested: usize,
    /// Where it was allocated, as the layer above counts sites; 0 = no sample.
    pub(crate) site: u32,
    /// The epoch of the sampling run.
    pub(crate) epoch: u32,
    /// When it was allocated, by the processor's counter. A block that `realloc` has put in its place has kept this.
    pub(crate) birth: u64,
    /// What the layer above knows it by, and no other.
    pub(crate) stamp: u64,
    /// Where the thread stood that allocated it: see [`position`]; [`MOVED`] = it was moved.
    position: u64,
}

/// The block's contents are in another block now, and it is about to be freed.
const MOVED: u64 = position::NOWHERE;

/// What a sample costs besides the block that is parked.
const _: () = assert!(size_of::<Record>() == 48);

impl Record {
    /// Of a span that nobody knows anything about.
    pub(super) const NONE: Self =
        Record { parked: core::ptr::null_mut(), requested: 0, site: 0, epoch: 0, birth: 0, stamp: 0, position: 0 };

    /// Of a block that this thread has just allocated from `class` (0: a span), as `parked` or without any.
    pub(super) fn parking(parked: *mut u8, class: usize, requested: usize, sample: Sample, epoch: u32) -> Self {
        let Sample { site, stamp } = sample;
        if site == 0 {
            return Record { parked, requested, epoch, ..Record::NONE };
        }
        Record { parked, requested, site, epoch, birth: os::cycles(), stamp, position: position::here(class) }
    }

    /// How its block ends that this thread frees.
    fn end(&self, class: usize) -> Ended {
        if self.position == MOVED {
            Ended::Moved
        } else if position::is_here(self.position, class) {
            Ended::Temporary
        } else {
            Ended::Freed
        }
    }

    /// The block that is parked for this one; null: none.
    pub(super) fn parked(&self) -> *mut u8 {
        self.parked
    }
}

/// Exchange the block of a drawn allocation for a sampled one. Falls back to the block itself: the sample is dropped, and that is told.
pub(super) unsafe fn exchange(heap: *mut Heap, class: usize, requested: usize, parked: *mut u8, epoch: u32) -> *mut u8 {
    // A signal handler has interrupted this thread in here; or the block is to be in an arena, and sampled slabs are in none.
    if slabs::is_busy_here() || zone::pool_of(heap) != Pool::COMMON {
        (HOOKS.dropped)();
        return parked;
    }
    let Some((index, bit)) = slabs::take(class) else {
        (HOOKS.dropped)();
        return parked;
    };
    // SAFETY: no lock is held; the block is ours.
    unsafe {
        let sample = (HOOKS.sampled)(heap, class_size(class), requested, epoch);
        if sample.site == 0 {
            slabs::give_back(index, bit);
            return parked;
        }
        zone::note_sample(heap);
        record(index, bit).write(Record::parking(parked, class, requested, sample, epoch));
        (address_of(index) + bit * class_size(class)) as *mut u8
    }
}

/// Free a sampled block. Returns the parked block, which is to be freed in the ordinary way; null: it was no block, and that is noted.
pub(super) unsafe fn release(index: usize, block: *mut u8) -> *mut u8 {
    // SAFETY: the slab is a sampled one and is never given back.
    unsafe {
        let Some(bit) = bit_of(index, block) else {
            misuse::note(Misuse::Invalid, block as usize);
            return core::ptr::null_mut();
        };
        let record = record(index, bit);
        let Record { parked, site, .. } = *record;
        if site == 0 {
            misuse::note(Misuse::Double, block as usize);
            return core::ptr::null_mut();
        }
        forget(record, (*slice(index)).class as usize);
        // So that who looks at all records never takes this one for that of the block.
        (&raw mut (*record).parked).write_volatile(core::ptr::null_mut());
        slabs::give_back(index, bit);
        parked
    }
}

/// The block of this record, of `class` (0: a span), is freed.
pub(super) unsafe fn forget(record: *mut Record, class: usize) {
    // SAFETY: the caller frees the block: the record is ours.
    unsafe {
        (HOOKS.released)(&*record, (*record).end(class));
        (*record).site = 0;
    }
}

/// Whether there is a live sampled block at this address.
pub(super) unsafe fn is_live(index: usize, block: *mut u8) -> bool {
    // SAFETY: as in `release`.
    unsafe { record_of(index, block).is_some_and(|record| (*record).site != 0) }
}

/// The record of a sampled block; `None` when there is none at this address.
pub(super) unsafe fn record_of(index: usize, block: *mut u8) -> Option<*mut Record> {
    // SAFETY: as in `release`.
    unsafe { bit_of(index, block).map(|bit| record(index, bit)) }
}

/// The contents of a special block are in another block now: it was not freed by the program, and the other is as old. With no lock held;
/// both are the caller's.
#[cold]
#[inline(never)]
pub(crate) unsafe fn moved(block: *mut u8, to: *mut u8) {
    // SAFETY: the caller holds both.
    unsafe {
        let Some(from) = record_at(block) else { return };
        if let Some(to) = record_at(to) {
            is_as_old(to, Some((*from).birth));
        }
        (*from).position = MOVED;
    }
}

/// A span has become larger where it is: as a block of its old size it has come to its end. Returns when it was allocated, if that is
/// known.
pub(super) unsafe fn outgrown(record: *mut Record) -> Option<u64> {
    // SAFETY: the caller holds the block.
    unsafe {
        if (*record).site == 0 {
            return None;
        }
        (*record).position = MOVED;
        forget(record, 0);
        Some((*record).birth)
    }
}

/// The block of this record has taken the place of one that was allocated then.
pub(super) unsafe fn is_as_old(record: *mut Record, birth: Option<u64>) {
    // SAFETY: the caller holds the block.
    unsafe { birth.into_iter().for_each(|birth| (*record).birth = birth) }
}

/// The record of a live sampled block of any kind.
unsafe fn record_at(block: *mut u8) -> Option<*mut Record> {
    let index = index_of(block as usize);
    // SAFETY: H2: the caller holds the block.
    unsafe {
        if index >= arena::INDICES || *class_entry(index) != 0 {
            return None;
        }
        let record = match release::run_of(index)? {
            (Kind::Span, first) => span::record(first),
            (Kind::Sampled, first) => record_of(first, block)?,
            _ => return None,
        };
        ((*record).site != 0).then_some(record)
    }
}

/// Tell that a record's block has a new requested size.
pub(super) unsafe fn resize(record: *mut Record, requested: usize) {
    // SAFETY: the caller holds the block.
    unsafe {
        if (*record).site != 0 {
            (HOOKS.resized)(&*record, requested);
            (*record).requested = requested;
        }
    }
}

unsafe fn bit_of(index: usize, block: *mut u8) -> Option<usize> {
    // SAFETY: geometry of a slab with blocks out does not change.
    let slab = unsafe { &*slice(index) };
    let offset = block as usize - address_of(index);
    let bit = ((offset as u64 * slab.reciprocal as u64) >> 32) as usize;
    (bit * slab.block_size as usize == offset && bit < slab.blocks as usize).then_some(bit)
}

/// Every live sample with the block that is parked for it: index, bit, parked block. Records may come and go meanwhile.
pub(super) fn each(mut visit: impl FnMut(usize, usize, *mut u8)) {
    each_slab(|index, _| each_in(index, |bit, parked| visit(index, bit, parked)));
}

/// Every live sample of a slab, if it still is one of sampled blocks: bit, parked block.
pub(super) fn each_in(index: usize, mut visit: impl FnMut(usize, *mut u8)) {
    slabs::while_there(index, |slab| {
        for bit in 0..slab.blocks as usize {
            // SAFETY: the slab has records. A single word of one is read.
            let parked = unsafe { (&raw const (*record(index, bit)).parked).read_volatile() };
            if !parked.is_null() {
                visit(bit, parked);
            }
        }
    });
}

/// Where a block of a sampled slab was allocated; 0 = it is free by now.
pub(super) fn site_in(index: usize, bit: usize) -> u32 {
    let site = slabs::while_there(index, |slab| {
        // SAFETY: the slab has records. A single word of one is read.
        (bit < slab.blocks as usize).then(|| unsafe { (&raw const (*record(index, bit)).site).read_volatile() })
    });
    site.flatten().unwrap_or(0)
}

/// The parked block of the sampled block that an address is in; null: there is none.
pub(super) fn parked_with(index: usize, address: *const u8) -> *mut u8 {
    let parked = slabs::while_there(index, |slab| {
        let bit = (address as usize - address_of(index)) / slab.block_size as usize;
        // SAFETY: as above.
        (bit < slab.blocks as usize).then(|| unsafe { (&raw const (*record(index, bit)).parked).read_volatile() })
    });
    parked.flatten().unwrap_or(core::ptr::null_mut())
}

/// Forget the sample of a block that ceases to exist with its parked block.
pub(super) unsafe fn drop_sample(index: usize, bit: usize) {
    // SAFETY: the block is the caller's.
    unsafe {
        let record = record(index, bit);
        if (*record).site != 0 {
            forget(record, (*slice(index)).class as usize);
            (&raw mut (*record).parked).write_volatile(core::ptr::null_mut());
            slabs::give_back(index, bit);
        }
    }
}
