//! Which of a sample's values is which.

use super::raw::Raw;
use super::{Stop, Wrong};
use crate::error::ReadError;
use crate::model::Amount;

/// Where in the values of a sample the amounts are; `None` where the file does not have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    live_objects: Option<usize>,
    live_bytes: Option<usize>,
    allocated_objects: Option<usize>,
    allocated_bytes: Option<usize>,
    peak_objects: Option<usize>,
    peak_bytes: Option<usize>,
    temporary_objects: Option<usize>,
    temporary_bytes: Option<usize>,
}

/// Names of types that tell what else a profile may be of.
const OTHERS: &[(&str, &str)] = &[
    ("cpu", "a CPU profile of pprof"),
    ("samples", "a CPU profile of pprof"),
    ("wall", "a profile of time of pprof"),
    ("contentions", "a lock contention profile of pprof"),
    ("delay", "a lock contention profile of pprof"),
    ("goroutine", "Go's goroutine profile"),
    ("threadcreate", "Go's thread profile"),
];

impl Columns {
    pub(super) fn find(raw: &Raw, name: &str) -> Result<Self, Stop> {
        let mut columns = Self::default();
        let mut seen = Vec::new();
        for (index, value_type) in raw.types.iter().enumerate() {
            let (kind, unit) =
                (raw.string(value_type.name, value_type.offset)?, raw.string(value_type.unit, value_type.offset)?);
            if seen.contains(&(kind, unit)) {
                let message = "a type of values occurs twice; if two profiles were joined, split them";
                return Err(Wrong::damaged(value_type.offset, message).into());
            }
            seen.push((kind, unit));
            let column = match (kind, unit) {
                ("inuse_objects" | "objects", _) => &mut columns.live_objects,
                ("inuse_space" | "space", "bytes" | "byte") => &mut columns.live_bytes,
                ("alloc_objects", _) => &mut columns.allocated_objects,
                ("alloc_space", "bytes" | "byte") => &mut columns.allocated_bytes,
                ("peak_objects", _) => &mut columns.peak_objects,
                ("peak_space", "bytes" | "byte") => &mut columns.peak_bytes,
                ("temp_objects", _) => &mut columns.temporary_objects,
                ("temp_space", "bytes" | "byte") => &mut columns.temporary_bytes,
                _ => continue,
            };
            column.get_or_insert(index);
        }
        if columns.live_bytes.is_some() || columns.allocated_bytes.is_some() {
            return Ok(columns);
        }
        let other = OTHERS.iter().find(|(kind, _)| seen.iter().any(|(known, _)| known == kind));
        let what = other.map_or("a pprof profile of something other than memory", |&(_, what)| what);
        Err(Stop::Other(ReadError::Unsupported { name: name.to_owned(), what, advice: "take a heap profile" }))
    }

    /// What is live, was allocated, was live at the peak, and came and went at once, in the values of one sample.
    pub(super) fn amounts(&self, values: &[u64]) -> [Amount; 4] {
        let value = |column: Option<usize>| column.map_or(0, |index| values[index]);
        let amount = |objects, bytes| Amount { objects: value(objects), bytes: value(bytes) };
        [
            amount(self.live_objects, self.live_bytes),
            amount(self.allocated_objects, self.allocated_bytes),
            amount(self.peak_objects, self.peak_bytes),
            amount(self.temporary_objects, self.temporary_bytes),
        ]
    }
}
