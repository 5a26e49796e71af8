//! Version 2: sections with their lengths; what is not known is read over.

use std::io::Read;

use super::input::Input;
use super::{Arena, Heap, More, Page, PageKind, PageMore, Run, Snapshot};
use crate::error::ReadError;

/// Bytes of the header that this reader knows.
const HEADER: u32 = 32;
/// Bytes of a record of a run without what lies behind it.
const RECORD: u64 = 112;
const ARENA: u64 = 40;
const HEAP: u64 = 48;
/// More blocks than any slab has, and more slices.
const MOST_BLOCKS: u32 = 1 << 20;

pub(super) fn read(input: &mut Input<'_, impl Read>) -> Result<Snapshot, ReadError> {
    let header = input.u32("the length of the header")?;
    if header < HEADER {
        return Err(input.damaged(format!("{header}; expected a header of at least {HEADER} bytes")));
    }
    let flags = input.u32("flags")?;
    input.skip(u64::from(header) - 16, "the header")?;
    let mut snapshot = Snapshot { version: 2, has_blocks: flags & 1 != 0, ..Snapshot::default() };
    let mut more = More::default();
    let (mut sections, mut runs) = (0, 0);
    loop {
        let tag = input.array::<4>("the tag of a section")?;
        input.u32("a reserved word")?;
        let length = input.u64("the length of a section")?;
        let end = input.offset().checked_add(length).filter(|_| length.is_multiple_of(8));
        let Some(end) = end else { return Err(input.damaged(format!("{length}; expected the length of a section"))) };
        sections += 1;
        match &tag {
            b"PROC" => process(input, &mut snapshot, &mut more)?,
            b"TOTL" => totals(input, &mut more)?,
            b"AREN" => each(input, end, ARENA, |input| {
                snapshot.arenas.push(arena(input)?);
                Ok(())
            })?,
            b"HEAP" => each(input, end, HEAP, |input| {
                snapshot.heaps.push(heap(input)?);
                Ok(())
            })?,
            b"RUNS" => {
                while input.offset() < end {
                    run(input, &mut snapshot, &mut more)?;
                    runs += 1;
                }
            }
            b"END " => return finish(input, snapshot, more, sections, runs, end),
            _ => {
                more.unknown.push(tag);
                input.skip(length, "a section that is not known")?;
            }
        }
        close(input, end)?;
    }
}

/// What a later version has added to a section is read over.
fn close(input: &mut Input<'_, impl Read>, end: u64) -> Result<(), ReadError> {
    match end.checked_sub(input.offset()) {
        Some(left) => input.skip(left, "the rest of a section"),
        None => Err(input.damaged("a section that is shorter than what is in it".to_owned())),
    }
}

fn finish<R: Read>(
    input: &mut Input<'_, R>,
    mut snapshot: Snapshot,
    more: More,
    sections: u64,
    runs: u64,
    end: u64,
) -> Result<Snapshot, ReadError> {
    let used = snapshot.pages.iter().map(|page| u64::from(page.used)).sum();
    let bytes = snapshot
        .pages
        .iter()
        .fold(0, |sum: u64, page| sum.wrapping_add(u64::from(page.used).wrapping_mul(page.block_size)));
    for (what, read) in [("sections", sections), ("runs", runs), ("live blocks", used), ("live bytes", bytes)] {
        let told = input.u64(what)?;
        if told != read {
            return Err(input.damaged(format!("{told} {what}; {read} were read")));
        }
    }
    close(input, end)?;
    snapshot.more = Some(more);
    Ok(snapshot)
}

fn process(input: &mut Input<'_, impl Read>, snapshot: &mut Snapshot, more: &mut More) -> Result<(), ReadError> {
    more.pid = input.u64("a process id")?;
    snapshot.thread = input.u64("a thread")?;
    let (began, ended) = (input.u64("a time")?, input.u64("a time")?);
    snapshot.milliseconds = began / 1_000_000;
    more.nanoseconds = ended.saturating_sub(began);
    input.u64("bytes of a page")?;
    snapshot.slice = input.u64("bytes of a slice")?;
    input.u64("bytes of a pointer")?;
    more.rate = input.u64("a sampling rate")?;
    Ok(())
}

fn totals(input: &mut Input<'_, impl Read>, more: &mut More) -> Result<(), ReadError> {
    for count in &mut more.exact {
        *count = input.u64("an exact count")?;
    }
    more.reserved = input.u64("reserved bytes")?;
    more.committed = input.u64("committed bytes")?;
    more.purged = input.u64("bytes given back")?;
    more.holes = input.u64("bytes given back inside slabs")?;
    more.threads = input.u64("a number of threads")?;
    input.skip(3 * 8, "numbers of heaps, runs and pages")?;
    more.skipped = input.u64("pages that were not looked at")?;
    input.u64("caches that were not looked at")?;
    Ok(())
}

/// Records of one length, as many as fit.
fn each<R: Read>(
    input: &mut Input<'_, R>,
    end: u64,
    length: u64,
    mut record: impl FnMut(&mut Input<'_, R>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    while end.saturating_sub(input.offset()) >= length {
        record(input)?;
    }
    Ok(())
}

