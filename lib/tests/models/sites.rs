//! `observe/sampler/table.rs`: two threads look up or make the site of a stack in a table of slots that is only added to.
//!
//! A table of two or three slots and keys that hash to the same slot or to different ones. Each thread interns two keys; then the
//! dump reads all sites. Every store is seen in any order that acquire and release allow: a site is a word that is written before
//! its number is published, unless the mutant has it otherwise.

use super::explore::{Bad, Fault, Model, Steps, explore};

const SLOTS: usize = 3;
const SITES: usize = 5;
const CALLS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Begin,
    /// Loads the slot.
    Look,
    /// Takes room for a site.
    Create,
    /// Writes it.
    Write,
    /// Publishes its number.
    Publish,
    /// Compares the site in the slot with its key.
    Compare,
    /// The mutant only: writes after it has published.
    WriteLate,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Thread {
    at: At,
    /// The probe, the number that was read, the site made for this key (0 = none yet).
    probe: u8,
    number: u8,
    made: u8,
    /// The numbers that its calls have got; 0 = not yet, 255 = no memory.
    got: [u8; CALLS],
    call: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    slots: [u8; SLOTS],
    /// The key of each site; 0 = not written.
    sites: [u8; SITES],
    used: u8,
    threads: [Thread; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The number is published before the site is written.
    PublishFirst,
    /// The number is stored, not exchanged.
    Store,
    /// A thread that came second takes its own site nevertheless.
    OwnSite,
    /// Room for a site is taken by a load and a store.
    RoomTwice,
}

struct Intern {
    /// The keys that each thread interns, from 1.
    keys: [[u8; CALLS]; 2],
    /// The first slot of each key.
    hash: [u8; 4],
    mutant: Mutant,
}

impl Intern {
    fn slot(&self, t: &Thread, key: u8) -> usize {
        (self.hash[key as usize] + t.probe) as usize % SLOTS
    }

    fn step(&self, s: &mut State, who: usize) -> Result<Option<&'static str>, Bad> {
        let mut t = s.threads[who];
        let call = t.call as usize;
        if call == CALLS {
            return Ok(None);
        }
        let key = self.keys[who][call];
        let done = |t: &mut Thread, number: u8| {
            t.got[call] = number;
            *t = Thread { at: At::Begin, probe: 0, number: 0, made: 0, got: t.got, call: t.call + 1 };
        };
        let name = match t.at {
            At::Begin => {
                t.at = At::Look;
                "intern"
            }
            At::Look => {
                t.number = s.slots[self.slot(&t, key)];
                t.at = match (t.number, t.made) {
                    (0, 0) => At::Create,
                    (0, _) => At::Publish,
                    _ => At::Compare,
                };
                "load slot"
            }
            At::Create => {
                if self.mutant == Mutant::RoomTwice && t.number == 0 {
                    t.number = s.used + 1; // read here, stored in the next step
                    s.threads[who] = t;
                    return Ok(Some("load used"));
                }
                if self.mutant == Mutant::RoomTwice {
                    s.used = t.number;
                } else {
                    s.used += 1;
                }
                if s.used as usize > SITES {
                    s.used -= 1;
                    done(&mut t, 255);
                } else {
                    t.made = s.used;
                    t.at = if self.mutant == Mutant::PublishFirst { At::Publish } else { At::Write };
                }
                "take room"
            }
            At::Write => {
                s.sites[t.made as usize - 1] = key;
                t.at = At::Publish;
                "write the site"
            }
            At::Publish => {
                let slot = self.slot(&t, key);
                t.number = s.slots[slot];
                if t.number == 0 || self.mutant == Mutant::Store {
                    s.slots[slot] = t.made;
                    let made = t.made;
                    if self.mutant == Mutant::PublishFirst { t.at = At::WriteLate } else { done(&mut t, made) }
                } else if self.mutant == Mutant::OwnSite {
                    let made = t.made;
                    done(&mut t, made);
                } else {
                    t.at = At::Compare;
                }
                "publish"
            }
            At::Compare => {
                let site = s.sites[t.number as usize - 1];
                if site == 0 {
                    return Err((Fault::Twice, "a published site is read before it is written"));
                }
                let number = t.number;
                if site == key {
                    done(&mut t, number);
                } else {
                    t.probe += 1;
                    t.at = At::Look;
                    if t.probe as usize == SLOTS {
                        done(&mut t, 255);
                    }
                }
                "compare"
            }
            At::WriteLate => {
                s.sites[t.made as usize - 1] = key;
                let made = t.made;
                done(&mut t, made);
                "write the site"
            }
        };
        s.threads[who] = t;
        Ok(Some(name))
    }
}

impl Model for Intern {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let thread = Thread { at: At::Begin, probe: 0, number: 0, made: 0, got: [0; CALLS], call: 0 };
        vec![State { slots: [0; SLOTS], sites: [0; SITES], used: 0, threads: [thread; 2] }]
    }

    fn steps(&self, state: &State, steps: &mut Steps<State>) {
        for who in 0..2 {
            let mut s = *state;
            match self.step(&mut s, who) {
                Ok(None) => {}
                Ok(Some(name)) => steps.to(name, s),
                Err(bad) => steps.result("a thread", Err(bad)),
            }
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        let mut number_of = [0; 4];
        // What a dump at this moment, or a child forked now, finds.
        for &number in s.slots.iter().filter(|&&number| number != 0) {
            let key = s.sites[number as usize - 1];
            if key == 0 {
                return Err((Fault::Twice, "a published site is not complete"));
            }
            if std::mem::replace(&mut number_of[key as usize], number) != 0 {
                return Err((Fault::Inexact, "two sites have the same key"));
            }
        }
        for (keys, thread) in self.keys.iter().zip(&s.threads) {
            for (&key, &got) in keys.iter().zip(&thread.got) {
                if got != 0 && got != 255 && got != number_of[key as usize] {
                    return Err((Fault::Twice, "a number is not that of the key's site"));
                }
                if last && got == 255 {
                    return Err((Fault::Lost, "a site was refused though there was room"));
                }
            }
        }
        Ok(())
    }
}

/// Equal keys, different ones, and ones that want the same slot.
fn models(mutant: Mutant) -> Vec<Intern> {
    let hashes = [[0, 0, 0, 0], [0, 0, 1, 2], [0, 2, 2, 0]];
    let keys = [[[1, 1], [1, 1]], [[1, 2], [1, 2]], [[1, 2], [2, 1]], [[1, 2], [3, 1]], [[1, 2], [2, 3]]];
    hashes.iter().flat_map(|&hash| keys.iter().map(move |&keys| Intern { keys, hash, mutant })).collect()
}

#[test]
fn one_number_for_each_key() {
    for model in models(Mutant::None) {
        let name = format!("sites, keys {:?}, slots {:?}", model.keys, model.hash);
        explore(&model, 100_000).must_hold(&name);
    }
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in [PublishFirst, Store, OwnSite, RoomTwice] {
        let refuted = models(mutant).into_iter().find_map(|model| match explore(&model, 100_000) {
            super::explore::Outcome::Violated { bad, states, .. } => Some((bad, states)),
            super::explore::Outcome::Holds { .. } => Option::None,
        });
        println!("sites: {mutant:?}: refuted: {:?}", refuted.expect("the mutant is refuted"));
    }
}
