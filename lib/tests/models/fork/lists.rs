//! `heap/slab.rs` and `heap/sampled/slabs.rs`: bits are the truth about a slab; counts and lists are derived from them and are made anew
//! in a child that inherited their lock from a thread it does not have.
//!
//! Up to three slabs of two blocks. The arena is not looked at here: a slab is made and given back in one step.

use super::super::explore::{Bad, Fault, Model, Steps, explore};
use super::Stores;

const SLABS: usize = 3;
const BLOCKS: u8 = 2;
const ALL_FREE: u8 = (1 << BLOCKS) - 1;
const NO_TRIGGER: u8 = u8::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Unlisted,
    Current,
    Partial,
    Empty,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Slab {
    /// Its head says that it is a slab; its owner is set, or it has records.
    exists: bool,
    owned: bool,
    bits: u8,
    free: u8,
    trigger: u8,
    state: Place,
    next: u8,
    previous: u8,
    /// Blocks that somebody has: on a stack, or the program.
    out: u8,
}

const NO_SLAB: Slab = Slab {
    exists: false,
    owned: false,
    bits: 0,
    free: 0,
    trigger: NO_TRIGGER,
    state: Place::Unlisted,
    next: 0,
    previous: 0,
    out: 0,
};

/// Slabs are numbered from 1, 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    slabs: [Slab; SLABS],
    current: u8,
    /// The first of the slabs with free blocks and others.
    partial: u8,
    /// The first of the slabs that have free blocks only.
    empty: u8,
    child: bool,
    /// The child has found what it must not find.
    broken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The child keeps the lists.
    ListsKept,
    /// The child keeps the counts.
    CountsKept,
    /// A taken block's bit is cleared after it was handed out.
    BitLast,
    /// The child lists slabs, but does not forget which was current.
    CurrentKept,
    /// A block that comes back to an exhausted slab does not list it.
    NeverListed,
    /// What is given up has blocks out.
    GivesUpPartial,
    /// A sampled slab loses its records (`owned`) before it is in transit.
    RecordsFirst,
}

struct Lists {
    mutant: Mutant,
    /// Sampled slabs: two lists, no current one. (State and trigger are not kept; here the state says which list it is.)
    sampled: bool,
}

struct Run<'a> {
    s: State,
    stores: Stores,
    model: &'a Lists,
}

