//! What is known about a slice, apart from the slice itself.

use super::{PAGES, Pool};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

/// Bits for the smallest blocks: 64 KiB / 16 B.
pub(crate) const BITMAP_WORDS: usize = super::SLICE / 16 / 64;

/// What a run of slices is.
///
/// Kind and length share one word that is stored at once, and the heads of all runs form a chain from the first slice to
/// the last that can be walked at **every** instant, also by a child that was forked in the middle of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    /// In the arena's bins.
    Free = 0,
    /// Blocks of one class, owned by a heap.
    Slab = 1,
    /// One large block.
    Span = 2,
    /// Blocks of one class that were sampled; each has a record.
    Sampled = 3,
    /// Between the arena and an owner. Found in a forked child it is lost: one run per vanished thread.
    Transit = 4,
    /// Somebody else's memory, or nobody's: see [`foreign`](super::foreign).
    Foreign = 6,
    /// Blocks of one class in a zone: freed on the slow path.
    Zone = 5,
    /// A free run, or a part of one, that is being given back to the kernel. In no bin.
    Purge = 7,
}

impl Kind {
    fn of(head: u32) -> Kind {
        match head >> 28 {
            0 => Kind::Free,
            1 => Kind::Slab,
            2 => Kind::Span,
            3 => Kind::Sampled,
            4 => Kind::Transit,
            5 => Kind::Zone,
            7 => Kind::Purge,
            _ => Kind::Foreign,
        }
    }
}

/// Where a slab stands with the heap that owns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ListState {
    /// On no list: its blocks are all handed out, or so few are back that it does not pay.
    Unlisted = 0,
    /// The slab that its class takes blocks from.
    Current = 1,
    /// On its class's list of slabs with free blocks and others.
    Partial = 2,
    /// On its class's list of slabs with free blocks only.
    Empty = 3,
}

/// Metadata of one slice. Only the first slice of a run carries it, but for `owner` and `first`, which all slices of a slab
/// have.
///
/// Fields without a word of their own are guarded by the lock of the owning heap (slabs), by the arena's lock (free
/// spans), or belong to whoever holds the block (spans).
#[repr(C, align(64))]
pub(crate) struct Slice {
    /// The heap whose lock guards a slab, or a zone's span (null in all others). Stable for everybody who holds a block of it, but for
    /// blocks of zones.
    pub(crate) owner: AtomicPtr<u8>,
    /// Bytes of a block. Free runs keep [`Residence`] here and in the next.
    pub(crate) block_size: u32,
    /// ceil(2^32 / block_size): an offset times this, shifted right by 32, is the block's index.
    pub(crate) reciprocal: u32,
    pub(crate) class: u8,
    /// Bitmap words in use.
    pub(crate) words: u8,
    /// Set bits in `bitmap`. Derived.
    ///
    /// Not at a multiple of 4 (asserted below): there the compiler reads 32 bits, which the processor cannot take from the 16 that
    /// were just stored, and waits (measured: blocks given back in order take 5.5 ns each instead of 2).
    pub(crate) free: u16,
    /// Blocks in the slab.
    pub(crate) blocks: u16,
    pub(crate) state: ListState,
    /// Free runs and spans: every byte reads zero (fresh from the kernel). Slabs: no page is a candidate or was returned.
    pub(crate) clean: bool,
    /// Neighbours on a list, 0 = none.
    pub(crate) next: u32,
    pub(crate) previous: u32,
    /// First bitmap word that may have a bit.
    pub(crate) hint: u16,
    /// Pages of this slice that were wholly free at the last sweep, and that nothing was taken from since. In the first slice of a
    /// wholly free slab all of them, if the slab was one then. Free runs: whether they were there at the last sweep.
    pub(crate) candidates: u16,
    /// The value of `free` at which a returned block is more than a set bit.
    pub(crate) trigger: u16,
    /// Blocks from this number on were never handed out, so all their bits are set; and they read zero, as does what is behind them.
    /// `u16::MAX` where that is not known. Derived, and never too low.
    pub(crate) fresh: u16,
    /// Last slice of a free span: index of its first.
    pub(crate) back: u32,
    head: AtomicU32,
    /// Sampled slabs: one record per block. Slabs and spans of zones: their neighbours on the zone's list.
    pub(crate) records: *mut u8,
    /// First slice of the run that this slice is in; kept up to date in slabs and at the start of spans.
    pub(crate) first: u32,
    /// Pages of this slice that were given back to the kernel and not handed out since.
    pub(crate) returned: u16,
    /// Arenas whose memory has to be made usable: this slice is.
    pub(super) committed: bool,
    /// First slice of a run: the pool that the run belongs to.
    pub(super) pool: Pool,
    /// One bit per block, set = free. The truth about the slab. Spans keep their sample record here.
    pub(crate) bitmap: [AtomicU64; BITMAP_WORDS],
}

const _: () = assert!(size_of::<Slice>() == 64 + BITMAP_WORDS * 8);
const _: () = assert!(!core::mem::offset_of!(Slice, free).is_multiple_of(4));

