//! What can go wrong.

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There is nothing to compare.
    #[error("no measurements: at least one block is needed")]
    NoBlocks,
    /// A measurement that no ratio can be taken of.
    #[error("block {block}: measured {value}, expected a number above 0")]
    NotPositive {
        /// The number of the block, from 0.
        block: usize,
        /// What was measured.
        value: f64,
    },
    /// A threshold that says nothing.
    #[error("a threshold of {0}, expected a ratio above 0 such as 1.05")]
    Threshold(f64),
    /// The memory of a process cannot be read.
    #[error("cannot read the memory of process {pid} from {path}: {source}")]
    Memory {
        /// The process.
        pid: u32,
        /// The file.
        path: String,
        /// What happened. `InvalidData` means that the process has no memory: it has ended, or it is a kernel thread.
        source: std::io::Error,
    },
}
