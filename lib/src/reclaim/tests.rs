//! The survey against what the test itself knows of its blocks.

use super::survey::{BUCKETS, Cause, Class, Survey, blocks_from_here, survey};
use super::{purge_all, survey};
use crate::arena::{slice, slice_index};
use crate::heap::holes::{self, How};
use crate::heap::look::Slab;
use crate::heap::release::release;
use crate::heap::statistics;
use crate::heap::steal::steal_all;
use crate::os::PAGE;
use std::collections::BTreeMap;
use std::vec::Vec;

/// What a test compares. Other threads of the test program allocate nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    live: u64,
    cached: u64,
    pinned: u64,
    pinned_free_bytes: u64,
    survivors: u64,
    histogram: [u64; BUCKETS],
}

fn row(class: &Class) -> Row {
    let Class { live, cached, pinned, pinned_free_bytes, survivors, histogram, .. } = *class;
    Row { live, cached, pinned, pinned_free_bytes, survivors, histogram }
}

/// All that is said of blocks of a size, and the rest of the survey.
fn look<R>(size: u64, tell: impl FnOnce(&Survey) -> R) -> (Row, R) {
    let mut seen = None;
    assert!(survey(|survey| {
        let class = survey.classes.iter().find(|class| class.block_size == size).unwrap();
        seen = Some((row(class), tell(survey)));
    }));
    seen.unwrap()
}

fn look_at<R>(tell: impl FnOnce(&Survey) -> R) -> R {
    let mut seen = None;
    assert!(survey(|survey| seen = Some(tell(survey))));
    seen.unwrap()
}

/// What is to be said of these live blocks.
fn expected(blocks: &[usize], size: usize) -> Row {
    let mut pages = BTreeMap::<usize, (u64, usize)>::new();
    for &block in blocks {
        for page in block / PAGE..=(block + size - 1) / PAGE {
            let bytes = (block + size).min((page + 1) * PAGE) - block.max(page * PAGE);
            let of_page = pages.entry(page).or_default();
            *of_page = (of_page.0 + 1, of_page.1 + bytes);
        }
    }
    let mut row = Row {
        live: blocks.len() as u64,
        cached: 0,
        pinned: pages.len() as u64,
        pinned_free_bytes: 0,
        survivors: 0,
        histogram: [0; BUCKETS],
    };
    for &(count, bytes) in pages.values() {
        row.pinned_free_bytes += (PAGE - bytes) as u64;
        row.survivors += count;
        row.histogram[[0, 0, 1, 2, 2, 3, 3, 3, 3].get(count as usize).copied().unwrap_or(4)] += 1;
    }
    row
}

