//! Linux on x86-64.

mod append;
mod cgroup;
mod clock;
mod descriptor;
mod discard;
mod environment;
mod file;
mod handler;
pub(crate) mod libc;
mod memory;
mod own;
mod pressure;
mod process;
mod signal;
mod socket;
mod stack;
mod standard_error;
mod syscall;
#[macro_use]
mod thread;
mod worker;

pub(crate) use {append::*, clock::*, discard::*, handler::*, pressure::*, socket::*, stack::*, worker::*};

pub(crate) use descriptor::*;
pub(crate) use environment::*;
pub(crate) use file::*;
pub(crate) use memory::*;
pub(crate) use own::*;
pub(crate) use process::*;
pub(crate) use signal::*;
pub(crate) use standard_error::*;
pub(crate) use thread::*;
