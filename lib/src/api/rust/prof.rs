//! The sampled profiler: where live memory was allocated, by stack, at no cost to allocations that are not sampled.
//!
//! ```
//! # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
//! use mimalloc_pprof::prof;
//!
//! assert!(prof::start_seeded(4096, 7));
//! let kept: Vec<_> = (0..1000).map(|_| vec![0u8; 100]).collect();
//! let live: u64 = prof::samples().iter().map(|sample| sample.estimated_bytes(4096)).sum();
//! assert!((50_000..250_000).contains(&live)); // an estimate of the 112,000 bytes in `kept`
//! assert!(prof::dump_to_vec().starts_with(b"heap profile: "));
//! prof::stop();
//! # drop(kept);
//! ```

use super::heap::{c_path, told};
use super::sys;
use crate::api::c;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use std::io;
use std::path::Path;
use std::string::String;
use std::vec::Vec;

/// Begin to sample one in about `sample_rate` bytes; 0: as the options say. False: it is running already, or there is no memory.
pub fn start(sample_rate: usize) -> bool {
    c::prof_start(sample_rate)
}

/// [`start`] with a seed: the same seed samples the same allocations of the same threads.
pub fn start_seeded(sample_rate: usize, seed: u64) -> bool {
    c::prof_start_seeded(sample_rate, seed)
}

/// Sample no more, and forget what was found.
pub fn stop() {
    c::prof_stop();
}

/// Whether it is running.
pub fn is_enabled() -> bool {
    c::prof_is_enabled()
}

/// Forget what was allocated and freed so far, but not what is live.
pub fn reset() {
    c::prof_reset();
}

/// Write what was found as text (`docs/formats.md`). The file takes its place when it is complete.
///
/// # Errors
/// What the operating system says, or that the path has a NUL.
pub fn dump_file(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a C string.
    told(unsafe { c::prof_dump(path.as_ptr()) })
}

/// Write what was found as `profile.proto`, which `go tool pprof` reads. The file takes its place when it is complete.
///
/// # Errors
/// As [`dump_file`].
pub fn dump_proto_file(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a C string.
    told(unsafe { c::prof_dump_proto(path.as_ptr()) })
}

/// What [`dump_file`] writes. Empty if there is no memory.
pub fn dump_to_vec() -> Vec<u8> {
    // SAFETY: the function gets the vector, no longer than the call takes.
    collected(|function, vector| unsafe { c::prof_dump_writer(function, vector) })
}

/// What [`dump_proto_file`] writes. Empty if there is no memory.
pub fn dump_proto_to_vec() -> Vec<u8> {
    // SAFETY: as above.
    collected(|function, vector| unsafe { c::prof_dump_proto_writer(function, vector) })
}

fn collected(dump: impl FnOnce(Option<c::DumpFn>, *mut c_void) -> bool) -> Vec<u8> {
    unsafe extern "C" fn add(vector: *mut c_void, bytes: *const c_char, length: usize) {
        // SAFETY: the vector of the caller's, and so many bytes.
        unsafe { (*vector.cast::<Vec<u8>>()).extend_from_slice(core::slice::from_raw_parts(bytes.cast(), length)) }
    }
    let mut bytes = Vec::new();
    if !dump(Some(add), (&raw mut bytes).cast()) {
        bytes.clear();
    }
    bytes
}

/// What was sampled, in numbers of blocks and usable bytes: plain sums, not estimates.
#[derive(Debug, Clone, Default)]
pub struct ProfStats {
    /// It is running.
    pub enabled: bool,
    /// What was allocated is counted, too: always.
    pub accum: bool,
    /// Mean distance between samples, in bytes.
    pub sample_rate: usize,
    /// Live blocks.
    pub live_samples: usize,
    /// Their bytes.
    pub live_bytes: usize,
    /// Blocks ever allocated.
    pub accum_samples: usize,
    /// Their bytes.
    pub accum_bytes: usize,
    /// Different stacks.
    pub unique_stacks: usize,
    /// Bytes that the profiler takes.
    pub arena_committed: usize,
    /// Samples that were dropped for lack of room for stacks.
    pub stack_table_overflows: usize,
    /// Samples that were dropped for any reason.
    pub dropped_samples: usize,
    /// The whole heap, exactly.
    pub heap: HeapStats,
}

/// The whole heap, at the same moment.
#[derive(Debug, Clone, Default)]
pub struct HeapStats {
    /// Bytes that may be in memory.
    pub committed: usize,
    /// Bytes of address space.
    pub reserved: usize,
    /// 0: not counted.
    pub malloc_requested: usize,
    /// Slabs and larger blocks.
    pub pages: usize,
    /// 0.
    pub pages_abandoned: usize,
    /// Heaps.
    pub heaps: usize,
    /// Parts of heaps, one for each thread that uses them.
    pub theaps: usize,
    /// Bytes ever given back to the operating system.
    pub purged: usize,
    /// `malloc_requested` is counted: never.
    pub detailed: bool,
}

