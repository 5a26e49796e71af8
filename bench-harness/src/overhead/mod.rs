//! What watching costs: one library without and with each of its instruments, and other tools, on the same programs.
//!
//! [`modes`] says which, [`table`] writes what came out. Everything else is that of [`performance`](crate::performance): the same rows,
//! the same rounds, the same proofs, and of an instrument also the file that it must leave.

pub mod gauge;
pub mod modes;
pub mod results;
pub mod table;
