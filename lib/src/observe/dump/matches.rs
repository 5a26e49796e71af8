//! What was written before: a window of 32 KiB, and where in it the same bytes are found again.

use crate::observe::output::Failure;
use crate::observe::room::Room;

/// How far back a match can lie.
const REACH: usize = 32 * 1024;
const WINDOW: usize = 2 * REACH;
pub(super) const SHORTEST: usize = 3;
pub(super) const LONGEST: usize = 258;
const HASH_BITS: u32 = 13;
/// Places that are compared before the longest match so far is taken.
const TRIES: usize = 24;
/// A match of this length is good enough.
const GOOD: usize = 64;

/// A byte, or a part that was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Byte(u8),
    Match { length: usize, distance: usize },
}

/// The window, and chains of the places whose next three bytes have the same hash.
pub(super) struct Matches {
    window: Room<u8>,
    /// How much of the window is filled, and how much was told in tokens.
    filled: usize,
    told: usize,
    /// The last place with each hash, plus one; 0 = none.
    newest: Room<u32>,
    /// The place before, by place in the window.
    before: Room<u32>,
}

impl Matches {
    pub(super) fn new() -> Result<Matches, Failure> {
        // SAFETY: numbers may be zero.
        unsafe {
            Ok(Matches {
                window: Room::zeroed(WINDOW)?,
                filled: 0,
                told: 0,
                newest: Room::zeroed(1 << HASH_BITS)?,
                before: Room::zeroed(WINDOW)?,
            })
        }
    }

    /// Take some of the bytes; how many.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        if self.filled == WINDOW {
            self.slide();
        }
        let taken = bytes.len().min(WINDOW - self.filled);
        self.window[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        taken
    }

    /// The next token. Unless it is the end, the last bytes are kept: a match could go on in what comes.
    pub(super) fn next(&mut self, is_end: bool) -> Option<Token> {
        let left = self.filled - self.told;
        if left == 0 || (!is_end && left <= LONGEST) {
            return None;
        }
        let here = self.longest(self.told);
        // One byte alone, if that makes the next match longer.
        let (length, distance) = here.unwrap_or((1, 0));
        self.enter(self.told);
        let is_longer_after =
            (SHORTEST..GOOD).contains(&length) && self.longest(self.told + 1).is_some_and(|(after, _)| after > length);
        if length < SHORTEST || is_longer_after {
            self.told += 1;
            return Some(Token::Byte(self.window[self.told - 1]));
        }
        (self.told + 1..self.told + length).for_each(|at| self.enter(at));
        self.told += length;
        Some(Token::Match { length, distance })
    }

    fn hash(&self, at: usize) -> Option<usize> {
        let &[a, b, c] = self.window[..self.filled].get(at..at + SHORTEST)? else { return None };
        let three = u32::from_le_bytes([a, b, c, 0]);
        Some((three.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize)
    }

    fn enter(&mut self, at: usize) {
        if let Some(hash) = self.hash(at) {
            self.before[at] = self.newest[hash];
            self.newest[hash] = at as u32 + 1;
        }
    }

    /// Length and distance of the longest match for what is at a place.
    fn longest(&self, at: usize) -> Option<(usize, usize)> {
        let mut candidate = self.newest[self.hash(at)?] as usize;
        let wanted = &self.window[at..self.filled.min(at + LONGEST)];
        let mut best = (SHORTEST - 1, 0);
        for _ in 0..TRIES {
            let Some(place) = candidate.checked_sub(1).filter(|&place| place < at && at - place <= REACH) else {
                break;
            };
            let same = wanted.iter().zip(&self.window[place..]).take_while(|(a, b)| a == b).count();
            if same > best.0 {
                best = (same, at - place);
                if same >= GOOD || same == wanted.len() {
                    break;
                }
            }
            candidate = self.before[place] as usize;
        }
        (best.0 >= SHORTEST).then_some(best)
    }

    /// Forget the older half of the window.
    fn slide(&mut self) {
        let gone = REACH.min(self.told);
        self.window.copy_within(gone..WINDOW, 0);
        self.before.copy_within(gone..WINDOW, 0);
        let older = |place: &mut u32| *place = place.saturating_sub(gone as u32);
        self.before.iter_mut().for_each(older);
        self.newest.iter_mut().for_each(older);
        self.filled -= gone;
        self.told -= gone;
    }
}
