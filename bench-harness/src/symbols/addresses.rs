//! Addresses of code to ask for: drawn by chance, the same ones for the same seed.

use std::fs::File;
use std::path::Path;

use mpp_workloads::driver::seed::SplitMix64;
use object::read::{Object as _, ObjectSection as _, ReadCache};

/// How far apart the addresses of one cluster are at most, in bytes: those of a few functions next to each other.
const CLUSTER: u64 = 2 << 10;

/// How the addresses of a row are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All over the code.
    Uniform,
    /// In so many places, as the call sites of a heap profile are.
    Clusters(usize),
}

/// The bounds of `.text` in the file at `path`, as its headers count addresses.
///
/// # Errors
/// A sentence when the file cannot be read or has no code.
pub fn text_of(path: &Path) -> Result<(u64, u64), String> {
    let error = |cause: String| format!("{}: {cause}", path.display());
    let file = ReadCache::new(File::open(path).map_err(|cause| error(cause.to_string()))?);
    let object = object::File::parse(&file).map_err(|cause| error(cause.to_string()))?;
    let text = object.section_by_name(".text").filter(|section| section.size() > 0);
    let text = text.ok_or_else(|| error("no .text".to_owned()))?;
    Ok((text.address(), text.address() + text.size()))
}

/// Draws `count` addresses between `low` and `high`.
#[must_use]
pub fn draw((low, high): (u64, u64), count: usize, spread: Spread, seed: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    let size = (high - low).max(1);
    match spread {
        Spread::Uniform => (0..count).map(|_| low + random.below(size)).collect(),
        Spread::Clusters(clusters) => {
            let centres: Vec<u64> = (0..clusters.max(1)).map(|_| random.below(size)).collect();
            let mut one = || {
                let centre = centres[random.below(centres.len() as u64) as usize];
                low + (centre + random.below(CLUSTER)) % size
            };
            (0..count).map(|_| one()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_all_are_inside() {
        for spread in [Spread::Uniform, Spread::Clusters(3)] {
            let drawn = draw((1000, 900_000), 500, spread, 7);
            assert_eq!(drawn, draw((1000, 900_000), 500, spread, 7));
            assert_ne!(drawn, draw((1000, 900_000), 500, spread, 8));
            assert!(drawn.iter().all(|address| (1000..900_000).contains(address)));
        }
        let mut pages: Vec<u64> = draw((0, 1 << 30), 500, Spread::Clusters(3), 7).iter().map(|a| a >> 13).collect();
        pages.sort_unstable();
        pages.dedup();
        assert!(pages.len() <= 6, "three clusters lie in at most six pieces of 8 KiB");
    }

    #[test]
    fn the_code_of_this_program() {
        let (low, high) = text_of(&std::env::current_exe().unwrap()).unwrap();
        assert!(high - low > 10_000);
        assert!(text_of(Path::new("/dev/null")).is_err());
    }
}
