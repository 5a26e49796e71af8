//! What the heap holds: one record for each run of the arena, in memory of our own.
//!
//! All is looked at first and told afterwards with nothing locked: so who is told may be slow, and what is told has one length. The records take 100 to
//! 700 bytes for each 64 KiB of heap, for as long as the inventory lives.
//!
//! No two locks of heaps are held at a time, and none for longer than 40 µs, so nobody is held up by more than that; with many more busy threads than
//! processors a look takes longer, not they. (Tried and measured: all caches locked together, for each slab: 64 busy threads on 2 processors, 8000
//! slabs: 60 s, as some holder of a lock is always waiting for a processor.) The order is: caches, runs, slabs by their homes, and caches again every few milliseconds and at
//! the end. A block is live if its slab does not have it, and no cache had it before or after. So one that is live all the time is told, and one that is free all the
//! time is not, but for one that goes from its slab to a cache and back to the slab within those milliseconds.

use super::addresses::Addresses;
use super::run::{NONE, Run, What};
use crate::arena::{self, Pool, SLICE, address_of};
use crate::heap::zone::inspect::{self, Content, Identity, Place};
use crate::heap::zone::{Zone, subprocess};
use crate::heap::{self, look};
use crate::os;
use core::cell::Cell;

/// Bytes of a piece of memory for records.
const PIECE: usize = 1 << 20;
/// How often a slab is looked for at most. Each time it has changed hands as a whole: a heap was deleted.
const TRIES: u8 = 4;
/// Caches are looked at again after so many times as long as that takes, but not before so many nanoseconds.
const CACHES: u64 = 4;
const SOON: u64 = 2_000_000;
/// Slices that the window may grow by while it is looked at, and as many as it has.
const GROWTH: usize = 1 << 14;

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
    first: *mut Run,
    last: *mut Run,
    next: u32,
    pub(super) pages: usize,
}

/// Everything that was seen.
pub(super) struct Inventory {
    first: *mut Piece,
    last: *mut Piece,
    /// Found by the address of the zone. In memory of its own.
    heaps: *mut Heap,
    room: usize,
    /// For each slice that a run of the window may begin in, or be in, its slab; in memory of its own.
    slabs: *mut *mut Run,
    slices: core::ops::Range<usize>,
    /// Slabs that are still to be looked at.
    pending: *mut Run,
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

impl Inventory {
    /// Look at everything. `None`: there is no memory for that. With no lock held.
    pub(super) fn take() -> Option<Inventory> {
        let began = os::now();
        let mut heaps = 0;
        inspect::each_in_use(|_| heaps += 1);
        let mut inventory = Inventory::for_heaps(heaps, began)?;
        inspect::each_in_use(|zone| {
            inventory.find(zone);
        });
        // A signal handler that has interrupted this thread among locks must not wait for others: slabs are not looked at then.
        let busy = heap::holds_locks();
        let before = if busy { None } else { Some(Addresses::collect()?) };
        inventory.all_runs()?;
        if let Some(before) = before {
            inventory.look_at_slabs(before)?;
        }
        inventory.finish(busy);
        Some(inventory)
    }

    fn for_heaps(heaps: usize, began: u64) -> Option<Inventory> {
        let room = (2 * heaps + 64).next_power_of_two();
        // The window may grow meanwhile; what is not touched of this costs nothing.
        let used = arena::used();
        let slices = used.start..used.end + used.len() + GROWTH;
        let table = os::map((room * size_of::<Heap>()).next_multiple_of(os::PAGE));
        let slabs = os::map((slices.len() * size_of::<*mut Run>()).next_multiple_of(os::PAGE).max(os::PAGE));
        let inventory = Inventory {
            first: core::ptr::null_mut(),
            last: core::ptr::null_mut(),
            heaps: table.cast(),
            room,
            slabs: slabs.cast(),
            slices,
            pending: core::ptr::null_mut(),
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
        };
        (!table.is_null() && !slabs.is_null()).then_some(inventory)
    }

    /// Write down all runs; slabs as pending. `None`: there is no memory.
    fn all_runs(&mut self) -> Option<()> {
        let mut from = 0;
        loop {
            let mut kept = true;
            let next = inspect::inspect(from, |place, content| kept &= self.add(place, content).is_some());
            if !kept {
                return None;
            }
            let Some(next) = next else { return Some(()) };
            from = next;
        }
    }

