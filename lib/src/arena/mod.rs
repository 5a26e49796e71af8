//! Address space: one window of 128 GiB, cut into slices of 64 KiB, mapped from the bottom as needed.
//!
//! ```text
//! base                4 MiB                       FIRST × 64 KiB                  128 GiB
//!  | class map         | slice metadata            | slices ...        (unmapped)   |
//!  | u16 per slice     | one `Slice` per slice     | slabs, spans, free spans       |
//! ```
//!
//! Nothing is reserved: a reservation would count against `RLIMIT_AS`. The metadata lies apart from the memory it
//! describes, so that memory given to the program is never written by the allocator.
//!
//! One base register serves the class map and the slices: `free` needs one load to know the class of any pointer.

mod fence;
mod huge;
mod slice;
mod spans;
mod window;

pub(crate) use fence::fence;
pub(crate) use slice::{BITMAP_WORDS, Kind, ListState, Slice};
#[cfg(test)]
pub(crate) use spans::used_slices;
pub(crate) use spans::{allocate, extend, free, is_busy_here, next_with_blocks, repair, reuse, walk};
pub(crate) use window::{address_of, class_entry, initialise, is_described, is_initialised, slice, slice_index};

/// Log2 of [`SLICE`].
pub(crate) const SLICE_SHIFT: usize = 16;
/// Bytes of a slice: the unit in which address space is handed out.
pub(crate) const SLICE: usize = 1 << SLICE_SHIFT;
/// Slices in the window.
pub(crate) const SLICES: usize = window::WINDOW >> SLICE_SHIFT;
