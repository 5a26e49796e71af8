//! What the heap holds: one record for each run of the arena, in memory of our own.
//!
//! All is looked at first, run by run, and told afterwards with nothing locked: so who is told may be slow, and what is told has one length. The
//! records take 100 to 700 bytes for each 64 KiB of heap, for as long as the inventory lives.

use super::run::{NONE, Run, What, fill};
use crate::arena::{self, Pool, SLICE, address_of};
use crate::heap::zone::inspect::{self, Content, Identity, Place};
use crate::heap::zone::{Zone, subprocess};
use crate::heap::{self, holes};
use crate::os;

/// Runs that are looked at before sweeps get their turn.
const AT_A_TIME: usize = 64;
/// Bytes of a piece of memory for records.
const PIECE: usize = 1 << 20;
/// A piece of memory with records.
#[repr(C)]
struct Piece {
    next: *mut Piece,
    /// Bytes in use, with this head.
    used: usize,
}

/// A heap that the program has made, or the main one.
#[derive(Clone, Copy)]
pub(super) struct Heap {
    zone: *mut Zone,
    pub(super) is: Identity,
    first: *const Run,
    last: *mut Run,
    next: u32,
    pub(super) pages: usize,
}

/// Numbers that the heap has all the time, as they were when the look ended.
pub(super) struct Inventory {
    first: *mut Piece,
    last: *mut Piece,
    /// Found by the address of the zone. In memory of its own.
    heaps: *mut Heap,
    room: usize,
    pub(super) heap_count: usize,
    first_heap: u32,
    last_heap: u32,
    pub(super) runs: usize,
    pub(super) pages: usize,
    pub(super) used: u64,
    pub(super) used_bytes: u64,
    /// Runs that could not be looked at or kept.
    pub(super) skipped: usize,
    /// Caches of threads that could not be looked at.
    pub(super) busy: usize,
    /// When the look began and ended, in nanoseconds.
    pub(super) began: u64,
    pub(super) ended: u64,
}

/// What of the runs is kept.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) bitmaps: bool,
    /// Of the pages that were given back, which; and sites of samples.
    pub(super) details: bool,
}

impl Inventory {
    /// Look at everything. `None`: there is no memory for that. With no lock held.
    pub(super) fn take(wanted: Wanted) -> Option<Inventory> {
        let began = os::now();
        let mut heaps = 0;
        inspect::each_in_use(|_| heaps += 1);
        let mut inventory = Inventory::for_heaps(heaps, began)?;
        inspect::each_in_use(|zone| {
            inventory.find(zone);
        });
        if arena::is_busy_here() {
            (inventory.skipped, inventory.busy) = (1, 1);
        }
        let mut next = Some(0);
        while let Some(from) = next {
            // No page is claimed meanwhile, as a claim looks like live blocks.
            let _sweeper = if heap::holds_locks() { None } else { holes::sweeper() };
            next = inventory.some_runs(from, wanted)?;
        }
        inspect::each_in_use(|zone| {
            inventory.find(zone);
        });
        inventory.ended = os::now();
        Some(inventory)
    }

    fn for_heaps(heaps: usize, began: u64) -> Option<Inventory> {
        let room = (2 * heaps + 64).next_power_of_two();
        let table = os::map((room * size_of::<Heap>()).next_multiple_of(os::PAGE));
        (!table.is_null()).then(|| Inventory {
            first: core::ptr::null_mut(),
            last: core::ptr::null_mut(),
            heaps: table.cast(),
            room,
            heap_count: 0,
            first_heap: NONE,
            last_heap: NONE,
            runs: 0,
            pages: 0,
            used: 0,
            used_bytes: 0,
            skipped: 0,
            busy: 0,
            began,
            ended: began,
        })
    }

    /// Look at some runs. Returns where to go on; an outer `None` if there is no memory.
    fn some_runs(&mut self, mut from: usize, wanted: Wanted) -> Option<Option<usize>> {
        for _ in 0..AT_A_TIME {
            let mut kept = true;
            let next = inspect::inspect(from, |place, content| kept &= self.add(place, content, wanted).is_some());
            match next {
                _ if !kept => return None,
                None => return Some(None),
                Some(next) => from = next,
            }
        }
        Some(Some(from))
    }

