//! The machine: which operation of a thread may happen next, and what it does.

use super::super::explore::{Bad, Model, Steps};
use super::program::{Kind, Op, Order, Program, Value};

pub(super) const THREADS: usize = 3;
const REGISTERS: usize = 16;
pub(super) const PLACES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Machine {
    /// Only acquire, release, fences, dependencies and what concerns one place keep operations in order.
    Arm,
    /// Only a load may come before an earlier store, and not before a sequentially consistent one or an exchange.
    X86,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct State {
    /// Which way each thread goes.
    pub(super) way: [u8; THREADS],
    /// Operations that have happened.
    done: [u64; THREADS],
    /// What loads have found.
    registers: [[i8; REGISTERS]; THREADS],
    /// Loads whose place somebody else has written since, if that matters still.
    stale: [u64; THREADS],
    pub(super) memory: [i8; PLACES],
    /// A thread is asleep.
    pub(super) sleeps: bool,
}

impl State {
    pub(super) fn value(&self, thread: usize, value: Value) -> i8 {
        value.of(&self.registers[thread])
    }
}

/// Threads, the ways each can go, and what must be so when all have ended.
pub(super) struct Weak {
    threads: Vec<Vec<Program>>,
    /// By thread, way and operation: earlier ones that must have happened.
    behind: Vec<Vec<Vec<u64>>>,
    memory: Vec<[i8; PLACES]>,
    in_the_end: fn(&Weak, &State) -> Result<(), Bad>,
}

impl Weak {
    /// `memory`: what it may be at first.
    pub(super) fn new(
        machine: Machine,
        threads: Vec<Vec<Program>>,
        memory: Vec<[i8; PLACES]>,
        in_the_end: fn(&Weak, &State) -> Result<(), Bad>,
    ) -> Self {
        let of_program = |program: &Program| {
            let behind =
                |j: usize| (0..j).filter(|&i| machine.ordered(&program.ops, i, j)).fold(0, |all, i| all | 1 << i);
            (0..program.ops.len()).map(behind).collect()
        };
        let behind = threads.iter().map(|ways| ways.iter().map(of_program).collect()).collect();
        assert!(
            threads.len() <= THREADS
                && threads
                    .iter()
                    .flatten()
                    .all(|program| program.ops.len() <= 64 && program.loads as usize <= REGISTERS)
        );
        Weak { threads, behind, memory, in_the_end }
    }

    pub(super) fn program(&self, s: &State, thread: usize) -> &Program {
        &self.threads[thread][s.way[thread] as usize]
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// What a thread has in the end.
    pub(super) fn has(&self, s: &State, thread: usize) -> Vec<i8> {
        self.program(s, thread).has.iter().map(|&value| s.value(thread, value)).collect()
    }

    /// Every thread has ended or sleeps.
    fn ended(&self, s: &State) -> bool {
        (0..self.threads.len()).all(|thread| {
            let next = s.done[thread].trailing_ones() as usize;
            let ops = &self.program(s, thread).ops;
            next == ops.len() || s.sleeps && ops[next].kind == Kind::Woken
        })
    }

    /// The place of an operation, if it has one and that is known.
    fn place(&self, s: &State, thread: usize, op: &Op) -> Option<i8> {
        let known = op.at.needs() & !s.done[thread] == 0;
        (known && matches!(op.kind, Kind::Load | Kind::Store | Kind::Wait)).then(|| s.value(thread, op.at))
    }

    fn perform(&self, s: &State, thread: usize, number: usize) -> Option<State> {
        let (ops, done) = (&self.program(s, thread).ops, s.done[thread]);
        if done >> number & 1 != 0 || self.behind[thread][s.way[thread] as usize][number] & !done != 0 {
            return None;
        }
        let op = &ops[number];
        let mut next = *s;
        next.done[thread] |= 1 << number;
        match op.kind {
            Kind::Load => {
                let Value::Loaded(_, register, _) = op.value else { unreachable!("a load has a register") };
                next.registers[thread][register as usize] = self.load(s, thread, number)?;
            }
            Kind::Store => {
                if op.exchange && s.stale[thread] >> (number - 1) & 1 != 0 {
                    return None; // somebody was faster: the whole exchange comes later
                }
                let place = s.value(thread, op.at);
                // It waits for earlier loads of this place, and until it is known of what place they are.
                let mut pending = (0..number).filter(|&i| done >> i & 1 == 0 && ops[i].kind == Kind::Load);
                if pending.any(|i| self.place(s, thread, &ops[i]).is_none_or(|other| other == place)) {
                    return None;
                }
                next.memory[place as usize] = s.value(thread, op.value);
                self.outdate(&mut next, thread, place);
            }
            Kind::Branch(_) => return None, // at once, see `settle`
            Kind::Fence => {}
            Kind::FenceAll => {
                if !(0..self.threads.len()).all(|other| other == thread || self.is_between(s, other)) {
                    return None;
                }
            }
            Kind::Wait => next.sleeps = s.memory[s.value(thread, op.at) as usize] == s.value(thread, op.value),
            Kind::Woken if s.sleeps => return None,
            Kind::Woken => {}
            Kind::Wake => next.sleeps = false,
        }
        self.settle(next, thread)
    }

    /// A thread has done what it does up to some point, and nothing ahead of that.
    fn is_between(&self, s: &State, thread: usize) -> bool {
        let ops = self.program(s, thread).ops.iter().enumerate();
        let done = ops.filter(|(_, op)| !matches!(op.kind, Kind::Branch(_))).map(|(i, _)| s.done[thread] >> i & 1 != 0);
        done.is_sorted_by(|before, after| before >= after)
    }

    /// Branches are gone past as soon as that is possible: nobody sees when. `None`: they go another way.
    fn settle(&self, mut s: State, thread: usize) -> Option<State> {
        let behind = &self.behind[thread][s.way[thread] as usize];
        for (number, op) in self.program(&s, thread).ops.iter().enumerate() {
            if let Kind::Branch(test) = op.kind
                && behind[number] & !s.done[thread] == 0
            {
                if !test.holds(s.value(thread, op.at), s.value(thread, op.value)) {
                    return None;
                }
                s.done[thread] |= 1 << number;
            }
        }
        Some(s)
    }

    /// What a load finds now.
    fn load(&self, s: &State, thread: usize, number: usize) -> Option<i8> {
        let (ops, done) = (&self.program(s, thread).ops, s.done[thread]);
        let place = s.value(thread, ops[number].at);
        let here = |&i: &usize| self.place(s, thread, &ops[i]) == Some(place);
        // A later load of the same place that came first must have found the same store.
        let later = (number + 1..ops.len()).filter(|&i| done >> i & 1 != 0 && ops[i].kind == Kind::Load);
        if later.filter(here).any(|i| s.stale[thread] >> i & 1 != 0) {
            return None;
        }
        let mut stores = (0..number).rev().filter(|&i| ops[i].kind == Kind::Store);
        match stores.find(here) {
            Some(own) if done >> own & 1 == 0 => {
                let store = &ops[own];
                let waits = store.exchange && ops[number].order.acquires() || store.value.needs() & !done != 0;
                (!waits).then(|| s.value(thread, store.value))
            }
            _ => Some(s.memory[place as usize]),
        }
    }

    /// A place was written: loads of other threads that are still to be compared are out of date.
    fn outdate(&self, next: &mut State, writer: usize, place: i8) {
        let s = &{ *next };
        for thread in (0..self.threads.len()).filter(|&thread| thread != writer) {
            let (ops, done) = (&self.program(s, thread).ops, s.done[thread]);
            let is_done = |i: usize| done >> i & 1 != 0;
            let here = |i: usize| self.place(s, thread, &ops[i]) == Some(place);
            for i in (0..ops.len()).filter(|&i| is_done(i) && ops[i].kind == Kind::Load && here(i)) {
                // It has found an own store that comes after this one.
                if (0..i).any(|own| !is_done(own) && ops[own].kind == Kind::Store && here(own)) {
                    continue;
                }
                let half = ops[i].exchange && !is_done(i + 1);
                let may_be_here = |j: usize| self.place(s, thread, &ops[j]).is_none_or(|other| other == place);
                let first = (0..i).any(|j| !is_done(j) && ops[j].kind == Kind::Load && may_be_here(j));
                if half || first {
                    next.stale[thread] |= 1 << i;
                }
            }
        }
    }
}

impl Machine {
    /// Whether operation `j` waits for the earlier operation `i`, wherever they are in memory if that is not known.
    fn ordered(self, ops: &[Op], i: usize, j: usize) -> bool {
        let (first, second) = (&ops[i], &ops[j]);
        let (loads, stores) = (|op: &Op| op.kind == Kind::Load, |op: &Op| op.kind == Kind::Store);
        let plain = |op: &Op| loads(op) || stores(op) || matches!(op.kind, Kind::Branch(_));
        if !plain(first) || !plain(second) {
            return true;
        }
        let value = if loads(second) { 0 } else { second.value.needs() };
        let needs = (second.at.needs() | value) >> i & 1 != 0;
        if needs || second.exchange && stores(second) && j == i + 1 {
            return true;
        }
        if self == Machine::X86 {
            let passes = stores(first) && !first.exchange && first.order != Order::SeqCst && !second.exchange;
            // A branch behind such a load waits for that, not for the store.
            return !passes || stores(second);
        }
        let same = first.at == second.at && !matches!(first.kind, Kind::Branch(_));
        let control = matches!(first.kind, Kind::Branch(_)) && stores(second);
        control
            || loads(first) && first.order.acquires()
            || stores(second) && second.order.releases()
            || stores(first) && first.order.releases() && loads(second) && second.order.acquires()
            || same && stores(second)
    }
}

impl Model for Weak {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let mut ways = vec![[0; THREADS]];
        for (thread, programs) in self.threads.iter().enumerate() {
            let with = |way: [u8; THREADS]| {
                (0..programs.len()).map(move |number| {
                    let mut way = way;
                    way[thread] = number as u8;
                    way
                })
            };
            ways = ways.into_iter().flat_map(with).collect();
        }
        let state = |way, memory| State {
            way,
            done: [0; THREADS],
            registers: [[0; REGISTERS]; THREADS],
            stale: [0; THREADS],
            memory,
            sleeps: false,
        };
        ways.into_iter().flat_map(|way| self.memory.iter().map(move |&memory| state(way, memory))).collect()
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        for thread in 0..self.threads.len() {
            for (number, op) in self.program(s, thread).ops.iter().enumerate() {
                if let Some(next) = self.perform(s, thread, number) {
                    steps.to(op.name, next);
                }
            }
        }
    }

    /// Nothing is said of executions that are none.
    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        if last && self.ended(s) { (self.in_the_end)(self, s) } else { Ok(()) }
    }
}
