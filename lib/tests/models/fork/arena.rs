//! `arena/spans.rs`: runs of slices in a chain of heads; bins and back pointers are derived from it.
//!
//! Five or six slices, runs of one to three, aligned or not. They are mapped two at a time, and one of them may be somebody else's.

use super::super::explore::{Bad, Fault, Model, Steps, explore};
use super::Stores;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    None,
    Free,
    /// Handed out: in transit, a slab or a span, which is all the same here.
    Taken,
    /// Somebody else's, or given up.
    Foreign,
}
use Kind::*;

const FIRST: u8 = 2;
const END_MAX: u8 = 8;
/// Bins for lengths up to this; bin 0 holds longer runs.
const EXACT: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    head: [(Kind, u8); END_MAX as usize],
    back: [u8; END_MAX as usize],
    next: [u8; END_MAX as usize],
    previous: [u8; END_MAX as usize],
    bins: [u8; EXACT as usize + 1],
    end: u8,
    /// Slices below have memory, but for foreign ones.
    mapped: u8,
    /// What `mapped` is about to become; 0 = nothing.
    mapping: u8,
    /// Runs that somebody has, by their first slice: their length.
    held: [u8; END_MAX as usize],
    child: bool,
}

impl State {
    /// What a run that is in no bin says of its neighbours there is not read again.
    fn forget_links(mut self) -> State {
        let mut in_bin = [false; END_MAX as usize];
        for mut run in self.bins {
            while run != 0 && !in_bin[run as usize] {
                in_bin[run as usize] = true;
                run = self.next[run as usize];
            }
        }
        for run in (0..END_MAX as usize).filter(|&run| !in_bin[run]) {
            (self.next[run], self.previous[run]) = (0, 0);
        }
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A split stores the head in front before the one behind it.
    FrontFirst,
    /// A merge clears the inner heads before it commits.
    ClearFirst,
    /// A merge or an extension never clears the inner heads.
    InnerKept,
    /// `END` is raised before the run there has a head.
    EndFirst,
    /// What is handed out is still marked free.
    NoTransit,
    /// The child keeps the bins.
    BinsKept,
    /// Nobody notes what is being mapped once the kernel has answered.
    SettledEarly,
}

struct Arena {
    /// The child clears heads inside of runs. The code does not: then a stopped `extend` leaves a free one.
    clears_inner: bool,
    /// The child sets `END` to where the chain ends. The code does not: then a stopped `extend` leaves a run that goes beyond it.
    sets_end: bool,
    mutant: Mutant,
    extends: bool,
    /// Slices end here.
    end: u8,
    /// This slice is somebody else's; 0 = none is.
    obstacle: u8,
}

/// One operation on a state, as far as its stores count.
struct Run<'a> {
    s: State,
    stores: Stores,
    model: &'a Arena,
}

