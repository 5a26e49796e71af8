//! What every workload shares: seeded choices, stamps in blocks, command line values, memory figures, and report lines.

pub mod args;
pub mod clock;
pub mod mapped;
pub mod memory;
pub mod report;
pub mod seed;
pub mod stamp;