/// How much was sampled, and what the heap is like.
pub fn stats() -> ProfStats {
    // SAFETY: zero is a value of all of its fields; size and version are set.
    let raw = unsafe {
        let mut raw: sys::mi_prof_stats_t = MaybeUninit::zeroed().assume_init();
        (raw.size, raw.version) = (size_of::<sys::mi_prof_stats_t>(), sys::MI_PROF_STAT_VERSION);
        c::prof_stats_get(&raw mut raw);
        raw
    };
    ProfStats {
        enabled: raw.enabled,
        accum: raw.accum,
        sample_rate: raw.sample_rate,
        live_samples: raw.live_samples,
        live_bytes: raw.live_bytes,
        accum_samples: raw.accum_samples,
        accum_bytes: raw.accum_bytes,
        unique_stacks: raw.unique_stacks,
        arena_committed: raw.arena_committed,
        stack_table_overflows: raw.stack_table_overflows,
        dropped_samples: raw.dropped_samples,
        heap: HeapStats {
            committed: raw.heap_committed,
            reserved: raw.heap_reserved,
            malloc_requested: raw.heap_malloc_requested,
            pages: raw.heap_pages,
            pages_abandoned: raw.heap_pages_abandoned,
            heaps: raw.heap_count,
            theaps: raw.theap_count,
            purged: raw.heap_purged,
            detailed: raw.heap_stats_detailed,
        },
    }
}

/// A stack and what was sampled there.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Return addresses, innermost first: look up one byte before.
    pub stack: Vec<usize>,
    /// Sampled blocks that are live.
    pub live_objects: usize,
    /// Their usable bytes.
    pub live_bytes: usize,
    /// Blocks ever sampled.
    pub accum_objects: usize,
    /// Their usable bytes.
    pub accum_bytes: usize,
}

impl Sample {
    /// An estimate of all live bytes from this stack. It takes the blocks to be of one size, so it is exact in the mean only if they are; a dump has
    /// each size apart.
    pub fn estimated_bytes(&self, sample_rate: usize) -> u64 {
        if self.live_objects == 0 || sample_rate <= 1 {
            return self.live_bytes as u64;
        }
        let (bytes, rate) = (self.live_bytes as f64, sample_rate as f64);
        // The chance of a block to be sampled.
        let chance = -(-bytes / self.live_objects as f64 / rate).exp_m1();
        if chance > 0.0 { (bytes / chance).round() as u64 } else { 0 }
    }
}

/// Every stack, as it is now.
pub fn samples() -> Vec<Sample> {
    unsafe extern "C" fn add(info: *const c::SampleInfo, samples: *mut c_void) -> bool {
        // SAFETY: the vector of the caller's; a stack has as many addresses as it says.
        unsafe {
            let info = &*info;
            let stack = core::slice::from_raw_parts(info.stack.cast::<usize>(), info.depth).to_vec();
            (*samples.cast::<Vec<Sample>>()).push(Sample {
                stack,
                live_objects: info.live_objects,
                live_bytes: info.live_bytes,
                accum_objects: info.accum_objects,
                accum_bytes: info.accum_bytes,
            });
        }
        true
    }
    let mut samples = Vec::new();
    // SAFETY: the visitor gets the vector, no longer than the call takes.
    unsafe { c::prof_visit(Some(add), (&raw mut samples).cast()) };
    samples
}

/// A file with code in the process.
#[derive(Debug, Clone)]
pub struct ModuleInfo {
    /// Its path.
    pub path: String,
    /// Where it is mapped.
    pub base: usize,
    /// Bytes.
    pub size: usize,
}

/// Every file that has code in the process.
///
/// ```
/// let own = std::env::current_exe().unwrap();
/// let modules = mimalloc_pprof::prof::modules();
/// assert!(modules.iter().any(|module| std::path::Path::new(&module.path) == own));
/// ```
pub fn modules() -> Vec<ModuleInfo> {
    unsafe extern "C" fn add(info: *const sys::mi_prof_module_info_t, modules: *mut c_void) -> bool {
        // SAFETY: the vector of the caller's, and a C string.
        unsafe {
            let sys::mi_prof_module_info_t { path, base, size } = *info;
            let path = CStr::from_ptr(path).to_string_lossy().into_owned();
            (*modules.cast::<Vec<ModuleInfo>>()).push(ModuleInfo { path, base, size });
        }
        true
    }
    let mut modules = Vec::new();
    // SAFETY: as above.
    unsafe { sys::mi_prof_modules_visit(add, (&raw mut modules).cast()) };
    modules
}
