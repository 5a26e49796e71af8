//! Where in the window what lies, as numbers.

use super::{SLICE, SLICE_SHIFT, Slice};
use crate::os;

/// Address space of the window.
pub(crate) const WINDOW: usize = 1 << 40;
/// Slices in the window.
pub(crate) const SLICES: usize = WINDOW >> SLICE_SHIFT;
/// Indices of slices, in the window and outside it, are below.
pub(crate) const INDICES: usize = SLICES + ALIASES;
/// Further indices, for memory outside the window: 256 GiB of it.
pub(super) const ALIASES: usize = 1 << 22;
/// The class map: two bytes per slice.
pub(super) const CLASS_MAP: usize = SLICES * 2;
/// From the start of the window to the metadata.
pub(super) const METADATA: usize = INDICES * 2;
/// Slices mapped at a time (16 MiB); their metadata is exactly 36 pages.
pub(super) const STEP: usize = 256;
/// First slice that can be handed out: everything below is class map and metadata. Never 0, so that 0 can mean "none".
pub(super) const FIRST: usize = (METADATA + INDICES * size_of::<Slice>()).div_ceil(STEP * SLICE) * STEP;

const _: () = assert!((STEP * size_of::<Slice>()).is_multiple_of(os::PAGE) && METADATA.is_multiple_of(os::PAGE));
const _: () = assert!(CLASS_MAP.is_power_of_two());
// A head has 28 bits for the length of a run.
const _: () = assert!(INDICES < 1 << 28);
