//! `heap/repair.rs`: a signal handler that allocates while the child repairs.
//!
//! The kernel may deliver a signal to the child before its repair is over. The handler's first slow path asks whether the process is
//! in order, and it is not. As the code is, the handler then repairs as well, from the start, and goes on to allocate; the first
//! repair continues with what it knew. Now: a repair that finds itself in progress in this very thread returns at once, and the
//! handler is served like one that interrupts a locked section (by the emergency range; frees are deferred).
//!
//! One heap whose lock a vanished thread held, with three slabs to count and list.

use super::super::explore::{Bad, Fault, Model, Steps, explore};
use super::Code;

const SLABS: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Mark,
    Forget,
    /// Has looked at slab n, lists it next.
    Count(u8),
    List(u8),
    Reset,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    at: At,
    locked: bool,
    damaged: bool,
    in_order: bool,
    /// How often each slab is on the list.
    listed: [u8; SLABS as usize],
    /// Blocks in each slab, and what its count says.
    free: [u8; SLABS as usize],
    counted: [u8; SLABS as usize],
    /// What the slab at hand was seen to have.
    seen: u8,
    signals: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The lock word is freed before counts and lists are rebuilt.
    ResetFirst,
}

struct Repair {
    code: Code,
    mutant: Mutant,
}

impl Repair {
    /// The next step of a repair.
    fn step(&self, s: &mut State) {
        s.at = match s.at {
            At::Mark => {
                s.damaged = s.locked;
                if self.mutant == Mutant::ResetFirst {
                    s.locked = false;
                }
                At::Forget
            }
            At::Forget => {
                if s.damaged {
                    s.listed = [0; SLABS as usize];
                }
                At::Count(0)
            }
            At::Count(SLABS) => At::Reset,
            At::Count(slab) if s.damaged => {
                s.seen = s.free[slab as usize];
                At::List(slab)
            }
            At::Count(slab) => At::Count(slab + 1),
            At::List(slab) => {
                s.counted[slab as usize] = s.seen;
                s.listed[slab as usize] += 1;
                At::Count(slab + 1)
            }
            At::Reset => {
                s.damaged = false;
                s.locked = false;
                s.in_order = true;
                At::Done
            }
            At::Done => At::Done,
        };
    }

    /// A handler's malloc: repairs first, if that is what it finds to be done, then takes a block.
    fn handler(&self, s: &mut State) -> Result<(), Bad> {
        let resumes = s.at;
        if !s.in_order {
            if self.code == Code::Now {
                return Ok(()); // served by the emergency range
            }
            s.at = At::Mark;
            while s.at != At::Done {
                self.step(s);
            }
            s.at = resumes;
        }
        // From the first slab that is listed and says it has one.
        if let Some(slab) = (0..SLABS as usize).find(|&slab| s.listed[slab] != 0 && s.counted[slab] != 0) {
            let Some(left) = s.free[slab].checked_sub(1) else {
                return Err((Fault::Twice, "a block is taken from a slab that has none"));
            };
            (s.free[slab], s.counted[slab]) = (left, s.counted[slab] - 1);
        }
        Ok(())
    }
}

impl Model for Repair {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let start = State {
            at: At::Mark,
            locked: true,
            damaged: false,
            in_order: false,
            listed: [1, 0, 1],
            free: [1, 2, 2],
            counted: [2, 2, 1],
            seen: 0,
            signals: 2,
        };
        vec![start]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        if s.at != At::Done {
            let mut next = *s;
            self.step(&mut next);
            steps.to("repair", next);
        }
        if s.signals > 0 {
            let mut next = State { signals: s.signals - 1, ..*s };
            steps.result("a signal handler allocates", self.handler(&mut next).map(|()| next));
        }
    }

    fn check(&self, s: &State, _: bool) -> Result<(), Bad> {
        if s.at == At::Done {
            if s.counted != s.free {
                return Err((Fault::Twice, "H1: a count is not the number of free blocks"));
            }
            if s.listed != [1; SLABS as usize] {
                return Err((Fault::Stuck, "a slab is not on the list once"));
            }
            if s.locked {
                return Err((Fault::Stuck, "the lock stays held"));
            }
        }
        Ok(())
    }
}

#[test]
fn a_signal_in_the_middle_of_a_repair() {
    let now = Repair { code: Code::Now, mutant: Mutant::None };
    explore(&now, 10_000).must_hold("signal during the repair, as it is now");
    let earlier = Repair { code: Code::Earlier, mutant: Mutant::None };
    explore(&earlier, 10_000).must_fail("signal during the repair, earlier");
    let mutant = Repair { code: Code::Earlier, mutant: Mutant::ResetFirst };
    explore(&mutant, 10_000).must_fail("signal during the repair: ResetFirst");
}