impl Run<'_> {
    fn set_head(&mut self, run: u8, kind: Kind, length: u8) {
        if self.stores.next() {
            self.s.head[run as usize] = (kind, length);
        }
    }

    fn set_end(&mut self, end: u8) {
        if self.stores.next() {
            self.s.end = end;
        }
    }

    fn head(&self, run: u8) -> (Kind, u8) {
        self.s.head.get(run as usize).copied().unwrap_or((None, 0))
    }

    fn bin(length: u8) -> usize {
        if length <= EXACT { length as usize } else { 0 }
    }

    fn set(&mut self, field: fn(&mut State) -> &mut [u8; END_MAX as usize], at: u8, value: u8) {
        if self.stores.next() {
            field(&mut self.s)[at as usize] = value;
        }
    }

    fn set_bin(&mut self, length: u8, run: u8) {
        if self.stores.next() {
            self.s.bins[Self::bin(length)] = run;
        }
    }

    fn link(&mut self, run: u8, length: u8) {
        let first = self.s.bins[Self::bin(length)];
        self.set(|s| &mut s.previous, run, 0);
        self.set(|s| &mut s.next, run, first);
        if first != 0 {
            self.set(|s| &mut s.previous, first, run);
        }
        self.set(|s| &mut s.back, run + length - 1, run);
        self.set_bin(length, run);
    }

    fn unlink(&mut self, run: u8, length: u8) {
        let (next, previous) = (self.s.next[run as usize], self.s.previous[run as usize]);
        if previous != 0 {
            self.set(|s| &mut s.next, previous, next);
        } else {
            self.set_bin(length, next);
        }
        if next != 0 {
            self.set(|s| &mut s.previous, next, previous);
        }
    }

    fn release(&mut self, run: u8, length: u8) {
        self.set_head(run, Free, length);
        self.link(run, length);
    }

    fn find(&self, need: u8) -> Option<u8> {
        if let Some(bin) = (need..=EXACT).find(|&n| self.s.bins[n as usize] != 0) {
            return Some(self.s.bins[bin as usize]);
        }
        let (mut best, mut run) = (Option::None, self.s.bins[0]);
        for _ in 0..END_MAX {
            if run == 0 {
                break;
            }
            let length = self.head(run).1;
            if length >= need && best.is_none_or(|(least, _)| length < least) {
                best = Some((length, run));
            }
            run = self.s.next[run as usize];
        }
        best.map(|(_, run)| run)
    }

    fn free_run_before(&self, run: u8) -> Option<u8> {
        if run == FIRST {
            return Option::None;
        }
        let before = self.s.back[run as usize - 1];
        let (kind, n) = self.head(before);
        ((FIRST..run).contains(&before) && kind == Free && before + n == run).then_some(before)
    }

    fn to_alignment(run: u8, alignment: u8) -> u8 {
        run.next_multiple_of(alignment) - run
    }

    fn set_mapped(&mut self, mapped: u8) {
        if self.stores.next() {
            self.s.mapped = mapped;
        }
    }

    fn set_mapping(&mut self, mapping: u8) {
        if self.stores.next() {
            self.s.mapping = mapping;
        }
    }

    fn is_free(&self, start: u8, end: u8) -> bool {
        end <= self.model.end && !(start..end).contains(&self.model.obstacle)
    }

    /// `map_run`: two slices at a time if that can be had; the one before is foreign if they are behind it.
    fn map_run(&mut self, start: u8, end: u8, behind: bool) -> bool {
        let Some(end) = [end.next_multiple_of(2), end].into_iter().find(|&end| self.is_free(start, end)) else {
            return false;
        };
        self.set_mapping(end);
        if behind {
            self.set_head(start - 1, Foreign, 1);
        }
        self.set_mapped(end);
        if !behind || self.model.mutant == Mutant::SettledEarly {
            self.set_mapping(0);
        }
        true
    }

    fn map_to(&mut self, end: u8) -> bool {
        self.s.mapped >= end || self.map_run(self.s.mapped, end, false)
    }

    fn append(&mut self, run: u8, end: u8) {
        if self.model.mutant == Mutant::EndFirst {
            self.set_end(end);
            self.set_head(run, Taken, end - run);
        } else {
            self.set_head(run, Taken, end - run);
            self.set_end(end);
        }
        self.free(run);
    }

    fn grow(&mut self, slices: u8, alignment: u8) -> Option<u8> {
        let end = self.s.end;
        let start = self.free_run_before(end).unwrap_or(end);
        let need = start + Self::to_alignment(start, alignment) + slices;
        if need <= end {
            return Some(start);
        }
        if self.map_to(need) {
            self.append(end, need);
            return Some(start);
        }
        // `grow_behind`: the obstacle is one slice.
        let (foreign, start, length) = (self.s.mapped, self.s.mapped + 1, slices + alignment - 1);
        if self.is_free(foreign, foreign + 1) || !self.map_run(start, start + length, true) {
            return Option::None;
        }
        if foreign > end {
            self.append(end, foreign);
        }
        self.set_head(start, Taken, length);
        self.set_end(start + length);
        self.set_mapping(0);
        self.free(start);
        Some(start)
    }

    fn allocate(&mut self, slices: u8, alignment: u8) -> Option<u8> {
        let run = match self.find(slices + alignment - 1) {
            Some(run) => run,
            Option::None => self.grow(slices, alignment)?,
        };
        let length = self.head(run).1;
        if self.stores.stopped() || length < slices {
            return Option::None;
        }
        self.unlink(run, length);
        let front = Self::to_alignment(run, alignment);
        let rear = length.checked_sub(front + slices)?;
        let kind = if self.model.mutant == Mutant::NoTransit { Free } else { Taken };
        let front_first = self.model.mutant == Mutant::FrontFirst;
        if front_first && front > 0 {
            self.release(run, front);
        }
        if front_first {
            self.set_head(run + front, kind, slices);
        }
        if rear > 0 {
            self.release(run + front + slices, rear);
        }
        if !front_first {
            self.set_head(run + front, kind, slices);
            if front > 0 {
                self.release(run, front);
            }
        }
        Some(run + front)
    }

    fn free(&mut self, freed: u8) {
        let (mut run, mut length) = (freed, self.head(freed).1);
        let mut inner = [0; 2];
        let after = run + length;
        if after < self.s.end && self.head(after).0 == Free {
            let more = self.head(after).1;
            self.unlink(after, more);
            length += more;
            inner[0] = after;
        }
        if let Some(before) = self.free_run_before(run) {
            let more = self.head(before).1;
            self.unlink(before, more);
            length += more;
            inner[1] = run;
            run = before;
        }
        self.commit(run, Free, length, inner);
        self.link(run, length);
    }

    fn commit(&mut self, run: u8, kind: Kind, length: u8, inner: [u8; 2]) {
        let first = self.model.mutant == Mutant::ClearFirst;
        if !first {
            self.set_head(run, kind, length);
        }
        for head in inner {
            if head != 0 && self.model.mutant != Mutant::InnerKept {
                self.set_head(head, None, 0);
            }
        }
        if first {
            self.set_head(run, kind, length);
        }
    }

    fn extend(&mut self, run: u8, slices: u8) -> bool {
        let (kind, length) = self.head(run);
        let (after, end) = (run + length, self.s.end);
        let mut free = 0;
        if after < end {
            match self.head(after) {
                (Free, n) => free = n,
                _ => return false,
            }
        }
        if slices > length + free && (after + free != end || !self.map_to(run + slices)) {
            return false;
        }
        if free != 0 {
            self.unlink(after, free);
            if length + free > slices {
                self.release(run + slices, length + free - slices);
            }
        }
        self.commit(run, kind, slices, [if free != 0 { after } else { 0 }, 0]);
        self.set_end(end.max(run + slices));
        true
    }

    /// The child.
    fn repair(&mut self) {
        if self.model.mutant != Mutant::BinsKept {
            self.s.bins = [0; EXACT as usize + 1];
        }
        let unsure = std::mem::take(&mut self.s.mapping);
        self.s.mapped = self.s.mapped.max(unsure);
        let mut run = FIRST;
        while run < self.s.end {
            let (kind, length) = self.head(run);
            if kind == None {
                break;
            }
            if self.model.clears_inner && kind != Foreign {
                for inside in run + 1..(run + length).min(END_MAX) {
                    self.set_head(inside, None, 0);
                }
            }
            if kind == Free && self.model.mutant != Mutant::BinsKept {
                self.link(run, length);
            }
            run += length;
        }
        if self.model.sets_end {
            self.s.end = self.s.end.max(run);
        }
        if unsure > self.s.end {
            self.set_head(self.s.end, Foreign, unsure - self.s.end);
            self.s.end = unsure;
        }
    }
}