    /// Keep a run. `None`: there is no memory.
    fn add(&mut self, place: Place, content: Content<'_>, wanted: Wanted) -> Option<()> {
        let bitmap = |words: u32| if wanted.bitmaps { words } else { 0 };
        match content {
            Content::Free(residence, purging) => self.keep(Run::of_free(place, residence, purging)).map(drop),
            Content::Transit => self.keep(Run::of(place, What::Transit)).map(drop),
            Content::Foreign => self.keep(Run::of(place, What::Foreign)).map(drop),
            Content::Busy => {
                self.skipped += 1;
                self.busy = 1;
                self.keep(Run::of(place, What::Busy)).map(drop)
            }
            Content::Span(block) => {
                let run = Run::of_block(place, &block);
                let sites = if wanted.details { run.sites } else { 0 };
                let kept = self.keep(Run { words: bitmap(run.words), sites, ..run })?;
                // SAFETY: the record is ours, with room for what it says.
                unsafe { fill(kept, &[1], &[], |tell| tell(block.span.site)) };
                self.assign(kept, block.zone);
                Some(())
            }
            Content::Slab(slab) => {
                let run = Run::of_slab(place, slab, What::Slab);
                let places = if wanted.details && run.returned != 0 { place.slices } else { 0 };
                let kept = self.keep(Run { words: bitmap(run.words), places: places as u32, ..run })?;
                // SAFETY: as above.
                unsafe { fill(kept, &slab.live, &slab.returned, |_| ()) };
                self.assign(kept, slab.zone);
                Some(())
            }
            Content::Sampled(slab, sites) => {
                let run = Run::of_slab(place, slab, What::Sampled);
                let count = if wanted.details { run.used } else { 0 };
                let kept = self.keep(Run { words: bitmap(run.words), sites: count, samples: run.used, ..run })?;
                // SAFETY: as above.
                unsafe { fill(kept, &slab.live, &[], sites) };
                self.assign(kept, slab.zone);
                Some(())
            }
        }
    }

    /// Room for a record and what is behind it.
    fn keep(&mut self, run: Run) -> Option<*mut Run> {
        let whole = run.whole();
        debug_assert!(whole <= PIECE - size_of::<Piece>());
        // SAFETY: pieces are ours; a piece has as many bytes as it says.
        unsafe {
            if self.last.is_null() || (*self.last).used + whole > PIECE {
                let piece = os::map(PIECE).cast::<Piece>();
                if piece.is_null() {
                    return None;
                }
                (*piece).used = size_of::<Piece>();
                if self.last.is_null() {
                    self.first = piece
                } else {
                    (*self.last).next = piece
                }
                self.last = piece;
            }
            let kept = self.last.cast::<u8>().add((*self.last).used).cast::<Run>();
            kept.write(run);
            (*self.last).used += whole;
            self.runs += 1;
            Some(kept)
        }
    }

    /// A run with blocks is of the heap of this zone.
    fn assign(&mut self, run: *mut Run, zone: *mut Zone) {
        let Some(number) = self.find(zone) else {
            self.skipped += 1; // more heaps were made meanwhile than there is room for
            return;
        };
        // SAFETY: the number is of an entry; runs are ours.
        unsafe {
            let heap = &mut *self.heaps.add(number as usize);
            (*run).heap = number;
            if heap.last.is_null() {
                heap.first = run
            } else {
                (*heap.last).next = run
            }
            heap.last = run;
            heap.pages += 1;
            self.pages += 1;
            self.used += (*run).used as u64;
            self.used_bytes += (*run).used_bytes();
        }
    }

    /// The entry of a zone, made if there is none. `None`: the table is full.
    fn find(&mut self, zone: *mut Zone) -> Option<u32> {
        let mut at = (zone as usize >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        loop {
            at &= self.room - 1;
            // SAFETY: the table has this many entries; null means an unused one.
            let heap = unsafe { &mut *self.heaps.add(at) };
            if heap.zone == zone {
                return Some(at as u32);
            }
            if heap.zone.is_null() {
                break;
            }
            at += 1;
        }
        if self.heap_count * 4 >= self.room * 3 {
            return None;
        }
        let (first, last) = (core::ptr::null(), core::ptr::null_mut());
        let new = Heap { zone, is: inspect::identity(zone), first, last, next: NONE, pages: 0 };
        // SAFETY: as above.
        unsafe {
            *self.heaps.add(at) = new;
            match self.last_heap {
                NONE => self.first_heap = at as u32,
                last => (*self.heaps.add(last as usize)).next = at as u32,
            }
        }
        (self.last_heap, self.heap_count) = (at as u32, self.heap_count + 1);
        Some(at as u32)
    }

    /// All runs, in the order of their indices; one that has blocks of several heaps comes once for each.
    pub(super) fn all(&self) -> Runs<'_> {
        Runs { piece: self.first, offset: size_of::<Piece>(), of: core::marker::PhantomData }
    }

