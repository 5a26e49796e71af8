//! Deflate (RFC 1951), as a stream in bounded memory. Each block has codes of its own, or the fixed ones where those are shorter.

use super::huffman::{self, Codes};
use super::matches::{Matches, Token};
use crate::observe::output::{Failure, Output};
use crate::observe::room::Room;

/// Tokens of a block.
const TOKENS: usize = 16 * 1024;
const END: usize = 256;
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
/// The order in which the lengths of the codes for lengths are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Packs what is written.
pub(super) struct Deflate {
    matches: Matches,
    tokens: Room<Token>,
    bits: Bits,
}

/// Bits that are no whole byte yet, the first one lowest.
#[derive(Default)]
struct Bits {
    word: u64,
    count: u32,
}

impl Bits {
    /// At most 32 at a time.
    fn put(&mut self, output: &mut Output<'_>, bits: u32, count: u32) {
        self.word |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 8 {
            output.bytes(&[self.word as u8]);
            self.word >>= 8;
            self.count -= 8;
        }
    }
}

/// The symbol of a number that is told in few bits and some more behind it: the symbol, how many more, and those. Numbers from 0 on.
///
/// The first symbols have no more bits; after that, `1 << group` symbols have the same number of them.
fn grouped(number: usize, group: u32) -> (usize, u32, u32) {
    let first = 1 << (group + 1);
    if number < first {
        return (number, 0, 0);
    }
    let more = number.ilog2() - group;
    let symbol = ((more as usize) << group) + (number >> more);
    (symbol, more, (number & ((1 << more) - 1)) as u32)
}

/// Symbol and more bits for the length of a match.
fn length_symbol(length: usize) -> (usize, u32, u32) {
    if length == super::matches::LONGEST {
        return (285, 0, 0);
    }
    let (symbol, more, bits) = grouped(length - super::matches::SHORTEST, 2);
    (END + 1 + symbol, more, bits)
}

/// Symbol and more bits for how far back a match lies.
fn distance_symbol(distance: usize) -> (usize, u32, u32) {
    grouped(distance - 1, 1)
}

impl Deflate {
    pub(super) fn new() -> Result<Deflate, Failure> {
        Ok(Deflate { matches: Matches::new()?, tokens: Room::new(), bits: Bits::default() })
    }

    pub(super) fn write(&mut self, mut bytes: &[u8], output: &mut Output<'_>) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let taken = self.matches.take(bytes);
            bytes = &bytes[taken..];
            self.tokens(false, output)?;
        }
        Ok(())
    }

    /// Nothing comes any more.
    pub(super) fn finish(&mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        self.tokens(true, output)?;
        self.block(true, output);
        // Up to the next whole byte.
        self.bits.put(output, 0, (8 - self.bits.count) % 8);
        Ok(())
    }

    fn tokens(&mut self, is_end: bool, output: &mut Output<'_>) -> Result<(), Failure> {
        while let Some(token) = self.matches.next(is_end) {
            self.tokens.push(token)?;
            if self.tokens.len() == TOKENS {
                self.block(false, output);
            }
        }
        Ok(())
    }

    fn block(&mut self, is_last: bool, output: &mut Output<'_>) {
        let (literals, distances) = self.count();
        let best = (Codes::best(&literals, huffman::LONGEST), Codes::best(&distances, huffman::LONGEST));
        let fixed = fixed();
        let header = Header::of(&best);
        let size = |codes: &(Codes, Codes)| -> u64 { size(&literals, &codes.0) + size(&distances, &codes.1) };
        let own_codes = size(&best) + header.size() < size(&fixed);
        self.bits.put(output, u32::from(is_last), 1);
        self.bits.put(output, if own_codes { 2 } else { 1 }, 2);
        if own_codes {
            header.write(&mut self.bits, output);
        }
        let codes = if own_codes { &best } else { &fixed };
        for &token in self.tokens.iter() {
            write_token(&mut self.bits, output, codes, token);
        }
        write_symbol(&mut self.bits, output, &codes.0, END);
        self.tokens.clear();
    }

    /// How often each symbol occurs in the block.
    fn count(&self) -> ([u32; LITERALS], [u32; DISTANCES]) {
        let (mut literals, mut distances) = ([0; LITERALS], [0; DISTANCES]);
        for &token in self.tokens.iter() {
            match token {
                Token::Byte(byte) => literals[byte as usize] += 1,
                Token::Match { length, distance } => {
                    literals[length_symbol(length).0] += 1;
                    distances[distance_symbol(distance).0] += 1;
                }
            }
        }
        literals[END] = 1;
        // There must be at least one.
        if distances.iter().all(|&count| count == 0) {
            distances[0] = 1;
        }
        (literals, distances)
    }
}

/// Bits that symbols take, without those behind them.
fn size(frequencies: &[u32], codes: &Codes) -> u64 {
    frequencies.iter().zip(&codes.lengths).map(|(&count, &length)| u64::from(count) * u64::from(length)).sum()
}

/// The codes that need not be told.
fn fixed() -> (Codes, Codes) {
    let (mut literals, mut distances) = ([8; huffman::MOST], [0; huffman::MOST]);
    literals[144..256].fill(9);
    literals[256..280].fill(7);
    distances[..32].fill(5);
    (Codes::of(literals), Codes::of(distances))
}

fn write_symbol(bits: &mut Bits, output: &mut Output<'_>, codes: &Codes, symbol: usize) {
    bits.put(output, codes.bits[symbol].into(), codes.lengths[symbol].into());
}

