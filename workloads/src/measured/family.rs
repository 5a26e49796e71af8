//! The families of measured rows, as subcommands with their parameters.

use clap::Subcommand;

use super::batch::{Batch, Order};
use super::growth::Growth;
use super::handoff::{self, Rings, Sender};
use super::mix::{GENERAL, LARGE, Mixer, Pattern, TINY};
use super::pair::{self, Aligned, Cleared, Fixed, Mixed};
use super::shapes::{cache, espresso, glibc, large, larson, leak, mstress, random, sh, xmalloc};
use super::sizes::Sizes;
use super::timing::{Figures, Settings, measure};
use super::window::Window;
use super::{births, crew};
use crate::driver::args::scaled;

/// A size on the command line: at least a word, where the stamp goes.
fn size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if (super::block::SMALLEST..=1 << 40).contains(&size) => Ok(size),
        _ => Err(format!("`{text}` is not a number of bytes from {} to 2^40", super::block::SMALLEST)),
    }
}

/// An alignment on the command line.
fn alignment(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(alignment) if alignment.is_power_of_two() && (8..=1 << 30).contains(&alignment) => Ok(alignment),
        _ => Err(format!("`{text}` is not a power of two from 8 to 2^30")),
    }
}

/// A range of sizes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Range {
    /// Smallest size in bytes
    #[arg(long, value_parser = size)]
    low: usize,
    /// Largest size in bytes
    #[arg(long, value_parser = size)]
    high: usize,
}

impl Range {
    fn ordered(self) -> (usize, usize) {
        (self.low.min(self.high), self.low.max(self.high))
    }

    fn even(self) -> Sizes {
        let (low, high) = self.ordered();
        Sizes::even(low, high)
    }

    fn doublings(self) -> Sizes {
        let (low, high) = self.ordered();
        Sizes::doublings(low, high)
    }
}

/// What to run. Operations are pairs of malloc and free in the families of one thread, single calls in those of several.
#[derive(Clone, Debug, Subcommand)]
pub enum Family {
    /// malloc, touch, free
    Pair {
        /// Block size in bytes
        #[arg(long, value_parser = size)]
        size: usize,
    },
    /// malloc, touch, free; the sizes change from turn to turn
    Pairmix(Range),
    /// calloc, touch, free
    Calloc {
        /// Block size in bytes
        #[arg(long, value_parser = size)]
        size: usize,
    },
    /// posix_memalign, touch, free
    Aligned {
        /// Alignment in bytes
        #[arg(long, value_parser = alignment)]
        alignment: usize,
        /// Block size in bytes
        #[arg(long, value_parser = size)]
        size: usize,
    },
    /// malloc, write every page, free
    Big {
        /// Block size in bytes
        #[arg(long, value_parser = size)]
        size: usize,
    },
    /// Allocate many blocks, free them all
    Batch {
        /// In which order they are freed
        #[arg(long)]
        order: Order,
        /// Blocks
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
        count: u32,
        /// Sizes of the blocks
        #[command(flatten)]
        range: Range,
    },
    /// Replace random blocks of a live set; small sizes are frequent
    Window {
        /// Live blocks
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
        count: u32,
        /// Sizes of the blocks
        #[command(flatten)]
        range: Range,
    },
    /// realloc from 16 bytes up, each time to twice the size; an operation is a step
    Grow {
        /// Largest size in bytes
        #[arg(long, value_parser = size)]
        limit: usize,
    },
    /// realloc from 16 bytes up, each time by half; an operation is a step
    Grow15 {
        /// Largest size in bytes
        #[arg(long, value_parser = size)]
        limit: usize,
    },
    /// Threads with small short-lived objects
    Tiny,
    /// Threads with a general mix of sizes and lifetimes
    General,
    /// Threads with buffers of 64 KiB to 4 MiB, every page written
    Large,
    /// Threads that send every block to another thread, which frees it
    Handoff,
    /// Threads that allocate 1000 blocks and free them in random order
    Batches,
    /// Threads that are created, replace some blocks, and end; an operation is a thread
    Threads {
        /// Blocks that each thread replaces
        #[arg(long, default_value_t = 100)]
        each: u64,
    },
    /// Threads that fill memory in turn and idle otherwise: look at the peak
    Idle,
    /// Small blocks that one thread allocated side by side and others write
    CacheScratch,
    /// Small blocks that threads allocate at the same time and write
    CacheThrash,
    /// Random replacement; threads inherit the blocks of others
    Larson,
    /// The same with C++'s new and sized delete
    LarsonSized,
    /// Half of the threads allocate, the others free
    XmallocTest,
    /// Bursts, survivors and wandering blocks of very different sizes
    Mstress,
    /// Rows of small blocks, freed in order and backwards
    Sh6bench,
    /// The same, with rows that other threads free
    Sh8bench,
    /// A large random working set
    AllocTest,
    /// Lists of blocks of one size
    GlibcSimple,
    /// Threads with random sizes, the small ones frequent
    GlibcThread,
    /// Nested covers of small sets
    Espresso,
    /// Random buffers of 5 to 25 MiB
    MallocLarge,
    /// Generations of threads that free what the one before allocated
    Mleak,
}

