//! Stamps: what a workload writes into a block, so that a block that was handed out twice, moved or wiped is noticed.
//!
//! Each block's stamp follows from the run seed and the block's number alone, and reading it back yields one term of a
//! checksum. A pure simulation that allocates nothing predicts the same checksum.

use super::seed::{derive, mix};

/// The stamp of block `number` of a worker.
#[must_use]
pub fn stamp(run_seed: u64, worker: u64, number: u64) -> u64 {
    derive(run_seed, &[worker, number])
}

/// Fills `block` with `stamp`; every word differs, so that a shifted copy does not pass.
pub fn write(block: &mut [u64], stamp: u64) {
    for (at, word) in block.iter_mut().enumerate() {
        *word = stamp.wrapping_add(at as u64);
    }
}

/// Reads every word of `block` back.
///
/// # Errors
/// The index of the first word that does not hold what [`write()`] put there.
pub fn check(block: &[u64], stamp: u64) -> Result<(), usize> {
    match block.iter().enumerate().position(|(at, &word)| word != stamp.wrapping_add(at as u64)) {
        None => Ok(()),
        Some(at) => Err(at),
    }
}

/// A checksum over stamps that does not depend on the order in which blocks are read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds a block of `words` words that held `stamp`.
    pub const fn add(&mut self, stamp: u64, words: usize) {
        self.0 = self.0.wrapping_add(mix(stamp ^ (words as u64)));
    }

    /// Adds the blocks of another worker.
    pub const fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// The checksum as a number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_word_is_found() {
        let mut block = [0u64; 64];
        write(&mut block, 42);
        assert_eq!(check(&block, 42), Ok(()));
        assert_eq!(check(&block, 43), Err(0));
        assert_eq!(check(&block[1..], 42), Err(0));
        block[63] ^= 1;
        assert_eq!(check(&block, 42), Err(63));
    }

    #[test]
    fn a_checksum_ignores_order_but_not_content() {
        let sum = |blocks: &[(u64, usize)]| {
            let mut sum = Checksum::default();
            blocks.iter().for_each(|&(stamp, words)| sum.add(stamp, words));
            sum
        };
        assert_eq!(sum(&[(1, 8), (2, 16)]), sum(&[(2, 16), (1, 8)]));
        assert_ne!(sum(&[(1, 8), (2, 16)]), sum(&[(1, 8), (2, 8)]));
        assert_ne!(sum(&[(1, 8), (2, 16)]), sum(&[(1, 8)]));
        let mut merged = sum(&[(1, 8)]);
        merged.merge(sum(&[(2, 16)]));
        assert_eq!(merged, sum(&[(1, 8), (2, 16)]));
    }
}
