//! The data model of a heap profile, its readers and writers, and what can be computed from it.
//!
//! # When to use it
//!
//! [`read`] takes the bytes of a dump, finds out from the content which format it is, and gives a [`Profile`]. Names are
//! filled in from outside with [`Profile::resolve`]: this crate knows nothing of ELF or DWARF. The functions in
//! [`analysis`] turn a profile into the numbers of a report; [`units`] prints them for people.
//!
//! ```
//! let dump = b"heap profile: 1: 4096 [1: 4096] @ heap_v2/1\n1: 4096 [1: 4096] @ 0x1001\nMAPPED_LIBRARIES:\n";
//! let profile = mpp_profile::read(&dump[..], "heap.prof")?;
//! let table = mpp_profile::analysis::Table::build(&profile, &Default::default());
//! assert_eq!(table.total.bytes, 4096);
//! # Ok::<(), mpp_profile::ReadError>(())
//! ```
//!
//! # Design constraints
//!
//! * **Inputs are hostile.** A reader never panics, reads its input as a stream, keeps no more than a stated multiple of
//!   what it read ([`formats::Limits`]), and names the line or offset at which it gave up.
//! * **The model keeps what the file says.** Amounts are the raw sampled sums where the file tells them; estimates are computed from
//!   them ([`Profile::estimate_of`]), so that nothing is lost by rounding and a profile can be written back as it was.
//! * **All views of one profile agree to the byte.** Estimates become whole numbers once
//!   ([`analysis::Weights`]); tables and flame graphs only add them up.
//! * **Order is deterministic.** The same input gives the same output, whatever the hash seeds.

pub mod analysis;
mod error;
pub mod formats;
mod hashing;
mod model;
pub mod text;
pub mod units;

pub use error::{Position, ReadError, WriteError};
pub use formats::{read, read_with};
pub use model::{
    Amount, Amounts, BuildId, Estimate, Format, Frame, Location, LocationId, Metric, Module, ModuleId, Profile,
    Resolution, Sample, Stack, StackEnd, StackId, Thread, ThreadId, Truncation, TruncationReason, Unit, lookup_address,
};
