//! Addresses that say nothing of where things are: a keyed permutation of the 64-bit numbers.
//!
//! The key is drawn anew for each dump. As this is a permutation, different addresses have different ids; without the key nothing can be
//! told of one from the other, not even for blocks side by side.

use crate::os;

/// Rounds of a Feistel network over two halves of 32 bits.
const ROUNDS: usize = 4;

/// How addresses are told.
pub(super) enum Ids {
    AsTheyAre,
    Keyed([u64; 2]),
}

impl Ids {
    /// With a new key, or without one.
    pub(super) fn new(hashed: bool) -> Ids {
        if hashed { Ids::Keyed([os::random_seed(), os::random_seed()]) } else { Ids::AsTheyAre }
    }

    /// The id of an address.
    pub(super) fn of(&self, address: usize) -> u64 {
        match self {
            Ids::AsTheyAre => address as u64,
            Ids::Keyed(key) => permute(address as u64, key),
        }
    }

    /// The same for the number of a thread, where 0 is none.
    pub(super) fn of_thread(&self, thread: u64) -> u64 {
        if thread == 0 { 0 } else { self.of(thread as usize) }
    }
}

fn permute(value: u64, key: &[u64; 2]) -> u64 {
    let (mut left, mut right) = ((value >> 32) as u32, value as u32);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ mix(right, round as u64, key));
    }
    (left as u64) << 32 | right as u64
}

/// 32 bits that depend on all bits of the half, the round and the key: SipHash's scheme of additions, rotations and exclusive ors, with one
/// round for the one word and three at the end.
fn mix(half: u32, round: u64, key: &[u64; 2]) -> u32 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let word = round << 32 | half as u64;
    state[3] ^= word;
    rounds(&mut state, 1);
    state[0] ^= word;
    state[2] ^= 0xff;
    rounds(&mut state, 3);
    let mixed = state[0] ^ state[1] ^ state[2] ^ state[3];
    (mixed ^ mixed >> 32) as u32
}

fn rounds(state: &mut [u64; 4], count: usize) {
    let [mut a, mut b, mut c, mut d] = *state;
    for _ in 0..count {
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
    }
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_addresses_have_different_ids_and_keys_matter() {
        let keys = [[1, 2], [1, 3], [0, 0]];
        let mut seen = std::collections::BTreeSet::new();
        for key in &keys {
            for number in 0..5000u64 {
                assert!(seen.insert(permute(0x7f00_0000_0000 + number * 16, key)), "{key:?} {number}");
            }
        }
    }

    /// One bit of the address changes about half of the bits of the id.
    #[test]
    fn neighbours_look_unrelated() {
        let key = [os::random_seed(), os::random_seed()];
        let mut changed = 0;
        for number in 0..1000u64 {
            let address = 0x5500_0000_0000 + number * 4096;
            changed += (permute(address, &key) ^ permute(address ^ 1 << (number % 47), &key)).count_ones();
        }
        assert!((31_000..33_000).contains(&changed), "{changed}");
    }

    #[test]
    fn plain_ids_are_addresses() {
        assert_eq!(Ids::new(false).of(4711), 4711);
        assert_eq!(Ids::new(true).of_thread(0), 0);
        assert_ne!(Ids::new(true).of(4711), Ids::new(true).of(4711));
    }
}