fn write_token(bits: &mut Bits, output: &mut Output<'_>, codes: &(Codes, Codes), token: Token) {
    match token {
        Token::Byte(byte) => write_symbol(bits, output, &codes.0, byte.into()),
        Token::Match { length, distance } => {
            for (codes, (symbol, more, value)) in
                [(&codes.0, length_symbol(length)), (&codes.1, distance_symbol(distance))]
            {
                write_symbol(bits, output, codes, symbol);
                bits.put(output, value, more);
            }
        }
    }
}

/// The lengths of a block's codes, and how they are told: runs of the same length are told in short, and what tells them has a code, too.
struct Header {
    /// How many lengths are told of either alphabet.
    literals: usize,
    distances: usize,
    /// A symbol, and what is behind it: how many bits, and those.
    runs: [(u8, u8, u8); LITERALS + DISTANCES],
    count: usize,
    codes: Codes,
    /// How many lengths of `codes` are told, in [`ORDER`].
    told: usize,
}

impl Header {
    fn of(codes: &(Codes, Codes)) -> Header {
        let used = |lengths: &[u8], least: usize| {
            lengths.iter().rposition(|&length| length > 0).map_or(least, |last| (last + 1).max(least))
        };
        let (literals, distances) = (used(&codes.0.lengths, 257), used(&codes.1.lengths, 1));
        let mut all = [0u8; LITERALS + DISTANCES];
        all[..literals].copy_from_slice(&codes.0.lengths[..literals]);
        all[literals..literals + distances].copy_from_slice(&codes.1.lengths[..distances]);
        let mut runs = [(0, 0, 0); LITERALS + DISTANCES];
        let count = find_runs(&all[..literals + distances], &mut runs);
        let mut frequencies = [0; ORDER.len()];
        runs[..count].iter().for_each(|&(symbol, ..)| frequencies[symbol as usize] += 1);
        let codes = Codes::best(&frequencies, 7);
        let told = ORDER.iter().rposition(|&symbol| codes.lengths[symbol] > 0).map_or(4, |last| (last + 1).max(4));
        Header { literals, distances, runs, count, codes, told }
    }

    /// In bits.
    fn size(&self) -> u64 {
        let of_run = |&(symbol, more, _): &(u8, u8, u8)| u64::from(self.codes.lengths[symbol as usize] + more);
        14 + 3 * self.told as u64 + self.runs[..self.count].iter().map(of_run).sum::<u64>()
    }

    fn write(&self, bits: &mut Bits, output: &mut Output<'_>) {
        bits.put(output, self.literals as u32 - 257, 5);
        bits.put(output, self.distances as u32 - 1, 5);
        bits.put(output, self.told as u32 - 4, 4);
        for &symbol in &ORDER[..self.told] {
            bits.put(output, self.codes.lengths[symbol].into(), 3);
        }
        for &(symbol, more, value) in &self.runs[..self.count] {
            write_symbol(bits, output, &self.codes, symbol.into());
            bits.put(output, value.into(), more.into());
        }
    }
}

/// Lengths as runs; how many.
fn find_runs(lengths: &[u8], runs: &mut [(u8, u8, u8)]) -> usize {
    let (mut at, mut count) = (0, 0);
    let mut push = |run| {
        runs[count] = run;
        count += 1;
    };
    while let Some(&length) = lengths.get(at) {
        let same = lengths[at..].iter().take_while(|&&other| other == length).count();
        at += match (length, same) {
            (0, 11..) => {
                let zeros = same.min(138);
                push((18, 7, zeros as u8 - 11));
                zeros
            }
            (0, 3..) => {
                push((17, 3, same as u8 - 3));
                same
            }
            // The length itself, and three to six more of it.
            (1.., 4..) => {
                push((length, 0, 0));
                let more = (same - 1).min(6);
                push((16, 2, more as u8 - 3));
                more + 1
            }
            _ => {
                push((length, 0, 0));
                1
            }
        };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_those_of_the_standard() {
        for (length, expected) in [
            (3, (257, 0, 0)),
            (10, (264, 0, 0)),
            (11, (265, 1, 0)),
            (12, (265, 1, 1)),
            (13, (266, 1, 0)),
            (18, (268, 1, 1)),
            (19, (269, 2, 0)),
            (227, (284, 5, 0)),
            (257, (284, 5, 30)),
            (258, (285, 0, 0)),
        ] {
            assert_eq!(length_symbol(length), expected, "{length}");
        }
        for (distance, expected) in [
            (1, (0, 0, 0)),
            (4, (3, 0, 0)),
            (5, (4, 1, 0)),
            (6, (4, 1, 1)),
            (7, (5, 1, 0)),
            (9, (6, 2, 0)),
            (24576, (28, 13, 8191)),
            (32768, (29, 13, 8191)),
        ] {
            assert_eq!(distance_symbol(distance), expected, "{distance}");
        }
    }

    #[test]
    fn runs() {
        let mut runs = [(0, 0, 0); 316];
        let lengths = [&[0; 150][..], &[5; 8], &[0, 0], &[7; 3], &[0; 10]].concat();
        let count = find_runs(&lengths, &mut runs);
        let expected = [
            (18, 7, 127),
            (18, 7, 1),
            (5, 0, 0),
            (16, 2, 3),
            (5, 0, 0),
            (0, 0, 0),
            (0, 0, 0),
            (7, 0, 0),
            (7, 0, 0),
            (7, 0, 0),
            (17, 3, 7),
        ];
        assert_eq!(runs[..count], expected);
    }
}
