//! `observe/modules/history.rs`: a module was unloaded and comes back to the same place; stacks in it are taken while its unloading is
//! taken back. Later it is unloaded for good, and another one takes its place. Every stack must mean the module it was taken in.
//!
//! Two threads sample in the module that has come back. When both are done the program unloads it and loads the other one, in which a third
//! thread samples. A look at all unloadings for the last one that matters is one step.

use super::explore::{Bad, Fault, Model, Steps, explore};

const SAMPLERS: usize = 3;
/// The modules; the first sampler in the other one is the last.
const BACK: u8 = 1;
const OTHER: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Begin,
    TryLock,
    /// Has the lock: is there an unloading to take back?
    Look,
    TakeBack,
    /// Has taken it back, and looks whether somebody counts it.
    LookAgain,
    /// Numbers at the end that mean nothing can be given again.
    Trim,
    Count,
    Verify,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Sampler {
    at: At,
    /// The generation, when it is done.
    number: u8,
    loads: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Program {
    Unloading,
    Unloaded,
    Load,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    mapped: u8,
    /// Unloadings, from 1 on: which entry each was, 0 = taken back; whether a stack has counted it.
    unloaded: [u8; 4],
    counted: [bool; 4],
    unloadings: u8,
    /// Entries of the module that comes back, from 1 on: how many, and the unloading of each, 0 = it is there.
    entries: u8,
    gone: [u8; 3],
    loads: u8,
    looked: u8,
    locked: bool,
    samplers: [Sampler; SAMPLERS],
    program: Program,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// Stacks have no generation.
    NoGeneration,
    /// Taking back does not look whether a stack has counted the unloading.
    TakesBackAnything,
    /// Taking back does not look again.
    NoSecondLook,
    /// Who samples does not look again.
    NoVerification,
    /// Who samples does not count.
    NoCount,
}

struct Unloadings(Mutant);

impl State {
    /// The last unloading that matters. All are at the same place.
    fn last(&self) -> u8 {
        (1..=self.unloadings).rev().find(|&number| self.unloaded[number as usize] != 0).unwrap_or(0)
    }

    fn means(&self, generation: u8) -> u8 {
        let gone = self.gone[1..=self.entries as usize].iter().any(|&gone| gone > generation);
        if gone { BACK } else { self.mapped }
    }
}

impl Unloadings {
    fn sample(&self, s: &mut State, who: usize) -> Option<&'static str> {
        let mut me = s.samplers[who];
        let number = me.number as usize;
        let count_or_end = |number: u8| if number == 0 { At::Done } else { At::Count };
        let name = match me.at {
            At::Done => return None,
            At::Begin if s.mapped != if who == SAMPLERS - 1 { OTHER } else { BACK } => return None,
            At::Begin if self.0 == Mutant::NoGeneration => {
                me.at = At::Done;
                "no generation"
            }
            At::Begin => {
                (me.number, me.loads) = (s.last(), s.loads);
                let looks = me.number != 0 && s.loads != s.looked && !s.counted[me.number as usize];
                me.at = if looks { At::TryLock } else { count_or_end(me.number) };
                "look for the last unloading"
            }
            At::TryLock => {
                me.at = if s.locked { At::Count } else { At::Look };
                s.locked = true;
                "try the lock"
            }
            At::Look => {
                let last = s.last() as usize;
                let may = self.0 == Mutant::TakesBackAnything || !s.counted[last];
                me.at = At::Trim;
                if last != 0 && may && s.mapped == BACK {
                    me.number = s.unloaded[last] | (last as u8) << 4;
                    me.at = At::TakeBack;
                }
                "may it be taken back?"
            }
            At::TakeBack => {
                s.unloaded[(me.number >> 4) as usize] = 0;
                me.at = At::LookAgain;
                "take it back"
            }
            At::LookAgain => {
                let (entry, last) = (me.number & 15, (me.number >> 4) as usize);
                if s.counted[last] && !matches!(self.0, Mutant::NoSecondLook | Mutant::TakesBackAnything) {
                    s.unloaded[last] = entry;
                } else {
                    s.gone[entry as usize] = 0;
                }
                me.at = At::Trim;
                "look again"
            }
            At::Trim => {
                while s.unloadings > 0 && s.unloaded[s.unloadings as usize] == 0 {
                    s.unloadings -= 1;
                }
                (s.locked, s.looked) = (false, me.loads);
                me.number = s.last();
                me.at = count_or_end(me.number);
                "trim and unlock"
            }
            At::Count => {
                s.counted[number] |= self.0 != Mutant::NoCount;
                me.at = if self.0 == Mutant::NoVerification { At::Done } else { At::Verify };
                "count"
            }
            At::Verify if s.unloaded[number] != 0 => {
                me.at = At::Done;
                "it still counts"
            }
            At::Verify => {
                me.number = s.last();
                me.at = count_or_end(me.number);
                "it was taken back"
            }
        };
        s.samplers[who] = me;
        Some(name)
    }

    /// A module with a frame on a stack is not unloaded; the lock is free when nobody samples.
    fn program(&self, s: &mut State) -> Option<&'static str> {
        let (next, name) = match s.program {
            Program::Unloading if s.samplers[..SAMPLERS - 1].iter().any(|one| one.at != At::Done) => return None,
            Program::Unloading => {
                if s.gone[1..=s.entries as usize].iter().all(|&gone| gone != 0) {
                    s.entries += 1;
                    s.gone[s.entries as usize] = 0;
                }
                (Program::Unloaded, "learn before it is unloaded")
            }
            Program::Unloaded => {
                s.mapped = 0;
                for entry in 1..=s.entries {
                    if s.gone[entry as usize] == 0 {
                        s.unloadings += 1;
                        s.gone[entry as usize] = s.unloadings;
                        s.counted[s.unloadings as usize] = false;
                        s.unloaded[s.unloadings as usize] = entry;
                    }
                }
                (Program::Load, "unload")
            }
            Program::Load => {
                (s.mapped, s.loads) = (OTHER, s.loads + 1);
                (Program::Done, "load the other")
            }
            Program::Done => return None,
        };
        s.program = next;
        Some(name)
    }
}

