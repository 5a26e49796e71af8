//! The scaling patterns of one thread's own blocks: a stream of operations that is drawn beforehand.

use super::block::{Block, Tally, stamp_of};
use super::crew::Worker;
use super::sizes::Sizes;
use crate::driver::mapped::{Mapped, Zeroed};
use crate::driver::seed::{SplitMix64, derive};

/// What a pattern does.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Sizes of blocks.
    pub sizes: Sizes,
    /// Places for live blocks.
    pub places: u32,
    /// Of how many choices each is: allocate, free the oldest, free at random, resize.
    pub weights: [u64; 4],
    /// Write every page of a block, not just its ends.
    pub pages: bool,
    /// Choices per thread and pass at scale 1.
    pub choices: u64,
}

/// Small objects on a hot path.
pub const TINY: Pattern =
    Pattern { sizes: Sizes::even(16, 64), places: 256, weights: [8, 5, 3, 0], pages: false, choices: 400_000 };
/// What a program does on the whole.
pub const GENERAL: Pattern =
    Pattern { sizes: Sizes::doublings(8, 4096), places: 1024, weights: [7, 4, 3, 2], pages: false, choices: 300_000 };
/// Buffers of 64 KiB to 4 MiB.
pub const LARGE: Pattern = Pattern {
    sizes: Sizes::doublings(64 << 10, 4 << 20),
    places: 8,
    weights: [8, 6, 2, 0],
    pages: true,
    choices: 1_500,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Allocate,
    Free,
    Resize,
}

/// One operation. Zero means allocating nothing anywhere, which no plan has.
#[derive(Clone, Copy, Debug)]
struct Step {
    size: u32,
    /// The place, and in the two highest bits the action.
    place: u32,
}

// SAFETY: plain numbers.
unsafe impl Zeroed for Step {}

impl Step {
    const fn new(action: Action, place: u32, size: u32) -> Self {
        Self { size, place: place | (action as u32) << 30 }
    }

    const fn action(self) -> Action {
        match self.place >> 30 {
            0 => Action::Allocate,
            1 => Action::Free,
            _ => Action::Resize,
        }
    }

    const fn place(self) -> usize {
        (self.place & ((1 << 30) - 1)) as usize
    }
}

/// A thread that follows its stream.
#[derive(Debug)]
pub struct Mixer {
    steps: Mapped<Step>,
    blocks: Mapped<Option<Block>>,
    pages: bool,
    tally: Tally,
}

impl Mixer {
    /// Draws the stream of thread `number`.
    #[must_use]
    pub fn new(pattern: &Pattern, choices: u64, seed: u64, number: u32) -> Self {
        // Drawn twice, first to count: a list that grows would be the allocator's, and in its figures.
        let draw = |each: &mut dyn FnMut(Step)| {
            plan(pattern, choices, &mut SplitMix64::new(derive(seed, &[u64::from(number)])), each);
        };
        let mut count = 0;
        draw(&mut |_| count += 1);
        let mut steps = Mapped::new(count);
        let mut places = steps.iter_mut();
        draw(&mut |step| *places.next().expect("the same stream") = step);
        Self { steps, blocks: Mapped::new(pattern.places as usize), pages: pattern.pages, tally: Tally::default() }
    }
}

/// Draws choices one by one, and notes what each means for the places. All places are empty in the end.
fn plan(pattern: &Pattern, choices: u64, random: &mut SplitMix64, each: &mut dyn FnMut(Step)) {
    let mut taken = vec![false; pattern.places as usize];
    let mut oldest = std::collections::VecDeque::new();
    let [allocate, oldest_first, at_random, resize] = pattern.weights;
    for _ in 0..choices {
        let choice = random.below(allocate + oldest_first + at_random + resize);
        let place = random.below(u64::from(pattern.places)) as u32;
        let size = pattern.sizes.draw(random) as u32;
        let is_taken = &mut taken[place as usize];
        if choice < allocate || (choice >= allocate + oldest_first + at_random && !*is_taken) {
            if *is_taken {
                each(Step::new(Action::Free, place, 0));
            }
            *is_taken = true;
            oldest.push_back(place);
            each(Step::new(Action::Allocate, place, size));
        } else if choice < allocate + oldest_first {
            // A place may stand in the queue twice; what was freed at random meanwhile is passed over.
            while let Some(place) = oldest.pop_front() {
                if std::mem::replace(&mut taken[place as usize], false) {
                    each(Step::new(Action::Free, place, 0));
                    break;
                }
            }
        } else if choice < allocate + oldest_first + at_random {
            if std::mem::replace(is_taken, false) {
                each(Step::new(Action::Free, place, 0));
            }
        } else {
            each(Step::new(Action::Resize, place, size));
        }
    }
    let left = (0..pattern.places).filter(|&place| taken[place as usize]);
    left.for_each(|place| each(Step::new(Action::Free, place, 0)));
}

impl Worker for Mixer {
    fn pass(&mut self) -> u64 {
        let Self { steps, blocks, pages, tally } = self;
        let use_it = |block: &mut Block, place: usize, size: usize| {
            if *pages {
                block.touch_pages(size);
            } else {
                block.touch_at(size - 1);
            }
            block.mark(stamp_of(place as u64));
        };
        for step in steps.iter() {
            let (place, size) = (step.place(), step.size as usize);
            match (step.action(), blocks[place].take()) {
                (Action::Allocate, _) => {
                    let mut block = Block::new(size);
                    use_it(&mut block, place, size);
                    blocks[place] = Some(block);
                }
                (Action::Resize, Some(block)) => {
                    tally.add(block.read(), stamp_of(place as u64));
                    let mut block = block.resized(size);
                    use_it(&mut block, place, size);
                    blocks[place] = Some(block);
                }
                (Action::Free, Some(block)) => {
                    tally.add(block.read(), stamp_of(place as u64));
                    block.free();
                }
                (Action::Resize | Action::Free, None) => unreachable!("a plan frees what it allocated"),
            }
        }
        steps.len() as u64
    }

    fn settle(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_frees_all_it_allocates_and_repeats() {
        for pattern in [TINY, GENERAL, LARGE] {
            let mut mixer = Mixer::new(&pattern, pattern.choices / 100, 1, 0);
            let operations = mixer.pass();
            let once = mixer.settle();
            assert!(operations > 0 && once.damaged == 0 && once.checksum != 0, "{pattern:?}");
            assert!(mixer.blocks.iter().all(Option::is_none));
            assert_eq!((mixer.pass(), mixer.settle()), (operations, once));
        }
        assert!(Mixer::new(&GENERAL, 1_000, 1, 0).steps.iter().any(|step| step.action() == Action::Resize));
    }
}
