//! A fast hash for numbers, which nobody can prepare collisions for: its keys are drawn anew in each process.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// A map with numbers as keys.
pub(crate) type NumberMap<K, V> = std::collections::HashMap<K, V, Keyed>;

/// Makes hashers with the keys of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed([u64; 2]);

impl Default for Keyed {
    fn default() -> Self {
        static KEYS: OnceLock<[u64; 2]> = OnceLock::new();
        let key = || RandomState::new().hash_one(0_u64);
        Keyed(*KEYS.get_or_init(|| [key(), key() | 1]))
    }
}

impl BuildHasher for Keyed {
    type Hasher = Numbers;

    fn build_hasher(&self) -> Numbers {
        Numbers { keys: self.0, state: 0 }
    }
}

/// Folds each number into the state by a multiplication of 128 bits.
#[derive(Debug)]
pub(crate) struct Numbers {
    keys: [u64; 2],
    state: u64,
}

impl Numbers {
    fn fold(&mut self, number: u64) {
        let product = u128::from(self.state ^ number ^ self.keys[0]) * u128::from(self.keys[1]);
        self.state = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.fold(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.fold(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }
}

/// The hash of a list of numbers.
pub(crate) fn hash_of(numbers: impl Iterator<Item = u32>) -> u64 {
    let mut hasher = Keyed::default().build_hasher();
    let mut before = None;
    // Two at a time.
    for number in numbers {
        match before.take() {
            None => before = Some(number),
            Some(first) => hasher.write_u64(u64::from(first) << 32 | u64::from(number)),
        }
    }
    if let Some(last) = before {
        hasher.write_u64(1 << 63 | u64::from(last));
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_differ() {
        let lists: [&[u32]; 7] = [&[], &[0], &[0, 0], &[0, 0, 0], &[1, 0], &[0, 1], &[1]];
        let mut hashes: Vec<u64> = lists.iter().map(|list| hash_of(list.iter().copied())).collect();
        assert_eq!(hashes[4], hash_of([1, 0].into_iter()));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), lists.len());
    }
}
