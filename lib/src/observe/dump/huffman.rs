//! Huffman codes with a bound on their length, as Deflate (RFC 1951) orders them.

/// Symbols of the largest alphabet.
pub(super) const MOST: usize = 288;
/// Bits of the longest code.
pub(super) const LONGEST: usize = 15;

/// The codes of an alphabet: how many bits, and those in the order in which they are written, the first one lowest. Symbols that do not
/// occur have none.
#[derive(Clone, Copy)]
pub(super) struct Codes {
    pub(super) lengths: [u8; MOST],
    pub(super) bits: [u16; MOST],
}

impl Codes {
    /// The best codes of at most `limit` bits for symbols that occur so often.
    pub(super) fn best(frequencies: &[u32], limit: usize) -> Codes {
        let mut lengths = [0; MOST];
        find_lengths(frequencies, limit, &mut lengths);
        Codes::of(lengths)
    }

    /// The codes that follow from their lengths: of the same length in the order of symbols, shorter ones before longer ones.
    pub(super) fn of(lengths: [u8; MOST]) -> Codes {
        let mut next = [0u16; LONGEST + 2];
        for &length in &lengths {
            next[length as usize + 1] += u16::from(length > 0);
        }
        for length in 1..next.len() {
            next[length] = (next[length] + next[length - 1]) << 1;
        }
        let mut bits = [0; MOST];
        for (code, &length) in bits.iter_mut().zip(&lengths) {
            if length > 0 {
                *code = next[length as usize].reverse_bits() >> (16 - length);
                next[length as usize] += 1;
            }
        }
        Codes { lengths, bits }
    }
}

fn find_lengths(frequencies: &[u32], limit: usize, lengths: &mut [u8; MOST]) {
    let mut leaves = [(0u32, 0u16); MOST];
    let mut count = 0;
    for (symbol, &frequency) in frequencies.iter().enumerate().filter(|&(_, &frequency)| frequency > 0) {
        leaves[count] = (frequency, symbol as u16);
        count += 1;
    }
    let leaves = &mut leaves[..count];
    leaves.sort_unstable();
    let mut of_length = [0u32; LONGEST + 1];
    match count {
        0 => return,
        1 => of_length[1] = 1,
        _ => count_lengths(leaves, limit, &mut of_length),
    }
    // The rarest get the longest.
    let by_length = (1..=limit).rev().flat_map(|length| (0..of_length[length]).map(move |_| length as u8));
    leaves.iter().zip(by_length).for_each(|(&(_, symbol), length)| lengths[symbol as usize] = length);
}

/// How many leaves there are at each depth of the tree that always joins the two rarest nodes, none of them deeper than `limit`.
fn count_lengths(leaves: &[(u32, u16)], limit: usize, of_length: &mut [u32; LONGEST + 1]) {
    let count = leaves.len();
    let nodes = 2 * count - 1;
    // Leaves come first, then joined nodes in the order in which they are made, which is that of their frequency.
    let mut frequency = [0u32; 2 * MOST];
    let mut parent = [0u16; 2 * MOST];
    for (node, leaf) in frequency.iter_mut().zip(leaves) {
        *node = leaf.0;
    }
    let (mut leaf, mut joined) = (0, count);
    for made in count..nodes {
        for _ in 0..2 {
            let takes_leaf = leaf < count && (joined == made || frequency[leaf] <= frequency[joined]);
            let node = if takes_leaf { &mut leaf } else { &mut joined };
            frequency[made] += frequency[*node];
            parent[*node] = made as u16;
            *node += 1;
        }
    }
    let mut depth = [0u8; 2 * MOST];
    for node in (0..nodes - 1).rev() {
        depth[node] = depth[parent[node] as usize] + 1;
        if node < count {
            of_length[(depth[node] as usize).min(limit)] += 1;
        }
    }
    shorten(of_length, limit);
}

/// Leaves that were too deep are at the limit now, where there is no room for all: give some others a longer code until there is.
fn shorten(of_length: &mut [u32; LONGEST + 1], limit: usize) {
    let mut used: u32 = (1..=limit).map(|length| of_length[length] << (limit - length)).sum();
    while used > 1 << limit {
        // Two leaves at the limit become one, and another one becomes a fork with the second of them below it.
        let Some(length) = (1..limit).rev().find(|&length| of_length[length] > 0) else { return };
        of_length[limit] -= 1;
        of_length[length] -= 1;
        of_length[length + 1] += 2;
        used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(frequencies: &[u32], limit: usize) -> Codes {
        let codes = Codes::best(frequencies, limit);
        let mut space = 0.0;
        for (symbol, &frequency) in frequencies.iter().enumerate() {
            let length = codes.lengths[symbol];
            assert_eq!(length > 0, frequency > 0);
            assert!(length as usize <= limit);
            space += if length > 0 { 0.5f64.powi(length.into()) } else { 0.0 };
            for other in 0..symbol {
                let shorter = length.min(codes.lengths[other]);
                let mask = (1u32 << shorter) - 1;
                let differ = (codes.bits[symbol] as u32 ^ codes.bits[other] as u32) & mask != 0;
                assert!(shorter == 0 || differ, "{symbol} and {other}");
            }
        }
        let used = frequencies.iter().filter(|&&frequency| frequency > 0).count();
        assert!(used < 2 || space == 1.0, "{space}");
        codes
    }

    #[test]
    fn codes_are_short_and_apart() {
        assert_eq!(check(&[5, 9, 12, 13, 16, 45], 15).lengths[..6], [4, 4, 3, 3, 3, 1]);
        assert_eq!(check(&[0, 7, 0], 15).lengths[..3], [0, 1, 0]);
        check(&[], 15);
        check(&[1; 286], 15);
        // Codes as long as they get: limited, they still are a code.
        let mut fibonacci = std::vec![1u32, 1];
        (2..30).for_each(|i| fibonacci.push(fibonacci[i - 1] + fibonacci[i - 2]));
        for limit in [5, 7, 9, 15] {
            let codes = check(&fibonacci, limit);
            assert_eq!(codes.lengths.iter().max(), Some(&(limit as u8)));
            assert!(limit < 15 || codes.lengths[29] == 1);
        }
    }

    #[test]
    fn the_example_of_the_standard() {
        let mut lengths = [0; MOST];
        lengths[..8].copy_from_slice(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let codes = Codes::of(lengths);
        let written = |symbol: usize| codes.bits[symbol].reverse_bits() >> (16 - lengths[symbol]);
        assert_eq!((0..8).map(written).collect::<std::vec::Vec<_>>(), [2, 3, 4, 5, 6, 0, 14, 15]);
    }
}
