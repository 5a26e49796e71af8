//! Paired measurements of allocators, and the statistics that decide.
//!
//! Contenders run in randomised blocks: within one block each runs once, one right after the other, so that what disturbs
//! one disturbs the others too. [`stats`] turns the blocks into an effect with a confidence interval, [`verdict`] turns
//! that into pass, fail or "cannot tell", and [`rss`] reads the memory of a running process.
//!
//! [`performance`] is the table of this allocator and its [`peers`]: planned, run, summed up and written. [`memory_return`] is
//! the same for what comes back to the system, and [`overhead`] for what watching costs, [`symbols`] for looking up addresses. [`child`] runs one program with a limit on its time.
//!
//! # Design constraints
//!
//! * Ratios, not differences, are compared, and always within a block: the machine's state cancels.
//! * The median of log ratios is the effect, so that slow outliers weigh as little as fast ones, and swapping the two
//!   contenders gives the reciprocal. No measurement is removed.
//! * The same measurements and the same seed give the same interval, bit for bit, on every machine.
//! * Too few blocks are no evidence: the answer is then "inconclusive", never a guess.
//! * Only [`peers`] knows particular allocators. Nothing is linked to any: they are preloaded into programs.
//! * A contender that is missing, crashes, hangs, or is not really in use is named and left out, never guessed.

pub mod child;
pub mod document;
pub mod error;
pub mod memory_return;
pub mod overhead;
pub mod peers;
pub mod performance;
pub mod progress;
pub mod rss;
pub mod stats;
pub mod symbols;
pub mod verdict;

pub use error::BenchError;
