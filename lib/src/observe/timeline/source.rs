//! What the sampler knows of sites and threads.

use crate::observe::sampler::{self, Hold};
use crate::observe::unwind::End;

pub(super) use crate::observe::sampler::threads::{NAME, thread};

/// The sampling run whose sites can be looked at as long as this is there.
pub(super) struct Held(Hold);

/// What is known of a site.
pub(super) struct Source<'a> {
    pub(super) frames: &'a [usize],
    pub(super) end: End,
    pub(super) stack: u32,
    pub(super) block_size: u64,
    pub(super) thread: u32,
}

impl Held {
    /// The present run.
    pub(super) fn now() -> Option<Held> {
        sampler::hold().map(Held)
    }

    /// Its number.
    pub(super) fn run(&self) -> u32 {
        self.0.number()
    }

    /// Bytes between samples.
    pub(super) fn rate(&self) -> u64 {
        self.0.rate()
    }

    /// When it began, as [`now`](crate::os::now) tells time.
    pub(super) fn started(&self) -> u64 {
        self.0.started()
    }

    /// A site of this run.
    pub(super) fn site(&self, number: u32) -> Source<'_> {
        let site = self.0.site(number);
        Source {
            frames: site.frames(),
            end: site.end(),
            stack: site.stack(),
            block_size: site.block_size(),
            thread: site.thread(),
        }
    }
}
