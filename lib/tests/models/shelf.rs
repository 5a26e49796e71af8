//! `heap/shelf.rs`: the span that each thread keeps at hand.
//!
//! Two threads allocate and free spans of one length, each any span that the program has; a thief clears both shelves; a signal handler
//! of the first thread allocates and frees between any two of its instructions. The shelf's words, the heads of the runs and the marks
//! are as in the code. No run may ever be in two places or in none, a run on a shelf is in transit (so a forked child may believe it),
//! and a span with a sample never goes the short way, which would forget the sample.

use super::explore::{Bad, Fault, Model, Steps, explore};

const RUNS: usize = 2;
const HANDLER: usize = 3;
const THIEF: usize = 2;
/// Of the two threads, the thief and the handler.
const CALLS: [u8; 4] = [3, 2, 2, 2];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Head {
    Free,
    Transit,
    Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Idle,
    /// `take_quickly`, with what it has found.
    TakeWord(u8),
    TakeLend(u8),
    TakeSpan(u8),
    /// `take`, then the arena, then `lay`.
    SlowTake,
    SlowArena,
    Lay(u8),
    /// `put_quickly`, with its run.
    PutLooks(u8),
    PutMarks(u8),
    PutHead(u8),
    /// The two halves of one instruction.
    PutFills(u8),
    PutFilled(u8),
    PutBack(u8),
    /// `release`, `exchange`.
    FreeHead(u8),
    Exchange(u8),
    ToArena(u8),
    /// `clear` of the shelf of a heap.
    Clear(u8),
    /// The mutant's second half, with what it has found.
    Cleared(u8, u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    /// Of each heap: a run's number from 1, or 0.
    shelf: [u8; 2],
    lent: [u8; 2],
    head: [Head; RUNS],
    plain: [bool; RUNS],
    sampled: [bool; RUNS],
    /// The program has it.
    held: [bool; RUNS],
    at: [At; 4],
    calls: [u8; 4],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The owner takes the word by a load and a store.
    TakenUnlocked,
    /// So does the thief.
    ClearedUnlocked,
    /// The shelf is filled whatever is there.
    FilledBlindly,
    /// A span that cannot be put there stays in transit.
    NotPutBack,
    /// The marks are not looked at.
    MarksIgnored,
    /// A run is put on the shelf while it is a span.
    FilledFirst,
    /// A run is a span before it is taken from the shelf.
    SpanFirst,
}

struct Shelves {
    mutant: Mutant,
}

/// The run in the hands of somebody.
fn in_hands(at: At) -> Option<usize> {
    match at {
        At::TakeLend(run) | At::TakeSpan(run) | At::Lay(run) | At::Exchange(run) | At::ToArena(run) => Some(run),
        At::PutLooks(run) | At::PutMarks(run) | At::PutHead(run) | At::FreeHead(run) => Some(run),
        At::PutFills(run) | At::PutFilled(run) | At::PutBack(run) => Some(run),
        At::Idle | At::TakeWord(_) | At::SlowTake | At::SlowArena | At::Clear(_) | At::Cleared(..) => None,
    }
    .map(|run| run as usize - 1)
}

impl Shelves {
    fn begin(&self, s: &State, who: usize, steps: &mut Steps<State>) {
        if s.calls[who] == 0 {
            return;
        }
        let mut begun = *s;
        begun.calls[who] -= 1;
        let mut to = |name, at, held: Option<usize>| {
            let mut s = begun;
            s.at[who] = at;
            held.into_iter().for_each(|run| s.held[run] = false);
            steps.to(name, s);
        };
        if who == THIEF {
            (0..2).for_each(|heap| to("clear", At::Clear(heap), None));
            return;
        }
        let heap = who % HANDLER;
        match s.shelf[heap] {
            0 => to("malloc", At::SlowTake, None),
            found => to("malloc", At::TakeWord(found), None),
        }
        for run in (0..RUNS).filter(|&run| s.held[run]) {
            let number = run as u8 + 1;
            let lent = s.lent[heap] == number;
            to("free", if lent { At::PutLooks(number) } else { At::FreeHead(number) }, Some(run));
        }
    }

    fn step(&self, s: &mut State, who: usize) -> Result<&'static str, Bad> {
        let heap = who % HANDLER;
        let of = |run: u8| run as usize - 1;
        let mutant = self.mutant;
        let (to, name) = match s.at[who] {
            At::Idle => unreachable!("see `begin`"),
            At::TakeWord(found) => {
                if mutant == Mutant::SpanFirst {
                    s.head[of(found)] = Head::Span;
                }
                if s.shelf[heap] == found || mutant == Mutant::TakenUnlocked {
                    s.shelf[heap] = 0;
                    (At::TakeLend(found), "take the word")
                } else {
                    (At::SlowTake, "the word is another")
                }
            }
            At::TakeLend(run) => {
                s.lent[heap] = run;
                (At::TakeSpan(run), "lend")
            }
            At::TakeSpan(run) => {
                if s.sampled[of(run)] {
                    return Err((Fault::Inexact, "a run with a sample is handed out"));
                }
                s.head[of(run)] = Head::Span;
                s.held[of(run)] = true;
                (At::Idle, "a span")
            }
            At::SlowTake => match std::mem::take(&mut s.shelf[heap]) {
                0 => (At::SlowArena, "nothing on the shelf"),
                run => (At::Lay(run), "take from the shelf"),
            },
            At::SlowArena => match (0..RUNS).find(|&run| s.head[run] == Head::Free) {
                Some(run) => {
                    s.head[run] = Head::Transit;
                    (At::Lay(run as u8 + 1), "take from the arena")
                }
                Option::None => (At::Idle, "no memory"),
            },
            At::Lay(run) => {
                s.plain[of(run)] = false;
                // Every second one that is laid is sampled: one that was not, and the next one.
                s.sampled[of(run)] = s.calls[who].is_multiple_of(2);
                s.head[of(run)] = Head::Span;
                s.held[of(run)] = true;
                (At::Idle, "lay")
            }
            At::PutLooks(run) if s.shelf[heap] != 0 => (At::FreeHead(run), "no room"),
            At::PutLooks(run) => (At::PutMarks(run), "there is room"),
            At::PutMarks(run) if !s.plain[of(run)] && mutant != Mutant::MarksIgnored => {
                (At::FreeHead(run), "not plain")
            }
            At::PutMarks(run) if mutant == Mutant::FilledFirst => (At::PutFills(run), "plain"),
            At::PutMarks(run) => (At::PutHead(run), "plain"),
            At::PutHead(run) => {
                s.head[of(run)] = Head::Transit;
                (if mutant == Mutant::FilledFirst { At::Idle } else { At::PutFills(run) }, "in transit")
            }
            At::PutFills(run) if s.shelf[heap] != 0 && mutant != Mutant::FilledBlindly => {
                (At::PutBack(run), "filled by a handler")
            }
            At::PutFills(run) => (At::PutFilled(run), "fill: read"),
            At::PutFilled(run) => {
                if s.sampled[of(run)] {
                    return Err((Fault::Inexact, "a span with a sample goes the short way"));
                }
                s.shelf[heap] = run;
                (if mutant == Mutant::FilledFirst { At::PutHead(run) } else { At::Idle }, "fill: write")
            }
            At::PutBack(run) => {
                if mutant != Mutant::NotPutBack {
                    s.head[of(run)] = Head::Span;
                }
                (At::FreeHead(run), "a span again")
            }
            At::FreeHead(run) if s.head[of(run)] != Head::Span => (At::Idle, "no span: taken for misuse"),
            At::FreeHead(run) => {
                s.head[of(run)] = Head::Transit;
                s.sampled[of(run)] = false;
                (At::Exchange(run), "free")
            }
            At::Exchange(run) => {
                s.plain[of(run)] = true;
                match std::mem::replace(&mut s.shelf[heap], run) {
                    0 => (At::Idle, "exchange"),
                    before => (At::ToArena(before), "exchange"),
                }
            }
            At::ToArena(run) => {
                s.head[of(run)] = Head::Free;
                (At::Idle, "to the arena")
            }
            At::Clear(heap) if mutant == Mutant::ClearedUnlocked => {
                (At::Cleared(heap, s.shelf[heap as usize]), "clear: read")
            }
            At::Clear(heap) => match std::mem::take(&mut s.shelf[heap as usize]) {
                0 => (At::Idle, "clear"),
                run => (At::ToArena(run), "clear"),
            },
            At::Cleared(_, 0) => (At::Idle, "clear: nothing"),
            At::Cleared(heap, run) => {
                s.shelf[heap as usize] = 0;
                (At::ToArena(run), "clear: write")
            }
        };
        s.at[who] = to;
        Ok(name)
    }
}

