//! The real programs, run as a user or another test would run them.

mod cxx;
mod leaky;
mod memory_return;
mod support;
mod workload;
