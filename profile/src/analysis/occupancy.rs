//! How full the slabs of a heap are, and what keeps their memory: from a [`Snapshot`] to bytes that add up.
//!
//! The system takes memory back in pages of 4 KiB. A page that has one live block cannot go, whatever else is free in it: its free bytes are
//! *pinned*. A page without one is *empty*, and can go; it is *returned* once it has gone, and *unused* if no block of it was ever handed out.

use std::collections::BTreeMap;

use crate::formats::snapshot::{Page, PageKind, Snapshot};

/// Bytes of a page of the system, as snapshots count them.
pub const PAGE: u64 = 4096;
/// Pages of one slab that are looked at one by one. Slabs are far smaller; only a damaged file has more.
const MOST: u64 = 1 << 16;

/// Bytes of address space by what they are. All fields but `blocks`, `room` and `slabs` add up to `space`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Address space.
    pub space: u64,
    /// In live blocks: usable bytes.
    pub live: u64,
    /// Free or at the margin, in pages that live blocks keep.
    pub pinned: u64,
    /// Of pages without a live block, in memory as far as is known.
    pub empty: u64,
    /// Of pages that were given back.
    pub returned: u64,
    /// Of pages of which nothing was ever handed out.
    pub unused: u64,
    /// Not told: the snapshot was taken without its blocks.
    pub unknown: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Blocks that there is room for.
    pub room: u64,
    /// Slabs, or single blocks.
    pub slabs: u64,
}

impl Bytes {
    /// Adds them; more than there can be stays at the most.
    pub fn add(&mut self, other: &Bytes) {
        let pairs = [
            (&mut self.space, other.space),
            (&mut self.live, other.live),
            (&mut self.pinned, other.pinned),
            (&mut self.empty, other.empty),
            (&mut self.returned, other.returned),
            (&mut self.unused, other.unused),
            (&mut self.unknown, other.unknown),
            (&mut self.blocks, other.blocks),
            (&mut self.room, other.room),
            (&mut self.slabs, other.slabs),
        ];
        for (mine, more) in pairs {
            *mine = mine.saturating_add(more);
        }
    }

    /// Bytes that are in memory as far as is known.
    pub fn kept(&self) -> u64 {
        self.live.saturating_add(self.pinned).saturating_add(self.empty).saturating_add(self.unknown)
    }
}

/// What a page of the system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// So many of its bytes are live, 1 to [`PAGE`].
    Live(u16),
    /// No block in it is live.
    Empty,
    /// It was given back.
    Returned,
    /// Nothing of it was ever handed out.
    Unused,
    /// Not told.
    Unknown,
}

/// A slab or a single block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slab {
    /// Address of its first slice.
    pub start: u64,
    /// What it is.
    pub kind: PageKind,
    /// Usable bytes of a block.
    pub block_size: u64,
    /// Where it belongs: 0 = no thread.
    pub thread: u64,
    /// Its heap; of several that share it, one.
    pub heap: u64,
    /// What its bytes are.
    pub bytes: Bytes,
    /// Its pages, in the order of their addresses; of a single block none, all of them being live.
    pub pages: Vec<State>,
}

/// A whole heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// In the order of their addresses.
    pub slabs: Vec<Slab>,
    /// All of them.
    pub total: Bytes,
    /// By usable bytes of a block; those of single blocks are of their own.
    pub classes: BTreeMap<(bool, u64), Bytes>,
    /// Slabs that are larger than slabs can be, or their blocks are: they are left out.
    pub odd: u64,
}

impl Occupancy {
    /// Of a heap.
    pub fn of(snapshot: &Snapshot) -> Occupancy {
        let mut occupancy = Occupancy::default();
        // Heaps share slabs of sampled blocks: each has a record of its blocks there.
        let mut places: BTreeMap<u64, Vec<&Page>> = BTreeMap::new();
        for page in &snapshot.pages {
            places.entry(page.slice_start).or_default().push(page);
        }
        for (start, records) in places {
            let space = u64::from(records[0].slices).saturating_mul(snapshot.slice);
            let slab = match records[0].kind {
                PageKind::Single => single(records[0], space),
                _ => match shared(&records, space) {
                    Some(slab) => slab,
                    None => {
                        occupancy.odd += 1;
                        continue;
                    }
                },
            };
            debug_assert_eq!(slab.start, start);
            occupancy.total.add(&slab.bytes);
            let class = (slab.kind == PageKind::Single, slab.block_size);
            occupancy.classes.entry(class).or_default().add(&slab.bytes);
            occupancy.slabs.push(slab);
        }
        occupancy
    }
}

