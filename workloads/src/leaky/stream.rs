//! The stream of operations of one thread: sites in random order, some blocks kept, the others freed a little later.

use super::Options;
use super::block::{Chain, Made};
use super::place::Place;
use super::site::{Afterlife, Site};
use super::workers;
use crate::driver::args::scaled;
use crate::driver::seed::{SplitMix64, mix};

/// How many temporary blocks a thread holds at once.
const POCKETS: usize = 256;

/// How much of a site one thread still has to do.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) site: &'static Site,
    keep: u64,
    temporary: u64,
}

impl Share {
    /// The work of `sites` at the scale and number of cycles in `options`.
    pub(super) fn of(sites: &'static [Site], options: &Options) -> Vec<Self> {
        let share = |site: &'static Site| Self {
            site,
            keep: scaled(site.keep, options.scale),
            temporary: scaled(site.temporary, options.scale) * u64::from(options.cycles),
        };
        sites.iter().map(share).collect()
    }
}

/// What a thread did at one site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) at: Option<Place>,
    pub(super) kept: u64,
    pub(super) blocks: u64,
    pub(super) bytes: u64,
}

/// What a thread did.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One for each share, in the same order.
    pub(super) tallies: Vec<Tally>,
    /// Folds the order of all operations.
    pub(super) order: u64,
}

/// Works all `shares` off. The n-th share keeps its blocks in `chain` as owner `first_row + n`.
///
/// Each step draws uniformly among all operations that remain, so the sums are exact and only the order is random.
pub(super) fn run(shares: &mut [Share], first_row: u64, seed: u64, chain: &Chain) -> Outcome {
    let mut random = SplitMix64::new(seed);
    let mut pockets: [Option<Made>; POCKETS] = [const { None }; POCKETS];
    let mut outcome = Outcome { tallies: vec![Tally::default(); shares.len()], order: 0 };
    let mut remaining: u64 = shares.iter().map(|share| share.keep + share.temporary).sum();
    while remaining > 0 {
        let (index, keep) = draw(shares, random.below(remaining));
        remaining -= 1;
        outcome.order = mix(outcome.order ^ (index as u64 * 2 + u64::from(keep)));
        let made = (shares[index].site.allocate)(random.next_u64());
        let tally = &mut outcome.tallies[index];
        tally.at.get_or_insert(made.at);
        tally.blocks += made.blocks;
        tally.bytes += made.bytes;
        if keep {
            tally.kept += 1;
            chain.keep(made, first_row + index as u64);
        } else if shares[index].site.afterlife == Afterlife::Mailbox {
            workers::post(made, random.next_u64());
        } else if let Some(old) = pockets[random.below(POCKETS as u64) as usize].replace(made) {
            old.free();
        }
    }
    pockets.into_iter().flatten().for_each(Made::free);
    outcome
}

/// Takes operation number `pick` of those that remain: the index of its share, and whether it keeps.
fn draw(shares: &mut [Share], mut pick: u64) -> (usize, bool) {
    for (index, share) in shares.iter_mut().enumerate() {
        for (left, keep) in [(&mut share.keep, true), (&mut share.temporary, false)] {
            if pick < *left {
                *left -= 1;
                return (index, keep);
            }
            pick -= *left;
        }
    }
    unreachable!("pick is below the number of operations that remain")
}
