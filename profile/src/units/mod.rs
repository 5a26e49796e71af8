//! Bytes, counts, percentages and durations as people write and read them.
//!
//! This is the only place where numbers are made into text for people; what machines read uses plain integers.

mod print;
mod read;

pub use print::{bytes, count, duration, percent};
pub use read::{UnitError, parse_duration, parse_size};
