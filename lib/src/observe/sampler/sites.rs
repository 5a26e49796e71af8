//! Sites: one for each stack, block size and thread that was sampled, with its counts.

use super::lifetimes::LIFETIMES;
use super::peak::AtPeak;
use super::run::{self, Hold, Run};
use super::scale::scale;
use super::stacks::Stack;
use super::table::mix;
use crate::heap::events::Ended;
use crate::observe::unwind::End;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// What makes a site that site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) stack: u32,
    pub(super) thread: u32,
    pub(super) block_size: u64,
}

/// One site. It stays where it is as long as its run is [held](super::hold).
#[repr(C, align(16))]
pub(crate) struct Site {
    key: Key,
    run: &'static Run,
    at: &'static Stack,
    /// Bytes that each sampled block stands for.
    weight: u64,
    live: AtomicU64,
    live_requested: AtomicU64,
    allocated: AtomicU64,
    allocated_requested: AtomicU64,
    freed: AtomicU64,
    temporary: AtomicU64,
    moved: AtomicU64,
    at_peak: AtPeak,
    lifetimes: [AtomicU32; LIFETIMES],
}

/// What is known of a site: numbers of **sampled** blocks, not estimates, and what was requested in them, in bytes. Their usable bytes
/// are the number of blocks times the [block size](Site::block_size).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) live: u64,
    pub(crate) live_requested: u64,
    /// Since the start of the run, or since its last reset.
    pub(crate) allocated: u64,
    pub(crate) allocated_requested: u64,
    /// Live when the estimated live bytes of the process were highest.
    pub(crate) peak: u64,
    pub(crate) peak_requested: u64,
    /// Freed by the program.
    pub(crate) freed: u64,
    /// Of those, freed by the thread that had allocated them before it allocated anything else.
    pub(crate) temporary: u64,
    /// Ended by a `realloc` that gave another block.
    pub(crate) moved: u64,
    /// Of the freed ones, how long they lived: see [`LIFETIMES`].
    pub(crate) lifetimes: [u32; LIFETIMES],
}

impl Site {
    /// Return addresses, innermost first.
    pub(crate) fn frames(&self) -> &[usize] {
        self.at.frames()
    }

    /// How the walk of the stack ended.
    pub(crate) fn end(&self) -> End {
        self.at.end()
    }

    /// What the addresses mean: see [`modules::generation`](crate::observe::modules::generation).
    pub(crate) fn generation(&self) -> u32 {
        self.at.generation()
    }

    /// Usable bytes of each block.
    pub(crate) fn block_size(&self) -> u64 {
        self.key.block_size
    }

    /// The number of the stack: sites with the same have the same frames.
    pub(crate) fn stack(&self) -> u32 {
        self.key.stack
    }

    /// The number of the [thread](super::threads::thread) that allocates.
    pub(crate) fn thread(&self) -> u32 {
        self.key.thread
    }

    /// Everything that is counted. Other threads go on: what is live is read first, so that a block allocated in between does not make
    /// it exceed what was allocated.
    pub(crate) fn counts(&self) -> Counts {
        let (live, live_requested) = (self.live.load(Relaxed), self.live_requested.load(Relaxed));
        let generation = self.run.peak.generation();
        let (peak, peak_requested) = self.at_peak.get(generation, (live, live_requested));
        Counts {
            live,
            live_requested,
            allocated: self.allocated.load(Relaxed),
            allocated_requested: self.allocated_requested.load(Relaxed),
            peak,
            peak_requested,
            freed: self.freed.load(Relaxed),
            temporary: self.temporary.load(Relaxed),
            moved: self.moved.load(Relaxed),
            lifetimes: core::array::from_fn(|i| self.lifetimes[i].load(Relaxed)),
        }
    }

    /// Count a sampled block. Returns how many bytes it stands for.
    pub(super) fn allocated(&self, requested: u64) -> u64 {
        self.at_peak.keep(self.run.peak.generation(), &self.live, &self.live_requested);
        self.live.fetch_add(1, Relaxed);
        self.live_requested.fetch_add(requested, Relaxed);
        self.allocated.fetch_add(1, Relaxed);
        self.allocated_requested.fetch_add(requested, Relaxed);
        self.run.peak.allocated(self.weight);
        self.weight
    }

    /// A sampled block has come to its end; its life is counted in this number of the histogram.
    pub(super) fn ended(&self, requested: u64, how: Ended, lifetime: usize) {
        self.at_peak.keep(self.run.peak.generation(), &self.live, &self.live_requested);
        self.live.fetch_sub(1, Relaxed);
        self.live_requested.fetch_sub(requested, Relaxed);
        self.run.peak.freed(self.weight);
        if how == Ended::Moved {
            self.moved.fetch_add(1, Relaxed);
            return;
        }
        self.freed.fetch_add(1, Relaxed);
        self.lifetimes[lifetime].fetch_add(1, Relaxed);
        if how == Ended::Temporary {
            self.temporary.fetch_add(1, Relaxed);
        }
    }

    /// A live sampled block has another requested size.
    pub(super) fn resized(&self, before: u64, after: u64) {
        self.at_peak.keep(self.run.peak.generation(), &self.live, &self.live_requested);
        self.live_requested.fetch_add(after.wrapping_sub(before), Relaxed);
    }

    /// Forget all but what is live.
    pub(super) fn reset(&self) {
        for count in [&self.allocated, &self.allocated_requested, &self.freed, &self.temporary, &self.moved] {
            count.store(0, Relaxed);
        }
        self.lifetimes.iter().for_each(|count| count.store(0, Relaxed));
    }
}

/// The number of the site with this key, never 0. `None`: no memory is left for a new one.
pub(super) fn intern(run: &'static Run, key: Key) -> Option<u32> {
    let hash = mix(mix(key.stack as u64, key.block_size), key.thread as u64);
    let make = || {
        let (number, at) = run.room(size_of::<Site>())?;
        let zero = AtomicU64::default;
        let site = Site {
            key,
            run,
            at: run.stack(key.stack),
            weight: (key.block_size as f64 * scale(key.block_size, run.rate())) as u64,
            live: zero(),
            live_requested: zero(),
            allocated: zero(),
            allocated_requested: zero(),
            freed: zero(),
            temporary: zero(),
            moved: zero(),
            at_peak: AtPeak::default(),
            lifetimes: Default::default(),
        };
        // SAFETY: this memory was given to this thread alone.
        unsafe { at.cast::<Site>().write(site) };
        Some(number)
    };
    let found = run.sites.intern(hash, |number| run.site(number).key == key, make)?;
    if found.is_new {
        run.count_site();
    }
    Some(found.number)
}

/// All sites of a run, in no particular order; none if that is not the present run. The run is held as long as the iterator is there;
/// who keeps a site longer [holds](super::hold) the run.
pub(crate) fn all(run: u32) -> impl Iterator<Item = &'static Site> {
    let held = run::hold().filter(|held| held.number() == run);
    let sites = held.as_ref().map(|held| held.run().all_sites());
    Held { _held: held, sites: sites.into_iter().flatten() }
}

/// Sites of a run that is held.
struct Held<I> {
    _held: Option<Hold>,
    sites: I,
}

impl<I: Iterator> Iterator for Held<I> {
    type Item = I::Item;
    fn next(&mut self) -> Option<I::Item> {
        self.sites.next()
    }
}
