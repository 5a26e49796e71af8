//! The snapshot of version 1, which tools for mimalloc-pprof and Bun read. `docs/formats.md` says how our heap is told in its words.

use super::bytes::Bytes;
use super::inventory::{Inventory, Part};
use super::run::{Run, What};
use crate::arena::{SLICE, address_of};
use crate::os;

pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"MIHS");
const ARENA: u32 = u32::from_le_bytes(*b"ARNA");
const PAGES: u32 = u32::from_le_bytes(*b"PAGE");
const HEAP: u32 = u32::from_le_bytes(*b"HEAP");
const END: u32 = u32::from_le_bytes(*b" END");

/// Memory that an arena has.
const OF_ARENA: u8 = 6;
/// Bytes of a chunk of a bitmap of slices.
const CHUNK: usize = 64;

/// Write everything. `blocks`: with a bitmap for each page.
pub(super) fn write(out: &mut Bytes<'_>, inventory: &Inventory, blocks: bool) {
    out.u32(MAGIC);
    out.u32(1);
    out.u32(size_of::<usize>() as u32);
    out.u32(SLICE as u32);
    out.u32(blocks as u32);
    out.u32(0);
    out.u64(inventory.began / 1_000_000);
    out.u64(os::thread_id());
    out.u32(inventory.parts().count() as u32);
    let mut pages = 0;
    for (number, part) in inventory.parts().enumerate() {
        if out.has_failed() {
            return;
        }
        write_part(out, number, &part);
        out.u32(PAGES);
        for run in part.runs().filter(|run| run.is_page()) {
            let heap = inventory.heap_of(run).map_or(0, |heap| heap.is.number);
            write_page(out, run, number, part.start, heap, blocks);
            pages += 1;
        }
        out.u64(0);
    }
    // There are no pages outside arenas.
    out.u32(PAGES);
    out.u64(0);
    for heap in inventory.heaps() {
        out.u32(HEAP);
        out.u64(heap.is.number);
        out.u32(-1i32 as u32);
        out.u64(heap.is.pool.word() as u64);
        out.u32(PAGES);
        out.u64(0);
    }
    out.u32(END);
    out.u64(pages);
}

fn write_part(out: &mut Bytes<'_>, number: usize, part: &Part<'_>) {
    let arena = part.arena();
    out.u32(ARENA);
    out.u32(number as u32);
    out.u64(part.base() as u64);
    out.u64(part.bytes() as u64);
    out.u32(part.slices() as u32);
    out.u32(0);
    out.u32(arena.map_or(-1, |arena| arena.node()) as u32);
    out.u8(arena.is_some_and(|arena| arena.is_pinned()) as u8);
    out.u8(arena.is_some_and(|arena| arena.is_exclusive()) as u8);
    out.u16(0);
    let is_free = |run: &Run| run.what == What::Free;
    write_bitmap(out, part, |run| !(is_free(run) && run.clean));
    write_bitmap(out, part, is_free);
    write_bitmap(out, part, |run| is_free(run) && !run.clean);
}

/// A bit for each slice of the runs that are wanted. What no run was seen in has none.
fn write_bitmap(out: &mut Bytes<'_>, part: &Part<'_>, wanted: impl Fn(&Run) -> bool) {
    let chunks = part.slices().div_ceil(CHUNK * 8);
    out.u32(chunks as u32);
    out.u32(CHUNK as u32);
    let mut runs = part.runs().filter(|&run| wanted(run)).peekable();
    for first in (0..chunks).map(|chunk| part.start + chunk * CHUNK * 8) {
        let (mut chunk, end) = ([0u8; CHUNK], first + CHUNK * 8);
        while let Some(run) = runs.peek().filter(|run| run.index < end) {
            let last = run.index + run.slices;
            for slice in run.index.max(first)..last.min(end) {
                chunk[(slice - first) / 8] |= 1 << ((slice - first) % 8);
            }
            if last > end {
                break; // it goes on in the next chunk
            }
            runs.next();
        }
        out.bytes(&chunk);
    }
}

fn write_page(out: &mut Bytes<'_>, run: &Run, part: usize, first: usize, heap: u64, blocks: bool) {
    let capacity = run.fresh.max(last_live(run));
    out.u64(run.start as u64);
    out.u64(address_of(run.index) as u64);
    out.u64(run.block_size as u64);
    out.u32(run.blocks);
    out.u32(capacity);
    out.u32(run.used);
    out.u64(((run.slices * SLICE) as u64).saturating_sub(run.returned as u64 * os::PAGE as u64));
    out.u64(run.thread);
    out.u64(heap);
    out.u32(part as u32);
    out.u32((run.index - first) as u32);
    out.u32(run.slices as u32);
    out.u8(OF_ARENA);
    out.u8(kind_of(run));
    out.u8((run.thread == 0) as u8);
    out.u8((run.used == run.blocks) as u8);
    out.u8(blocks as u8);
    out.bytes(&[0; 3]);
    if blocks {
        let length = capacity.div_ceil(8) as usize;
        out.u32(length as u32);
        for at in 0..length {
            let live = (run.live()[at / 8] >> (at % 8 * 8)) as u8;
            let left = capacity as usize - at * 8;
            let all = if left >= 8 { 0xff } else { (1 << left) - 1 };
            out.u8(!live & all);
        }
    }
}

/// One more than the number of the last live block.
fn last_live(run: &Run) -> u32 {
    let mut words = run.live().iter().enumerate().rev();
    words.find(|&(_, &word)| word != 0).map_or(0, |(at, word)| (at * 64) as u32 + 64 - word.leading_zeros())
}

/// Small, medium, large, one block alone.
fn kind_of(run: &Run) -> u8 {
    match (run.what, run.slices) {
        (What::Span, _) => 3,
        (_, ..=1) => 0,
        (_, ..=8) => 1,
        _ => 2,
    }
}
