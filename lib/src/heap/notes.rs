//! Room for sixteen bytes about each block, for who [watches](super::watch) all of them.
//!
//! A block is found by where it lies: the slice that its slab begins in, and its number there. So no table is searched, no lock taken, and
//! nothing read that others write to. Notes lie apart from the blocks, in [`CHUNK`]s for [`SLICES`] slices each, which are mapped when the
//! first note is wanted there and have pages only where notes were written. The first note of a slice is at the same place whatever the
//! slice is used for; a slice of the smallest blocks has 64 KiB of notes, one of larger blocks less.
//!
//! A note that was never written reads zero. Who frees a block leaves its note zero: the next block there finds it so.

use super::classes::{CLASSES, class_size, slab_slices};
use super::magazine::MAGAZINE_SHIFT;
use super::slab::reciprocal;
use crate::arena::{self, INDICES, Kind, SLICE, address_of, class_entry, index_of, slice};
use crate::os;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

/// What is noted of a live block. It belongs to who holds the block, or is told of its free; what the words mean is up to who watches.
#[repr(C)]
pub(crate) struct Note(pub(crate) AtomicU64, pub(crate) AtomicU64);

/// Slices with their notes in one mapping; as many as a word has bits.
const SLICES: usize = 64;
/// Bytes of the notes of one slice.
const STRIDE: usize = SLICE / 16 * size_of::<Note>();
/// Bytes of a mapping.
const CHUNK: usize = SLICES * STRIDE;

/// Of `SLICES` slices.
struct Chunk {
    notes: AtomicPtr<Note>,
    /// Slices that have notes, as bits.
    noted: AtomicU64,
}

/// All of them, by the number of their first slice; mapped with the first note.
static DIRECTORY: AtomicPtr<Chunk> = AtomicPtr::new(core::ptr::null_mut());
const CHUNKS: usize = INDICES.div_ceil(SLICES);

/// See [`Slice::reciprocal`](arena::Slice::reciprocal).
static RECIPROCALS: [u32; CLASSES] = {
    let (mut all, mut class) = ([0; CLASSES], 1);
    while class < CLASSES {
        all[class] = reciprocal(class_size(class));
        class += 1;
    }
    all
};

/// The note of a block of ours, if there is any where it would be. Zero: nothing was noted.
///
/// # Safety
/// The caller holds the block, or is told of its free.
#[inline]
pub(crate) unsafe fn note_of(block: *mut u8) -> Option<&'static Note> {
    // SAFETY: the caller's promise.
    let (index, number) = unsafe { place_of(block)? };
    let chunk = chunk_with(index)?;
    let notes = chunk.notes.load(Acquire);
    // SAFETY: chunks are never unmapped, and have a note for every block.
    (!notes.is_null()).then(|| unsafe { note_in(notes, index, number) })
}

/// The same, with memory for it. `None`: there is none, or the block is not one of ours.
///
/// # Safety
/// The caller holds the block.
#[inline]
pub(crate) unsafe fn place_for(block: *mut u8) -> Option<&'static Note> {
    // SAFETY: the caller's promise.
    let (index, number) = unsafe { place_of(block)? };
    let chunk = match chunk_with(index) {
        Some(chunk) => chunk,
        None => {
            make(&DIRECTORY, CHUNKS * size_of::<Chunk>())?;
            chunk_with(index)?
        }
    };
    let mut notes = chunk.notes.load(Acquire);
    if notes.is_null() {
        notes = make(&chunk.notes, CHUNK)?;
    }
    let bit = 1 << (index % SLICES);
    if chunk.noted.load(Relaxed) & bit == 0 {
        chunk.noted.fetch_or(bit, Relaxed);
    }
    // SAFETY: as in `note_of`.
    Some(unsafe { note_in(notes, index, number) })
}

unsafe fn note_in(notes: *mut Note, index: usize, number: usize) -> &'static Note {
    // SAFETY: a block has at least as many bytes as a note.
    unsafe { &*notes.byte_add(index % SLICES * STRIDE).add(number) }
}

/// First slice and number of a block: of a span, the slice that the block begins in.
#[inline(always)]
unsafe fn place_of(block: *mut u8) -> Option<(usize, usize)> {
    let index = index_of(block as usize);
    if index >= INDICES {
        return None;
    }
    // SAFETY: H2: the caller holds the block, so that class map and geometry stay as they are.
    unsafe {
        let class = *class_entry(index) as usize >> MAGAZINE_SHIFT;
        if class != 0 && slab_slices(class) == 1 {
            return Some((index, number_of(block as usize % SLICE, class)));
        }
        if class == 0 && !arena::is_ours(index) {
            return None;
        }
        let first = (*slice(index)).first as usize;
        match (*slice(first)).kind() {
            Kind::Slab | Kind::Zone | Kind::Sampled => {
                let class = (*slice(first)).class as usize;
                Some((first, number_of(block as usize - address_of(first), class)))
            }
            Kind::Span | Kind::Transit => Some((index, 0)),
            _ => None,
        }
    }
}

#[inline(always)]
fn number_of(offset: usize, class: usize) -> usize {
    ((offset as u64 * RECIPROCALS[class] as u64) >> 32) as usize
}

fn chunk_with(index: usize) -> Option<&'static Chunk> {
    let directory = DIRECTORY.load(Acquire);
    // SAFETY: never unmapped once others know it; zero is a valid chunk.
    (!directory.is_null()).then(|| unsafe { &*directory.add(index / SLICES) })
}

/// Zeroed memory in a place that is empty so far.
#[cold]
#[inline(never)]
fn make<T>(place: &AtomicPtr<T>, bytes: usize) -> Option<*mut T> {
    let new = os::map(bytes).cast::<T>();
    if new.is_null() {
        return None;
    }
    match place.compare_exchange(core::ptr::null_mut(), new, AcqRel, Acquire) {
        Ok(_) => Some(new),
        Err(there) => {
            os::unmap(new.cast(), bytes);
            Some(there)
        }
    }
}

/// A slab with so many blocks goes back to the arena, and no block of it is anybody's: give the memory of its notes back.
pub(super) fn left(index: usize, blocks: usize) {
    let Some(chunk) = chunk_with(index) else { return };
    let bit = 1 << (index % SLICES);
    if chunk.noted.load(Relaxed) & bit == 0 {
        return;
    }
    chunk.noted.fetch_and(!bit, Relaxed);
    let notes = chunk.notes.load(Acquire);
    let bytes = (blocks * size_of::<Note>()).next_multiple_of(os::PAGE);
    if !notes.is_null() {
        os::discard(notes.cast::<u8>().wrapping_add(index % SLICES * STRIDE), bytes);
    }
}
