//! What Rust programs may call besides [`MiMalloc`](crate::MiMalloc): blocks and returning memory here, [`stats`] beside; the
//! [options](crate::options) are a layer of their own.
//!
//! None of it needs the standard library or the crate `alloc`, and the crate stays without features: text goes into whatever
//! the caller can write to, and `String` is only one such thing.

mod blocks;
mod life;
mod purging;
pub mod stats;

pub use blocks::{collect, expand, good_size, recalloc, rezalloc, usable_size};
pub use purging::{
    IdlePark, PURGE_ALL_DEFAULT_WAIT_MS, PurgeAllReport, PurgeFlags, PurgeHolesStats, PurgeStatus, on_thread_idle,
    park_while_idle, purge_all, purge_all_ex, purge_holes_report, purge_holes_report_to, purge_holes_stats,
    scavenger_stop,
};
