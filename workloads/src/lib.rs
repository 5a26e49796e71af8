//! The small programs that are measured and profiled. Each knows its own truth and prints it.
//!
//! | program | what it does | what it prints |
//! |---|---|---|
//! | `leaky` | allocates from many kinds of places and keeps a known part ([`leaky`]) | which function and line keeps how many blocks and bytes |
//! | `mpp-workload` | one pattern of allocations ([`measured`]) | processor time per operation, peak memory, a checksum |
//! | `mpp-workload return` | a burst, most of it freed, then watched from outside ([`memory_return`]) | what came back when, and what that cost |
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

pub mod driver;
pub mod leaky;
pub mod measured;
pub mod memory_return;
