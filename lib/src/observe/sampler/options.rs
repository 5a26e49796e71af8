//! How to sample.

use super::MOST_FRAMES;
use crate::options::{self, Name};
use crate::os;

/// Sampling rate when it is set to none, in bytes.
const RATE: u64 = 512 * 1024;
/// Memory when no limit is given, in bytes of address space.
const MEMORY: u64 = 64 << 20;

/// How to sample.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Mean distance between samples, in bytes.
    pub(crate) rate: u64,
    /// The same seed samples the same sequence of allocations in the same way.
    pub(crate) seed: u64,
    /// Frames kept of each stack.
    pub(crate) depth: usize,
    /// Memory for stacks and sites, in bytes.
    pub(crate) memory: usize,
}

impl Options {
    /// As the environment and the program have set the options of mimalloc's interface.
    pub(crate) fn as_set() -> Options {
        let seed = options::get(Name::ProfSeed) as u64;
        Options {
            rate: options::get_positive(Name::ProfSampleRate).unwrap_or(RATE),
            seed: if seed == 0 { os::random_seed() } else { seed },
            depth: options::get_positive(Name::ProfBtMax).unwrap_or(MOST_FRAMES as u64) as usize,
            memory: options::get_positive(Name::ProfMaxBytes).unwrap_or(MEMORY) as usize,
        }
    }
}