fn arena(input: &mut Input<'_, impl Read>) -> Result<Arena, ReadError> {
    let number = input.u32("the number of an arena")?;
    input.u32("the number of an arena of the program's")?;
    let (base, bytes) = (input.u64("an address")?, input.u64("bytes of an arena")?);
    let (slices, node) = (input.u32("slices of an arena")?, input.i32("a NUMA node")?);
    let flags = input.u32("flags")?;
    input.skip(4, "padding")?;
    let (pinned, exclusive) = (flags & 1 != 0, flags & 2 != 0);
    Ok(Arena { number, base, bytes, slices, node, pinned, exclusive, ..Arena::default() })
}

fn heap(input: &mut Input<'_, impl Read>) -> Result<Heap, ReadError> {
    let seq = input.u64("the number of a heap")?;
    let process = input.u32("a sub-process")?;
    let arena = input.u32("an arena")?;
    input.skip(32, "sums of a heap")?;
    Ok(Heap { seq, process: Some(process), arena: u64::from(arena) })
}

fn run(input: &mut Input<'_, impl Read>, snapshot: &mut Snapshot, more: &mut More) -> Result<(), ReadError> {
    let begin = input.offset();
    let length = u64::from(input.u32("the length of a record")?);
    if length < RECORD || !length.is_multiple_of(8) {
        return Err(input.damaged(format!("{length}; expected the length of a record")));
    }
    let kind = input.u8("the kind of a run")?;
    input.u8("flags")?;
    input.u16("an arena")?;
    let mut page = Page { slice_start: input.u64("the address of a run")?, ..Page::default() };
    page.slices = input.u32("a number of slices")?;
    let mut details = PageMore { process: input.u32("a sub-process")?, ..PageMore::default() };
    page.heap = input.u64("the number of a heap")?;
    page.start = input.u64("the address of a block")?;
    page.block_size = input.u64("bytes of a block")?;
    details.requested = input.u64("requested bytes")?;
    page.thread = input.u64("a thread")?;
    page.reserved = input.u32("a number of blocks")?;
    if page.reserved > MOST_BLOCKS {
        return Err(input.damaged(format!("{} blocks in one run", page.reserved)));
    }
    page.capacity = input.u32("a number of blocks that were used")?;
    page.used = input.u32("a number of live blocks")?;
    if page.used > page.reserved {
        return Err(input.damaged(format!("{} live ones of {} blocks", page.used, page.reserved)));
    }
    details.cached = input.u32("a number of cached blocks")?;
    details.parked = input.u32("a number of parked blocks")?;
    let absent = input.u32("absent pages")?;
    details.returned = input.u32("pages given back")?;
    details.samples = input.u32("a number of samples")?;
    behind(input, &mut page, &mut details)?;
    close(input, begin + length)?;
    let returned = details.returned;
    page.committed =
        u64::from(page.slices).saturating_mul(snapshot.slice).saturating_sub(u64::from(absent.max(returned)) * 4096);
    page.kind = match kind {
        1 => PageKind::Slab,
        2 => PageKind::Single,
        3 => PageKind::Sampled,
        _ => {
            more.runs.push(Run { kind, start: page.slice_start, slices: page.slices, absent, returned });
            return Ok(());
        }
    };
    page.more = Some(details);
    snapshot.pages.push(page);
    Ok(())
}

/// Bitmap, pages that were given back, sites.
fn behind(input: &mut Input<'_, impl Read>, page: &mut Page, details: &mut PageMore) -> Result<(), ReadError> {
    let words = input.u32("words of a bitmap")?;
    if words != 0 && words != page.reserved.div_ceil(64) {
        return Err(input.damaged(format!("{words} words of a bitmap for {} blocks", page.reserved)));
    }
    let places = input.u32("slices with pages given back")?;
    if places != 0 && places != page.slices {
        return Err(input.damaged(format!("{places} of {} slices", page.slices)));
    }
    let sites = input.u32("a number of sites")?;
    if sites != 0 && sites != details.samples {
        return Err(input.damaged(format!("{sites} sites of {} samples", details.samples)));
    }
    input.skip(4, "padding")?;
    if words != 0 {
        let bytes = input.bytes(u64::from(words) * 8, "a bitmap of blocks")?;
        let live: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect();
        let count: u32 = live.iter().map(|word| word.count_ones()).sum();
        if count != page.used {
            return Err(input.damaged(format!("{count} live blocks in the bitmap; expected {}", page.used)));
        }
        page.live = Some(live);
    }
    let bytes = input.bytes((u64::from(places) * 2).next_multiple_of(8), "pages given back")?;
    let pages = bytes.chunks_exact(2).map(|pages| u16::from_le_bytes([pages[0], pages[1]]));
    details.returned_pages = pages.take(places as usize).collect();
    let bytes = input.bytes((u64::from(sites) * 4).next_multiple_of(8), "sites")?;
    let numbers = bytes.chunks_exact(4).map(|site| u32::from_le_bytes([site[0], site[1], site[2], site[3]]));
    details.sites = numbers.take(sites as usize).collect();
    Ok(())
}
