//! Turns a body into figures: check it, find how many turns fill the time, then repeat.

use serde::Serialize;

use super::block::Tally;
use crate::driver::clock;

/// Operations of the checked part at most, in which every word of every block is written and read back.
const CHECKED_OPERATIONS: u64 = 2_000;
/// Bytes of the blocks of the checked part, about: large blocks are checked less often.
const CHECKED_BYTES: u64 = 16 << 20;

/// On which processors the threads of a row run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Pin {
    /// Wherever the system puts them.
    No,
    /// Thread number i on processor i, modulo their number.
    Spread,
    /// All on the last processor: what a remote free costs without moving cache lines.
    One,
}

/// What does not depend on the row.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides sizes, orders and slots.
    pub seed: u64,
    /// Threads, for rows that have them.
    pub threads: u32,
    /// Multiplies the operations of a repeat, for rows with a fixed number.
    pub scale: f64,
    /// How often the work is repeated; the figures are the least and the median.
    pub repeats: u32,
    /// Processor time of a repeat in milliseconds, for rows that can be of any length.
    pub repeat_ms: f64,
    /// Wall time after which no further repeat starts, in milliseconds: slow allocators are repeated less often.
    pub budget_ms: u64,
    /// Turns of a repeat instead of `repeat_ms`, for counting instructions.
    pub turns: Option<u64>,
    /// Where threads run.
    pub pin: Pin,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Operations of one repeat.
    pub operations: u64,
    /// Processor time per operation in nanoseconds, the least of all repeats.
    pub ns: f64,
    /// The same, the median.
    pub ns_median: f64,
    /// Wall time per operation in nanoseconds, the least.
    pub wall_ns: f64,
    /// What was read back from blocks; the same for every allocator. See [`Tally`].
    pub checksum: u64,
    /// Blocks that did not hold what was written into them.
    pub damaged: u64,
}

/// One repeat: operations, and nanoseconds on two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// Operations done.
    pub operations: u64,
    /// Processor time, of all threads together.
    pub cpu: u64,
    /// Wall time.
    pub wall: u64,
}

impl Figures {
    /// Sums up passes of the same work, of which there is at least one: a checksum that differs from the others' counts as
    /// a damaged block.
    #[must_use]
    pub fn of_passes(passes: &[(Repeat, Tally)]) -> Self {
        let first = passes[0].1.checksum;
        let damaged = passes.iter().map(|(_, tally)| tally.damaged + u64::from(tally.checksum != first)).sum();
        let repeats: Vec<_> = passes.iter().map(|(repeat, _)| *repeat).collect();
        Self::of(&repeats, Tally { checksum: first, damaged })
    }

    /// Sums up `repeats`, of which there is at least one.
    #[must_use]
    pub fn of(repeats: &[Repeat], tally: Tally) -> Self {
        let sorted = |nanoseconds: fn(&Repeat) -> u64| {
            let mut each: Vec<f64> =
                repeats.iter().map(|repeat| nanoseconds(repeat) as f64 / repeat.operations.max(1) as f64).collect();
            each.sort_by(f64::total_cmp);
            each
        };
        let cpu = sorted(|repeat| repeat.cpu);
        Self {
            operations: repeats[0].operations,
            ns: cpu[0],
            ns_median: f64::midpoint(cpu[(cpu.len() - 1) / 2], cpu[cpu.len() / 2]),
            wall_ns: sorted(|repeat| repeat.wall)[0],
            checksum: tally.checksum,
            damaged: tally.damaged,
        }
    }
}

/// Work of one thread that can be done any number of times.
pub trait Body {
    /// Operations in one turn.
    fn operations(&self) -> u64 {
        1
    }

    /// Bytes of one turn, if they are many.
    fn bytes(&self) -> u64 {
        1
    }

    /// Does `turns` turns. If `CHECKED`, every block is filled, read back and put into `tally`; if not, the loop does nothing
    /// but allocate, touch and free, and adds nothing to `tally`.
    fn run<const CHECKED: bool>(&mut self, turns: u64, tally: &mut Tally);

    /// Comes between the checked and the measured part.
    fn prepare(&mut self) {}
}

