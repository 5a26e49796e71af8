//! `os/lock.rs`: a child can tell who holds a lock from its word alone.
//!
//! Two threads take and release a lock; one of them forks, in a signal handler, between any two of its steps. In the child the other
//! one is gone: what it held must be freed, and what the forking thread holds must be left to it. (The owner of a word is named by
//! the atomic that takes it; in the mutant it stands in a word of its own.)

use super::super::explore::{Bad, Fault, Model, Steps, explore};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Outside,
    /// Has taken the word, is not named yet (the mutant only).
    Taken,
    Inside,
    /// Is not named any more, the word is not free yet (the mutant only).
    Leaving,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    /// 0 = free, else the thread (1, 2).
    word: u8,
    /// The mutant's second field.
    owner: u8,
    at: [At; 2],
    /// The thread that the child has.
    child: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The owner is named in a second word, after the lock is taken.
    OwnerApart,
    /// The child frees every lock that is held.
    ResetsAll,
    /// The child frees no lock.
    ResetsNone,
}

struct Lock {
    mutant: Mutant,
}

impl Lock {
    fn repair(&self, s: &mut State, me: u8) {
        let apart = self.mutant == Mutant::OwnerApart;
        let holder = if apart { s.owner } else { s.word };
        // With the owner apart, a word that is taken by nobody is a vanished thread's, as far as the child can tell.
        let vanished = s.word != 0 && holder != me;
        let frees = match self.mutant {
            Mutant::ResetsAll => s.word != 0,
            Mutant::ResetsNone => false,
            _ => vanished,
        };
        if frees {
            (s.word, s.owner) = (0, 0);
        }
        s.child = me;
        s.at[2 - me as usize] = At::Outside;
    }
}

impl Model for Lock {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State { word: 0, owner: 0, at: [At::Outside; 2], child: 0 }]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        let apart = self.mutant == Mutant::OwnerApart;
        for me in [1, 2] {
            // A new thread of the child may take the place of the one that is gone.
            let at = s.at[me as usize - 1];
            let mut next = *s;
            let to = match at {
                At::Outside if s.word == 0 => {
                    next.word = me;
                    if apart { At::Taken } else { At::Inside }
                }
                At::Outside => continue,
                At::Taken => {
                    next.owner = me;
                    At::Inside
                }
                At::Inside if apart => {
                    next.owner = 0;
                    At::Leaving
                }
                At::Inside | At::Leaving => {
                    next.word = 0;
                    At::Outside
                }
            };
            next.at[me as usize - 1] = to;
            steps.to("a step", next);
        }
        if s.child == 0 {
            for me in [1, 2] {
                let mut child = *s;
                self.repair(&mut child, me);
                steps.to("fork", child);
            }
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        if s.at.iter().all(|&at| at != At::Outside) {
            return Err((Fault::Twice, "two threads are inside"));
        }
        let held = s.at.iter().any(|&at| at != At::Outside);
        if last || (s.word != 0 && !held) {
            return Err((Fault::Stuck, "the lock is held by a thread that is gone"));
        }
        Ok(())
    }
}

#[test]
fn the_word_names_its_owner() {
    explore(&Lock { mutant: Mutant::None }, 1000).must_hold("lock");
}

#[test]
fn mutants_are_refuted() {
    for mutant in [Mutant::OwnerApart, Mutant::ResetsAll, Mutant::ResetsNone] {
        explore(&Lock { mutant }, 1000).must_fail(&format!("lock: {mutant:?}"));
    }
}