/// How much of a free run is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Residence {
    /// No page is: all of it reads zero.
    pub(crate) clean: bool,
    /// Pages that are known not to be.
    pub(crate) absent: u32,
    /// Pages that were given back to the kernel, more or less.
    pub(crate) returned: u32,
    /// It has been free since the last sweep.
    pub(crate) aged: bool,
}

impl Residence {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Residence = Residence { clean: false, absent: 0, returned: 0, aged: false };

    /// Slices that were never used, or are a fresh mapping.
    pub(crate) fn fresh(slices: usize) -> Residence {
        Residence { clean: true, absent: (slices * PAGES) as u32, returned: 0, aged: false }
    }

    /// Slices that were given back just now.
    pub(crate) fn returned(slices: usize) -> Residence {
        Residence { returned: (slices * PAGES) as u32, ..Residence::fresh(slices) }
    }

    /// Of `slices` slices, of which as many pages are absent as this says: if those are all, they read zero.
    pub(crate) fn settled(self, slices: usize) -> Residence {
        Residence { clean: self.absent as usize == slices * PAGES, ..self }
    }

    /// What is known of `slices` slices out of `all` that this is of; what is left is known of the others.
    ///
    /// Where in a run the absent pages are is not known, but where it is clean. So each part has those that it must have: a part that was
    /// taken to be absent and is not would never be given back. How many were given back is shared out, and all of it.
    pub(super) fn split_off(&mut self, all: usize, slices: usize) -> Residence {
        let (most, others) = ((slices * PAGES) as u32, ((all - slices) * PAGES) as u32);
        let part = Residence { absent: self.absent.saturating_sub(others), returned: self.returned.min(most), ..*self };
        self.absent = self.absent.saturating_sub(most);
        self.returned -= part.returned;
        part
    }

    /// Of a run of `slices` slices and another, of `more`.
    pub(super) fn merge(self, slices: usize, other: Residence, more: usize) -> Residence {
        Residence {
            clean: self.clean && other.clean,
            absent: self.absent + other.absent,
            returned: self.returned + other.returned,
            aged: if more > slices { other.aged } else { self.aged },
        }
    }
}

impl Slice {
    /// Of a free run.
    pub(crate) fn residence(&self) -> Residence {
        Residence { clean: self.clean, absent: self.block_size, returned: self.reciprocal, aged: self.candidates != 0 }
    }

    pub(super) fn set_residence(&mut self, of: Residence) {
        self.clean = of.clean;
        self.block_size = of.absent;
        self.reciprocal = of.returned;
        self.candidates = of.aged as u16;
    }

    /// Kind of the run that starts here; `None` inside a run and beyond the last.
    pub(crate) fn run(&self) -> Option<(Kind, usize)> {
        let head = self.head.load(Acquire);
        (head != 0).then(|| (Kind::of(head), (head & 0xfff_ffff) as usize))
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> Kind {
        Kind::of(self.head.load(Acquire))
    }

    /// [`kind`](Self::kind), not earlier than what was stored or loaded with `SeqCst` before.
    pub(crate) fn kind_now(&self) -> Kind {
        Kind::of(self.head.load(SeqCst))
    }

    /// Slices in the run that starts here.
    #[inline(always)]
    pub(crate) fn length(&self) -> usize {
        (self.head.load(Relaxed) & 0xfff_ffff) as usize
    }

    #[inline(always)]
    pub(crate) fn set_run(&self, kind: Kind, slices: usize) {
        self.head.store((kind as u32) << 28 | slices as u32, Release);
    }

    /// Turn a run of this kind into one in transit. False: it is of another kind, or somebody else has just done so.
    pub(crate) fn become_transit(&self, kind: Kind) -> bool {
        let head = self.head.load(Relaxed);
        let transit = (Kind::Transit as u32) << 28 | head & 0xfff_ffff;
        Kind::of(head) == kind && self.head.compare_exchange(head, transit, AcqRel, Relaxed).is_ok()
    }

    /// The same for a run whose kind and length the caller expects.
    #[inline(always)]
    pub(crate) fn become_transit_from(&self, kind: Kind, slices: usize) -> bool {
        let [head, transit] = [kind, Kind::Transit].map(|kind| (kind as u32) << 28 | slices as u32);
        self.head.compare_exchange(head, transit, AcqRel, Relaxed).is_ok()
    }

    /// The block at this offset of a slab is handed out, and so may all before it be. Returns how many of them, up to this one, were
    /// fresh until now.
    pub(crate) fn handed_out(&mut self, offset: usize) -> usize {
        let number = ((offset as u64 * self.reciprocal as u64) >> 32) as usize;
        let fresh = (number + 1).saturating_sub(self.fresh as usize);
        self.fresh += fresh as u16;
        fresh
    }

    /// Become the inside of a run.
    pub(super) fn clear_run(&self) {
        self.head.store(0, Release);
    }
}
