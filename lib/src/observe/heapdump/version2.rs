//! The snapshot of version 2: sections that say how long they are, with all that is known. `docs/formats.md` describes it.

use super::bytes::Bytes;
use super::inventory::{Inventory, Runs};
use super::run::Run;
use super::version1::MAGIC;
use crate::arena::{self, Pool, SLICE, address_of};
use crate::heap::{self, holes, interval, statistics};
use crate::os;

const VERSION: u32 = 2;
/// Bytes of the header.
const HEADER: usize = 32;
/// Most bytes of runs in one section, but for the last run of it.
const SECTION: usize = 64 * 1024;
/// Bytes of a run's record without what is behind it.
const RECORD: usize = 112;
/// Bytes of an arena's and a heap's record.
const ARENA: usize = 40;
const HEAP: usize = 48;

/// Write everything. `blocks`: with a bitmap for each slab.
pub(super) fn write(out: &mut Bytes<'_>, inventory: &Inventory, blocks: bool) {
    out.u32(MAGIC);
    out.u32(VERSION);
    out.u32(HEADER as u32);
    out.u32(blocks as u32);
    out.bytes(&[0; HEADER - 16]);
    let mut sections = 0;
    numbers(out, &mut sections, b"PROC", &process(inventory));
    numbers(out, &mut sections, b"TOTL", &totals(inventory));
    begin(out, &mut sections, b"AREN", inventory.parts().count() * ARENA);
    write_arenas(out, inventory);
    begin(out, &mut sections, b"HEAP", inventory.heap_count * HEAP);
    write_heaps(out, inventory);
    let mut runs = inventory.all();
    while let Some((length, count)) = next_section(runs.clone(), blocks)
        && !out.has_failed()
    {
        begin(out, &mut sections, b"RUNS", length);
        runs.by_ref().take(count).for_each(|run| write_run(out, inventory, run, blocks));
    }
    let ends = [sections + 1, inventory.runs as u64, inventory.used, inventory.used_bytes];
    numbers(out, &mut sections, b"END ", &ends);
}

/// The head of a section with so many bytes, a multiple of 8.
fn begin(out: &mut Bytes<'_>, sections: &mut u64, tag: &[u8; 4], length: usize) {
    debug_assert!(length.is_multiple_of(8));
    *sections += 1;
    out.bytes(tag);
    out.u32(0);
    out.u64(length as u64);
}

/// A section of numbers of 64 bits.
fn numbers(out: &mut Bytes<'_>, sections: &mut u64, tag: &[u8; 4], numbers: &[u64]) {
    begin(out, sections, tag, numbers.len() * 8);
    numbers.iter().for_each(|&number| out.u64(number));
}

fn process(inventory: &Inventory) -> [u64; 8] {
    [
        os::process_id() as u64,
        os::thread_id(),
        inventory.began,
        inventory.ended,
        os::PAGE as u64,
        SLICE as u64,
        size_of::<usize>() as u64,
        interval::rate(),
    ]
}

fn totals(inventory: &Inventory) -> [u64; 14] {
    // They cannot be had in a signal handler that has interrupted this thread where they are changed.
    let exact = if heap::holds_locks() { statistics::Totals::default() } else { statistics::totals() };
    let (arena, holes) = (arena::counts(), holes::counts());
    [
        exact.allocated_blocks,
        exact.allocated_bytes,
        exact.freed_blocks,
        exact.freed_bytes,
        arena.reserved,
        arena.committed,
        arena.purged,
        holes.purged_now * os::PAGE as u64,
        heap::threads(usize::MAX) as u64,
        inventory.heap_count as u64,
        inventory.runs as u64,
        inventory.pages as u64,
        inventory.skipped as u64,
        inventory.busy as u64,
    ]
}

fn write_arenas(out: &mut Bytes<'_>, inventory: &Inventory) {
    for (number, part) in inventory.parts().enumerate() {
        let arena = part.arena();
        let (pinned, exclusive) = arena.map_or((false, false), |arena| (arena.is_pinned(), arena.is_exclusive()));
        out.u32(number as u32);
        out.u32(part.pool as u32);
        out.u64(part.base() as u64);
        out.u64(part.bytes() as u64);
        out.u32(part.slices() as u32);
        out.u32(arena.map_or(-1, |arena| arena.node()) as u32);
        out.u32(pinned as u32 | (exclusive as u32) << 1);
        out.u32(0);
    }
}

fn write_heaps(out: &mut Bytes<'_>, inventory: &Inventory) {
    for heap in inventory.heaps() {
        let used: u64 = heap.runs().map(|run| run.used as u64).sum();
        let pool = heap.is.pool;
        out.u64(heap.is.number);
        out.u32(heap.is.process as u32);
        out.u32(if pool == Pool::COMMON { 0 } else { pool.word() as u32 });
        out.u64(heap.pages as u64);
        out.u64(used);
        out.u64(heap.runs().map(Run::used_bytes).sum());
        out.u64(0);
    }
}

/// Bytes and number of the runs of the next section; `None`: there are none left.
fn next_section(runs: Runs<'_>, blocks: bool) -> Option<(usize, usize)> {
    let (mut length, mut count) = (0, 0);
    for run in runs {
        if length >= SECTION {
            break;
        }
        length += length_of(run, blocks);
        count += 1;
    }
    (count != 0).then_some((length, count))
}

fn length_of(run: &Run, blocks: bool) -> usize {
    let (pages, sites) = (run.pages().len() * 2, run.sites().len() * 4);
    RECORD + bitmap(run, blocks).len() * 8 + pages.next_multiple_of(8) + sites.next_multiple_of(8)
}

/// What is told of which blocks are live.
fn bitmap(run: &Run, blocks: bool) -> &[u64] {
    if blocks { run.live() } else { &[] }
}

fn write_run(out: &mut Bytes<'_>, inventory: &Inventory, run: &Run, blocks: bool) {
    let heap = inventory.heap_of(run).map(|heap| heap.is);
    out.u32(length_of(run, blocks) as u32);
    out.u8(run.what as u8);
    out.u8(run.purging as u8 | (run.clean as u8) << 1);
    out.u16(run.pool);
    out.u64(address_of(run.index) as u64);
    out.u32(run.slices as u32);
    out.u32(heap.map_or(0, |heap| heap.process) as u32);
    out.u64(heap.map_or(0, |heap| heap.number));
    out.u64(run.start as u64);
    out.u64(run.block_size as u64);
    out.u64(run.requested as u64);
    out.u64(run.thread);
    for number in [run.blocks, run.fresh, run.used, run.cached, run.parked, run.absent, run.returned, run.samples] {
        out.u32(number);
    }
    out.u32(bitmap(run, blocks).len() as u32);
    out.u32(run.pages().len() as u32);
    out.u32(run.sites().len() as u32);
    out.u32(0);
    bitmap(run, blocks).iter().for_each(|&word| out.u64(word));
    run.pages().iter().for_each(|&pages| out.u16(pages));
    out.pad(run.pages().len() * 2);
    run.sites().iter().for_each(|&site| out.u32(site));
    out.pad(run.sites().len() * 4);
}