fn single(page: &Page, space: u64) -> Slab {
    let returned = page.more.as_ref().map_or(0, |more| u64::from(more.returned) * PAGE);
    let live = page.block_size.min(space);
    let returned = returned.min(space - live);
    let rest = space - live - returned;
    // What is behind the block up to the end of its last page is kept by it.
    let pinned = rest.min(live.next_multiple_of(PAGE) - live);
    let bytes = Bytes {
        space,
        live,
        pinned,
        returned,
        empty: rest - pinned,
        blocks: u64::from(page.used),
        room: 1,
        slabs: 1,
        ..Bytes::default()
    };
    Slab { pages: Vec::new(), ..slab(page, bytes) }
}

fn slab(page: &Page, bytes: Bytes) -> Slab {
    let Page { kind, block_size, thread, heap, slice_start: start, .. } = *page;
    Slab { start, kind, block_size, thread, heap, bytes, pages: Vec::new() }
}

/// All records of one slab. `None` if it is larger than a slab can be.
fn shared(records: &[&Page], space: u64) -> Option<Slab> {
    let first = records[0];
    let count = space.div_ceil(PAGE);
    // Blocks that are no larger than their slab and lie one behind the other take no longer to look at than the slab does.
    if count > MOST || first.block_size == 0 || records.iter().any(|record| record.block_size > space) {
        return None;
    }
    let mut live = vec![0u64; count as usize];
    let mut blocks = 0;
    let mut is_told = true;
    for record in records {
        blocks += u64::from(record.used);
        is_told &= record.live.is_some() || record.used == 0;
        for block in record.live_blocks() {
            cover(&mut live, block.wrapping_sub(first.slice_start), record.block_size);
        }
    }
    let margin = first.start.saturating_sub(first.slice_start);
    let capacity = u64::from(records.iter().map(|record| record.capacity).max().unwrap_or(0));
    let used_up_to = margin.saturating_add(capacity.saturating_mul(first.block_size));
    let returned = first.more.as_ref().map_or(&[][..], |more| &more.returned_pages);
    let mut bytes = Bytes {
        space,
        blocks,
        // The records of heaps that share a slab have the same room.
        room: u64::from(first.reserved),
        slabs: 1,
        ..Bytes::default()
    };
    let mut pages = Vec::with_capacity(live.len());
    for (number, &live) in live.iter().enumerate() {
        let from = number as u64 * PAGE;
        let size = PAGE.min(space - from);
        let is_returned = returned.get(number / 16).is_some_and(|bits| bits >> (number % 16) & 1 != 0);
        let live = live.min(size);
        let (state, rest) = match () {
            () if live > 0 => (State::Live(live as u16), &mut bytes.pinned),
            () if is_returned => (State::Returned, &mut bytes.returned),
            () if from >= used_up_to => (State::Unused, &mut bytes.unused),
            () if !is_told => (State::Unknown, &mut bytes.unknown),
            () => (State::Empty, &mut bytes.empty),
        };
        *rest += size - live;
        bytes.live += live;
        pages.push(state);
    }
    if !is_told {
        // What is not told is live at least as far as it is counted.
        let counted = blocks.saturating_mul(first.block_size).saturating_sub(bytes.live).min(bytes.unknown);
        bytes.live += counted;
        bytes.unknown -= counted;
    }
    Some(Slab { pages, ..slab(first, bytes) })
}

