//! Rows that are measured: each a pattern of calls to the C allocator, whichever the program was started with.
//!
//! `malloc` and its siblings are called straight, so the timed loops hold nothing of Rust's own allocation functions. Every
//! row follows from its seed, stamps what it allocates, and reads it back: in a part of its own before the timing where a
//! read would be a large share of the work, else always. The checksum is the same whatever the allocator.
//!
//! [`catalogue`] names the rows of the performance table, [`family`] has their parameters; each other file is one idea.

pub mod batch;
pub mod births;
pub mod block;
pub mod catalogue;
pub mod crew;
pub mod family;
pub mod growth;
pub mod handoff;
pub mod mix;
pub mod pair;
pub mod shapes;
pub mod sizes;
pub mod timing;
pub mod window;