impl Model for Shelves {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State {
            shelf: [0; 2],
            lent: [0; 2],
            head: [Head::Free; RUNS],
            plain: [false; RUNS],
            sampled: [false; RUNS],
            held: [false; RUNS],
            at: [At::Idle; 4],
            calls: CALLS,
        }]
    }

    fn steps(&self, state: &State, steps: &mut Steps<State>) {
        for who in 0..4 {
            // While the handler runs its thread stands still; between the halves of an instruction it does not begin.
            let stands_still = who == 0 && state.at[HANDLER] != At::Idle;
            if stands_still || (who == HANDLER && matches!(state.at[0], At::PutFilled(_))) {
                continue;
            }
            if state.at[who] == At::Idle {
                self.begin(state, who, steps);
                continue;
            }
            let mut s = *state;
            match self.step(&mut s, who) {
                Ok(name) => steps.to(name, s),
                Err(bad) => steps.result("a thread", Err(bad)),
            }
        }
    }

    fn check(&self, s: &State, _last: bool) -> Result<(), Bad> {
        for run in 0..RUNS {
            let shelved = s.shelf.iter().filter(|&&word| word as usize == run + 1).count();
            let hands = s.at.iter().filter(|&&at| in_hands(at) == Some(run)).count();
            match shelved + hands + s.held[run] as usize + (s.head[run] == Head::Free) as usize {
                0 => return Err((Fault::Lost, "a run is nowhere")),
                1 => {}
                _ => return Err((Fault::Twice, "a run is in two places")),
            }
            if shelved != 0 && s.head[run] != Head::Transit {
                return Err((Fault::Twice, "a run on a shelf is not in transit"));
            }
            if s.held[run] && s.head[run] != Head::Span {
                return Err((Fault::Twice, "the program's block is no span"));
            }
        }
        Ok(())
    }
}

#[test]
fn a_run_is_in_one_place() {
    explore(&Shelves { mutant: Mutant::None }, 3_000_000).must_hold("shelves");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in [TakenUnlocked, ClearedUnlocked, FilledBlindly, NotPutBack, MarksIgnored, FilledFirst, SpanFirst] {
        explore(&Shelves { mutant }, 3_000_000).must_fail(&format!("shelves, {mutant:?}"));
    }
}
