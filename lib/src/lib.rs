//! # mimalloc-pprof
//!
//! A memory allocator that shows where memory goes. As a Rust crate it is a [global allocator](MiMalloc); as
//! `libmimalloc_pprof.so` (package `mimalloc-pprof-preload`) it is preloaded under unmodified programs.
//!
//! ## Layers
//!
//! A module may use only those below it; a test holds the source to that.
//!
//! ```text
//! api/        what users touch: GlobalAlloc, the C functions
//! observe/    sampler, stack capture, sites, dump
//! reclaim/    returning memory to the operating system
//! heap/       size classes, stacks of cached blocks, slabs, spans, thread life, fork
//! arena/      address space: slices and what is known of them
//! options/    numbers that the environment and the program set
//! os/         the only code that talks to an operating system or an architecture
//! ```
//!
//! What `heap` has to tell `observe` goes through `heap::events::Hooks`, which are connected here.
//!
//! ## Design constraints
//!
//! * The fast paths of `malloc` and `free` touch neither slab metadata nor blocks, take no lock, and are the same bytes
//!   whether instruments run or not.
//! * No allocation from the heap by the allocator itself, no call of the C library under a lock, `errno` kept.
//! * No standard library in the allocator and its instruments: nothing but the C library comes into a program with them. The feature `std`, on by
//!   default, adds the Rust functions that give strings and vectors and take paths, and nothing else.
#![no_std]

#[cfg(any(test, feature = "std"))]
extern crate std;

#[macro_use]
mod os;
mod arena;
mod heap;
mod observe;
pub mod options;
mod reclaim;

pub mod api;
pub use api::global::MiMalloc;
pub use api::rust::*;

/// What a program without the standard library does when something panics: nothing is told, and it ends. Empty with the feature `std`, which brings
/// its own.
#[doc(hidden)]
#[cfg(not(feature = "std"))]
#[macro_export]
macro_rules! panic_handler {
    () => {
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            unsafe extern "C" {
                fn abort() -> !;
            }
            // SAFETY: no preconditions.
            unsafe { abort() }
        }
    };
}

/// As above.
#[doc(hidden)]
#[cfg(feature = "std")]
#[macro_export]
macro_rules! panic_handler {
    () => {};
}

/// The one place where the heap meets the layer above it.
pub(crate) static HOOKS: heap::events::Hooks = heap::events::Hooks {
    started: api::life::start,
    sampled: observe::sampler::sampled,
    dropped: observe::sampler::drop_one,
    released: observe::sampler::released,
    resized: observe::sampler::resized,
    allocated: observe::watch::allocated,
    freed: observe::watch::freed,
    reallocated: observe::watch::reallocated,
    failed: api::c::failed,
    slowed: api::c::slowed,
    drained: reclaim::drained,
    span_freed: reclaim::span_freed,
    leaving: observe::sampler::leaving,
    threads_changed: api::life::threads_changed,
    forked: api::life::forked,
};

/// Text goes where the layer above says.
pub(crate) fn print_options() {
    api::c::options_print();
}
