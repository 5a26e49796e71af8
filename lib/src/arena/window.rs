//! The window: where it lies, and how much of it is mapped.

use super::counts::MAPPINGS;
use super::layout::{CLASS_MAP, FIRST, METADATA, SLICES, STEP, WINDOW};
use super::{SLICE, SLICE_SHIFT, Slice, alias, foreign, huge};
use crate::os::{self, Refusal};
use core::sync::atomic::{AtomicUsize, Ordering::*, compiler_fence};

global_word!(
    /// Start of the window; before it is known, [`UNKNOWN`].
    base, set_base, "mimalloc_pprof_window", "0x8000000000000000"
);
/// A base that makes every pointer foreign.
const UNKNOWN: usize = 1 << 63;
/// Slices below have memory, but for foreign ones. Arena lock.
static MAPPED: AtomicUsize = AtomicUsize::new(FIRST);
/// Slices below have metadata. Arena lock.
static DESCRIBED: AtomicUsize = AtomicUsize::new(FIRST);
/// Slices below have a class map entry.
static LIMIT: AtomicUsize = AtomicUsize::new(SLICES);
/// What `MAPPED` and `DESCRIBED` are about to become, while the kernel is asked; 0 = nothing. Mapping and storing are two steps:
/// a child that was forked between them must not believe the smaller number.
static MAPPING: AtomicUsize = AtomicUsize::new(0);
static DESCRIBING: AtomicUsize = AtomicUsize::new(0);

/// Find a place for the window and map its class map. Others may have mappings in the part that is not used yet. False: no memory. Called by one thread, once.
pub(crate) fn initialise() -> bool {
    place().map(set_base).is_some()
}

pub(crate) fn is_initialised() -> bool {
    base() != UNKNOWN
}

/// Address-space limits below this get a class map for twice as much, not for the whole window: 32 MiB would be a burden. The
/// window then lies so far below other mappings that the kernel puts nothing where the class map ends.
const TIGHT: usize = 8 << 30;

/// Larger than the gaps between mappings.
const PROBE: usize = 16 << 20;

fn place() -> Option<usize> {
    const ALIGNMENT: usize = CLASS_MAP;
    let allowed = os::address_space_limit();
    if allowed < TIGHT {
        LIMIT.store(FIRST + (2 * allowed) / SLICE, Relaxed);
    }
    let class_map = (LIMIT.load(Relaxed) * 2).next_multiple_of(os::PAGE);
    // A smaller hole will do where there is none of the whole size (valgrind): the window then ends where it meets something.
    let in_hole = |room: usize| {
        let (mut start, upwards) = os::find_hole_and_direction(room + 2 * ALIGNMENT, PROBE)?;
        if upwards {
            // (`setarch --addr-compat-layout`, valgrind.) The window is put as far above the others as it is large: right behind them,
            // the next ones would lie in the midst of its metadata.
            start = os::find_hole(2 * room + 2 * ALIGNMENT)? + room;
        }
        let base = (start + ALIGNMENT) & !(ALIGNMENT - 1);
        os::map_at(base, class_map).ok().map(|()| base)
    };
    if allowed >= TIGHT
        && let Some(base) = (0..7).find_map(|halvings| in_hole(WINDOW >> halvings))
    {
        return Some(base);
    }
    // Under an address-space limit the hole cannot be probed: look below a small mapping, where the kernel grows down.
    let probe = os::find_hole(os::PAGE)?;
    (1..=16usize).find_map(|step| {
        let base = probe.checked_sub(WINDOW + step * TIGHT)? & !(ALIGNMENT - 1);
        os::map_at(base, class_map).ok().map(|()| base)
    })
}

/// Give slices below `end` memory and metadata. Arena lock held.
pub(super) fn map_to(end: usize) -> Result<(), Refusal> {
    let mapped = MAPPED.load(Relaxed);
    if mapped >= end {
        return Ok(());
    }
    if end > LIMIT.load(Relaxed) {
        return Err(Refusal::NoMemory);
    }
    map_run(mapped, end, mapped)
}

/// Map `slices` slices behind whatever is in the way of [`map_to`], and call what is in between foreign. Arena lock held.
/// Returns the first of the foreign slices and the first of the new ones. Until [`settle`], a forked child takes all of them for
/// foreign.
pub(super) fn map_behind(slices: usize) -> Option<(usize, usize)> {
    let mapped = MAPPED.load(Relaxed);
    let mut distance = 1;
    loop {
        // How far the obstacle reaches cannot be asked: twice as far is tried until there is room. So what is lost is at most as much
        // as is in the way.
        let start = mapped + distance;
        let end = start.checked_add(slices).filter(|&end| end <= LIMIT.load(Relaxed))?;
        match map_run(start, end, mapped) {
            Ok(()) => return Some((mapped, start)),
            Err(Refusal::Taken) => distance *= 2,
            Err(Refusal::NoMemory) => return None,
        }
    }
}

