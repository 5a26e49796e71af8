//! What Rust programs may call besides [`MiMalloc`](crate::MiMalloc): blocks and returning memory here, [`stats`] beside; the
//! [options](crate::options) are a layer of their own.
//!
//! What is here has the names and the meaning that it has in the crate `mimalloc-pprof` 1.x. What needs the standard library (`String`, `Vec`, files) is
//! there with the feature `std`, which is on by default; the libraries that are preloaded and linked do without.

mod blocks;
#[cfg(feature = "std")]
pub mod dhat;
#[cfg(feature = "std")]
mod heap;
mod life;
pub mod memory_events;
#[cfg(feature = "std")]
pub mod prof;
#[cfg(feature = "std")]
mod profiling;
mod purging;
pub mod stats;
pub mod sys;

pub use blocks::{
    collect, expand, good_size, recalloc, rezalloc, unwrapped_free, unwrapped_malloc, unwrapped_realloc, usable_size,
};
#[cfg(feature = "std")]
pub use heap::{HEAP_DUMP_JSON_DEFAULT_WAIT_MS, heap_dump_json, heap_dump_json_ex, heap_snapshot_to_file};
#[cfg(feature = "std")]
pub use profiling::{DumpFormat, ProfConfig, ProfConfigMode, enable_heap_profiling, enable_heap_profiling_with};
pub use purging::{
    IdlePark, PURGE_ALL_DEFAULT_WAIT_MS, PurgeAllReport, PurgeFlags, PurgeHolesStats, PurgeStatus, on_thread_idle,
    park_while_idle, purge_all, purge_all_ex, purge_holes_report, purge_holes_report_to, purge_holes_stats,
    scavenger_stop,
};
