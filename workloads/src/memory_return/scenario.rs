//! The scenarios, as subcommands with their parameters.

use std::time::Duration;

use clap::Subcommand;

use super::purge::Purge;
use super::share::Order;
use super::subjects::alone::{self, Alone, Then};
use super::subjects::caller::Call;
use super::subjects::churn::{self, Churn};
use super::subjects::turnover::{self, Turnover};
use super::subjects::{During, Setting, burst, idle, latency, threads};
use crate::driver::args::duration;

/// What is allocated and freed. `--threads` are the threads that allocate beside the first.
#[derive(Clone, Debug, Subcommand)]
pub enum Scenario {
    /// Three sizes, all but a scattered 1 in 20 freed; then workers are busy or asleep
    Churn {
        /// In which order blocks are freed
        #[arg(long, value_enum, default_value = "sequential")]
        order: Order,
        /// What workers do after the drain
        #[arg(long, value_enum, default_value = "asleep")]
        during: During,
        /// Whether a thread that allocates nothing asks for the return
        #[arg(long, value_enum, default_value = "none")]
        call: Call,
        /// Time between two such calls
        #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = duration)]
        every: Duration,
    },
    /// The same in a process that never has a second thread
    Alone {
        /// What comes after the drain
        #[arg(long, value_enum, default_value = "block")]
        then: Then,
        /// In which order blocks are freed
        #[arg(long, value_enum, default_value = "sequential")]
        order: Order,
        /// The thread asks for the return, once, right after the drain
        #[arg(long)]
        asks: bool,
        /// How long a loop goes on
        #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
        time: Duration,
        /// How long a loop pauses after each cycle
        #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = duration)]
        pause: Duration,
    },
    /// Threads that allocate, free all in random order, and sleep
    Threads,
    /// Twelve rounds in a size class each, survivors on every second page
    Burst {
        /// In which order blocks are freed
        #[arg(long, value_enum, default_value = "sequential")]
        order: Order,
        /// How long a round pauses at its end
        #[arg(long, value_name = "DURATION", default_value = "300ms", value_parser = duration)]
        pause: Duration,
    },
    /// Allocate and free all, over and over
    Turnover {
        /// Block size in bytes
        #[arg(long, value_parser = clap::value_parser!(u64).range(8..=1 << 32))]
        size: u64,
        /// Blocks that are allocated before they are freed
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
        batch: u64,
        /// How often
        #[arg(long)]
        rounds: u64,
    },
    /// How long single calls take, while memory is given back or not
    Latency {
        /// Another thread forces a return a thousand times a second
        #[arg(long)]
        purged: bool,
    },
    /// Two threads that have used memory, and then do nothing
    Idle {
        /// After how much of the watch counting begins
        #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
        settle: Duration,
    },
}

impl Scenario {
    /// Does the subject's work. Returns the damaged blocks.
    #[must_use]
    pub fn run(&self, setting: &Setting, empty: bool) -> u64 {
        match *self {
            Self::Churn { order, during, call, every } => churn::run(&Churn { order, during, call, every }, setting),
            Self::Alone { then, order, asks, time, pause } => {
                alone::run(&Alone { then, order, asks, time, pause }, setting)
            }
            Self::Threads => threads::run(setting),
            Self::Burst { order, pause } => burst::run(order, pause, setting),
            Self::Turnover { size, batch, rounds } => {
                let rounds = if empty { 0 } else { rounds };
                turnover::run(&Turnover { size: size as usize, batch: batch as usize, rounds }, setting)
            }
            Self::Latency { purged } => latency::run(purged, setting),
            Self::Idle { .. } => idle::run(setting),
        }
    }

    /// After how much of the watch switches of threads are counted.
    #[must_use]
    pub const fn settle(&self) -> Duration {
        if let Self::Idle { settle } = *self { settle } else { Duration::ZERO }
    }

    /// What is called when somebody asks for the return; `None` when nobody does, or there is nothing to call.
    #[must_use]
    pub fn call(&self) -> Option<Purge> {
        match self {
            Self::Churn { call: Call::Purge | Call::Once, .. } | Self::Latency { purged: true } => Purge::find(),
            Self::Churn { call: Call::Own, .. } | Self::Alone { asks: true, .. } => Purge::of_thread(),
            _ => None,
        }
    }
}
