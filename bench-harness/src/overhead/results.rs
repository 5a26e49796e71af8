//! Measurements as they are kept.

use serde::{Deserialize, Serialize};

use super::gauge::Gauge;
use crate::performance::results::Results;

/// The schema of the file.
pub const SCHEMA: &str = "mpp-profiling-overhead";
/// Rises when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// All of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub schema_version: u32,
    /// Our library in its modes.
    pub modes: Results,
    /// How much each row of that allocates; `None` where it could not be had.
    pub gauges: Vec<Option<Gauge>>,
    /// Other tools, if they were asked for.
    pub tools: Option<Results>,
    /// Tools that are not installed.
    pub missing: Vec<String>,
}
