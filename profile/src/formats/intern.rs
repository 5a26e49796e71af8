//! Stacks and samples of a profile that is being read: each distinct stack once, and in large files each distinct sample.

use std::sync::Arc;

use crate::hashing::{NumberMap, hash_of};
use crate::model::{LocationId, Profile, Sample, Stack, StackEnd, StackId, ThreadId};

/// Files with fewer samples keep them as they are, line by line, so that they can be written back as they were. In larger ones, which are
/// merged from many, samples of the same stack, block size and thread become one.
const MANY: usize = 1 << 16;

/// No list: there are never that many.
const NONE: u32 = u32::MAX;

/// Lists of numbers by their hash: each is there once.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The last list with a hash.
    last: NumberMap<u64, u32>,
    /// For each list, the one before it with the same hash, and the hash.
    before: Vec<u32>,
}

impl Lists {
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// The number of a list that equals this one, or that it is new and which number it gets. `is` says whether a known list is equal.
    pub(crate) fn find(&mut self, hash: u64, mut is: impl FnMut(usize) -> bool) -> Result<usize, usize> {
        let next = self.before.len();
        let mut number = self.last.get(&hash).copied().unwrap_or(NONE);
        while number != NONE {
            if is(number as usize) {
                return Ok(number as usize);
            }
            number = self.before[number as usize];
        }
        self.add(hash);
        Err(next)
    }

    /// Takes a list for new without a look at the others: thousands may have its hash.
    pub(crate) fn add(&mut self, hash: u64) {
        let before = self.last.insert(hash, self.before.len() as u32);
        self.before.push(before.unwrap_or(NONE));
    }
}

/// The stacks of a profile.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    lists: Lists,
}

impl Stacks {
    /// The number of a stack; its locations are put into the profile if they are new.
    pub(crate) fn intern(
        &mut self,
        profile: &mut Profile,
        locations: &[LocationId],
        end: StackEnd,
    ) -> Result<StackId, StackId> {
        let hash = hash_of(locations.iter().map(|id| id.0));
        let is = |number: usize| {
            let stack = &profile.stacks[number];
            *stack.locations == *locations && stack.end == end
        };
        match self.lists.find(hash, is) {
            Ok(known) => Ok(StackId(known as u32)),
            Err(new) => {
                profile.stacks.push(Stack { locations: Arc::from(locations), end });
                Err(StackId(new as u32))
            }
        }
    }
}

/// The samples of a profile.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    lists: Lists,
}

impl Samples {
    /// Adds a sample, or what it has to the one that is the same but for its amounts. The sums of all samples have been checked: they fit.
    pub(crate) fn add(&mut self, profile: &mut Profile, sample: Sample) {
        if profile.samples.len() < MANY {
            profile.samples.push(sample);
            return;
        }
        if self.lists.is_empty() {
            for number in 0..profile.samples.len() {
                // Each is a new one, also if it is the same as one before.
                self.lists.add(hash(&profile.samples[number]));
            }
        }
        let is = |number: usize| key(&profile.samples[number]) == key(&sample);
        match self.lists.find(hash(&sample), is) {
            Ok(number) => profile.samples[number].absorb(&sample),
            Err(_) => profile.samples.push(sample),
        }
    }
}

fn key(sample: &Sample) -> (u32, u64, Option<u32>) {
    (sample.stack.0, sample.block_size, sample.thread.map(|ThreadId(number)| number))
}

fn hash(sample: &Sample) -> u64 {
    let (stack, size, thread) = key(sample);
    hash_of([stack, size as u32, (size >> 32) as u32, thread.map_or(u32::MAX, |thread| thread)].into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Amount, Format};

    #[test]
    fn stacks_are_there_once() {
        let (mut profile, mut stacks) = (Profile::new(Format::Pprof, 1), Stacks::default());
        let ids = |numbers: &[u32]| numbers.iter().map(|&number| LocationId(number)).collect::<Vec<_>>();
        let mut intern = |numbers: &[u32], end| stacks.intern(&mut profile, &ids(numbers), end);
        assert_eq!(intern(&[1, 2], StackEnd::Complete), Err(StackId(0)));
        assert_eq!(intern(&[1, 2], StackEnd::Unknown), Err(StackId(1)));
        assert_eq!(intern(&[2, 1], StackEnd::Complete), Err(StackId(2)));
        assert_eq!(intern(&[1, 2], StackEnd::Unknown), Ok(StackId(1)));
        assert_eq!(profile.stacks.len(), 3);
    }

    #[test]
    fn equal_hashes_are_no_equal_lists() {
        let mut lists = Lists::default();
        let known = [10, 20, 30];
        for (number, value) in known.iter().enumerate() {
            assert_eq!(lists.find(7, |list| known[list] == *value), Err(number));
        }
        assert_eq!(lists.find(7, |list| known[list] == 20), Ok(1));
    }

    #[test]
    fn many_samples_become_fewer() {
        let (mut profile, mut samples) = (Profile::new(Format::Pprof, 1), Samples::default());
        for number in 0..3 * MANY as u32 {
            let live = Amount { objects: 1, bytes: 8 };
            let stack = StackId(number % 1000);
            samples.add(&mut profile, Sample { live, allocated: live, ..Sample::new(stack, 8) });
        }
        assert_eq!(profile.samples.len(), MANY, "the first are as they were");
        assert_eq!(profile.recorded(crate::Metric::Live).objects, 3 * MANY as u64);
    }
}
