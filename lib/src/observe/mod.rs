//! The instruments: what looks into the heap while it is used.
//!
//! The road of a sample: the heap draws an allocation → [`sampler`] walks the stack ([`unwind`]) → stack, block size and thread
//! make a site, counted there → at the end of the process, or when asked, [`dump`] writes all sites with the modules
//! ([`modules`]) that their addresses lie in.
//!
//! What is done while the program runs (dumps that something [triggers], snapshots) is done by a thread of ours or in passing:
//! [`observer`].
//!
//! [`heapdump`] tells what the whole heap holds.
//!
//! Nothing here allocates from the heap, takes a foreign lock while sampling, or is needed for allocation.

pub(crate) mod control;
pub(crate) mod dump;
pub(crate) mod events;
pub(crate) mod exact;
mod files;
mod footprint;
pub(crate) mod heapdump;
mod inherited;
pub(crate) mod life;
mod marks;
pub(crate) mod modules;
pub(crate) mod observer;
pub(crate) mod output;
pub(crate) mod path;
mod room;
pub(crate) mod sampler;
mod settings;
pub(crate) mod timeline;
mod triggers;
mod unwind;
mod values;
pub(crate) mod watch;
