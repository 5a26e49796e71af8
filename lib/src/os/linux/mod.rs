//! Linux on x86-64.

#[allow(dead_code, reason = "for the layer that returns memory")]
mod cgroup;
#[allow(dead_code, reason = "for the layer that returns memory")]
mod clock;
#[allow(dead_code, reason = "for the layer that returns memory")]
mod discard;
mod environment;
mod file;
#[allow(dead_code, reason = "for the layer that returns memory")]
pub(crate) mod libc;
mod memory;
#[allow(dead_code, reason = "for the layer that returns memory")]
mod pressure;
mod process;
mod syscall;
#[macro_use]
mod thread;
#[allow(dead_code, reason = "for the layer that returns memory")]
mod worker;

#[allow(unused_imports, reason = "for the layer that returns memory")]
pub(crate) use {clock::*, discard::*, pressure::*, worker::*};

pub(crate) use environment::*;
pub(crate) use file::*;
pub(crate) use memory::*;
pub(crate) use process::*;
pub(crate) use thread::*;
