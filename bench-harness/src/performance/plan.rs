//! Which runs there will be, in which order.

use mpp_workloads::driver::seed::{SplitMix64, derive};

/// One run: a row under a peer, both by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// The row.
    pub row: usize,
    /// The peer.
    pub peer: usize,
}

/// All runs of `rounds` rounds. In each round every row comes once, and under it every peer once, one right after the other:
/// that is a block, within which ratios are taken. The order of rows and of peers in a block is drawn anew in each round.
#[must_use]
pub fn schedule(rows: usize, peers: usize, rounds: usize, seed: u64) -> Vec<Run> {
    let mut runs = Vec::with_capacity(rows * peers * rounds);
    for round in 0..rounds {
        let mut random = SplitMix64::new(derive(seed, &[round as u64]));
        let mut order: Vec<_> = (0..rows).collect();
        random.shuffle(&mut order);
        for row in order {
            let mut block: Vec<_> = (0..peers).collect();
            random.shuffle(&mut block);
            runs.extend(block.into_iter().map(|peer| Run { round, row, peer }));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_runs_once_in_each_block_and_blocks_hold_together() {
        let runs = schedule(3, 4, 5, 1);
        assert_eq!(runs.len(), 60);
        let mut firsts = std::collections::BTreeSet::new();
        for block in runs.chunks(4) {
            assert!(block.iter().all(|run| (run.round, run.row) == (block[0].round, block[0].row)));
            let mut peers: Vec<_> = block.iter().map(|run| run.peer).collect();
            firsts.insert(peers[0]);
            peers.sort_unstable();
            assert_eq!(peers, [0, 1, 2, 3]);
        }
        assert_eq!(firsts.len(), 4, "nobody is always first");
        for round in runs.chunks(12) {
            let mut rows: Vec<_> = round.chunks(4).map(|block| block[0].row).collect();
            rows.sort_unstable();
            assert_eq!(rows, [0, 1, 2]);
        }
        assert_eq!(runs, schedule(3, 4, 5, 1));
        assert_ne!(runs, schedule(3, 4, 5, 2));
    }
}
