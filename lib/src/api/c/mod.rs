//! The C functions, without their names.
//!
//! The names are given by `lib/preload`, which exports them; what they promise is written in `lib/include/mimalloc.h`,
//! and what of mimalloc's interface is not there (yet) in `docs/api.md`. All are thread-safe; none unwinds.

mod aligned;
mod arenas;
mod blocks;
mod dhat;
mod failure;
mod glibc;
mod guarding;
mod heap_dump;
mod heaps;
mod holes;
mod hooks;
mod memory;
mod options;
mod placement;
mod process;
mod prof;
mod prof_dump;
mod purging;
mod reported;
mod standard;
pub mod stats;
mod strings;
mod subprocs;
mod text;
mod theaps;
mod unwrapped;
mod visit;
mod zeroing;

pub use aligned::*;
pub use arenas::*;
pub use blocks::*;
pub use dhat::*;
pub use failure::overflow;
pub use glibc::*;
pub use guarding::*;
pub use heap_dump::*;
pub use heaps::*;
pub use holes::{purge_holes_report, purge_holes_report_out};
pub(crate) use hooks::slowed;
pub use hooks::{DeferredFreeFn, ErrorFn, register_deferred_free, register_error, register_output};
pub use memory::*;
pub use options::*;
pub use process::*;
pub use prof::*;
pub use prof_dump::*;
pub use purging::*;
pub use reported::*;
pub use standard::*;
pub use strings::*;
pub use subprocs::*;
pub use text::OutputFn;
pub use theaps::*;
pub use unwrapped::*;
pub use visit::*;
pub use zeroing::*;

pub(crate) use failure::failed;

/// In a forked child with one thread.
pub(super) fn repair() {
    hooks::repair();
    purging::repair();
}