impl Run<'_> {
    fn slab(&mut self, slab: u8) -> &mut Slab {
        &mut self.s.slabs[slab as usize - 1]
    }

    fn store(&mut self, slab: u8, change: impl FnOnce(&mut Slab)) {
        if self.stores.next() {
            change(self.slab(slab));
        }
    }

    fn lists(&mut self, change: impl FnOnce(&mut State)) {
        if self.stores.next() {
            change(&mut self.s);
        }
    }

    fn create(&mut self) -> Option<u8> {
        let slab = (1..=SLABS as u8).find(|&slab| !self.slab(slab).exists)?;
        self.store(slab, |slab| {
            *slab = Slab { bits: ALL_FREE, free: BLOCKS, state: Place::Unlisted, ..NO_SLAB };
        });
        self.store(slab, |slab| slab.owned = true);
        self.store(slab, |slab| slab.exists = true);
        Some(slab)
    }

    fn list(&mut self, slab: u8) {
        let empty = self.slab(slab).free == BLOCKS;
        let (state, trigger) = if empty { (Place::Empty, NO_TRIGGER) } else { (Place::Partial, BLOCKS) };
        self.store(slab, |slab| slab.state = state);
        self.store(slab, |slab| slab.trigger = trigger);
        let first = if empty { self.s.empty } else { self.s.partial };
        self.store(slab, |slab| slab.next = first);
        self.store(slab, |slab| slab.previous = 0);
        if first != 0 {
            self.store(first, |first| first.previous = slab);
        }
        self.lists(|s| *(if empty { &mut s.empty } else { &mut s.partial }) = slab);
    }

    fn unlist(&mut self, slab: u8) {
        let Slab { next, previous, state, .. } = *self.slab(slab);
        if previous != 0 {
            self.store(previous, |previous| previous.next = next);
        } else {
            self.lists(|s| *(if state == Place::Empty { &mut s.empty } else { &mut s.partial }) = next);
        }
        if next != 0 {
            self.store(next, |next| next.previous = previous);
        }
        self.store(slab, |slab| slab.state = Place::Unlisted);
    }

    /// `slab::current`.
    fn current(&mut self) -> Option<u8> {
        if self.s.current != 0 {
            return Some(self.s.current);
        }
        let listed = if self.s.partial != 0 { self.s.partial } else { self.s.empty };
        let slab = if listed != 0 {
            self.unlist(listed);
            listed
        } else {
            self.create()?
        };
        self.store(slab, |slab| slab.state = Place::Current);
        self.store(slab, |slab| slab.trigger = NO_TRIGGER);
        self.lists(|s| s.current = slab);
        Some(slab)
    }

    /// A refill of one block; `out` is set when the stack has it.
    fn take(&mut self) {
        let from_empty = self.s.partial == 0;
        let Some(slab) = (if self.model.sampled { self.sampled_slab() } else { self.current() }) else { return };
        if self.stores.stopped() {
            return;
        }
        let bit = self.slab(slab).bits & self.slab(slab).bits.wrapping_neg();
        if self.model.mutant == Mutant::BitLast {
            self.store(slab, |slab| slab.out |= bit);
        }
        self.store(slab, |slab| slab.bits &= !bit);
        self.store(slab, |slab| slab.free = slab.free.wrapping_sub(1));
        let free = self.slab(slab).free;
        if self.model.sampled {
            if from_empty || free == 0 {
                self.unlist(slab);
            }
            if from_empty && free != 0 {
                self.list(slab);
            }
        } else if self.slab(slab).free == 0 {
            self.store(slab, |slab| slab.state = Place::Unlisted);
            self.store(slab, |slab| slab.trigger = 1);
            self.lists(|s| s.current = 0);
        }
        self.store(slab, |slab| slab.out |= bit);
    }

    fn sampled_slab(&mut self) -> Option<u8> {
        let listed = if self.s.partial != 0 { self.s.partial } else { self.s.empty };
        if listed != 0 {
            return Some(listed);
        }
        let slab = self.create()?;
        self.list(slab);
        Some(slab)
    }

    /// `bits::put`, `slabs::give_back`.
    fn put(&mut self, slab: u8, bit: u8) {
        self.slab(slab).out &= !bit; // the block is in the hands of whoever is at it
        self.store(slab, |slab| slab.bits |= bit);
        self.store(slab, |slab| slab.free += 1);
        let free = self.slab(slab).free;
        if self.stores.stopped() {
            return;
        }
        if self.model.sampled {
            if free == BLOCKS && free != 1 {
                self.unlist(slab);
            }
            if (free == 1 || free == BLOCKS) && self.model.mutant != Mutant::NeverListed {
                self.list(slab);
            }
        } else if free == self.slab(slab).trigger {
            self.returned(slab);
        }
    }

    fn returned(&mut self, slab: u8) {
        if self.slab(slab).state == Place::Partial {
            self.unlist(slab);
        }
        if self.model.mutant != Mutant::NeverListed {
            self.list(slab);
        }
    }

    /// `slab::give_up_empty_of`, one slab; `slabs::withdraw_spare` and `free`.
    fn give_up(&mut self) {
        let slab = if self.model.mutant == Mutant::GivesUpPartial { self.s.partial } else { self.s.empty };
        if slab != 0 {
            if self.model.sampled && self.model.mutant != Mutant::RecordsFirst {
                self.store(slab, |slab| slab.exists = false); // in transit
            } else if self.model.sampled {
                self.store(slab, |slab| slab.owned = false);
            }
            self.unlist(slab);
            self.store(slab, |slab| slab.owned = false);
            self.store(slab, |slab| *slab = Slab { out: slab.out, ..NO_SLAB });
        }
    }

    /// The child.
    fn repair(&mut self) {
        let mutant = self.model.mutant;
        if mutant != Mutant::ListsKept {
            let current = if mutant == Mutant::CurrentKept { self.s.current } else { 0 };
            self.s = State { current, partial: 0, empty: 0, ..self.s };
        }
        for slab in 1..=SLABS as u8 {
            let Slab { exists, owned, bits, .. } = *self.slab(slab);
            if self.model.sampled && exists && !owned {
                self.s.broken = true; // the child looks at records that are not there
            }
            if !exists || !owned {
                *self.slab(slab) = Slab { out: self.slab(slab).out, exists, ..NO_SLAB };
                continue;
            }
            if mutant != Mutant::CountsKept {
                self.slab(slab).free = bits.count_ones() as u8;
            }
            let free = self.slab(slab).free;
            if mutant == Mutant::ListsKept {
                continue;
            }
            self.slab(slab).state = Place::Unlisted;
            self.slab(slab).trigger = free + 1;
            if free != 0 {
                self.list(slab);
            }
        }
    }
}

