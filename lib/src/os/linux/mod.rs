//! Linux on x86-64.

mod environment;
mod file;
pub(crate) mod libc;
mod memory;
mod process;
mod syscall;
#[macro_use]
mod thread;

pub(crate) use environment::*;
pub(crate) use file::*;
pub(crate) use memory::*;
pub(crate) use process::*;
pub(crate) use thread::*;
