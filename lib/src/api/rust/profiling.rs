//! One call to begin with.

use super::heap::c_path;
use super::sys;
use crate::api::c;
use core::ffi::c_int;
use std::path::PathBuf;

/// Begin to sample as the options and the environment say. False: it is running already, or there is no memory.
pub fn enable_heap_profiling() -> bool {
    c::prof_start(0)
}

/// What counts more: [`ProfConfig`], or what the environment and the options say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ProfConfigMode {
    /// Only what nothing else has said.
    #[default]
    Fallback,
    /// Whatever else was said. The options are changed.
    Override,
}

/// The form of the dump at the end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum DumpFormat {
    /// Text.
    #[default]
    Text,
    /// `profile.proto`.
    Proto,
}

/// How to profile. What is `None`, false or the default says nothing.
#[non_exhaustive]
#[derive(Debug, Clone, Default)]
pub struct ProfConfig {
    /// What counts more.
    pub mode: ProfConfigMode,
    /// Mean distance between samples, in bytes.
    pub sample_interval: Option<usize>,
    /// Address space for stacks and counts, in bytes.
    pub max_profiler_bytes: Option<usize>,
    /// The same seed samples in the same way.
    pub seed: Option<u64>,
    /// Accepted: what was allocated is always counted.
    pub accum: bool,
    /// Most frames of a stack.
    pub max_stack_depth: Option<usize>,
    /// Where to write a dump when the process ends: `%p` is the process id.
    pub dump_at_exit: Option<PathBuf>,
    /// Its form.
    pub dump_format: DumpFormat,
}

/// [`enable_heap_profiling`] as this says. False also if the path has a NUL.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let mut config = mimalloc_pprof::ProfConfig::default();
/// config.sample_interval = Some(64 * 1024);
/// assert!(mimalloc_pprof::enable_heap_profiling_with(&config));
/// assert_eq!(mimalloc_pprof::prof::stats().sample_rate, 64 * 1024);
/// # mimalloc_pprof::prof::stop();
/// ```
pub fn enable_heap_profiling_with(config: &ProfConfig) -> bool {
    let Ok(path) = config.dump_at_exit.as_deref().map(c_path).transpose() else { return false };
    let raw = sys::mi_prof_config_t {
        size: size_of::<sys::mi_prof_config_t>(),
        version: sys::MI_PROF_CONFIG_VERSION,
        mode: config.mode as c_int,
        sample_interval: config.sample_interval.unwrap_or(0),
        max_profiler_bytes: config.max_profiler_bytes.unwrap_or(0),
        seed: config.seed.unwrap_or(0),
        accum: config.accum,
        max_stack_depth: config.max_stack_depth.unwrap_or(0),
        dump_at_exit: path.as_ref().map_or(core::ptr::null(), |path| path.as_ptr()),
        dump_format: config.dump_format as c_int,
    };
    // SAFETY: size and version are set; the path is a C string or null.
    unsafe { c::prof_start_ex(&raw const raw) }
}
