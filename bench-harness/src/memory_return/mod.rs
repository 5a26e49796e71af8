//! What comes back to the system: planned, measured, and told in tables and charts.
//!
//! ```text
//! catalogue × contenders ──plan──▶ tasks ──measure──▶ results (JSON) ─┬─table──▶ Markdown, in several places of a document
//!                                                                      └─chart──▶ SVG: resident memory over time
//! ```
//!
//! Each row is a line of `mpp-workload return`, which watches its subject from outside. A contender is a peer, or this
//! allocator with other options: returning switched off is what every row is compared with.

pub mod chart;
pub mod measure;
pub mod plan;
pub mod results;
pub mod table;
