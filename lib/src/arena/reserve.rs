//! Where the memory of arenas comes from.

use super::arenas::{self, Arena, Nature};
use super::window::address_of;
use super::{SLICE, alias, spans};
use crate::options::{self, Name};
use crate::os;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// Slices in a huge page of 1 GiB.
const HUGE: usize = (1 << 30) / SLICE;

/// An arena in the window, of at least `size` bytes. `large`: huge pages where the kernel has them at hand.
pub(crate) fn reserve(size: usize, large: bool, exclusive: bool) -> Option<&'static Arena> {
    let nature = Nature { exclusive, pinned: false, node: -1, commit: None };
    let alignment = if large { os::LARGE_PAGE / SLICE } else { 1 };
    arenas::add(nature, |_| {
        let run = spans::allocate_in_window(size.div_ceil(SLICE).max(1), alignment)?;
        if large {
            os::advise_huge(address_of(run), size.next_multiple_of(SLICE), true);
        }
        Some((run, address_of(run)))
    })
}

/// An arena in the window of at most `pages` huge pages of 1 GiB, on a NUMA node unless that is negative; and how many it has.
/// `None`: there is not one.
pub(crate) fn reserve_huge(pages: usize, node: i32, exclusive: bool) -> Option<(&'static Arena, usize)> {
    let mut had = 0;
    let nature = Nature { exclusive, pinned: true, node, commit: None };
    let arena = arenas::add(nature, |_| {
        let run = spans::allocate_in_window(pages.checked_mul(HUGE)?, HUGE)?;
        had = (0..pages).take_while(|page| map_huge(address_of(run + page * HUGE), node)).count();
        spans::give_back_rear(run, had * HUGE);
        (had != 0).then(|| (run, address_of(run)))
    });
    arena.map(|arena| (arena, had))
}

/// Put one huge page in the place of what is mapped there.
fn map_huge(address: usize, node: i32) -> bool {
    let done = os::map_huge(address as *mut u8, HUGE * SLICE);
    if done && node >= 0 {
        os::prefer_node(address as *mut u8, HUGE * SLICE, node as usize);
    }
    done
}

/// An arena of the program's own memory: of the whole slices in it. `None`: there is none, or too many arenas.
///
/// # Safety
/// The memory is the caller's, can be read and written (after `nature.commit`, if there is one), stays as long as the process, and
/// reads zero if `zero`.
pub(crate) unsafe fn manage(start: usize, size: usize, zero: bool, nature: Nature) -> Option<&'static Arena> {
    let first = start.checked_next_multiple_of(SLICE)?;
    let slices = start.checked_add(size)?.checked_sub(first)? / SLICE;
    // What the window has is ours already.
    let is_ours =
        |address: usize| super::is_ours(super::slice_index(address)) && super::slice_index(address) < super::SLICES;
    let overlaps = |arena: &Arena| arena.area().0 < first + slices * SLICE && first < arena.area().0 + arena.area().1;
    if slices == 0 || is_ours(first) || is_ours(first + (slices - 1) * SLICE) {
        return None;
    }
    arenas::add(Nature { pinned: true, ..nature }, |_| {
        let run = if arenas::all().any(overlaps) { None } else { alias::describe(first, slices, zero) }?;
        Some((run, first))
    })
}

/// Reserve what the options ask for, once they can be read.
pub(crate) fn reserve_at_start() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !super::is_initialised() || !os::environment_is_known() || DONE.swap(true, AcqRel) {
        return;
    }
    let pages = options::get_positive(Name::ReserveHugeOsPages).unwrap_or(0) as usize;
    let node = options::get(Name::ReserveHugeOsPagesAt);
    let reserved = match node {
        _ if pages == 0 => pages,
        0.. => reserve_huge(pages, node as i32, false).map_or(0, |(_, had)| had),
        _ => interleave(pages, 0),
    };
    if reserved < pages {
        os::complain(b"not all of the huge pages of MIMALLOC_RESERVE_HUGE_OS_PAGES could be had");
    }
    if let Some(kib) = options::get_positive(Name::ReserveOsMemory)
        && reserve((kib as usize).saturating_mul(1024), options::get(Name::AllowLargeOsPages) != 0, false).is_none()
    {
        os::complain(b"no memory for MIMALLOC_RESERVE_OS_MEMORY");
    }
}

/// Huge pages in arenas on `nodes` NUMA nodes in equal parts; 0 = as many nodes as there are. Returns how many pages there are.
pub(crate) fn interleave(pages: usize, nodes: usize) -> usize {
    let nodes = if nodes == 0 { os::numa_nodes() } else { nodes };
    (0..nodes)
        .map(|node| (pages / nodes + usize::from(node < pages % nodes), node as i32))
        .filter(|&(pages, _)| pages != 0)
        .map(|(pages, node)| reserve_huge(pages, node, false).map_or(0, |(_, had)| had))
        .sum()
}
