//! How long single calls take at worst, while another thread forces purges a thousand times a second or does not.

use std::time::Duration;

use super::Setting;
use super::caller::Caller;
use crate::driver::args::scaled;
use crate::driver::clock;
use crate::driver::mapped::Mapped;
use crate::driver::seed::SplitMix64;
use crate::measured::block::Block;
use crate::memory_return::link::Kind;

/// Calls that are measured at scale 1, half of them malloc.
const CALLS: u64 = 20_000_000;
/// Live blocks, a power of two.
const LIVE: usize = 4096;
/// Largest block in bytes.
const LARGEST: u64 = 1024;
/// Time between two purges.
const PURGE_EVERY: Duration = Duration::from_millis(1);
/// Steps of the histogram in each doubling, a power of two.
const STEPS: usize = 32;

/// A histogram of ticks: exact below [`STEPS`], then so many steps in each doubling.
struct Histogram {
    counts: Mapped<u64>,
    most: u64,
}

impl Histogram {
    fn new() -> Self {
        Self { counts: Mapped::new(STEPS * 64), most: 0 }
    }

    #[inline(always)]
    fn place(ticks: u64) -> usize {
        let doubling = (ticks | 1).ilog2().saturating_sub(STEPS.ilog2() - 1) as usize;
        if doubling == 0 { ticks as usize } else { doubling * STEPS / 2 + (ticks >> doubling) as usize }
    }

    /// The largest number of ticks that falls into a place.
    fn ticks(place: usize) -> u64 {
        let doubling = (place / (STEPS / 2)).saturating_sub(1);
        (((place - doubling * STEPS / 2) as u64 + 1) << doubling) - 1
    }

    #[inline(always)]
    fn add(&mut self, ticks: u64) {
        self.counts[Self::place(ticks)] += 1;
        self.most = self.most.max(ticks);
    }

    /// The ticks that a share `below` of all does not exceed.
    fn quantile(&self, below: f64) -> u64 {
        let wanted = (self.counts.iter().sum::<u64>() as f64 * below).ceil() as u64;
        let mut sum = 0;
        let place = self.counts.iter().position(|&count| {
            sum += count;
            sum >= wanted
        });
        place.map_or(0, Self::ticks).min(self.most)
    }
}

/// Ticks of the finest clock.
#[inline(always)]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has both instructions. The fence keeps the call between the two looks.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    clock::wall()
}

/// Runs it in the first thread, beside a caller if `purged`. Returns the damaged blocks.
pub fn run(purged: bool, setting: &Setting) -> u64 {
    let caller = if purged { Caller::new(Some(PURGE_EVERY), setting.link) } else { None };
    let result = match &caller {
        Some(caller) => caller.beside(|| measured(setting, Some(caller))),
        None => measured(setting, None),
    };
    if let Some(caller) = &caller {
        caller.tell();
    }
    result
}

fn measured(setting: &Setting, caller: Option<&Caller>) -> u64 {
    let mut blocks: Mapped<Option<Block>> = Mapped::new(LIVE);
    let mut histogram = Histogram::new();
    setting.start();
    if let Some(caller) = caller {
        caller.begin();
    }
    let mut random = SplitMix64::new(setting.seed);
    let mut damaged = 0;
    // Calls while the live blocks are made count too.
    let (from_wall, from_ticks) = (clock::wall(), ticks());
    for _ in 0..scaled(CALLS, setting.scale) / 2 {
        let drawn = random.next_u64();
        let place = drawn as usize % LIVE;
        let size = 16 + ((drawn >> 32) % (LARGEST - 15)) as usize;
        if let Some(block) = blocks[place].take() {
            damaged += u64::from(block.read() != place as u64);
            let start = ticks();
            block.free();
            histogram.add(ticks() - start);
        }
        let start = ticks();
        let mut block = Block::new(size);
        histogram.add(ticks() - start);
        block.mark(place as u64);
        blocks[place] = Some(block);
    }
    let tick = (clock::wall() - from_wall) as f64 / (ticks() - from_ticks).max(1) as f64;
    setting.link.ask(Kind::Peak, 0);
    setting.link.say(Kind::Drained, 0);
    setting.link.wait();
    for (name, below) in [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999)] {
        setting.link.figure(&format!("{name}_ns"), histogram.quantile(below) as f64 * tick);
    }
    setting.link.figure("max_ns", histogram.most as f64 * tick);
    damaged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_order_and_hold_what_falls_into_them() {
        let mut last = None;
        for ticks in (0..5000).chain([1 << 20, (1 << 40) + 1, u64::MAX >> 1]) {
            let place = Histogram::place(ticks);
            assert!(place < STEPS * 64 && last.is_none_or(|last| last <= place), "{ticks}");
            assert!(Histogram::ticks(place) >= ticks, "{ticks} in {place}");
            assert!(place == 0 || Histogram::ticks(place - 1) < ticks, "{ticks} in {place}");
            last = Some(place);
        }
    }

    #[test]
    fn quantiles_are_within_a_step() {
        let mut histogram = Histogram::new();
        (1..=10_000).for_each(|ticks| histogram.add(ticks));
        let median = histogram.quantile(0.5);
        assert!((5000..5000 * 34 / 32).contains(&median), "{median}");
        assert_eq!((histogram.quantile(1.0), histogram.most), (10_000, 10_000));
    }
}
