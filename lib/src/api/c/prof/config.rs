//! A start with everything that can be said about it at once.

use super::{prof_start, start};
use crate::observe::dump::Format;
use crate::observe::life;
use crate::observe::sampler::{self, Options};
use crate::options::{self, Name, Opt};
use core::ffi::{CStr, c_char, c_int};

const VERSION: c_int = 1;
/// Bytes of a path, with its end.
const LONGEST_PATH: usize = 4096;
/// `MI_PROF_CONFIG_FALLBACK`: what the environment or the program has said already counts more.
const FALLBACK: c_int = 0;
/// `MI_PROF_CONFIG_OVERRIDE`: this counts more, and is what the options say from here on.
const OVERRIDE: c_int = 1;

/// `mi_prof_config_t`. Zero, false and null say nothing.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ProfConfig {
    /// Bytes of this structure.
    pub size: usize,
    /// 1.
    pub version: c_int,
    /// 0: only what nothing else has said; 1: whatever else was said.
    pub mode: c_int,
    /// Mean distance between samples, in bytes.
    pub sample_interval: usize,
    /// Address space for stacks and counts, in bytes.
    pub max_profiler_bytes: usize,
    /// The same seed samples in the same way.
    pub seed: u64,
    /// Accepted: what was allocated is always counted.
    pub accum: bool,
    /// Most frames of a stack.
    pub max_stack_depth: usize,
    /// Where to write a dump when the process ends: a pattern.
    pub dump_at_exit: *const c_char,
    /// 0 text, 1 `profile.proto`.
    pub dump_format: c_int,
}

/// `mi_prof_start_ex`: as `mi_prof_start`. False, and nothing has changed, also for a size, a version or a mode that is not known.
///
/// # Safety
/// `config` is null or points to an `mi_prof_config_t` whose first two fields are set; its path is null or a string.
pub unsafe fn prof_start_ex(config: *const ProfConfig) -> bool {
    if config.is_null() {
        return prof_start(0);
    }
    // SAFETY: the caller's promise; the rest is read when the size is right.
    let is_known = unsafe { (*config).size == size_of::<ProfConfig>() && (*config).version == VERSION };
    if !is_known || sampler::hold().is_some() || sampler::is_looked_at_here() {
        return false;
    }
    // SAFETY: as above.
    let config = unsafe { &*config };
    if !matches!(config.mode, FALLBACK | OVERRIDE) || !matches!(config.dump_format, 0 | 1) {
        return false;
    }
    // SAFETY: the caller's promise.
    if !config.dump_at_exit.is_null() && unsafe { CStr::from_ptr(config.dump_at_exit) }.count_bytes() >= LONGEST_PATH {
        return false;
    }
    let overrides = config.mode == OVERRIDE;
    let said = |name: Name, value: u64| {
        if value == 0 || (!overrides && options::is_given(name)) {
            return None;
        }
        if overrides {
            options::set_number(name as usize, value as i64);
        }
        Some(value)
    };
    if overrides && config.accum {
        options::enable(Opt::PROF_ACCUM);
    }
    let as_set = Options::as_set();
    let options = Options {
        rate: said(Name::ProfSampleRate, config.sample_interval as u64).unwrap_or(as_set.rate),
        seed: said(Name::ProfSeed, config.seed).unwrap_or(as_set.seed),
        depth: said(Name::ProfBtMax, config.max_stack_depth as u64).map_or(as_set.depth, |depth| depth as usize),
        memory: said(Name::ProfMaxBytes, config.max_profiler_bytes as u64)
            .map_or(as_set.memory, |bytes| bytes as usize),
    };
    if !start(options) {
        return false;
    }
    if !config.dump_at_exit.is_null() {
        // SAFETY: the caller's promise.
        let pattern = unsafe { CStr::from_ptr(config.dump_at_exit) }.to_bytes();
        life::dump_at_exit(pattern, overrides);
    }
    if config.dump_format == 1 {
        life::dump_format(Format::Proto, overrides);
    }
    true
}
