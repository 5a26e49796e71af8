//! `heap/home.rs`: which lock guards the slabs of a heap that becomes shared while it is in use.
//!
//! The owner of the home works under its own lock; a thief or a flusher comes with no lock held; a guest makes the home shared and
//! then takes blocks from it. Nobody may be in the slabs together, nobody may wait for ever, and a child knows whether somebody who
//! is gone was in there.

use super::explore::{Bad, Fault, Model, Steps, explore};

const OWNER: usize = 0;
const GUEST: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Outside,
    /// The owner has its heap's lock, or the guest its own.
    Begun,
    /// The guest: `share`.
    ShareLocked,
    Shared,
    /// Has read `shared`: 0 or 1.
    Read(u8),
    /// Has taken the heap's lock on behalf of the slabs.
    TookLock,
    /// In the slabs, under: nothing of its own, the heap's lock, the slabs' lock.
    Inside(u8),
    Leaving,
}

const OWN: u8 = 0;
const LOCK: u8 = 1;
const SLAB_LOCK: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    lock: u8,
    slab_lock: u8,
    shared: bool,
    at: [At; 3],
    calls: [u8; 3],
    forked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A home is made shared without its lock.
    ShareUnlocked,
    /// Whoever waited for the heap's lock does not look again whether the home has become shared.
    NotLookedAgain,
    /// The owner of a shared home uses its own lock.
    OwnerKeepsLock,
    /// The child looks at the heap's lock only.
    ChildSeesLockOnly,
}

struct Homes {
    mutant: Mutant,
}

impl Homes {
    fn step(&self, s: &mut State, who: usize) -> Option<&'static str> {
        let me = who as u8 + 1;
        let (to, name) = match s.at[who] {
            At::Outside if s.calls[who] == 0 => return None,
            At::Outside => {
                if who == OWNER {
                    if s.lock != 0 {
                        return None;
                    }
                    s.lock = me;
                }
                s.calls[who] -= 1;
                (At::Begun, "begin")
            }
            At::Begun if who == GUEST && !s.shared => {
                if self.mutant == Mutant::ShareUnlocked {
                    s.shared = true;
                    (At::Shared, "share")
                } else if s.lock == 0 {
                    s.lock = me;
                    (At::ShareLocked, "share: lock")
                } else {
                    return None;
                }
            }
            At::ShareLocked => {
                s.shared = true;
                (At::Leaving, "share")
            }
            At::Begun | At::Shared => {
                let keeps = who == OWNER && self.mutant == Mutant::OwnerKeepsLock;
                (At::Read((s.shared && !keeps) as u8), "read shared")
            }
            At::Read(1) if s.slab_lock == 0 => {
                s.slab_lock = me;
                (At::Inside(SLAB_LOCK), "lock the slabs")
            }
            At::Read(1) => return None,
            At::Read(_) if who == OWNER => (At::Inside(OWN), "the lock is held"),
            At::Read(_) if s.lock == 0 => {
                s.lock = me;
                (At::TookLock, "lock the heap")
            }
            At::Read(_) => return None,
            At::TookLock if s.shared && self.mutant != Mutant::NotLookedAgain => {
                s.lock = 0;
                (At::Shared, "shared meanwhile")
            }
            At::TookLock => (At::Inside(LOCK), "still private"),
            At::Inside(under) => {
                match under {
                    LOCK => s.lock = 0,
                    SLAB_LOCK => s.slab_lock = 0,
                    _ => {}
                }
                if who == OWNER { (At::Leaving, "leave the slabs") } else { (At::Outside, "end") }
            }
            At::Leaving => {
                s.lock = 0;
                // The guest goes on to take blocks.
                (if who == GUEST { At::Shared } else { At::Outside }, "unlock the heap")
            }
        };
        s.at[who] = to;
        Some(name)
    }

    /// A child with the thread `forker`; `None`: with one that is none of ours.
    fn fork(&self, s: &State, forker: Option<usize>) -> Result<State, Bad> {
        let vanished = |word: u8| word != 0 && Some(word as usize - 1) != forker;
        let damaged = match self.mutant {
            Mutant::ChildSeesLockOnly => vanished(s.lock),
            _ => vanished(s.slab_lock) || (!s.shared && vanished(s.lock)),
        };
        let mut child = State { forked: true, ..*s };
        for who in (0..3).filter(|&who| Some(who) != forker) {
            if matches!(s.at[who], At::Inside(_)) && !damaged {
                return Err((Fault::Inexact, "the slabs that a vanished thread was changing are not rebuilt"));
            }
            child.at[who] = At::Outside;
            child.calls[who] = child.calls[who].max(1); // a new thread takes its place
        }
        if damaged && forker.is_some_and(|forker| matches!(s.at[forker], At::Inside(_))) {
            return Err((Fault::Twice, "slabs are rebuilt that the forking thread is changing"));
        }
        if vanished(s.lock) {
            child.lock = 0;
        }
        if vanished(s.slab_lock) {
            child.slab_lock = 0;
        }
        Ok(child)
    }
}

impl Model for Homes {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State { lock: 0, slab_lock: 0, shared: false, at: [At::Outside; 3], calls: [3, 3, 2], forked: false }]
    }

    fn steps(&self, state: &State, steps: &mut Steps<State>) {
        for who in 0..3 {
            let mut s = *state;
            if let Some(name) = self.step(&mut s, who) {
                steps.to(name, s);
            }
        }
        if !state.forked {
            for forker in [None, Some(0), Some(1), Some(2)] {
                steps.result("fork", self.fork(state, forker));
            }
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        if s.at.iter().filter(|at| matches!(at, At::Inside(_))).count() > 1 {
            return Err((Fault::Twice, "two threads are in the slabs"));
        }
        if last && s.at != [At::Outside; 3] {
            return Err((Fault::Stuck, "somebody waits for ever"));
        }
        Ok(())
    }
}

#[test]
fn one_at_a_time_in_the_slabs() {
    explore(&Homes { mutant: Mutant::None }, 200_000).must_hold("homes");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in [ShareUnlocked, NotLookedAgain, OwnerKeepsLock, ChildSeesLockOnly] {
        explore(&Homes { mutant }, 200_000).must_fail(&format!("homes: {mutant:?}"));
    }
}
