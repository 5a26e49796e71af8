//! From a profile to the numbers of a report.
//!
//! All views share three steps, each in a file of its own: [`Weights`] turns the samples into whole estimated numbers,
//! `frames` turns locations into the frames that are shown, [`runtime`] says which frames are not the user's own code.

mod crates;
pub mod diff;
mod folded;
mod footprint;
mod frames;
pub mod growth;
mod merge;
mod modules;
pub mod moment;
pub mod occupancy;
mod pairing;
mod peek;
mod quality;
pub mod runtime;
mod select;
pub mod symbol_name;
mod table;
#[cfg(test)]
mod test_profile;
mod tree;
mod weights;

pub use folded::Folded;
pub use footprint::Footprint;
pub use frames::location_label;
pub use merge::Merger;
pub use modules::ModuleShare;
pub use peek::{Neighbour, Peek};
pub use quality::{Quality, Resolved};
pub use table::{Row, Table};
pub use tree::{Node, Tree};
pub use weights::{Sum, Weights};

use crate::model::{Metric, Unit};

/// How a report looks at a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Live, allocated or freed blocks.
    pub metric: Metric,
    /// What weighs: bytes or blocks.
    pub unit: Unit,
    /// What becomes of frames that are not the user's own.
    pub runtime: RuntimeFrames,
    /// What makes two frames the same.
    pub group: Group,
    /// Show functions that were inlined; without, only the function that the machine code belongs to.
    pub inlines: bool,
}

impl Default for View {
    fn default() -> Self {
        Self {
            metric: Metric::default(),
            unit: Unit::default(),
            runtime: RuntimeFrames::default(),
            group: Group::default(),
            inlines: true,
        }
    }
}

/// What becomes of frames of the allocator, libc, and the C++ and Rust standard libraries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RuntimeFrames {
    /// Those at the leaf are folded into the first function that is the user's own. Others (callbacks through `qsort`,
    /// the start of the program) stay. A stack without any user frame keeps its innermost frame outside the
    /// allocator or, when there is none, its innermost frame.
    #[default]
    Collapse,
    /// All stay.
    Show,
    /// All go, wherever they are. A stack without any user frame is treated as by `Collapse`.
    Hide,
}

/// What makes two frames the same, and hence one row of a table or one box of a flame graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Group {
    /// The function: its name and source file or, without line information, its module.
    #[default]
    Function,
    /// The function and line.
    Line,
    /// The source file; without line information, the module.
    File,
    /// The Rust crate that the function is of; for functions of other languages, the module.
    Crate,
    /// The module, by file name.
    Library,
    /// The thread that has allocated. All frames of a sample are one.
    Thread,
    /// The size of the blocks, by powers of two. All frames of a sample are one.
    Size,
}
