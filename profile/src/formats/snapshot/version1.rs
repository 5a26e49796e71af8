//! Version 1: records one after the other, without lengths.

use std::io::Read;

use super::input::Input;
use super::{Arena, Heap, Page, PageKind, Snapshot};
use crate::error::ReadError;

/// Bitmaps of slices come in chunks of so many bytes.
const CHUNK: u32 = 64;

pub(super) fn read(input: &mut Input<'_, impl Read>) -> Result<Snapshot, ReadError> {
    let pointer = input.u32("bytes of a pointer")?;
    if pointer != 8 && pointer != 4 {
        return Err(input.damaged(format!("{pointer}; expected 4 or 8 bytes of a pointer")));
    }
    let slice = u64::from(input.u32("bytes of a slice")?);
    let flags = input.u32("flags")?;
    input.skip(4, "a reserved word")?;
    let mut snapshot = Snapshot {
        version: 1,
        has_blocks: flags & 1 != 0,
        slice,
        milliseconds: input.u64("a time")?,
        thread: input.u64("a thread")?,
        ..Snapshot::default()
    };
    for _ in 0..input.u32("a number of arenas")? {
        let arena = read_arena(input)?;
        snapshot.arenas.push(arena);
        read_pages(input, &mut snapshot)?;
    }
    read_pages(input, &mut snapshot)?;
    loop {
        match &input.array("the section \"HEAP\" or \" END\"")? {
            b"HEAP" => {}
            b" END" => break,
            other => {
                let found = other.escape_ascii();
                return Err(input.damaged(format!("\"{found}\"; expected the section \"HEAP\" or \" END\"")));
            }
        }
        let seq = input.u64("the number of a heap")?;
        input.i32("a NUMA node")?;
        let arena = input.u64("an arena")?;
        snapshot.heaps.push(Heap { seq, process: None, arena });
        read_pages(input, &mut snapshot)?;
    }
    let pages = input.u64("the number of pages")?;
    if pages != snapshot.pages.len() as u64 {
        return Err(input.damaged(format!("{pages} pages; {} were read", snapshot.pages.len())));
    }
    Ok(snapshot)
}

fn read_arena(input: &mut Input<'_, impl Read>) -> Result<Arena, ReadError> {
    input.tag(b"ARNA")?;
    let number = input.u32("the number of an arena")?;
    let (base, bytes) = (input.u64("an address")?, input.u64("bytes of an arena")?);
    let slices = input.u32("slices of an arena")?;
    input.u32("slices for what is known of an arena")?;
    let node = input.i32("a NUMA node")?;
    let (pinned, exclusive) = (input.flag("whether it is pinned")?, input.flag("whether it is exclusive")?);
    input.skip(2, "padding")?;
    let mut bitmaps = [Vec::new(), Vec::new(), Vec::new()];
    for (bitmap, what) in bitmaps.iter_mut().zip(["committed", "free", "to be purged"]) {
        let chunks = input.u32("chunks of a bitmap")?;
        let size = input.u32("bytes of a chunk")?;
        if size != CHUNK {
            return Err(input.damaged(format!("{size}; expected {CHUNK} bytes of a chunk")));
        }
        *bitmap = input.bytes(u64::from(chunks) * u64::from(size), &format!("the bitmap of what is {what}"))?;
    }
    let [committed, free, purge] = bitmaps;
    Ok(Arena { number, base, bytes, slices, node, pinned, exclusive, committed, free, purge })
}

fn read_pages(input: &mut Input<'_, impl Read>, snapshot: &mut Snapshot) -> Result<(), ReadError> {
    input.tag(b"PAGE")?;
    loop {
        match input.u64("the address of a page, or 0")? {
            0 => return Ok(()),
            start => {
                let page = read_page(input, start)?;
                snapshot.pages.push(page);
            }
        }
    }
}

fn read_page(input: &mut Input<'_, impl Read>, start: u64) -> Result<Page, ReadError> {
    let slice_start = input.u64("the address of a slice")?;
    let block_size = input.u64("bytes of a block")?;
    let reserved = input.u32("a number of blocks")?;
    let capacity = input.u32("a number of blocks that were used")?;
    if capacity > reserved {
        return Err(input.damaged(format!("{capacity} of {reserved} blocks")));
    }
    let used = input.u32("a number of live blocks")?;
    if used > capacity {
        return Err(input.damaged(format!("{used} live ones of {capacity} blocks")));
    }
    let committed = input.u64("committed bytes")?;
    let thread = input.u64("a thread")?;
    let heap = input.u64("the number of a heap")?;
    input.i32("an arena")?;
    input.u32("a slice")?;
    let slices = input.u32("a number of slices")?;
    input.u8("a kind of memory")?;
    let kind = match input.u8("a kind of page")? {
        0..=2 => PageKind::Slab,
        3 => PageKind::Single,
        other => return Err(input.damaged(format!("{other}; expected a kind of page, 0 to 3"))),
    };
    input.flag("whether it is abandoned")?;
    input.flag("whether it is full")?;
    let has_blocks = input.flag("whether there is a bitmap")?;
    input.skip(3, "padding")?;
    let live = if has_blocks { Some(read_live(input, capacity, used)?) } else { None };
    let page = Page { kind, start, slice_start, slices, block_size, reserved, capacity, used, ..Page::default() };
    Ok(Page { committed, thread, heap, live, ..page })
}

/// The bitmap has a bit for each block that is free.
fn read_live(input: &mut Input<'_, impl Read>, capacity: u32, used: u32) -> Result<Vec<u64>, ReadError> {
    let length = input.u32("bytes of a bitmap")?;
    if length != capacity.div_ceil(8) {
        return Err(input.damaged(format!("{length} bytes of a bitmap for {capacity} blocks")));
    }
    let bytes = input.bytes(u64::from(length), "a bitmap of blocks")?;
    let mut live = vec![0u64; bytes.len().div_ceil(8)];
    for block in (0..capacity as usize).filter(|block| bytes[block / 8] >> (block % 8) & 1 == 0) {
        live[block / 64] |= 1 << (block % 64);
    }
    let count: u32 = live.iter().map(|word| word.count_ones()).sum();
    if count != used {
        return Err(input.damaged(format!("{count} blocks are not free in the bitmap; expected {used}")));
    }
    Ok(live)
}