/// Adds the bytes of a block to the pages that it lies in; those outside of the slab are nobody's.
fn cover(live: &mut [u64], offset: u64, size: u64) {
    let end = offset.saturating_add(size).min(live.len() as u64 * PAGE);
    let mut at = offset;
    while at < end {
        let page = at / PAGE;
        let next = ((page + 1) * PAGE).min(end);
        live[page as usize] += next - at;
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::snapshot::PageMore;

    const SLICE: u64 = 65536;

    fn page(block_size: u64, reserved: u32, capacity: u32, live: &[u32]) -> Page {
        let mut words = vec![0u64; reserved.div_ceil(64) as usize];
        live.iter().for_each(|&block| words[block as usize / 64] |= 1 << (block % 64));
        Page {
            start: SLICE,
            slice_start: SLICE,
            slices: 1,
            block_size,
            reserved,
            capacity,
            used: live.len() as u32,
            live: Some(words),
            ..Page::default()
        }
    }

    fn of(pages: Vec<Page>) -> Occupancy {
        Occupancy::of(&Snapshot { slice: SLICE, pages, ..Snapshot::default() })
    }

    #[track_caller]
    fn adds_up(bytes: &Bytes) {
        let Bytes { space, live, pinned, empty, returned, unused, unknown, .. } = *bytes;
        assert_eq!(space, live + pinned + empty + returned + unused + unknown, "{bytes:?}");
    }

    #[test]
    fn one_block_keeps_a_page() {
        // 1024 blocks of 64 bytes, half of them handed out once; of the others page 2 was given back.
        let mut page = page(64, 1024, 512, &[0, 1, 200]);
        page.more = Some(PageMore { returned: 1, returned_pages: vec![1 << 2], ..PageMore::default() });
        let found = of(vec![page]);
        adds_up(&found.total);
        let slab = &found.slabs[0];
        assert_eq!(slab.pages[..4], [State::Live(128), State::Empty, State::Returned, State::Live(64)]);
        assert_eq!(slab.pages[7..9], [State::Empty, State::Unused]);
        let expected = Bytes {
            space: SLICE,
            live: 192,
            pinned: 2 * PAGE - 192,
            empty: 5 * PAGE,
            returned: PAGE,
            unused: 8 * PAGE,
            unknown: 0,
            blocks: 3,
            room: 1024,
            slabs: 1,
        };
        assert_eq!(found.total, expected);
        assert_eq!(found.classes[&(false, 64)], expected);
    }

    #[test]
    fn blocks_across_pages() {
        let found = of(vec![page(5000, 13, 13, &[0, 12])]);
        adds_up(&found.total);
        assert_eq!(found.slabs[0].pages[..3], [State::Live(4096), State::Live(904), State::Empty]);
        assert_eq!((found.slabs[0].pages[14], found.slabs[0].pages[15]), (State::Live(1440), State::Live(3560)));
        assert_eq!(found.total.live, 10_000);
    }

    #[test]
    fn heaps_share_a_slab() {
        let found = of(vec![page(4096, 16, 16, &[0]), page(4096, 16, 16, &[3])]);
        adds_up(&found.total);
        assert_eq!((found.total.space, found.total.live, found.total.slabs), (SLICE, 2 * PAGE, 1));
        assert_eq!((found.total.blocks, found.total.room), (2, 16));
    }

    #[test]
    fn single_blocks() {
        let large =
            Page { kind: PageKind::Single, slices: 3, block_size: 2 * SLICE + 100, used: 1, ..page(0, 1, 1, &[]) };
        let found = of(vec![large]);
        adds_up(&found.total);
        assert_eq!((found.total.live, found.total.pinned), (2 * SLICE + 100, PAGE - 100));
        assert!(found.classes.contains_key(&(true, 2 * SLICE + 100)));
    }

    #[test]
    fn without_blocks_only_counts_are_known() {
        let mut page = page(1024, 64, 32, &[]);
        (page.used, page.live) = (10, None);
        let found = of(vec![page]);
        adds_up(&found.total);
        assert_eq!((found.total.live, found.total.unknown, found.total.unused), (10_240, 32_768 - 10_240, 32_768));
    }

    /// What no heap has: nothing of it may overflow or take much memory.
    #[test]
    fn impossible_slabs() {
        let mut wide = page(64, 1024, 1024, &[3]);
        wide.slices = u32::MAX;
        let mut outside = page(u64::MAX, 1, 1, &[0]);
        outside.slice_start = 2 * SLICE;
        outside.start = 1;
        let nothing = Page { block_size: 0, slice_start: 4 * SLICE, ..page(1, 64, 64, &[1]) };
        let found = of(vec![wide, outside, nothing]);
        assert_eq!(found.odd, 3);
        adds_up(&found.total);
    }
}