/// Map slices from `start` to `end`, which were found to be behind foreign ones from `mapped` on if that is less than `start`.
fn map_run(start: usize, end: usize, mapped: usize) -> Result<(), Refusal> {
    // A whole step if the kernel agrees, else (near a limit) just what is needed.
    let step = end.next_multiple_of(STEP).min(LIMIT.load(Relaxed));
    let attempt = |end: usize| {
        MAPPING.store(end, Relaxed);
        compiler_fence(SeqCst);
        MAPPINGS.fetch_add(1, Relaxed);
        let done = describe_to(end).and_then(|()| os::map_at(address_of(start), (end - start) << SLICE_SHIFT));
        if done.is_ok() {
            if mapped < start {
                foreign::add(mapped, start - mapped); // before `MAPPED`: from then on, what is below is ours but for those
            }
            huge::mapped(start, end);
            MAPPED.store(end, Release);
        }
        if done.is_err() || mapped == start {
            settle();
        }
        done
    };
    attempt(step).or_else(|_| attempt(end))
}

/// The slices that were mapped last have heads now, or are not used yet.
pub(super) fn settle() {
    compiler_fence(SeqCst);
    MAPPING.store(0, Relaxed);
}

/// In a forked child that inherited the arena's lock from a thread that is not here: finish what that thread was mapping. Returns
/// the end of the slices that may or may not be mapped and are not to be used, 0 = none.
pub(super) fn repair() -> usize {
    let describing = DESCRIBING.swap(0, Relaxed);
    if describing != 0 {
        // Either it is there already, then this fails, or it is there now. Nothing else can be: nobody maps into the midst of the
        // window.
        let described = DESCRIBED.load(Relaxed);
        let _ = os::map_at(slice(described) as usize, (describing - described) * size_of::<Slice>());
        DESCRIBED.store(describing, Release);
    }
    let mapping = MAPPING.swap(0, Relaxed);
    if mapping != 0 {
        MAPPED.store(MAPPED.load(Relaxed).max(mapping), Relaxed);
    }
    mapping
}

/// Give slices below `end`, and one more, metadata: so a run can always be put behind.
fn describe_to(end: usize) -> Result<(), Refusal> {
    let described = DESCRIBED.load(Relaxed);
    if described > end {
        return Ok(());
    }
    let describing = (end + 1).next_multiple_of(STEP);
    MAPPINGS.fetch_add(1, Relaxed);
    DESCRIBING.store(describing, Relaxed);
    compiler_fence(SeqCst);
    let done = os::map_at(slice(described) as usize, (describing - described) * size_of::<Slice>());
    if done.is_ok() {
        DESCRIBED.store(describing, Release);
    }
    compiler_fence(SeqCst);
    DESCRIBING.store(0, Relaxed);
    done.map_err(|_| Refusal::NoMemory)
}

/// Index of the slice that holds `address`; at least [`SLICES`] when it is not in the window.
#[inline(always)]
pub(crate) fn slice_index(address: usize) -> usize {
    address.wrapping_sub(base()) >> SLICE_SHIFT
}

/// Index of the slice that a block of ours lies in, wherever that is; at least [`INDICES`](super::INDICES), or that of a slice that
/// is not [ours](is_ours), for other addresses.
#[inline(always)]
pub(crate) fn index_of(address: usize) -> usize {
    let index = slice_index(address);
    // SAFETY: the class map has an entry for every slice of the window.
    if index < SLICES && unsafe { *class_entry(index) } != 0 { index } else { index_of_special(address) }
}

#[inline(never)]
fn index_of_special(address: usize) -> usize {
    let index = slice_index(address);
    // Memory that was handed over may well lie where the window has not been yet, or goes on behind.
    if index < SLICES && is_ours(index) { index } else { alias::index_of(address) }
}

/// Start of a slice.
#[inline(always)]
pub(crate) fn address_of(index: usize) -> usize {
    if index < SLICES { base() + (index << SLICE_SHIFT) } else { alias::address_of(index) }
}

/// Whether a slice can be read about: it has metadata, and nobody else has a mapping there.
pub(crate) fn is_ours(index: usize) -> bool {
    if index >= SLICES {
        return alias::is_used(index);
    }
    (FIRST..MAPPED.load(Acquire)).contains(&index) && !foreign::holds(index)
}

/// Whether an address is in the window's part that is mapped, or in what describes it.
pub(super) fn holds(address: usize) -> bool {
    let index = slice_index(address);
    index < MAPPED.load(Acquire) && !foreign::holds(index)
}

/// Slices of the window that are mapped.
pub(super) fn mapped_slices() -> usize {
    (MAPPED.load(Acquire) - FIRST).saturating_sub(foreign::slices())
}

/// The end of what is mapped.
pub(super) fn end_of_mapped() -> usize {
    MAPPED.load(Acquire)
}

/// Metadata of a slice. Readable for every slice that was ever handed out.
#[inline(always)]
pub(crate) fn slice(index: usize) -> *mut Slice {
    (base() + METADATA + index * size_of::<Slice>()) as *mut Slice
}

/// Class map entry of a slice: `class * 32` for ordinary slabs, 0 for everything special. Stable for everybody who holds
/// a block in that slice.
#[inline(always)]
pub(crate) fn class_entry(index: usize) -> *mut u16 {
    (base() + index * 2) as *mut u16
}
