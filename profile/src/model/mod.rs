//! What a heap profile is made of: modules, locations, stacks and samples, all owned by one [`Profile`].
//!
//! Parts refer to each other by index ([`ModuleId`], [`LocationId`], [`StackId`]); an index is only meaningful in the
//! profile it came from.

mod estimate;
mod location;
mod module;
mod profile;
mod sample;
mod stack;
mod thread;

pub use estimate::Estimate;
pub use location::{Frame, Location, LocationId, lookup_address};
pub use module::{BuildId, Module, ModuleId};
pub use profile::{Amounts, Format, Profile, Resolution};
pub use sample::{Amount, Metric, Sample, Unit};
pub use stack::{Stack, StackEnd, StackId, Truncation, TruncationReason};
pub use thread::{Thread, ThreadId};

pub(crate) use module::module_at;
