//! `mi_prof_…`: the sampled profiler. `lib/include/mimalloc/profile.h` says what is promised.

mod config;
mod samples;
mod stats;

pub use config::{ProfConfig, prof_start_ex};
pub use samples::{
    ProfSnapshot, SampleInfo, SampleVisitor, prof_snapshot_free, prof_snapshot_new, prof_snapshot_visit, prof_visit,
};
pub use stats::{ProfStats, prof_debug_stats, prof_stats_get};

use crate::observe::life;
use crate::observe::sampler::{self, Options};

const _: () = assert!(size_of::<ProfConfig>() == 72 && size_of::<ProfStats>() == 160 && size_of::<SampleInfo>() == 48);

/// `mi_prof_start`: sample one in about `rate` bytes; 0: as the options say. False: it is running, or there is no memory, or this is a
/// visitor.
pub fn prof_start(rate: usize) -> bool {
    start(at_rate(rate))
}

/// `mi_prof_start_seeded`: the same, with a seed.
pub fn prof_start_seeded(rate: usize, seed: u64) -> bool {
    start(Options { seed, ..at_rate(rate) })
}

/// `mi_prof_stop`: sample no more, forget what was found, and give its memory back.
pub fn prof_stop() {
    sampler::stop();
}

/// `mi_prof_is_enabled`.
pub fn prof_is_enabled() -> bool {
    sampler::hold().is_some()
}

/// `mi_prof_reset`: what was allocated and freed so far is forgotten, but not what is live.
pub fn prof_reset() {
    sampler::reset();
}

fn at_rate(rate: usize) -> Options {
    let options = Options::as_set();
    Options { rate: if rate == 0 { options.rate } else { rate as u64 }, ..options }
}

fn start(options: Options) -> bool {
    life::know_own_code();
    sampler::start(&options)
}
