//! `observe/events/callbacks.rs`: the program's callbacks are read without a lock and changed now and then.
//!
//! Whoever tells a callback has function and argument of one and the same change, and does not run it any more when a change that came
//! later has returned; but one that was made in a callback returns at once. Nobody waits for ever.

use super::explore::{Bad, Fault, Model, Steps, explore};

const TELLERS: usize = 2;
const CHANGERS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Idle,
    // Count in.
    LoadRow,
    CountIn,
    LookAgain,
    CountOut,
    // Read.
    LoadNumber,
    LoadFunction,
    LoadArgument,
    LoadNumberAgain,
    Run,
    // In a callback that changes the callbacks.
    Change(Step),
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    LockWait,
    LockChange,
    WriteFunction,
    WriteArgument,
    StoreNumber,
    UnlockChange,
    FlipRow,
    Wait,
    UnlockWait,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Teller {
    at: At,
    calls: u8,
    row: u8,
    number: u8,
    pair: (u8, u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Changer {
    step: Option<Step>,
    changes: u8,
    /// The row that it waits for.
    old: u8,
}

/// Changes have numbers from 1 on; number 0 is what was there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    tables: [(u8, u8); 2],
    number: u8,
    row: u8,
    running: [u8; 2],
    change: bool,
    wait: bool,
    tellers: [Teller; TELLERS],
    changers: [Changer; CHANGERS],
    /// Callbacks of changes before this one are given up.
    given_up: u8,
    /// Of the change that each changer has made.
    made: [u8; CHANGERS],
    /// A callback has changed the callbacks.
    nested: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// Who has counted itself in does not look again which row it should be.
    RowNotAgain,
    /// The change waits for the new row.
    WaitsForNew,
    /// Others are sent to the new row before there are new callbacks.
    FlipFirst,
    /// Who reads does not look whether the table was written to.
    NumberNotAgain,
    /// The present table is written to.
    InPlace,
    /// A thread counts itself in when it has read.
    CountsLate,
    /// A callback that changes the callbacks waits, too.
    CallbackWaits,
    /// One who waits lets others wait at the same time.
    WaitTogether,
    /// One who waits keeps others from changing.
    OneLock,
}

struct Callbacks(Mutant);

impl Callbacks {
    fn has(&self, mutant: Mutant) -> bool {
        self.0 == mutant
    }

    /// A step of a change by `who`; `nested`: in a callback. `None`: it waits. The next step, if there is one.
    fn change(&self, s: &mut State, who: usize, step: Step, nested: bool) -> Option<Option<Step>> {
        let waits = !nested || self.has(Mutant::CallbackWaits);
        let table = (s.number + !self.has(Mutant::InPlace) as u8) as usize % 2;
        Some(Some(match step {
            Step::LockWait if !waits || self.has(Mutant::WaitTogether) => Step::LockChange,
            Step::LockWait if s.wait => return None,
            Step::LockWait => {
                s.wait = true;
                Step::LockChange
            }
            Step::LockChange if s.change => return None,
            Step::LockChange => {
                s.change = true;
                if self.has(Mutant::FlipFirst) && waits {
                    s.changers[who].old = s.row % 2;
                    s.row += 1;
                }
                Step::WriteFunction
            }
            Step::WriteFunction => {
                s.tables[table].0 = s.number + 1;
                Step::WriteArgument
            }
            Step::WriteArgument => {
                s.tables[table].1 = s.number + 1;
                Step::StoreNumber
            }
            Step::StoreNumber => {
                s.number += 1;
                if !nested {
                    s.made[who] = s.number;
                }
                Step::UnlockChange
            }
            Step::UnlockChange => {
                s.change = self.has(Mutant::OneLock) && waits;
                if !waits {
                    return Some(None);
                }
                if self.has(Mutant::FlipFirst) { Step::Wait } else { Step::FlipRow }
            }
            Step::FlipRow => {
                if !nested {
                    s.changers[who].old = s.row % 2;
                }
                s.row += 1;
                Step::Wait
            }
            Step::Wait => {
                let old = if nested { (s.row + 1) % 2 } else { s.changers[who].old };
                let row = old as usize ^ self.has(Mutant::WaitsForNew) as usize;
                if s.running[row] != 0 {
                    return None;
                }
                Step::UnlockWait
            }
            Step::UnlockWait => {
                if !self.has(Mutant::WaitTogether) {
                    s.wait = false;
                }
                if self.has(Mutant::OneLock) {
                    s.change = false;
                }
                if !nested {
                    s.given_up = s.given_up.max(s.made[who]);
                }
                return Some(None);
            }
        }))
    }

    fn tell(&self, s: &mut State, who: usize) -> Option<Result<(), Bad>> {
        let late = self.has(Mutant::CountsLate);
        let mut t = s.tellers[who];
        match t.at {
            At::Idle if t.calls == 0 => return None,
            At::Idle => {
                t.calls -= 1;
                t.at = if late { At::LoadNumber } else { At::LoadRow };
            }
            At::LoadRow => {
                t.row = s.row;
                t.at = At::CountIn;
            }
            At::CountIn => {
                s.running[t.row as usize % 2] += 1;
                t.at = if self.has(Mutant::RowNotAgain) { At::LoadNumber } else { At::LookAgain };
            }
            At::LookAgain if s.row != t.row => t.at = At::CountOut,
            At::LookAgain => t.at = if late { At::Run } else { At::LoadNumber },
            At::CountOut => {
                s.running[t.row as usize % 2] -= 1;
                t.at = At::LoadRow;
            }
            At::LoadNumber => {
                t.number = s.number;
                t.at = At::LoadFunction;
            }
            At::LoadFunction => {
                t.pair.0 = s.tables[t.number as usize % 2].0;
                t.at = At::LoadArgument;
            }
            At::LoadArgument => {
                t.pair.1 = s.tables[t.number as usize % 2].1;
                t.at = At::LoadNumberAgain;
            }
            At::LoadNumberAgain if s.number != t.number && !self.has(Mutant::NumberNotAgain) => t.at = At::LoadNumber,
            At::LoadNumberAgain => t.at = if late { At::LoadRow } else { At::Run },
            At::Run => {
                if t.pair.0 != t.pair.1 {
                    return Some(Err((Fault::Twice, "a function with another's argument")));
                }
                t.at = if s.nested { At::Leave } else { At::Change(Step::LockWait) };
                s.nested = true;
            }
            At::Change(step) => {
                s.tellers[who] = t;
                t.at = match self.change(s, who, step, true)? {
                    Some(next) => At::Change(next),
                    None => At::Leave,
                };
            }
            At::Leave => {
                s.running[t.row as usize % 2] -= 1;
                t = Teller { at: At::Idle, calls: t.calls, row: 0, number: 0, pair: (0, 0) };
            }
        }
        s.tellers[who] = t;
        Some(Ok(()))
    }
}

impl Model for Callbacks {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let teller = Teller { at: At::Idle, calls: 1, row: 0, number: 0, pair: (0, 0) };
        let changer = Changer { step: None, changes: 0, old: 0 };
        vec![State {
            tables: [(0, 0); 2],
            number: 0,
            row: 0,
            running: [0; 2],
            change: false,
            wait: false,
            tellers: [Teller { calls: 2, ..teller }, teller],
            changers: [Changer { changes: 2, ..changer }, Changer { changes: 1, ..changer }],
            given_up: 0,
            made: [0; CHANGERS],
            nested: false,
        }]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        for who in 0..TELLERS {
            let mut next = *s;
            if let Some(result) = self.tell(&mut next, who) {
                steps.result("a thread that tells goes on", result.map(|()| next));
            }
        }
        for who in 0..CHANGERS {
            let mut next = *s;
            let Changer { step, changes, .. } = s.changers[who];
            match step {
                None if changes == 0 => continue,
                None => {
                    next.changers[who].changes -= 1;
                    next.changers[who].step = Some(Step::LockWait);
                }
                Some(step) => match self.change(&mut next, who, step, false) {
                    None => continue,
                    Some(to) => next.changers[who].step = to,
                },
            }
            steps.to("a change goes on", next);
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        let runs = |teller: &Teller| matches!(teller.at, At::Change(_) | At::Leave);
        if s.tellers.iter().any(|teller| runs(teller) && teller.pair.0 < s.given_up) {
            return Err((Fault::Lost, "a callback runs that was given up"));
        }
        let busy = s.tellers.iter().any(|teller| teller.at != At::Idle || teller.calls != 0);
        if last && (busy || s.changers.iter().any(|changer| changer.step.is_some() || changer.changes != 0)) {
            return Err((Fault::Stuck, "somebody waits for ever"));
        }
        Ok(())
    }
}

#[test]
fn nobody_runs_what_was_given_up() {
    explore(&Callbacks(Mutant::None), 20_000_000).must_hold("callbacks");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in
        [RowNotAgain, WaitsForNew, FlipFirst, NumberNotAgain, InPlace, CountsLate, CallbackWaits, WaitTogether, OneLock]
    {
        explore(&Callbacks(mutant), 20_000_000).must_fail(&format!("callbacks, {mutant:?}"));
    }
}