impl Arena {
    fn run(&self, s: &State, stores: Stores) -> Run<'_> {
        Run { s: *s, stores, model: self }
    }

    /// An operation, completed; and, in a process that has not forked yet, stopped after each number of stores and repaired.
    fn operation(
        &self,
        name: &'static str,
        state: &State,
        steps: &mut Steps<State>,
        act: impl Fn(&mut Run<'_>) -> Result<(), Bad>,
    ) {
        let mut whole = self.run(state, Stores::ALL);
        steps.result(name, act(&mut whole).map(|()| whole.s.forget_links()));
        if state.child {
            return;
        }
        for count in 0.. {
            let mut part = self.run(state, Stores::first(count));
            let held = part.s.held;
            if act(&mut part).is_err() || !part.stores.stopped() {
                break;
            }
            // A run that was being freed is lost or free; one that was being allocated is nobody's.
            let freed = name == "free";
            let mut child =
                self.run(&State { held: if freed { part.s.held } else { held }, child: true, ..part.s }, Stores::ALL);
            child.repair();
            steps.to("stopped, fork", child.s.forget_links());
        }
    }
}

impl Model for Arena {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State {
            head: [(None, 0); END_MAX as usize],
            back: [0; END_MAX as usize],
            next: [0; END_MAX as usize],
            previous: [0; END_MAX as usize],
            bins: [0; EXACT as usize + 1],
            end: FIRST,
            mapped: FIRST,
            mapping: 0,
            held: [0; END_MAX as usize],
            child: false,
        }]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        for (slices, alignment) in [(1, 1), (2, 1), (3, 1), (2, 2)] {
            self.operation("allocate", s, steps, |run| {
                let Some(at) = run.allocate(slices, alignment) else { return Ok(()) };
                let wanted = at..at + slices;
                let overlaps = |&held: &u8| {
                    run.s.held[held as usize] > 0 && held < wanted.end && held + run.s.held[held as usize] > at
                };
                if wanted.contains(&self.obstacle) {
                    return Err((Fault::Twice, "a foreign slice is handed out"));
                }
                if at < FIRST || wanted.end > END_MAX || (FIRST..END_MAX).any(|held| overlaps(&held)) {
                    return Err((Fault::Twice, "slices are handed out that somebody has"));
                }
                run.s.held[at as usize] = slices;
                Ok(())
            });
        }
        for held in (FIRST..END_MAX).filter(|&run| s.held[run as usize] != 0) {
            let length = s.head[held as usize].1;
            self.operation("free", s, steps, |run| {
                run.s.held[held as usize] = 0;
                run.free(held);
                Ok(())
            });
            if self.extends {
                for slices in [length + 1, length + 2] {
                    self.operation("extend", s, steps, |run| {
                        if run.extend(held, slices) {
                            run.s.held[held as usize] = slices;
                        }
                        Ok(())
                    });
                }
            }
        }
    }

    fn check(&self, s: &State, _: bool) -> Result<(), Bad> {
        let mut linked = [0; END_MAX as usize];
        for (bin, &first) in s.bins.iter().enumerate() {
            let (mut run, mut previous) = (first, 0);
            while run != 0 {
                let (kind, length) = s.head[run as usize];
                if kind != Free
                    || Run::bin(length) != bin
                    || s.previous[run as usize] != previous
                    || linked[run as usize] != 0
                {
                    return Err((Fault::Twice, "a bin holds what is not a free run of its length"));
                }
                linked[run as usize] = length;
                (previous, run) = (run, s.next[run as usize]);
            }
        }
        let (mut run, mut lost) = (FIRST, 0);
        while run < s.end {
            let (kind, length) = s.head[run as usize];
            match kind {
                None => return Err((Fault::Stuck, "the chain of heads is broken")),
                Free if linked[run as usize] != length => return Err((Fault::Lost, "a free run is in no bin")),
                Free if s.back[(run + length - 1) as usize] != run => return Err((Fault::Inexact, "no back pointer")),
                Free => linked[run as usize] = 0,
                Foreign => {}
                Taken => lost += (s.held[run as usize] == 0) as u8,
            }
            if kind == Free && s.held[run as usize] != 0 {
                return Err((Fault::Twice, "a run that somebody has is free"));
            }
            if (run + 1..run + length).any(|inside| s.held.get(inside as usize).is_some_and(|&held| held != 0)) {
                return Err((Fault::Twice, "a run that somebody has is inside another"));
            }
            run += length;
        }
        if run != s.end {
            return Err((Fault::Twice, "the chain of heads goes beyond the end"));
        }
        if linked != [0; END_MAX as usize] {
            return Err((Fault::Twice, "a free run in a bin is not in the chain"));
        }
        if lost > s.child as u8 {
            return Err((Fault::Lost, "more than one run is lost"));
        }
        Ok(())
    }
}

