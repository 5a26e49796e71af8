//! The allocator as a library that replaces `malloc`: preloaded (`libmimalloc_pprof.so`) or linked (`libmimalloc_pprof.a`).
//!
//! This crate only gives names to the functions of `mimalloc_pprof::api::c`. It is apart from that crate because names
//! such as `malloc` must not come along with a Rust dependency, and it uses no standard library, so that it brings
//! nothing but the C library into the programs it is loaded into.
#![no_std]
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "the C standard and lib/include/mimalloc.h say what these functions do"
)]

mod cxx;
mod life;
mod loader;
mod malloc;
mod mi;
mod mi_arenas;
mod mi_dhat;
mod mi_heaps;
mod mi_memory;
mod mi_posix;
mod mi_process;
mod mi_prof;
mod mi_prof_dump;

#[link(name = "c")]
unsafe extern "C" {}

// The core library was compiled to be able to unwind and so names a personality routine. Nothing here unwinds; weak and
// hidden, so that a Rust program that links the static library keeps its own.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    "ud2"
);

// Nothing here panics on purpose; if a check fails, memory can no longer be trusted. (Where the whole workspace is compiled at once, the standard library comes
// with the crate's other users, and has a handler of its own.)
#[cfg(not(test))]
allocator::panic_handler!();