impl Model for Unloadings {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let sampler = Sampler { at: At::Begin, number: 0, loads: 0 };
        vec![State {
            mapped: BACK,
            unloaded: [0, 1, 0, 0],
            counted: [false; 4],
            unloadings: 1,
            entries: 1,
            gone: [0, 1, 0],
            loads: 1,
            looked: 0,
            locked: false,
            samplers: [sampler; SAMPLERS],
            program: Program::Unloading,
        }]
    }

    fn steps(&self, state: &State, steps: &mut Steps<State>) {
        for who in 0..SAMPLERS {
            let mut s = *state;
            if let Some(name) = self.sample(&mut s, who) {
                steps.to(name, s);
            }
        }
        let mut s = *state;
        if let Some(name) = self.program(&mut s) {
            steps.to(name, s);
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        if !last {
            return Ok(());
        }
        let done = s.samplers.iter().all(|one| one.at == At::Done) && s.program == Program::Done;
        let [first, second, other] = s.samplers.map(|one| s.means(one.number));
        match () {
            () if !done => Err((Fault::Stuck, "somebody waits for ever")),
            () if [first, second] != [BACK; 2] => Err((Fault::Inexact, "a stack means a module that came later")),
            () if other != OTHER => Err((Fault::Inexact, "a stack means a module that was gone")),
            () => Ok(()),
        }
    }
}

#[test]
fn stacks_mean_the_modules_they_were_taken_in() {
    explore(&Unloadings(Mutant::None), 100_000).must_hold("unloadings");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in [NoGeneration, TakesBackAnything, NoSecondLook, NoVerification, NoCount] {
        explore(&Unloadings(mutant), 100_000).must_fail(&format!("unloadings: {mutant:?}"));
    }
}
