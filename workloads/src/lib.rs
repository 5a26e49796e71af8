//! The small programs that are measured and profiled. Each knows its own truth and prints it.
//!
//! | program | what it does | what it prints |
//! |---|---|---|
//! | `leaky` | allocates from many kinds of places and keeps a known part ([`leaky`]) | which function and line keeps how many blocks and bytes |
//! | `churn` | a burst, most of it freed, then idle ([`churn`]) | resident memory at the end of each phase, and a checksum |
//! | `mpp-workload` | one pattern of allocations ([`measured`]) | processor time per operation, peak memory, a checksum |
//!
//! # Design constraints
//!
//! * Every allocation goes through plain `malloc` (Rust's `System` allocator, or the C functions themselves): whatever
//!   allocator or profiler is preloaded sees it. No workload sets a global allocator.
//! * The truth comes from the place that allocates (`file!()`, `line!()` and the compiler's own name of the function, taken
//!   on the line of the call), not from a list beside it.
//! * The operations follow from the seed alone, never from the allocator, addresses or time.
//! * A workload's own bookkeeping is small, is allocated before or after the measured part, and never inside a function
//!   that the truth names.
//! * `unsafe` appears where a block is raw memory or comes out of a shared library, and nowhere else.

pub mod churn;
pub mod driver;
pub mod leaky;
pub mod measured;