    /// The heaps, the main one first.
    pub(super) fn heaps(&self) -> impl Iterator<Item = &Heap> {
        let mut at = self.first_heap;
        core::iter::from_fn(move || {
            // SAFETY: the number is of an entry.
            let heap = (at != NONE).then(|| unsafe { &*self.heaps.add(at as usize) })?;
            at = heap.next;
            Some(heap)
        })
    }

    /// The heap that a run with blocks is of.
    pub(super) fn heap_of(&self, run: &Run) -> Option<&Heap> {
        // SAFETY: the number is of an entry.
        (run.heap != NONE).then(|| unsafe { &*self.heaps.add(run.heap as usize) })
    }

    /// Everything was seen.
    pub(super) fn is_complete(&self) -> bool {
        self.skipped == 0 && self.busy == 0
    }

    /// Parts of the address space that belong together: see [`Part`].
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut runs = self.all();
        core::iter::from_fn(move || {
            let mut first = runs.clone();
            let head = first.find(|run| run.what != What::Foreign)?;
            runs = first.clone();
            let mut part =
                Part { runs: first, head, pool: head.pool, start: head.index, end: head.index + head.slices };
            let mut ahead = runs.clone();
            while let Some(run) = ahead.next().filter(|run| run.what != What::Foreign && run.pool == head.pool) {
                part.end = part.end.max(run.index + run.slices);
                runs = ahead.clone();
            }
            Some(part)
        })
    }
}

impl Heap {
    /// Its runs with blocks, in the order of their addresses.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            // SAFETY: runs live as long as the inventory that lends this heap.
            let run = (!at.is_null()).then(|| unsafe { &*at })?;
            at = run.next;
            Some(run)
        })
    }

    /// Of this thread's sub-process.
    pub(super) fn is_current(&self) -> bool {
        self.is.process == subprocess::current_number()
    }
}

/// Slices that follow one another and are of one pool: of an arena, or of the window between arenas and other people's memory.
pub(super) struct Part<'a> {
    head: &'a Run,
    runs: Runs<'a>,
    pub(super) pool: u16,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'a> Part<'a> {
    /// Its runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a Run> {
        let (pool, end) = (self.pool, self.end);
        core::iter::once(self.head)
            .chain(self.runs.clone())
            .take_while(move |run| run.what != What::Foreign && run.pool == pool && run.index < end)
    }

    pub(super) fn base(&self) -> usize {
        address_of(self.start)
    }

    pub(super) fn slices(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.slices() * SLICE
    }

    /// The arena that it is of; `None`: the common window.
    pub(super) fn arena(&self) -> Option<&'static arena::Arena> {
        (self.pool != Pool::COMMON.word()).then(|| arena::numbered(self.pool as usize)).flatten()
    }
}

/// See [`Inventory::all`].
#[derive(Clone)]
pub(super) struct Runs<'a> {
    piece: *const Piece,
    offset: usize,
    of: core::marker::PhantomData<&'a Inventory>,
}

impl<'a> Iterator for Runs<'a> {
    type Item = &'a Run;

    fn next(&mut self) -> Option<&'a Run> {
        // SAFETY: pieces live as long as the inventory, and have records up to where they are used.
        unsafe {
            while !self.piece.is_null() && self.offset >= (*self.piece).used {
                (self.piece, self.offset) = ((*self.piece).next, size_of::<Piece>());
            }
            let run = (!self.piece.is_null()).then(|| &*self.piece.cast::<u8>().add(self.offset).cast::<Run>())?;
            self.offset += run.whole();
            Some(run)
        }
    }
}

impl Drop for Inventory {
    fn drop(&mut self) {
        os::unmap(self.heaps.cast(), (self.room * size_of::<Heap>()).next_multiple_of(os::PAGE));
        let mut piece = self.first;
        while !piece.is_null() {
            // SAFETY: pieces are ours.
            let next = unsafe { (*piece).next };
            os::unmap(piece.cast(), PIECE);
            piece = next;
        }
    }
}