impl Family {
    /// Runs the row.
    ///
    /// # Errors
    /// A sentence for the user when this machine cannot run it.
    pub fn run(&self, settings: &Settings) -> Result<Figures, String> {
        let (seed, threads) = (settings.seed, settings.threads);
        let times = |count| scaled(count, settings.scale);
        Ok(match *self {
            Self::Pair { size } => measure(pair::pair(Fixed(size), seed), settings),
            Self::Pairmix(range) => measure(pair::pair(Mixed::new(range.even(), seed), seed), settings),
            Self::Calloc { size } => measure(pair::pair(Cleared(size), seed), settings),
            Self::Aligned { alignment, size } => measure(pair::pair(Aligned(alignment, size), seed), settings),
            Self::Big { size } => measure(pair::paged(Fixed(size), seed), settings),
            Self::Batch { order, count, range } => {
                measure(Batch::new(order, count as usize, range.even(), seed), settings)
            }
            Self::Window { count, range } => measure(Window::new(count as usize, range.doublings(), seed), settings),
            Self::Grow { limit } => measure(Growth::new(limit, 1, seed), settings),
            Self::Grow15 { limit } => measure(Growth::new(limit, 2, seed), settings),
            Self::Tiny => mixed(&TINY, settings),
            Self::General => mixed(&GENERAL, settings),
            Self::Large => mixed(&LARGE, settings),
            Self::Handoff => {
                let rings = Rings::new(threads);
                let choices = times(handoff::CHOICES);
                crew::with_workers(settings, |number| Sender::new(&rings, choices, seed, number))
            }
            Self::Batches => {
                let operations = times(400_000);
                let batch = |number| Batch::for_thread(1_000, Sizes::even(16, 512), seed, number, operations);
                crew::with_workers(settings, batch)
            }
            Self::Threads { each } => {
                let count = times(20_000_000 / (each * 100 + 50_000)).max(1);
                crew::with_passes(settings, || births::births(count, each, seed))
            }
            Self::Idle => crew::with_passes(settings, || births::idle(threads, times(1_000), seed)),
            _ => self.run_shape(settings)?,
        })
    }

    fn run_shape(&self, settings: &Settings) -> Result<Figures, String> {
        let times = |count| scaled(count, settings.scale);
        let seed = settings.seed;
        let sized = match self {
            Self::LarsonSized => Some(larson::Sized::find().ok_or("there is no C++ library to take `new` from")?),
            _ => None,
        };
        Ok(crew::with_passes(settings, || match (self, sized) {
            (Self::CacheScratch, _) => cache::pass(cache::Start::Given, times(20_000), settings),
            (Self::CacheThrash, _) => cache::pass(cache::Start::Own, times(20_000), settings),
            (Self::LarsonSized, Some(heap)) => larson::pass(heap, times(300_000), settings),
            (Self::XmallocTest, _) => xmalloc::pass(times(2_000), settings),
            (Self::Mstress, _) => mstress::pass(times(10_000), settings),
            (Self::Sh6bench, _) => sh::pass(sh::Kind::Own, times(4_000), settings),
            (Self::Sh8bench, _) => sh::pass(sh::Kind::Swapped, times(4_000), settings),
            (Self::AllocTest, _) => random::pass(times(500_000), settings),
            (Self::GlibcSimple, _) => glibc::simple(times(200), seed),
            (Self::GlibcThread, _) => glibc::threads(times(500_000), settings),
            (Self::Espresso, _) => espresso::pass(times(200), seed),
            (Self::MallocLarge, _) => large::pass(times(2_000), seed),
            (Self::Mleak, _) => leak::pass(times(2_000), settings),
            // Larson, and nothing else: the families before were run already.
            _ => larson::pass(larson::Plain, times(300_000), settings),
        }))
    }
}

fn mixed(pattern: &Pattern, settings: &Settings) -> Figures {
    let choices = scaled(pattern.choices, settings.scale);
    crew::with_workers(settings, |number| Mixer::new(pattern, choices, settings.seed, number))
}