/// Run a test again in a process of its own, where no other test has left anything. False: this is that process.
fn in_a_process(test: &str) -> bool {
    const MARK: &str = "SURVEY_ALONE";
    if std::env::var_os(MARK).is_some() {
        return false;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let test = std::format!("reclaim::tests::{test}");
    let output = command.args(["--exact", &test, "--nocapture"]).env(MARK, "1").output().unwrap();
    let told = std::string::String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{:?}", output.stderr.escape_ascii());
    true
}

fn allocate(size: usize) -> usize {
    // SAFETY: no preconditions.
    unsafe { crate::heap::allocate::allocate(size) as usize }
}

fn free(block: usize) {
    // SAFETY: tests free what they have allocated, once.
    unsafe { release(block as *mut u8) }
}

/// Sizes below a page, above one, and above a slice.
const SIZES: [usize; 5] = [48, 704, 3072, 7168, 114_688];

#[test]
fn survivors_and_caches_are_told_exactly() {
    if in_a_process("survivors_and_caches_are_told_exactly") {
        return;
    }
    for size in SIZES {
        steal_all();
        let blocks: Vec<usize> = (0..(3 << 20) / size).map(|_| allocate(size)).collect();
        let (kept, freed): (Vec<usize>, Vec<usize>) = blocks.iter().partition(|&&block| block / 16 * 7919 % 29 < 3);
        steal_all();
        assert_eq!(look(size as u64, |_| ()).0.live, blocks.len() as u64, "{size}");
        // The last few stay in the cache.
        freed.iter().for_each(|&block| free(block));
        let (row, bytes) = look(size as u64, |survey| survey.cached);
        assert!(
            row.live == kept.len() as u64 && row.cached > 0 && bytes >= row.cached * size as u64,
            "{size}: {row:?}"
        );
        steal_all();
        let tails = |survey: &Survey| survey.kept_by(Cause::Tails);
        let (row, tails) = look(size as u64, tails);
        let expected = expected(&kept, size);
        // Where a slab ends in the middle of a page, the rest is not free but nobody's.
        let told = Row { pinned_free_bytes: expected.pinned_free_bytes, ..row };
        assert_eq!(told, expected, "{size}");
        let difference = expected.pinned_free_bytes - row.pinned_free_bytes;
        assert!(difference <= tails, "{size}: {difference} {tails}");
        kept.into_iter().for_each(free);
    }
}

/// Bytes of slabs are live, free for some cause, given back, or were never there.
#[test]
fn every_byte_of_a_slab_is_told_once() {
    if in_a_process("every_byte_of_a_slab_is_told_once") {
        return;
    }
    // One block, and a few that are cached with it: the rest of the slab is fresh.
    let first = allocate(3072);
    let touched = 8 * 3072;
    let (row, untouched) = look(3072, |survey| survey.untouched);
    assert!(row.live == 1 && row.cached <= 7 && untouched as usize >= (64 << 10) - touched, "{row:?} {untouched}");
    free(first);
    let mut blocks: Vec<usize> = (0..20_000).map(|i| allocate(SIZES[i % 4])).collect();
    let in_slabs = |survey: &Survey| {
        let outside = survey.kept_by(Cause::Runs)
            + survey.kept_by(Cause::Shelved)
            + survey.kept_by(Cause::Slack)
            + survey.kept_by(Cause::Ineligible);
        survey.live + survey.free_in_memory() - outside + survey.returned + survey.untouched
    };
    let check = |step: &str| {
        survey::survey(|survey| {
            assert_eq!(in_slabs(survey) % (64 << 10), 0, "{step}");
            let live: u64 = survey.classes.iter().map(|class| class.live * class.block_size).sum();
            let counted = statistics::totals();
            let spans = statistics::spans();
            let bytes = |totals: statistics::Totals| totals.allocated_bytes - totals.freed_bytes;
            assert_eq!(survey.live, live, "{step}");
            assert_eq!(survey.live, bytes(counted) - bytes(spans), "{step}");
            assert!(survey.units.windows(2).all(|pair| pair[0] >= pair[1]), "{step}: {:?}", survey.units);
        });
    };
    check("full");
    let freed: Vec<usize> = blocks.extract_if(.., |block| *block / 16 * 7919 % 31 != 0).collect();
    freed.into_iter().for_each(free);
    check("with caches");
    steal_all();
    check("without");

    // What is free is given back; the survey tells the same pages.
    let before = look(704, |survey| (survey.units[0] + survey.untouched, survey.returned)).1;
    let report = purge_all(true, false).expect("nobody else purges");
    survey::survey(|survey| {
        let young = survey.kept_by(Cause::Young) + survey.kept_by(Cause::Kept);
        assert_eq!((young, survey.kept_by(Cause::Cached)), (0, 0));
        assert!(survey.returned >= before.1 + report.hole_bytes as u64 && report.hole_bytes > 1 << 20, "{report:?}");
        // Wholly free slabs have left. In huge pages, what was never touched goes, too.
        assert!(survey.units[0] == survey.returned && before.0 >= survey.returned, "{before:?}");
        assert!(survey.returned_blocks * 48 < survey.returned + (survey.returned / 48) && survey.returned_blocks > 0);
    });
    check("given back");
    blocks.into_iter().for_each(free);
    steal_all();
}

#[test]
fn a_span_at_hand_is_told() {
    if in_a_process("a_span_at_hand_is_told") {
        return;
    }
    let shelved = || look_at(|survey| survey.kept_by(Cause::Shelved));
    let block = allocate(600_000);
    assert_eq!(shelved(), 0);
    free(block);
    assert_eq!(shelved(), 640 << 10);
    steal_all();
    assert_eq!(shelved(), 0);
}

#[test]
fn blocks_of_several_pages_are_counted_once() {
    let slab = Slab { block_size: 704, blocks: 93, slices: 1, ..Slab::NONE };
    let count = |pages: &[usize]| {
        let mut before = None;
        pages.iter().map(|&page| blocks_from_here(&slab, page, before.replace(page))).sum::<u64>()
    };
    // Pages end in the midst of blocks 5, 11, ...
    assert_eq!((count(&[0]), count(&[1]), count(&[0, 1]), count(&[0, 2])), (6, 7, 12, 13));
    assert_eq!(count(&(0..16).collect::<Vec<_>>()), 93);
    let slab = Slab { block_size: 114_688, blocks: 4, slices: 7, ..Slab::NONE };
    assert_eq!((blocks_from_here(&slab, 0, None), blocks_from_here(&slab, 5, Some(4))), (1, 0));
    assert_eq!((blocks_from_here(&slab, 27, Some(2)), blocks_from_here(&slab, 28, Some(27))), (0, 1));
}

#[test]
fn causes_have_a_name_each() {
    for (place, (cause, name, _)) in Cause::ALL.iter().enumerate() {
        assert_eq!(*cause as usize, place, "{name}");
    }
}

/// While pages are being given back, blocks that lie in them are nobody's, also blocks that were never handed out. Those around them are
/// to be had, and what was used of them is not taken to read zero.
#[test]
fn zeroed_blocks_beside_pages_that_are_given_back() {
    if in_a_process("zeroed_blocks_beside_pages_that_are_given_back") {
        return;
    }
    // A page and a quarter: twelve in a slab, and the second one has no page for itself.
    const SIZE: usize = 5 << 10;
    let blocks: Vec<usize> = (0..8).map(|_| allocate(SIZE)).collect();
    // SAFETY: the test's own blocks.
    blocks.iter().for_each(|&block| unsafe { (block as *mut u8).write_bytes(0xff, SIZE) });
    assert!(blocks.windows(2).all(|pair| pair[1] - pair[0] == SIZE), "fresh ones of one slab: {blocks:x?}");
    let index = slice_index(blocks[0]);
    // SAFETY: nobody else uses the heap. One more may have been handed out: so it is after a theft.
    unsafe {
        assert_eq!(((*slice(index)).fresh, (*slice(index)).free), (8, 4));
        (*slice(index)).fresh = 9;
    }
    free(blocks[1]);
    steal_all();

    let sweeper = holes::sweeper().unwrap();
    let mut claimed = 0;
    let how = How { forced: true, but_current: false, holes: true, untouched: false, least: 1 };
    holes::claim(&sweeper, index, how, |_, pages| claimed |= pages);
    assert_eq!(claimed, 0b1100_0000_0000, "pages of the ninth block, the second of which the tenth begins in");
    let zeroed: Vec<usize> = (0..3)
        .map(|_| {
            // SAFETY: no preconditions; the block has that many bytes.
            let block = unsafe { crate::heap::allocate::allocate_zeroed(SIZE) };
            // SAFETY: as above.
            assert!((0..SIZE).all(|byte| unsafe { *block.add(byte) } == 0), "{block:p} of {blocks:x?}");
            block as usize
        })
        .collect();
    assert_eq!(zeroed, [1, 10, 11].map(|number| blocks[0] + number * SIZE));
    holes::give_back(&sweeper, 0, |_| false);
    drop(sweeper);
}
