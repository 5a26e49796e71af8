//! `os/users.rs`: a run's memory is given back while threads may be at it.
//!
//! Two threads look for the run, use it twice and leave, as often as the model allows; a third one ends it, waits for those who may have
//! found it, and unmaps it; then it begins another one, which takes the place of the first. Counters are two, one for each user.

use super::explore::{Bad, Fault, Model, Steps, explore};

const USERS: usize = 2;
const CALLS: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Begin,
    /// Counted, and has not looked at the word yet.
    Entered,
    /// Has a run, and will use it so often.
    Uses(u8),
    Leaves,
    /// The mutant only: has looked at the word before it was counted.
    Looked,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct User {
    at: At,
    /// The run that was found, 0 = none.
    run: u8,
    calls: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Ends {
    Clear,
    /// Looks at this counter next.
    Look(u8),
    Unmap,
    Publish,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    /// The word: a run's number, 0 = none.
    word: u8,
    /// Whether runs 1 and 2 are mapped.
    mapped: [bool; 3],
    counts: [u8; USERS],
    users: [User; USERS],
    ends: Ends,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The word is looked at before the user is counted.
    LookFirst,
    /// The counters are looked at before the word is cleared.
    ClearLast,
    /// Only one counter is looked at.
    OneCounter,
    /// Unmaps whatever the counters say.
    NoWait,
    /// The user leaves before it has used what it found.
    LeavesEarly,
}

struct Users(Mutant);

impl Users {
    fn user(&self, s: &mut State, who: usize) -> Result<Option<&'static str>, Bad> {
        let mut u = s.users[who];
        let early = self.0 == Mutant::LeavesEarly;
        let name = match u.at {
            At::Begin if u.calls == CALLS => return Ok(None),
            At::Begin if self.0 == Mutant::LookFirst => {
                u.run = s.word;
                u.at = At::Looked;
                "look"
            }
            At::Begin | At::Looked => {
                s.counts[who] += 1;
                u.at = match u.at {
                    At::Looked if u.run != 0 => At::Uses(2),
                    At::Looked => At::Leaves,
                    _ => At::Entered,
                };
                "enter"
            }
            At::Entered => {
                u.run = s.word;
                u.at = if u.run != 0 { At::Uses(2) } else { At::Leaves };
                "look"
            }
            At::Uses(left) => {
                if !s.mapped[u.run as usize] {
                    return Err((Fault::Twice, "a run is used that is not mapped"));
                }
                if early && left == 2 {
                    s.counts[who] -= 1;
                }
                u.at = if left > 1 { At::Uses(left - 1) } else { At::Leaves };
                "use"
            }
            At::Leaves => {
                if !(early && u.run != 0) {
                    s.counts[who] -= 1;
                }
                u = User { at: At::Begin, run: 0, calls: u.calls + 1 };
                "leave"
            }
        };
        s.users[who] = u;
        Ok(Some(name))
    }

    fn end(&self, s: &mut State) -> Option<&'static str> {
        let cleared_last = self.0 == Mutant::ClearLast;
        let counters = if self.0 == Mutant::OneCounter { 1 } else { USERS as u8 };
        let (next, name) = match s.ends {
            Ends::Clear => {
                s.word = 0;
                let next = if cleared_last { Ends::Unmap } else { Ends::Look(0) };
                (if self.0 == Mutant::NoWait { Ends::Unmap } else { next }, "clear the word")
            }
            Ends::Look(at) if s.counts[at as usize] != 0 => (Ends::Look(0), "somebody is there"),
            Ends::Look(at) if at + 1 < counters => (Ends::Look(at + 1), "nobody here"),
            Ends::Look(_) => (if cleared_last { Ends::Clear } else { Ends::Unmap }, "nobody there"),
            Ends::Unmap => {
                s.mapped[1] = false;
                (Ends::Publish, "unmap")
            }
            Ends::Publish => {
                s.mapped[2] = true;
                s.word = 2;
                (Ends::Done, "publish")
            }
            Ends::Done => return None,
        };
        s.ends = next;
        Some(name)
    }
}

impl Model for Users {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let user = User { at: At::Begin, run: 0, calls: 0 };
        let ends = if self.0 == Mutant::ClearLast { Ends::Look(0) } else { Ends::Clear };
        vec![State { word: 1, mapped: [false, true, false], counts: [0; USERS], users: [user; USERS], ends }]
    }

    fn steps(&self, state: &State, steps: &mut Steps<State>) {
        for who in 0..USERS {
            let mut s = *state;
            match self.user(&mut s, who) {
                Ok(None) => {}
                Ok(Some(name)) => steps.to(name, s),
                Err(bad) => steps.result("a user", Err(bad)),
            }
        }
        let mut s = *state;
        if let Some(name) = self.end(&mut s) {
            steps.to(name, s);
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        match last {
            true if s.ends != Ends::Done => Err((Fault::Stuck, "nobody is there, and the run is kept")),
            true if s.counts != [0; USERS] => Err((Fault::Inexact, "somebody is counted who has left")),
            _ => Ok(()),
        }
    }
}

#[test]
fn nobody_uses_what_is_not_there() {
    explore(&Users(Mutant::None), 100_000).must_hold("users of a run");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in [LookFirst, ClearLast, OneCounter, NoWait, LeavesEarly] {
        explore(&Users(mutant), 100_000).must_fail(&format!("users: {mutant:?}"));
    }
}
