//! What the heap tells the layer above, without knowing it. The root of the crate connects the two.

use super::Heap;
use super::sampled::Record;

/// How a sampled block has come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// It was freed, or ceased to exist with its heap.
    Freed,
    /// It was freed by the thread that had allocated it before that allocated anything else.
    Temporary,
    /// `realloc` has put another block in its place.
    Moved,
}

/// A block and its usable bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) block: *mut u8,
    pub(crate) usable: usize,
}

/// What is to be remembered of a sampled block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sample {
    /// Where it was allocated, as the layer above counts sites; 0 = it is no sample.
    pub(crate) site: u32,
    /// What the layer above knows it by.
    pub(crate) stamp: u64,
}

impl Sample {
    pub(crate) const NONE: Sample = Sample { site: 0, stamp: 0 };
}

/// What the layer above does when something happens. Called with no lock held; nothing may allocate.
pub(crate) struct Hooks {
    /// The allocator is ready in this process. Called once, by the first thread that allocates.
    pub(crate) started: fn(),
    /// An allocation was drawn: its block size, the requested size, and the epoch under which it was drawn. Returns what to remember in the
    /// record.
    pub(crate) sampled: unsafe fn(heap: *mut Heap, block_size: usize, requested: usize, epoch: u32) -> Sample,
    /// A drawn allocation cannot be kept as a sample.
    pub(crate) dropped: fn(),
    /// A sampled block is freed, or was moved.
    pub(crate) released: fn(record: &Record, how: Ended),
    /// A sampled block has got another requested size in place (the record still holds the old one).
    pub(crate) resized: fn(record: &Record, requested: usize),
    /// While somebody [watches](super::watch): a block was allocated, with so many usable bytes, for a request of so many. `heap` is this
    /// thread's for the moment.
    pub(crate) allocated: unsafe fn(heap: *mut Heap, block: *mut u8, usable: usize, requested: usize),
    /// The same for a block that is freed, before it is anybody else's.
    pub(crate) freed: unsafe fn(block: *mut u8, usable: usize),
    /// The same for a block that another takes the place of, or (`old` and `new` are at the same address) that has another requested size
    /// where it is. Neither of the two is told apart. The old one is nobody else's yet.
    pub(crate) reallocated: unsafe fn(heap: *mut Heap, old: Extent, new: Extent, requested: usize),
    /// A call has failed (`ENOMEM`, `EOVERFLOW`) or was misuse (`fatal`): tell the program. True: it has a function for that. A
    /// message for people comes along, without an end of line. `errno` may be changed.
    pub(crate) failed: fn(code: i32, message: &[u8], fatal: bool) -> bool,
    /// Allocations have been slow as often as the option `generic_collect` says: the program may free what it has put off. It may
    /// allocate meanwhile, in spite of what is said above.
    pub(crate) slowed: fn(),
    /// Memory came back to slabs, or something is due. With no lock held.
    pub(crate) drained: fn(),
    /// A span of so many bytes, or (0) some other special block, came back. With no lock held.
    pub(crate) span_freed: fn(bytes: usize),
    /// This thread leaves its heap, which others may take afterwards. With no lock held.
    pub(crate) leaving: fn(heap: *mut Heap),
    /// A thread has got its heap, or has left it. With no lock held; may allocate.
    pub(crate) threads_changed: fn(),
    /// This is a forked child with one thread, and the heaps are in order again.
    pub(crate) forked: fn(),
}