    fn add(&mut self, place: Place, content: Content<'_>) -> Option<()> {
        match content {
            Content::Free(residence, purging) => self.keep(Run::of_free(place, residence, purging)).map(drop),
            Content::Transit => self.keep(Run::of(place, What::Transit)).map(drop),
            Content::Foreign => self.keep(Run::of(place, What::Foreign)).map(drop),
            Content::Span(block) => {
                let run = self.keep(Run::of_block(place, &block))?;
                run.set_live(&[1]);
                run.set_sites(|tell| tell(block.span.site));
                Some(())
            }
            Content::Sampled(slab) => {
                let run = self.keep(Run::of_samples(place, slab))?;
                run.set_live(&slab.live);
                run.set_sites(|tell| slab.each_site(tell));
                Some(())
            }
            Content::Slab(blocks) => {
                let run: *mut Run = self.keep(Run::of_slab(place, blocks))?;
                // SAFETY: the run is ours; the table has an entry for each slice.
                unsafe {
                    (*run).next = core::mem::replace(&mut self.pending, run);
                    for slice in (place.index..place.index + place.slices).filter(|slice| self.slices.contains(slice)) {
                        *self.slabs.add(slice - self.slices.start) = run;
                    }
                }
                Some(())
            }
        }
    }

    /// Look at all pending slabs, those of one home together, and at the caches in between and at the end. `None`: there is no memory.
    fn look_at_slabs(&mut self, before: Addresses) -> Option<()> {
        let mut copy = look::Slab::NONE;
        let (mut started, mut cost, mut last) = (self.began, os::now() - self.began, Some(before));
        let mut quiet = Quiet::new();
        loop {
            let ends = self.pending.is_null();
            if ends || os::now() - started > (CACHES * cost).max(SOON) {
                quiet.end();
                let now = os::now();
                let caches = Addresses::collect()?;
                (started, cost) = (now, os::now() - now);
                for seen in last.take().iter().chain([&caches]) {
                    seen.each(|address, parked| self.not_live(address, parked));
                }
                if ends {
                    return Some(());
                }
                last = Some(caches);
            }
            // SAFETY: pending runs are ours.
            let home = look::home_of(unsafe { (*self.pending).index });
            let mut mine = self.take_those_of(home);
            while !mine.is_null() {
                // The run at hand, and whether it was seen.
                let at = Cell::new((core::ptr::null_mut::<Run>(), true));
                let before = mine;
                let next = || {
                    self.put_back(at.replace((core::ptr::null_mut(), true)));
                    // SAFETY: as above; each run is in one list.
                    let run = unsafe { (!mine.is_null()).then(|| &mut *mine)? };
                    mine = run.next;
                    at.set((run, false));
                    Some(run.index)
                };
                if !home.is_null() {
                    look::slabs_of(quiet.get(), home, &mut copy, next, |_, slab, zone, thread| {
                        // SAFETY: as above.
                        unsafe { (*at.get().0).see(slab, zone, thread) };
                        at.set((at.get().0, true));
                    });
                }
                self.put_back(at.get());
                if mine == before {
                    // SAFETY: as above. Nobody's any more; or, in a signal handler, not to be had.
                    let run = unsafe { &mut *before };
                    (run.what, mine) = (if home.is_null() { What::Transit } else { What::Busy }, run.next);
                }
            }
        }
    }

    /// A slab that was not seen is another home's by now, and looked at again; or there is none any more.
    fn put_back(&mut self, (run, seen): (*mut Run, bool)) {
        if !seen {
            // SAFETY: the run is ours and in no list.
            let again = unsafe { &mut *run };
            again.tries += 1;
            if again.tries == TRIES {
                again.what = What::Transit;
            } else {
                again.next = core::mem::replace(&mut self.pending, run);
            }
        }
    }

    /// Pending slabs of one home, out of the list.
    fn take_those_of(&mut self, home: *mut heap::Heap) -> *mut Run {
        let (mut mine, mut others) = (core::ptr::null_mut(), core::ptr::null_mut());
        let mut run = self.pending;
        while !run.is_null() {
            // SAFETY: pending runs are ours, and each is in the list once.
            unsafe {
                let next = (*run).next;
                let list = if look::home_of((*run).index) == home { &mut mine } else { &mut others };
                (*run).next = core::mem::replace(list, run);
                run = next;
            }
        }
        self.pending = others;
        mine
    }

