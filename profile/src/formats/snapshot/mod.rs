//! Snapshots of a heap: what `mi_heap_snapshot` writes, in both versions of the format. `docs/formats.md` describes them.
//!
//! A snapshot has no stacks, so it is no [`Profile`](crate::Profile): it says which blocks there are, where, and what is free between
//! them.

mod input;
mod version1;
mod version2;

use std::io::Read;

use super::Limits;
use crate::error::ReadError;
use input::Input;

/// How both versions begin.
pub(super) const MAGIC: &[u8; 4] = b"MIHS";

/// What a heap held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Version of the format, 1 or 2.
    pub version: u32,
    /// It has bitmaps of blocks.
    pub has_blocks: bool,
    /// Bytes of a slice, the unit of address space.
    pub slice: u64,
    /// When it was made, in milliseconds of a clock without a meaning.
    pub milliseconds: u64,
    /// The thread that made it, as [`Page::thread`] has it.
    pub thread: u64,
    /// Ranges of address space.
    pub arenas: Vec<Arena>,
    /// Heaps that the program has made, and the main ones.
    pub heaps: Vec<Heap>,
    /// Slabs and single large blocks, in the order of the file.
    pub pages: Vec<Page>,
    /// What only version 2 has.
    pub more: Option<More>,
}

/// A range of address space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arena {
    /// Its number in the file.
    pub number: u32,
    /// Address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// Slices.
    pub slices: u32,
    /// NUMA node, negative: none.
    pub node: i32,
    /// Its pages are never given back.
    pub pinned: bool,
    /// Only heaps that ask for it use it.
    pub exclusive: bool,
    /// A bit for each slice: in memory perhaps, free, free and to be given back. Only version 1; empty otherwise.
    pub committed: Vec<u8>,
    /// See `committed`.
    pub free: Vec<u8>,
    /// See `committed`.
    pub purge: Vec<u8>,
}

/// A heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// How many were made before it; 0 is a main one.
    pub seq: u64,
    /// Number of its sub-process; 0 is the first. Version 1 does not tell.
    pub process: Option<u32>,
    /// The arena that it is in, 0 = none.
    pub arena: u64,
}

/// What a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageKind {
    /// Blocks of one size.
    #[default]
    Slab,
    /// One block.
    Single,
    /// Blocks of one size that were sampled. Version 1 calls it a slab.
    Sampled,
}

/// A slab, or a single large block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What it is.
    pub kind: PageKind,
    /// Address of the first block.
    pub start: u64,
    /// Address of the first slice.
    pub slice_start: u64,
    /// Slices.
    pub slices: u32,
    /// Usable bytes of a block.
    pub block_size: u64,
    /// Blocks that there is room for.
    pub reserved: u32,
    /// Blocks from this number on were never handed out.
    pub capacity: u32,
    /// Live blocks.
    pub used: u32,
    /// Bytes that may be in memory.
    pub committed: u64,
    /// The thread that it belongs to, 0 = none.
    pub thread: u64,
    /// Its heap.
    pub heap: u64,
    /// A bit for each block, from the lowest of the first word on: it is live. `None`: not told.
    pub live: Option<Vec<u64>>,
    /// What only version 2 has.
    pub more: Option<PageMore>,
}

impl Page {
    /// Addresses of the live blocks, as far as they are told.
    pub fn live_blocks(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.live.iter().flatten().enumerate();
        words.flat_map(move |(word, bits)| {
            let set = (0..64u64).filter(move |bit| bits >> bit & 1 != 0);
            set.map(move |bit| self.start.wrapping_add((word as u64 * 64 + bit).wrapping_mul(self.block_size)))
        })
    }
}

/// What version 2 tells of a page besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageMore {
    /// Sub-process of the heap.
    pub process: u32,
    /// Bytes that the program asked for, of a single block; 0 = not known.
    pub requested: u64,
    /// Free blocks that some thread has cached.
    pub cached: u32,
    /// Blocks kept for live samples, which lie elsewhere.
    pub parked: u32,
    /// Live samples.
    pub samples: u32,
    /// Pages of 4 KiB that were given back, and for each slice a bit for each: empty if there are none.
    pub returned: u32,
    /// See `returned`.
    pub returned_pages: Vec<u16>,
    /// Number of the site of each live sample, in the order of the blocks; 0 = freed while this was made.
    pub sites: Vec<u32>,
}

/// What version 2 tells of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct More {
    /// Process id.
    pub pid: u64,
    /// How long the look took, in nanoseconds.
    pub nanoseconds: u64,
    /// Sampling rate in bytes; 0 = off.
    pub rate: u64,
    /// Exact counts since the process began: blocks and bytes allocated, blocks and bytes freed.
    pub exact: [u64; 4],
    /// Bytes of address space, those that may be in memory, those ever given back.
    pub reserved: u64,
    /// See `reserved`.
    pub committed: u64,
    /// See `reserved`.
    pub purged: u64,
    /// Bytes given back inside slabs and not handed out since.
    pub holes: u64,
    /// Threads that have a heap.
    pub threads: u64,
    /// Pages that could not be looked at.
    pub skipped: u64,
    /// Free runs, and what else has no blocks.
    pub runs: Vec<Run>,
    /// Tags of sections that this version does not know.
    pub unknown: Vec<[u8; 4]>,
}

/// Slices without blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// 0 free, 4 on its way between the arena and an owner, 5 somebody else's, 6 not looked at.
    pub kind: u8,
    /// Address.
    pub start: u64,
    /// Slices.
    pub slices: u32,
    /// Pages that are known not to be in memory.
    pub absent: u32,
    /// Pages that were given back.
    pub returned: u32,
}

/// Reads a snapshot of either version. `name` is what errors call the input.
///
/// # Errors
/// [`ReadError`] with the offset and what was expected there, when the input cannot be read, is no snapshot, or is damaged, cut off or too
/// large.
pub fn read(input: impl Read, name: &str) -> Result<Snapshot, ReadError> {
    read_with(input, name, &Limits::default())
}

/// As [`read`], with other limits: on the bytes of the input, which is also what the result takes, about.
///
/// # Errors
/// As [`read`].
pub fn read_with(input: impl Read, name: &str, limits: &Limits) -> Result<Snapshot, ReadError> {
    let mut input = Input::new(input, name, limits);
    if !input.begins_with(MAGIC)? {
        let message = "it does not begin with \"MIHS\", as a heap snapshot does".to_owned();
        return Err(ReadError::Unrecognised { name: name.into(), message });
    }
    let snapshot = match input.u32("a version")? {
        1 => version1::read(&mut input)?,
        2 => version2::read(&mut input)?,
        version => return Err(input.damaged(format!("version {version}; this reader knows 1 and 2"))),
    };
    input.expect_end()?;
    Ok(snapshot)
}