/// Measures `body` on the calling thread.
pub fn measure(mut body: impl Body, settings: &Settings) -> Figures {
    let (mut tally, mut none) = (Tally::default(), Tally::default());
    let checked = (CHECKED_OPERATIONS / body.operations()).min(CHECKED_BYTES / body.bytes()).max(1);
    body.run::<true>(checked, &mut tally);
    body.prepare();
    let turns = settings.turns.unwrap_or_else(|| fitting(&mut body, settings.repeat_ms * 1e6));
    let budget = Budget::start(settings);
    let mut repeats = Vec::with_capacity(settings.repeats as usize);
    while repeats.is_empty() || (repeats.len() < settings.repeats as usize && budget.is_left()) {
        let (wall, cpu) = (clock::wall(), clock::thread_cpu());
        body.run::<false>(turns, &mut none);
        let (cpu, wall) = (clock::thread_cpu() - cpu, clock::wall() - wall);
        repeats.push(Repeat { operations: turns * body.operations(), cpu, wall });
    }
    Figures::of(&repeats, tally)
}

/// Doubles the turns until they take a quarter of `nanoseconds`, and extrapolates. The first turns may have been slow ones,
/// on memory that was new, so the result is tried, and corrected if it was far off.
fn fitting(body: &mut impl Body, nanoseconds: f64) -> u64 {
    const MOST: u64 = 1 << 40;
    let mut took = |turns| {
        let start = clock::thread_cpu();
        body.run::<false>(turns, &mut Tally::default());
        (clock::thread_cpu() - start).max(1) as f64
    };
    let mut turns = 1u64;
    for _ in 0..100 {
        let time = took(turns);
        if turns >= MOST || (time > nanoseconds / 2.0 && time < nanoseconds * 2.0) {
            break;
        }
        let factor = if time < nanoseconds / 4.0 { 2.0 } else { nanoseconds / time };
        turns = ((turns as f64 * factor) as u64).clamp(1, MOST);
        if turns == 1 && time > nanoseconds {
            break;
        }
    }
    ((turns as f64 * nanoseconds / took(turns)) as u64).clamp(1, MOST)
}

/// How long repeats may go on.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    end: u64,
}

impl Budget {
    /// Starts now.
    #[must_use]
    pub fn start(settings: &Settings) -> Self {
        Self { end: clock::wall().saturating_add(settings.budget_ms.saturating_mul(1_000_000)) }
    }

    /// Whether there is time for one more.
    #[must_use]
    pub fn is_left(&self) -> bool {
        clock::wall() < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_least_and_the_median_per_operation() {
        let repeats =
            [(100, 900), (100, 500), (100, 700)].map(|(operations, cpu)| Repeat { operations, cpu, wall: 2 * cpu });
        let figures = Figures::of(&repeats, Tally { checksum: 1, damaged: 2 });
        assert_eq!((figures.ns, figures.ns_median, figures.wall_ns), (5.0, 7.0, 10.0));
        assert_eq!((figures.operations, figures.checksum, figures.damaged), (100, 1, 2));
    }

    #[test]
    fn a_pass_that_read_something_else_is_damage() {
        let pass = |checksum| (Repeat { operations: 1, cpu: 1, wall: 1 }, Tally { checksum, damaged: 0 });
        assert_eq!(Figures::of_passes(&[pass(3), pass(3)]).damaged, 0);
        assert_eq!(Figures::of_passes(&[pass(3), pass(4)]).damaged, 1);
    }

    struct Counting {
        checked: u64,
        turns: Vec<u64>,
    }

    impl Body for &mut Counting {
        fn operations(&self) -> u64 {
            10
        }
        fn run<const CHECKED: bool>(&mut self, turns: u64, tally: &mut Tally) {
            if CHECKED {
                self.checked += turns;
                tally.add(4, 4);
            } else {
                self.turns.push(turns);
            }
        }
    }

    #[test]
    fn a_body_is_checked_once_and_then_repeated() {
        let mut body = Counting { checked: 0, turns: vec![] };
        let settings = Settings {
            seed: 1,
            threads: 1,
            scale: 1.0,
            repeats: 3,
            repeat_ms: 1.0,
            budget_ms: 60_000,
            turns: Some(7),
            pin: Pin::No,
        };
        let figures = measure(&mut body, &settings);
        assert_eq!((body.checked, body.turns), (CHECKED_OPERATIONS / 10, vec![7, 7, 7]));
        assert_eq!((figures.operations, figures.checksum), (70, 4));
    }
}