const LIMIT: usize = 3_000_000;

/// As the code is.
const EARLIER: Arena =
    Arena { clears_inner: false, sets_end: false, mutant: Mutant::None, extends: true, end: END_MAX, obstacle: 0 };
const NOW: Arena = Arena { clears_inner: true, sets_end: true, ..EARLIER };

#[test]
fn the_chain_of_heads_survives() {
    explore(&Arena { extends: false, end: END_MAX - 1, ..EARLIER }, LIMIT).must_hold("arena earlier, without extend");
    explore(&NOW, LIMIT).must_hold("arena as it is now");
    for obstacle in FIRST + 1..END_MAX - 1 {
        explore(&Arena { obstacle, ..NOW }, LIMIT).must_hold("arena with a foreign slice");
    }
}

/// A child made in the middle of `extend` finds a free head inside the run, or a run beyond the end.
#[test]
fn an_interrupted_extension() {
    explore(&Arena { sets_end: true, ..EARLIER }, LIMIT).must_fail("arena earlier: the child keeps inner heads");
    explore(&Arena { clears_inner: true, ..EARLIER }, LIMIT).must_fail("arena earlier: the child keeps the end");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in [FrontFirst, ClearFirst, InnerKept, EndFirst, NoTransit, BinsKept] {
        explore(&Arena { mutant, ..NOW }, LIMIT).must_fail(&format!("arena: {mutant:?}"));
    }
    let behind = Arena { mutant: SettledEarly, obstacle: FIRST + 2, ..NOW };
    explore(&behind, LIMIT).must_fail("arena: SettledEarly");
}
