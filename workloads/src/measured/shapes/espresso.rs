//! A logic minimiser: covers are lists of cubes, cubes are small sets of bits. A cover is split in two along a variable, both
//! halves are solved, and the results are merged; what a level allocated goes away when it is left.

use crate::driver::seed::SplitMix64;
use crate::measured::block::{Block, Tally, stamp_of};

/// Sets are of 4 to 27 words.
const WORDS: std::ops::Range<u64> = 4..28;
/// Cubes of the first cover.
const CUBES: usize = 256;

struct Cover {
    cubes: Vec<(Block, usize)>,
}

struct Solver {
    random: SplitMix64,
    made: u64,
    tally: Tally,
}

impl Solver {
    fn cube(&mut self, words: usize) -> (Block, usize) {
        self.made += 1;
        let mut block = Block::new(words * 8);
        block.words(words * 8).fill(stamp_of(words as u64));
        (block, words)
    }

    fn free(&mut self, (block, words): (Block, usize)) {
        self.tally.add(block.read(), stamp_of(words as u64));
        block.free();
    }

    fn copy(&mut self, (from, words): &(Block, usize)) -> (Block, usize) {
        self.made += 1;
        let mut block = Block::new(words * 8);
        block.words(words * 8).fill(from.read());
        (block, *words)
    }

    /// Splits until few cubes are left. Frees the cover it is given.
    fn solve(&mut self, cover: Cover) -> Cover {
        if cover.cubes.len() <= 4 {
            return self.reduced(cover);
        }
        // Each half gets copies of its cubes, and of a few that belong to both.
        let mut halves = [Vec::new(), Vec::new()];
        for cube in &cover.cubes {
            let side = self.random.below(17);
            if side < 9 {
                halves[0].push(self.copy(cube));
            }
            if side >= 8 {
                halves[1].push(self.copy(cube));
            }
        }
        let [left, right] = halves.map(|cubes| self.solve(Cover { cubes }));
        cover.cubes.into_iter().for_each(|cube| self.free(cube));
        self.merged(left, right)
    }

    /// Makes a temporary complement of each cube, as the expansion step does, and drops one cube of three.
    fn reduced(&mut self, mut cover: Cover) -> Cover {
        for at in 0..cover.cubes.len() {
            let complement = self.copy(&cover.cubes[at]);
            let scratch = self.cube(complement.1);
            self.free(scratch);
            self.free(complement);
        }
        if cover.cubes.len() > 2
            && let Some(cube) = cover.cubes.pop()
        {
            self.free(cube);
        }
        cover
    }

    fn merged(&mut self, mut left: Cover, right: Cover) -> Cover {
        for cube in right.cubes {
            if self.random.below(4) == 0 {
                self.free(cube);
            } else {
                left.cubes.push(cube);
            }
        }
        left
    }
}

/// Solves `covers` covers. An operation is an allocation or a free of a cube; the lists of cubes are grown besides.
#[must_use]
pub fn pass(covers: u64, seed: u64) -> (u64, Tally) {
    let mut solver = Solver { random: SplitMix64::new(seed), made: 0, tally: Tally::default() };
    for _ in 0..covers {
        let words = (WORDS.start + solver.random.below(WORDS.end - WORDS.start)) as usize;
        let cubes = (0..CUBES).map(|_| solver.cube(words)).collect();
        let solved = solver.solve(Cover { cubes });
        solved.cubes.into_iter().for_each(|cube| solver.free(cube));
    }
    (2 * solver.made, solver.tally)
}
