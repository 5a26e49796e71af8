//! `leaky`: a program whose leaks are known.
//!
//! It allocates from many kinds of places ([`site`] has the table): plain functions, inlined ones, the standard library,
//! generics, closures, trait objects, a recursion, threads that have ended and threads that have not, and a plugin that
//! is loaded while it runs. A known number of blocks of each stays allocated and reachable until the exit, scattered
//! among blocks that are freed. The truth says which function and line keeps how many.
//!
//! Each allocating function is `#[inline(never)]` (or inlined on purpose), differs from all others so that the linker
//! cannot fold it, and does something after the allocation so that the call is no tail call: its frame survives
//! optimisation.

mod block;
mod collections;
mod dispatch;
mod inlined;
mod place;
mod plain;
mod plugin;
// The plugin compiles this file too, and uses the other half of it.
#[allow(dead_code)]
mod plugin_abi;
mod recursion;
pub mod site;
mod stream;
mod temporary;
mod truth;
mod workers;

use std::path::PathBuf;

pub use block::Chain;
pub use plugin::{FILE_NAME as PLUGIN_FILE_NAME, Plugin};
pub use recursion::DEFAULT_DEPTH;
use stream::{Outcome, Share};
pub use truth::{Row, Run, SCHEMA, Total, Truth};
use workers::Worker;

use crate::driver::seed::{derive, mix};

/// The default seed. Any would do.
pub const DEFAULT_SEED: u64 = 1;
/// The default number of worker threads: two that end and two that stay.
pub const DEFAULT_THREADS: u32 = 4;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Multiplies all counts.
    pub scale: f64,
    /// Decides the order of all operations.
    pub seed: u64,
    /// The number of worker threads. Even ones (from 0) end, odd ones are alive at exit.
    pub threads: u32,
    /// How often the temporary allocations are repeated.
    pub cycles: u32,
    /// The deepest recursion of the recursive site.
    pub depth: u32,
    /// The plugin. Without one its sites are left out.
    pub plugin: Option<Plugin>,
}

impl Default for Options {
    fn default() -> Self {
        Self { scale: 1.0, seed: DEFAULT_SEED, threads: DEFAULT_THREADS, cycles: 1, depth: DEFAULT_DEPTH, plugin: None }
    }
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum LeakyError {
    /// The plugin cannot be used.
    #[error("plugin {}: {reason}", path.display())]
    Plugin {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A worker thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// A worker thread ended before its work was done.
    #[error("thread {0} failed")]
    Worker(String),
    /// The allocator, or anybody else, damaged a kept block.
    #[error("the block after {walked} kept blocks was overwritten")]
    Overwritten {
        /// How many blocks were intact before it.
        walked: u64,
    },
    /// Not all kept blocks are there.
    #[error("site {site} of thread {thread} kept {expected} blocks, but {found} are there")]
    Lost {
        /// The site.
        site: &'static str,
        /// The thread.
        thread: String,
        /// Blocks that were kept.
        expected: u64,
        /// Blocks that were found.
        found: u64,
    },
}

/// Allocates as `options` say, keeps the kept blocks in `chain`, checks that they are intact, and says what was done.
///
/// Returns when all work is done and all temporary blocks are freed. Worker threads that stay are then idle. `chain` must
/// be empty, and the kept blocks are never freed.
///
/// # Errors
/// When a thread cannot be started, or the kept blocks are not as they were left.
pub fn run(options: &Options, chain: &'static Chain) -> Result<Truth, LeakyError> {
    recursion::set_depth(options.depth);
    let mut shares = Share::of(&site::MAIN, options);
    if options.plugin.is_some() {
        shares.extend(Share::of(&site::PLUGIN, options));
    }
    let worker_seed = |number: u32| derive(options.seed, &[1 + u64::from(number)]);
    let worker_row = |number: u32| (shares.len() + number as usize * site::WORKER.len()) as u64;
    let workers = (0..options.threads)
        .map(|number| Worker::start(number, options, worker_row(number), worker_seed(number), chain))
        .collect::<Result<Vec<_>, _>>()?;

    let sites: Vec<_> = shares.iter().map(|share| share.site).collect();
    let mut done = vec![("main".to_owned(), sites, stream::run(&mut shares, 0, derive(options.seed, &[0]), chain))];
    for worker in workers {
        done.push((worker.name.clone(), site::WORKER.iter().collect(), worker.finish()?));
    }
    workers::empty_mailbox();
    tell(options, &done, chain)
}

/// Compares what the threads say they kept with what the chain holds.
fn tell(
    options: &Options,
    done: &[(String, Vec<&'static site::Site>, Outcome)],
    chain: &Chain,
) -> Result<Truth, LeakyError> {
    let owners = done.iter().map(|(_, sites, _)| sites.len()).sum();
    let mut found = chain.count(owners).map_err(|walked| LeakyError::Overwritten { walked })?.into_iter();
    let mut rows = Vec::new();
    for (thread, sites, outcome) in done {
        for (site, tally) in sites.iter().zip(&outcome.tallies) {
            let found = found.next().unwrap_or(0);
            if found != tally.kept {
                return Err(LeakyError::Lost { site: site.id, thread: thread.clone(), expected: tally.kept, found });
            }
            rows.extend(Row::new(site, thread, tally));
        }
    }
    let run = Run {
        pid: std::process::id(),
        seed: options.seed,
        scale: options.scale,
        threads: options.threads,
        cycles: options.cycles,
        depth: options.depth,
        plugin: options.plugin.as_ref().map(|plugin| plugin.path().display().to_string()),
        order: done.iter().fold(0, |order, (_, _, outcome)| mix(order ^ outcome.order)),
    };
    Ok(Truth { run, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::args::scaled;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]

        #[test]
        fn every_site_does_exactly_its_share(scale in 0.0001..0.002, seed: u64, threads in 0u32..4, cycles in 1u32..3) {
            let options = Options { scale, seed, threads, cycles, ..Options::default() };
            let truth = run(&options, Box::leak(Box::new(Chain::new()))).unwrap();
            proptest::prop_assert_eq!(truth.rows.len(), site::MAIN.len() + threads as usize * site::WORKER.len());
            for row in &truth.rows {
                let site = site::MAIN.iter().chain(&site::WORKER).find(|site| site.id == row.site).unwrap();
                let operations = scaled(site.keep, scale) + scaled(site.temporary, scale) * u64::from(cycles);
                proptest::prop_assert_eq!(row.blocks_live, scaled(site.keep, scale));
                // A block that grows counts once for each size.
                let grown = ["std-grown", "temporary-greetings"].contains(&site.id);
                proptest::prop_assert!(row.blocks_allocated == operations || grown && row.blocks_allocated > operations);
                proptest::prop_assert!(row.bytes_allocated == operations * site.block_size || grown);
            }
        }
    }
}