    /// The block at this address is not the program's.
    fn not_live(&mut self, address: usize, parked: bool) {
        let index = arena::index_of(address);
        let run = if self.slices.contains(&index) {
            // SAFETY: the table has an entry for each slice.
            unsafe { *self.slabs.add(index - self.slices.start) }
        } else if index < arena::SLICES {
            core::ptr::null_mut() // it has grown more than that
        } else {
            let found = self.all().find(|run| run.what == What::Slab && index.wrapping_sub(run.index) < run.slices);
            found.map_or(core::ptr::null_mut(), |run| core::ptr::from_ref(run).cast_mut())
        };
        if !run.is_null() {
            // SAFETY: runs are ours, and nobody looks at them now.
            let run = unsafe { &mut *run };
            if run.is_not_live(address) {
                *(if parked { &mut run.parked } else { &mut run.cached }) += 1;
            }
        }
    }

    /// Give each heap its runs, and add up.
    fn finish(&mut self, busy: bool) {
        inspect::each_in_use(|zone| {
            self.find(zone);
        });
        self.busy = if busy { heap::threads(usize::MAX) } else { 0 };
        let mut runs = self.all();
        let mut at = runs.next_mut();
        while !at.is_null() {
            // SAFETY: runs are ours, and nobody looks at them now.
            let run = unsafe { &mut *at };
            run.next = core::ptr::null_mut();
            match run.what {
                What::Transit => run.miss(),
                What::Busy => {
                    (run.words, run.places) = (0, 0);
                    self.skipped += 1;
                }
                _ if run.is_page() => self.assign(at),
                _ => {}
            }
            at = runs.next_mut();
        }
        self.ended = os::now();
    }

    /// Room for a record and what is behind it.
    fn keep(&mut self, run: Run) -> Option<&mut Run> {
        let whole = run.needed();
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
            kept.write(Run { whole: whole as u32, ..run });
            (*self.last).used += whole;
            self.runs += 1;
            Some(&mut *kept)
        }
    }

    /// A run with blocks is of the heap of its zone.
    fn assign(&mut self, run: *mut Run) {
        // SAFETY: runs are ours.
        let Some(number) = self.find(unsafe { (*run).zone }) else {
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
        let (first, last) = (core::ptr::null_mut(), core::ptr::null_mut());
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
    pub(super) fn all<'a>(&self) -> Runs<'a> {
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

/// [`look::Quiet`] for some homes, and again for some: to wait for it anew each time takes long where heaps come and go.
struct Quiet {
    is: Option<look::Quiet>,
    since: u64,
}

impl Quiet {
    fn new() -> Quiet {
        Quiet { is: None, since: 0 }
    }

    fn end(&mut self) {
        self.is = None;
    }

    fn get(&mut self) -> &look::Quiet {
        if os::now() - self.since > SOON {
            self.end();
        }
        if self.is.is_none() {
            self.is = Some(look::quiet());
            self.since = os::now();
        }
        self.is.get_or_insert_with(look::quiet)
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
    piece: *mut Piece,
    offset: usize,
    of: core::marker::PhantomData<&'a Inventory>,
}

impl Runs<'_> {
    /// The next one, or null.
    fn next_mut(&mut self) -> *mut Run {
        // SAFETY: pieces live as long as the inventory, and have records up to where they are used.
        unsafe {
            while !self.piece.is_null() && self.offset >= (*self.piece).used {
                (self.piece, self.offset) = ((*self.piece).next, size_of::<Piece>());
            }
            if self.piece.is_null() {
                return core::ptr::null_mut();
            }
            let run = self.piece.cast::<u8>().add(self.offset).cast::<Run>();
            self.offset += (*run).whole as usize;
            run
        }
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = &'a Run;

    fn next(&mut self) -> Option<&'a Run> {
        // SAFETY: runs live as long as the inventory.
        unsafe { self.next_mut().as_ref() }
    }
}

impl Drop for Inventory {
    fn drop(&mut self) {
        if !self.heaps.is_null() {
            os::unmap(self.heaps.cast(), (self.room * size_of::<Heap>()).next_multiple_of(os::PAGE));
        }
        if !self.slabs.is_null() {
            let bytes = self.slices.len() * size_of::<*mut Run>();
            os::unmap(self.slabs.cast(), bytes.next_multiple_of(os::PAGE).max(os::PAGE));
        }
        let mut piece = self.first;
        while !piece.is_null() {
            // SAFETY: pieces are ours.
            let next = unsafe { (*piece).next };
            os::unmap(piece.cast(), PIECE);
            piece = next;
        }
    }
}
