//! The performance table: what is planned, how it runs, what comes out, and how it is told.
//!
//! ```text
//! rows × peers × rounds ──plan──▶ schedule ──measure──▶ results (JSON) ──summary──▶ ratios ──table──▶ Markdown
//! ```
//!
//! Nothing is believed: a row counts for a peer only when the program's own `malloc` was seen to be that peer's
//! ([`proof`]), it ended well, and read back what it should.

pub mod machine;
pub mod measure;
pub mod plan;
pub mod programs;
pub mod proof;
pub mod results;
pub mod summary;
pub mod table;
