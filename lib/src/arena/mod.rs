//! Address space: one window of 1 TiB, cut into slices of 64 KiB, mapped from the bottom as needed.
//!
//! ```text
//! base                40 MiB                      FIRST × 64 KiB (11 GiB)         1 TiB
//!  | class map         | slice metadata            | slices ...        (unmapped)   |
//!  | u16 per slice     | one `Slice` per slice     | slabs, spans, free spans       |
//! ```
//!
//! Memory that the program hands over lies elsewhere and has indices behind those of the window ([`alias`]).
//!
//! Nothing is reserved: a reservation would count against `RLIMIT_AS`. The metadata lies apart from the memory it
//! describes, so that memory given to the program is never written by the allocator.
//!
//! One base register serves the class map and the slices: `free` needs one load to know the class of any pointer.

mod alias;
mod arenas;
mod bins;
mod counts;
mod foreign;
mod guard;
mod huge;
mod layout;
mod pool;
mod purge;
pub(crate) mod regions;
mod reserve;
mod slice;
mod spans;
mod walk;
mod window;

pub(crate) use arenas::{Arena, Nature, all as arenas, is_plain, numbered};
pub(crate) use counts::{counts, note_discard, note_reuse, purged_now, reused_pages};
pub(crate) use guard::guard_metadata;
pub(crate) use layout::{INDICES, SLICES};
pub(crate) use pool::Pool;
pub(crate) use purge::{Purged, begin_purge, begin_purge_of_untouched, end_purge, purge_metadata, repair_purges};
pub(crate) use reserve::{interleave, manage, reserve, reserve_at_start, reserve_huge};
pub(crate) use slice::{BITMAP_WORDS, Kind, ListState, Residence, Slice};
#[cfg(test)]
pub(crate) use spans::used_slices;
pub(crate) use spans::{
    allocate, allocate_in, extend, free, is_busy_here, is_used, pool_of, renew, repair, reuse, with_room,
};
pub(crate) use walk::{next_of, next_with_blocks, used, walk};
pub(crate) use window::{address_of, class_entry, index_of, initialise, is_initialised, is_ours, slice, slice_index};

/// Whether blocks may come from where an address is, or it is of what describes them: the window and the program's arenas.
pub(crate) fn holds(address: usize) -> bool {
    is_initialised() && (window::holds(address) || arenas().any(|arena| arena.contains(address)))
}

/// Log2 of [`SLICE`].
pub(crate) const SLICE_SHIFT: usize = 16;
/// Bytes of a slice: the unit in which address space is handed out.
pub(crate) const SLICE: usize = 1 << SLICE_SHIFT;
/// Pages of a slice.
pub(crate) const PAGES: usize = SLICE / crate::os::PAGE;

#[cfg(test)]
mod tests;