impl Lists {
    fn operation(&self, name: &'static str, state: &State, steps: &mut Steps<State>, act: impl Fn(&mut Run<'_>)) {
        let mut whole = Run { s: *state, stores: Stores::ALL, model: self };
        act(&mut whole);
        steps.to(name, whole.s);
        for count in 0.. {
            let mut part = Run { s: *state, stores: Stores::first(count), model: self };
            act(&mut part);
            if state.child || !part.stores.stopped() {
                break;
            }
            let mut child = Run { s: State { child: true, ..part.s }, stores: Stores::ALL, model: self };
            child.repair();
            steps.to("stopped, fork", child.s);
        }
    }
}

impl Model for Lists {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State { slabs: [NO_SLAB; SLABS], current: 0, partial: 0, empty: 0, child: false, broken: false }]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        self.operation("take", s, steps, |run| run.take());
        self.operation("give up", s, steps, |run| run.give_up());
        for slab in 1..=SLABS as u8 {
            for bit in (0..BLOCKS).map(|i| 1 << i).filter(|bit| s.slabs[slab as usize - 1].out & bit != 0) {
                self.operation("put", s, steps, |run| run.put(slab, bit));
            }
        }
    }

    fn check(&self, s: &State, _: bool) -> Result<(), Bad> {
        if s.broken {
            return Err((Fault::Twice, "a slab is repaired that has no records"));
        }
        let mut on_list = [false; SLABS];
        for (first, place) in [(s.partial, Place::Partial), (s.empty, Place::Empty)] {
            let (mut slab, mut previous) = (first, 0);
            while slab != 0 {
                let at = &s.slabs[slab as usize - 1];
                if std::mem::replace(&mut on_list[slab as usize - 1], true) {
                    return Err((Fault::Stuck, "a list goes in circles"));
                }
                if at.previous != previous || at.state != place {
                    return Err((Fault::Stuck, "a list is broken"));
                }
                if (at.free == BLOCKS) != (place == Place::Empty) {
                    return Err((Fault::Stuck, "a slab is on the wrong list"));
                }
                (previous, slab) = (slab, at.next);
            }
        }
        let mut lost = 0;
        for (i, slab) in s.slabs.iter().enumerate() {
            if slab.bits & slab.out != 0 {
                return Err((Fault::Twice, "a block that somebody has is free"));
            }
            if !slab.exists || !slab.owned {
                if slab.out != 0 || on_list[i] {
                    return Err((Fault::Twice, "a slab with blocks out was given back"));
                }
                continue;
            }
            lost += (ALL_FREE & !slab.bits & !slab.out).count_ones();
            if slab.free as u32 != slab.bits.count_ones() {
                return Err((Fault::Inexact, "H1: the count is not the number of bits"));
            }
            let current = s.current == i as u8 + 1;
            if slab.free != 0 && !on_list[i] && !current {
                return Err((Fault::Lost, "a slab with free blocks is on no list"));
            }
            if on_list[i] && (slab.free == 0 || current) {
                return Err((Fault::Stuck, "a slab is on a list that should not be"));
            }
        }
        if lost > s.child as u32 {
            return Err((Fault::Lost, "more than one block is lost"));
        }
        Ok(())
    }
}

const LIMIT: usize = 1_000_000;

#[test]
fn counts_and_lists_are_rebuilt() {
    explore(&Lists { mutant: Mutant::None, sampled: false }, LIMIT).must_hold("slabs of a heap");
    explore(&Lists { mutant: Mutant::None, sampled: true }, LIMIT).must_hold("sampled slabs");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for (mutant, sampled) in [
        (ListsKept, false),
        (ListsKept, true),
        (CountsKept, false),
        (CountsKept, true),
        (BitLast, false),
        (BitLast, true),
        (CurrentKept, false),
        (NeverListed, false),
        (NeverListed, true),
        (GivesUpPartial, false),
        (GivesUpPartial, true),
        (RecordsFirst, true),
    ] {
        let what = if sampled { "sampled slabs" } else { "slabs of a heap" };
        explore(&Lists { mutant, sampled }, LIMIT).must_fail(&format!("{what}: {mutant:?}"));
    }
}
