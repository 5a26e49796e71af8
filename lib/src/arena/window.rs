//! The window: where it lies, and how much of it is mapped.

use super::{SLICE, SLICE_SHIFT, SLICES, Slice};
use crate::os;
use core::sync::atomic::{AtomicUsize, Ordering::*, compiler_fence};

/// Address space of the window.
pub(crate) const WINDOW: usize = 128 << 30;
/// The class map: two bytes per slice.
const CLASS_MAP: usize = SLICES * 2;
/// Slices mapped at a time (16 MiB); their metadata is exactly 36 pages.
const STEP: usize = 256;
const METADATA_STEP: usize = STEP * size_of::<Slice>();
/// First slice that can be handed out: everything below is class map and metadata. Never 0, so that 0 can mean "none".
pub(super) const FIRST: usize = (CLASS_MAP + SLICES * size_of::<Slice>()).div_ceil(STEP * SLICE) * STEP;

const _: () = assert!(METADATA_STEP.is_multiple_of(os::PAGE));
const _: () = assert!(CLASS_MAP + SLICES * size_of::<Slice>() <= FIRST << SLICE_SHIFT);

global_word!(
    /// Start of the window; before it is known, [`UNKNOWN`].
    base, set_base, "mimalloc_pprof_window", "0x8000000000000000"
);
/// A base that makes every pointer foreign.
const UNKNOWN: usize = 1 << 63;
/// Slices below have memory. Arena lock.
static MAPPED: AtomicUsize = AtomicUsize::new(FIRST);
/// Slices below have metadata. Arena lock.
static DESCRIBED: AtomicUsize = AtomicUsize::new(FIRST);
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

fn place() -> Option<usize> {
    const ALIGNMENT: usize = CLASS_MAP;
    // A smaller hole will do where there is none of the whole size (valgrind): the window then ends where it meets something.
    let in_hole = |room: usize| {
        let base = (os::find_hole(room + 2 * ALIGNMENT)? + ALIGNMENT) & !(ALIGNMENT - 1);
        os::map_at(base, CLASS_MAP).then_some(base)
    };
    if let Some(base) = (0..6).find_map(|halvings| in_hole(WINDOW >> halvings)) {
        return Some(base);
    }
    // Under an address-space limit the hole cannot be probed: look below a small mapping, where the kernel grows down.
    let probe = os::find_hole(os::PAGE)?;
    (1..=16usize).find_map(|step| {
        let base = probe.checked_sub(WINDOW + step * (8 << 30))? & !(ALIGNMENT - 1);
        os::map_at(base, CLASS_MAP).then_some(base)
    })
}

/// Slices below have memory. Arena lock held.
pub(super) fn mapped() -> usize {
    MAPPED.load(Relaxed)
}

/// Give slices below `end` memory and metadata. Arena lock held. False: no memory.
pub(super) fn map_to(end: usize) -> bool {
    if end > SLICES || !describe_to(end) {
        return false;
    }
    let mapped = MAPPED.load(Relaxed);
    if mapped >= end {
        return true;
    }
    // A whole step if the kernel agrees, else (near a limit) just what is needed.
    let step = end.next_multiple_of(STEP).min(SLICES);
    for end in [step, end] {
        MAPPING.store(end, Relaxed);
        compiler_fence(SeqCst);
        let done = os::map_at(address_of(mapped), (end - mapped) << SLICE_SHIFT);
        if done {
            super::huge::mapped(mapped, end);
            MAPPED.store(end, Relaxed);
        }
        compiler_fence(SeqCst);
        MAPPING.store(0, Relaxed);
        if done {
            return true;
        }
    }
    false
}

/// In a forked child that inherited the arena's lock from a thread that is not here: finish what that thread was mapping. Returns
/// the end of the slices that may or may not be mapped and are not to be used, 0 = none.
pub(super) fn repair() -> usize {
    let describing = DESCRIBING.swap(0, Relaxed);
    if describing != 0 {
        // Either it is there already, then this fails, or it is there now. Nothing else can be: nobody maps into the midst of the
        // window.
        os::map_at(slice(DESCRIBED.load(Relaxed)) as usize, METADATA_STEP);
        DESCRIBED.store(describing, Release);
    }
    let mapping = MAPPING.swap(0, Relaxed);
    if mapping != 0 {
        MAPPED.store(MAPPED.load(Relaxed).max(mapping), Relaxed);
    }
    mapping
}

fn describe_to(end: usize) -> bool {
    loop {
        let described = DESCRIBED.load(Relaxed);
        if described >= end {
            return true;
        }
        DESCRIBING.store(described + STEP, Relaxed);
        compiler_fence(SeqCst);
        let done = os::map_at(slice(described) as usize, METADATA_STEP);
        if done {
            DESCRIBED.store(described + STEP, Release);
        }
        compiler_fence(SeqCst);
        DESCRIBING.store(0, Relaxed);
        if !done {
            return false;
        }
    }
}

/// Index of the slice that holds `address`; at least [`SLICES`] when it is not in the window.
#[inline(always)]
pub(crate) fn slice_index(address: usize) -> usize {
    address.wrapping_sub(base()) >> SLICE_SHIFT
}

/// Start of a slice.
#[inline(always)]
pub(crate) fn address_of(index: usize) -> usize {
    base() + (index << SLICE_SHIFT)
}

/// Whether a slice has metadata. Slices that were ever handed out have.
pub(crate) fn is_described(index: usize) -> bool {
    (FIRST..DESCRIBED.load(Acquire)).contains(&index)
}

/// Metadata of a slice. Readable for every slice that was ever handed out.
#[inline(always)]
pub(crate) fn slice(index: usize) -> *mut Slice {
    (base() + CLASS_MAP + index * size_of::<Slice>()) as *mut Slice
}

/// Class map entry of a slice: `class * 32` for ordinary slabs, 0 for everything special. Stable for everybody who holds
/// a block in that slice.
#[inline(always)]
pub(crate) fn class_entry(index: usize) -> *mut u16 {
    (base() + index * 2) as *mut u16
}
